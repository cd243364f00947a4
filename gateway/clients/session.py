"""Which conversation a request belongs to, from what clients say of it.

A conversation keeps its arm and, within it, its server. Where a client states it by several
signals, all of them carry one identifier (Claude Code's header and metadata, Codex's header and
prompt cache key), so the identity is that value alone, whichever signal it came by.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from hashlib import blake2b

import msgspec

Headers = Sequence[tuple[bytes, bytes]]

CODEX_KEY = b"prompt_cache_key"
METADATA = "metadata.user_id"
FINGERPRINT = "fingerprint"

# In the order in which they count. Sub-agents of Codex have threads of their own within one
# session, so the session comes first.
SIGNALS = (
    b"x-session-id",
    b"x-claude-code-session-id",
    b"session-id",
    b"thread-id",
    CODEX_KEY,
    b"x-session-affinity",
)
_RANK = {name: rank for rank, name in enumerate(SIGNALS) if name != CODEX_KEY}
_CODEX_RANK = SIGNALS.index(CODEX_KEY)
_NAMES = tuple(name.decode() for name in SIGNALS)
_NONE = len(SIGNALS)

# Claude Code before it wrote JSON there: user_<hash>_account_<uuid or nothing>_session_<uuid>.
_OLD_METADATA = re.compile(
    r"_session_([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})", re.IGNORECASE
)


class _Metadata(msgspec.Struct, gc=False):
    """What Claude Code writes, as a JSON string, into `metadata.user_id`."""

    session_id: str = ""


_decode_metadata = msgspec.json.Decoder(_Metadata).decode


def identify(
    headers: Headers,
    *,
    metadata_user_id: str | None,
    prompt_cache_key: str | None,
    fingerprint: Callable[[], bytes],
) -> tuple[bytes, str]:
    """The identity of a request's conversation, raw, and the name of the signal it came from.

    A `prompt_cache_key` counts only from Codex, and a `metadata.user_id` only where it names a
    session: from others they are a person or a constant.

    Args:
        headers: names in lower case.
        metadata_user_id, prompt_cache_key: these fields of the body, where they are strings.
        fingerprint: of system text and first user message; called only if nothing else is there.
    """
    rank, identity, codex = _NONE, b"", False
    for name, value in headers:
        if name == b"user-agent" or name == b"originator":
            codex = codex or value[:5].lower() == b"codex"
        elif name in _RANK:
            place = _RANK[name]
            value = value.strip()
            if value and place < rank:
                rank, identity = place, value
    if prompt_cache_key and codex and rank > _CODEX_RANK:
        return prompt_cache_key.encode(errors="surrogatepass"), _NAMES[_CODEX_RANK]
    if rank < _NONE:
        return identity, _NAMES[rank]
    if metadata_user_id:
        session = _session_in(metadata_user_id)
        if session:
            return session.encode(errors="surrogatepass"), METADATA
    return fingerprint(), FINGERPRINT


def session_hash(key_id: str, identity: bytes) -> int:
    """The 64-bit number the split is drawn from.

    Keyed with the key's id, so nobody can choose an identity that lands on another key's session.

    Args:
        key_id: at most 64 bytes.
    """
    return int.from_bytes(blake2b(identity, digest_size=8, key=key_id.encode()).digest())


def _session_in(user_id: str) -> str:
    """The session a `metadata.user_id` names, or nothing."""
    if user_id[0] == "{":
        try:
            return _decode_metadata(user_id).session_id.strip()
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return ""
    old = _OLD_METADATA.search(user_id)
    return old[1] if old else ""
