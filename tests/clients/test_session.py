"""Which conversation a request belongs to, by the signals that real clients send."""

from __future__ import annotations

import json
from collections import Counter
from hashlib import blake2b
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.clients.session import identify, session_hash

Headers = list[tuple[bytes, bytes]]

SESSION = "5f0c2b6e-8a54-4f5b-9d38-0c7a3a3e9b11"
OTHER = "0199f3c2-7b1d-7e02-8f43-6d1c2a9b8e77"
THREAD = "0199f3c2-9999-7e02-8f43-6d1c2a9b8e77"

CLAUDE: Headers = [
    (b"host", b"gateway.example"),
    (b"accept", b"application/json"),
    (b"user-agent", b"claude-cli/2.1.197 (external, cli)"),
    (b"x-claude-code-session-id", SESSION.encode()),
    (b"x-stainless-lang", b"js"),
    (b"anthropic-version", b"2023-06-01"),
    (b"authorization", b"Bearer sk-x"),
    (b"content-type", b"application/json"),
]
CLAUDE_METADATA = json.dumps({"device_id": "a" * 64, "account_uuid": "", "session_id": SESSION})
CODEX: Headers = [
    (b"host", b"gateway.example"),
    (b"accept", b"text/event-stream"),
    (b"user-agent", b"codex_exec/0.171.0 (Ubuntu 24.4.0; x86_64) xterm (codex_exec; 0.171.0)"),
    (b"originator", b"codex_exec"),
    (b"session-id", OTHER.encode()),
    (b"thread-id", THREAD.encode()),
    (b"authorization", b"Bearer sk-x"),
]
OPENCODE: Headers = [
    (b"user-agent", b"opencode/1.18.33 ai-sdk/provider-utils/3.0.0 runtime/bun/1.3.0"),
    (b"x-session-affinity", b"ses_5d1e0affinity"),
    (b"x-session-id", b"ses_5d1e0session"),
]
CLINE: Headers = [(b"user-agent", b"Cline/3.0.65"), (b"http-referer", b"https://cline.bot")]


def of(
    headers: Headers, user_id: str | None = None, cache_key: str | None = None
) -> tuple[bytes, str]:
    return identify(
        headers,
        metadata_user_id=user_id,
        prompt_cache_key=cache_key,
        fingerprint=lambda: b"fingerprint",
    )


def without(headers: Headers, *names: bytes) -> Headers:
    return [header for header in headers if header[0] not in names]


NOTHING = (b"fingerprint", "fingerprint")


@pytest.mark.parametrize(
    ("headers", "user_id", "cache_key", "expected"),
    [
        # Claude Code: the header, and the same identifier by metadata where a proxy drops it.
        (CLAUDE, CLAUDE_METADATA, None, (SESSION.encode(), "x-claude-code-session-id")),
        (CLAUDE, None, None, (SESSION.encode(), "x-claude-code-session-id")),  # count_tokens
        (
            without(CLAUDE, b"x-claude-code-session-id"),
            CLAUDE_METADATA,
            None,
            (SESSION.encode(), "metadata.user_id"),
        ),
        # Codex: session before thread before prompt cache key.
        (CODEX, None, OTHER, (OTHER.encode(), "session-id")),
        (without(CODEX, b"session-id"), None, OTHER, (THREAD.encode(), "thread-id")),
        (
            without(CODEX, b"session-id", b"thread-id"),
            None,
            OTHER,
            (OTHER.encode(), "prompt_cache_key"),
        ),
        (without(CODEX, b"session-id", b"thread-id"), None, None, NOTHING),
        (
            without(CODEX, b"session-id", b"thread-id", b"user-agent"),
            None,
            OTHER,
            (OTHER.encode(), "prompt_cache_key"),
        ),
        # opencode sends two headers; x-session-id counts first whatever their order.
        (OPENCODE, None, None, (b"ses_5d1e0session", "x-session-id")),
        (OPENCODE[::-1], None, None, (b"ses_5d1e0session", "x-session-id")),
        (
            without(OPENCODE, b"x-session-id"),
            None,
            None,
            (b"ses_5d1e0affinity", "x-session-affinity"),
        ),
        # cline, qwen and cn send none.
        (CLINE, None, None, NOTHING),
        ([], None, None, NOTHING),
    ],
)
def test_real_clients(
    headers: Headers, user_id: str | None, cache_key: str | None, expected: tuple[bytes, str]
) -> None:
    assert of(headers, user_id, cache_key) == expected


ORDER = [
    "x-session-id",
    "x-claude-code-session-id",
    "session-id",
    "thread-id",
    "prompt_cache_key",
    "x-session-affinity",
    "metadata.user_id",
]


@pytest.mark.parametrize(("first", "second"), list(combinations(ORDER, 2)))
@pytest.mark.parametrize("turned", [False, True])
def test_the_order_of_the_signals(first: str, second: str, turned: bool) -> None:
    in_body = ("prompt_cache_key", "metadata.user_id")
    sent = [name for name in (first, second) if name not in in_body]
    headers = [(name.encode(), b"from " + name.encode()) for name in sent]
    headers.append((b"originator", b"codex_cli_rs"))
    source = of(
        headers[::-1] if turned else headers,
        CLAUDE_METADATA if second == "metadata.user_id" else None,
        "from prompt_cache_key" if "prompt_cache_key" in (first, second) else None,
    )
    assert source == (b"from " + first.encode(), first)


@pytest.mark.parametrize("agent", [b"openai/python 2.1.0", b"my-codex/1", b"", b"cod"])
def test_a_prompt_cache_key_of_others_is_no_session(agent: bytes) -> None:
    assert of([(b"user-agent", agent)], None, "one-for-everybody") == NOTHING


@pytest.mark.parametrize(
    "user_id",
    [
        f"user_{'a' * 64}_account__session_{SESSION}",
        f"user_{'a' * 64}_account_{OTHER}_session_{SESSION}",
        CLAUDE_METADATA,
        json.dumps({"session_id": SESSION, "more": {"nested": [1, 2]}}),
    ],
)
def test_metadata_that_names_a_session(user_id: str) -> None:
    assert of([], user_id) == (SESSION.encode(), "metadata.user_id")


@pytest.mark.parametrize(
    "user_id",
    [
        "",
        "alice@example.com",
        "user-1234",
        SESSION,
        f"user_{'a' * 64}_account_{OTHER}",
        "user_x_session_",
        "user_x_session_1234",
        "{}",
        "{not json",
        '{"session_id": null}',
        '{"session_id": 7}',
        '{"session_id": ""}',
        '{"session_id": "  "}',
        '{"user": {"session_id": "deeper"}}',
        "[1]",
        "\ud800",
        "{\ud800",
        '{"a":' * 100_000,
    ],
)
def test_metadata_that_names_a_person_or_nothing(user_id: str) -> None:
    assert of([], user_id) == NOTHING


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([(b"x-session-id", b"")], NOTHING),
        ([(b"x-session-id", b"  "), (b"session-id", b"s")], (b"s", "session-id")),
        ([(b"x-session-id", b" s ")], (b"s", "x-session-id")),
        ([(b"x-session-id", b"1"), (b"x-session-id", b"2")], (b"1", "x-session-id")),
        ([(b"x-session-id", b"\xff\x00")], (b"\xff\x00", "x-session-id")),
        ([(b"prompt_cache_key", b"smuggled")], NOTHING),
        ([(b"x-gateway-session", b"s")], NOTHING),
    ],
)
def test_odd_headers(headers: Headers, expected: tuple[bytes, str]) -> None:
    assert of(headers) == expected


def test_odd_cache_keys_do_no_harm() -> None:
    codex: Headers = [(b"user-agent", b"Codex Desktop/1.0")]
    assert of(codex, None, "\ud800")[1] == "prompt_cache_key"
    assert of(codex, None, "") == NOTHING


def test_the_fingerprint_is_taken_only_when_nothing_else_is_there() -> None:
    def never() -> bytes:
        raise AssertionError("costs a walk through the body")

    for headers, user_id in (
        (CLAUDE, None),
        (CODEX, None),
        (OPENCODE, None),
        ([], CLAUDE_METADATA),
    ):
        identify(headers, metadata_user_id=user_id, prompt_cache_key=None, fingerprint=never)


def test_the_hash_is_keyed_blake2b_and_stays_so() -> None:
    """A change would move every session to another arm at the next deployment."""
    key, identity = "0123456789ab", SESSION.encode()
    expected = blake2b(identity, digest_size=8, key=key.encode()).hexdigest()
    assert f"{session_hash(key, identity):016x}" == expected == "e64b148a14a7dd8c"


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_one_key_cannot_name_anothers_session(mine: bytes, other: bytes) -> None:
    assert session_hash("0123456789ab", mine) != session_hash("ba9876543210", other)


@given(st.binary(max_size=200))
def test_hashes_have_64_bits(identity: bytes) -> None:
    value = session_hash("0123456789ab", identity)
    assert 0 <= value < 2**64
    assert value == session_hash("0123456789ab", identity)


def test_hashes_spread_evenly() -> None:
    hashes = [session_hash("0123456789ab", b"session-%d" % n) for n in range(16_000)]
    assert len(set(hashes)) == len(hashes)
    for shift in (0, 60):  # the lowest and the highest four bits: 1,000 of each, sigma 31
        counts = Counter((value >> shift) & 15 for value in hashes)
        assert max(abs(count - 1000) for count in counts.values()) < 5 * 31
