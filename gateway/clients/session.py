"""Which conversation a request belongs to, from what clients say of it.

A conversation keeps its arm and, within it, its server. Where a client states it by several
signals, all of them carry one identifier (Claude Code's header and metadata, Codex's header and
prompt cache key), so the identity is that value alone, whichever signal it came by.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from gateway.clients.claude_code import CLAUDE_CODE, session_in
from gateway.clients.codex import CACHE_KEY, CODEX
from gateway.clients.known import OTHER
from gateway.clients.opencode import OPENCODE
from gateway.clients.profile import Headers

METADATA = "metadata.user_id"
FINGERPRINT = "fingerprint"

# In the order in which they count; opencode's first is everybody's.
SIGNALS = tuple(
    dict.fromkeys(
        (
            *OTHER.session_headers,
            *CLAUDE_CODE.session_headers,
            *CODEX.session_headers,
            CACHE_KEY,
            *OPENCODE.session_headers,
        )
    )
)
_RANK = {name: rank for rank, name in enumerate(SIGNALS) if name != CACHE_KEY}
_CODEX_RANK = SIGNALS.index(CACHE_KEY)
_NAMES = tuple(name.decode() for name in SIGNALS)
_NONE = len(SIGNALS)

# Hot: a slice compared costs less than a call.
(_CODEX,) = CODEX.agents
_CODEX_LENGTH = len(_CODEX)


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
            codex = codex or value[:_CODEX_LENGTH].lower() == _CODEX
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
        session = session_in(metadata_user_id)
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
