"""Credentials: which are taken, what the others are told, and that no key leaks."""

from __future__ import annotations

import hashlib
import hmac
import logging
import traceback
from typing import Any

import pytest

from gateway.errors import Unauthorized
from gateway.keys.keyring import Key, KeyRing
from gateway.settings import KeySettings
from gateway.settings.strength import weakness

ALICE = "sk-Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5"
BOB = "sk-Qk9Cc2VjcmV0a2V5OTg3NjU0MzIx"
STRANGER = b"sk-c3RyYW5nZXJzdHJhbmdlcnN0cmFuZ2Vy"


@pytest.fixture
def ring() -> KeyRing:
    digest = hashlib.sha256(BOB.encode()).hexdigest()
    return KeyRing(
        [
            KeySettings.model_validate({"name": "alice", "key": ALICE, "models": ["llama-*"]}),
            KeySettings.model_validate({"name": "bob", "key_sha256": digest, "arms": ["a"]}),
        ]
    )


def bearer(key: str | bytes) -> tuple[bytes, bytes]:
    return (b"authorization", b"Bearer " + (key if isinstance(key, bytes) else key.encode()))


def x_api_key(key: str | bytes) -> tuple[bytes, bytes]:
    return (b"x-api-key", key if isinstance(key, bytes) else key.encode())


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ([bearer(ALICE)], "alice"),
        ([x_api_key(ALICE)], "alice"),
        ([bearer(BOB)], "bob"),
        ([x_api_key(BOB)], "bob"),
        ([(b"host", b"h"), (b"authorization", b"bearer  " + ALICE.encode() + b" ")], "alice"),
        ([(b"authorization", b"BEARER " + ALICE.encode())], "alice"),
        ([x_api_key(b" " + ALICE.encode() + b" ")], "alice"),
        # Both headers: the bearer counts, and the other is tried only when it is unknown.
        ([bearer(ALICE), x_api_key(BOB)], "alice"),
        ([x_api_key(BOB), bearer(ALICE)], "alice"),
        ([bearer(STRANGER), x_api_key(BOB)], "bob"),
        ([bearer(b""), x_api_key(BOB)], "bob"),
        ([(b"authorization", b"Basic Zm9vOmJhcg=="), x_api_key(BOB)], "bob"),
        ([bearer(ALICE), x_api_key(b"")], "alice"),
        ([bearer(ALICE), x_api_key(STRANGER)], "alice"),
    ],
)
def test_a_credential_names_its_key(
    ring: KeyRing, headers: list[tuple[bytes, bytes]], name: str
) -> None:
    assert ring.authenticate(headers).name == name


SEND = "send `Authorization: Bearer <key>` or `x-api-key: <key>`"


@pytest.mark.parametrize(
    ("headers", "parts"),
    [
        ([], ["No key was sent", SEND]),
        ([(b"host", b"h"), x_api_key(b"  ")], ["No key was sent", SEND]),
        ([(b"authorization", ALICE.encode())], ["does not say `Bearer <key>`", SEND]),
        ([(b"authorization", b"Basic Zm9v")], ["does not say `Bearer <key>`", SEND]),
        ([(b"authorization", b"")], ["does not say `Bearer <key>`", SEND]),
        ([(b"authorization", b"Bearer ")], ["does not say `Bearer <key>`", SEND]),
        ([bearer(STRANGER)], ["in the Authorization header", "at least 22 characters", "whole"]),
        ([bearer(ALICE[:-1])], ["in the Authorization header", "copied whole"]),
        ([x_api_key(STRANGER)], ["in the x-api-key header", "copied whole"]),
        ([(b"authorization", b"Basic Zm9v"), x_api_key(STRANGER)], ["in the x-api-key header"]),
        ([bearer(STRANGER), x_api_key(STRANGER)], ["Authorization or x-api-key header"]),
        ([bearer(b"\xff\xfe\x00")], ["in the Authorization header"]),
    ],
)
def test_a_refusal_says_what_to_send(
    ring: KeyRing, headers: list[tuple[bytes, bytes]], parts: list[str]
) -> None:
    with pytest.raises(Unauthorized) as caught:
        ring.authenticate(headers)
    assert all(part in caught.value.message for part in parts), caught.value.message
    assert caught.value.status == 401
    assert caught.value.code == "invalid_api_key"


def test_a_refusal_repeats_nothing_of_what_was_sent(
    ring: KeyRing, caplog: pytest.LogCaptureFixture
) -> None:
    messages = set()
    for sent in (STRANGER, ALICE[:-1].encode(), b"x", b"x" * 5000):
        with pytest.raises(Unauthorized) as caught, caplog.at_level(logging.DEBUG):
            ring.authenticate([bearer(sent)])
        messages.add("".join(traceback.format_exception(caught.value)))
        messages.add(repr(vars(caught.value)))
    assert len(messages) <= 2  # the same words whatever was sent, its length included
    assert caplog.text == ""


def test_no_key_is_kept_or_shown(ring: KeyRing) -> None:
    key = ring.authenticate([bearer(ALICE)])
    kept = repr([getattr(ring, slot) for slot in KeyRing.__slots__])
    for text in (kept, repr(ring), str(ring), repr(key), repr(ring.keys)):
        assert ALICE not in text
        assert ALICE[3:15] not in text
    assert not hasattr(ring, "__dict__")


def test_the_digest_is_compared_in_constant_time(
    ring: KeyRing, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[Any, Any]] = []

    def compare(a: Any, b: Any) -> bool:
        compared.append((a, b))
        return False

    monkeypatch.setattr(hmac, "compare_digest", compare)
    with pytest.raises(Unauthorized):
        ring.authenticate([bearer(ALICE)])
    digest = hashlib.sha256(ALICE.encode()).digest()
    assert compared == [(digest, digest)]


def test_a_key_is_named_by_its_digest_and_carries_its_settings() -> None:
    settings = KeySettings.model_validate(
        {
            "name": "dev",
            "key": ALICE,
            "models": ["m1", "llama-*"],
            "requests_per_minute": 600,
            "tokens_per_minute": 200_000,
            "max_concurrency": 32,
            "arms": ["a", "b"],
            "cache_salt": True,
            "expose_arm": False,
            "engine_fields": True,
        }
    )
    (key,) = KeyRing([settings]).keys
    assert key == Key(
        id=hashlib.sha256(ALICE.encode()).hexdigest()[:12],
        name="dev",
        models=("m1", "llama-*"),
        requests_per_minute=600,
        tokens_per_minute=200_000,
        max_concurrency=32,
        arms=("a", "b"),
        cache_salt=True,
        expose_arm=False,
        engine_fields=True,
    )


def test_a_key_given_as_digest_has_the_same_id() -> None:
    plain = KeySettings.model_validate({"name": "k", "key": ALICE})
    digest = hashlib.sha256(ALICE.encode()).hexdigest()
    hashed = KeySettings.model_validate({"name": "k", "key_sha256": digest.upper()})
    assert KeyRing([plain]).keys == KeyRing([hashed]).keys


@pytest.mark.parametrize(
    ("models", "model", "allowed"),
    [
        (("*",), "anything/at-all", True),
        (("m1",), "m1", True),
        (("m1",), "m10", False),
        (("m1",), "M1", False),
        (("llama-*",), "llama-3-70b", True),
        (("llama-*",), "qwen", False),
        (("llama-?b", "qwen"), "llama-7b", True),
        (("llama-?b", "qwen"), "llama-70b", False),
        ((), "m1", False),
    ],
)
def test_models_are_allowed_by_name_or_pattern(
    models: tuple[str, ...], model: str, allowed: bool
) -> None:
    assert Key("id", "k", models=models).allows_model(model) is allowed


@pytest.mark.parametrize(
    ("arms", "arm", "allowed"),
    [
        ("any", "a", True),
        ("none", "a", False),
        ("none", "none", False),
        (("a", "b"), "a", True),
        (("a", "b"), "c", False),
        (("a", "b"), "any", False),
    ],
)
def test_arms_are_chosen_by_hand_where_the_key_allows(
    arms: str | tuple[str, ...], arm: str, allowed: bool
) -> None:
    assert Key("id", "k", arms=arms).allows_arm(arm) is allowed


def test_an_empty_ring_refuses_everyone() -> None:
    with pytest.raises(Unauthorized, match="copied whole"):
        KeyRing([]).authenticate([bearer(ALICE)])


def test_the_shortest_key_named_is_the_shortest_that_settings_allow() -> None:
    assert weakness("Zm9vYmFyYmF6cXV4MTIzNQ") is None  # 22 characters
    assert weakness("Zm9vYmFyYmF6cXV4MTIzN") is not None
