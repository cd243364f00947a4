from __future__ import annotations

import base64
import secrets

import pytest

from gateway.settings.strength import weakness

SHORT = "is too short: a key needs at least 128 random bits; make one with: openssl rand -hex 32"
GUESSED = "is easy to guess; make one with: openssl rand -hex 32"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("secret", SHORT),
        ("sk-" + "3f9a1c7be24d608b5f12e0d7c9a83b4", SHORT),  # 31 hexadecimal digits
        ("Yk3vq0Zt8Rw2Lx5Nc7Bd1", SHORT),  # 21 characters of base64
        ("82736455091827364519283746501928", SHORT),  # 32 decimal digits: 106 bits
        ("a" * 64, GUESSED),
        ("change-me-change-me-change-me", GUESSED),
        ("sk-your-api-key-goes-here-now-please", GUESSED),
        ("0123456789abcdef" * 2, GUESSED),
        ("correct-horse-password-staple", GUESSED),
    ],
)
def test_weak(key: str, text: str) -> None:
    assert weakness(key) == text


def test_a_run_of_like_digits_happens_to_random_keys_too() -> None:
    assert weakness("4c000000b1e79d25f386a0c9d4b71e58") is None


def test_random_keys_pass() -> None:
    for _ in range(300):
        for key in (
            secrets.token_hex(16),
            secrets.token_hex(32),
            "sk-" + secrets.token_urlsafe(24),
            base64.b64encode(secrets.token_bytes(24)).decode(),
        ):
            assert weakness(key) is None, key
