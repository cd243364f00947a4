"""What a listing that names no models is said to be."""

from __future__ import annotations

import pytest

from gateway.cli.answering import unlisted
from gateway.cli.asking import Kind, Reply, Unanswered


@pytest.mark.parametrize(
    ("listing", "sentence"),
    [
        (
            Unanswered(Kind.REFUSED, "connection refused"),
            "Nothing answers at u: connection refused.",
        ),
        (Reply(401, {}, b"{}"), "u does not know this key, or got none (HTTP 401)."),
        (
            Reply(200, {}, b'{"data":[]}'),
            "u does not say which models this key may use (HTTP 200).",
        ),
    ],
)
def test_no_server_a_wrong_key_and_no_list_are_told_apart(
    listing: Reply | Unanswered, sentence: str
) -> None:
    assert unlisted("u", listing) == sentence
