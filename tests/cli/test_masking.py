"""No secret leaves the doctor."""

from __future__ import annotations

import pytest

from gateway.cli.masking import Mask, bare, masked

KEY = "gwk9dXc2Lq7Vn4Rb8Tw1Zk6Mf"


@pytest.mark.parametrize(
    ("secret", "shown"),
    [
        (KEY, "gwk9… (25 characters)"),
        ("0123456789abcde", "… (15 characters)"),
        ("", "… (0 characters)"),
        ("\x1b[2Jsecret-of-terminals", "?[2J… (23 characters)"),
    ],
)
def test_at_most_four_characters_and_the_length(secret: str, shown: str) -> None:
    assert masked(secret) == shown


@pytest.mark.parametrize(
    "given", [KEY, f'"{KEY}"', f" {KEY}\n", f"Bearer {KEY}", f"'bearer  {KEY}'"]
)
def test_a_known_secret_is_hidden_however_it_was_copied(given: str) -> None:
    hidden = Mask((given,)).hide(f"you sent {KEY}, and {given}!")
    assert KEY not in hidden and KEY[4:9] not in hidden
    assert bare(given) == KEY


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdefgh12345678",
        "Proxy-Authorization: Basic YWxpY2U6c2VjcmV0",
        '{"api_key": "abcdefgh12345678"}',
        '{"access_token":"abcdefgh12345678"}',
        "sk-proj-abcdefgh12345678",
        "hf_abcdefgh12345678",
        "eyJhbGciOi.eyJzdWIiOi.abcdefgh12345678",
        "http://alice:abcdefgh12345678@proxy:3128",
    ],
)
def test_what_has_the_form_of_a_secret_is_hidden(text: str) -> None:
    hidden = Mask().hide(f"before {text} after")
    assert hidden.startswith("before ") and hidden.endswith(" after")
    assert "12345678" not in hidden and "YWxpY2U6c2VjcmV0" not in hidden


def test_ordinary_words_stay() -> None:
    text = "Model llama-3-70b at http://127.0.0.1:8080/v1: HTTP 401, 30 tokens.\n  a\ttab"
    assert Mask(("dev", "")).hide(text) == text.replace("\t", "?")


def test_the_environment_s_secrets_by_name() -> None:
    mask = Mask()
    mask.learn(
        {"MY_TOKEN": "hunter22", "OPS_KEYS": "tr0ub4dor", "HOME": "/home/x", "KEYRING": "abcdefg"}
    )
    assert mask.hide("hunter22 tr0ub4dor /home/x abcdefg") == (
        "… (8 characters) … (9 characters) /home/x abcdefg"
    )
