"""Token counts as each API states them, in one form: `Usage.prompt` includes cached tokens.

Counts come from a backend and may be missing, null or of a wrong type; those count as not said.
"""

from __future__ import annotations

from typing import Any

from gateway.records import Usage


def of_chat(block: Any) -> Usage | None:
    """From `usage` of chat completions, completions, embeddings, rerank or score."""
    if not isinstance(block, dict):
        return None
    prompt = _count(block, "prompt_tokens")
    if prompt is None:
        # Rerank and score of some engines state a total only, and generate nothing.
        prompt = _count(block, "total_tokens")
    completion = _count(block, "completion_tokens")
    if prompt is None and completion is None:
        return None
    cached = _count(block.get("prompt_tokens_details"), "cached_tokens")
    return Usage(prompt or 0, cached or 0, completion or 0)


def of_responses(block: Any) -> Usage | None:
    """From `response.usage`; `input_tokens` includes the cached ones."""
    prompt, completion = _count(block, "input_tokens"), _count(block, "output_tokens")
    if prompt is None and completion is None:
        return None
    cached = _count(block.get("input_tokens_details"), "cached_tokens")
    return Usage(prompt or 0, cached or 0, completion or 0)


def of_messages(block: Any, earlier: Usage | None = None) -> Usage | None:
    """From `usage` of Messages, where `input_tokens` leaves cached tokens out.

    Args:
        earlier: what `message_start` said. Its prompt stands unless `message_delta` states one:
            the delta may give output alone, and some servers start with zeros.
    """
    parts = [
        _count(block, name)
        for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    ]
    completion = _count(block, "output_tokens")
    if completion is None and not any(part is not None for part in parts):
        return earlier
    prompt, cached = sum(part or 0 for part in parts), parts[1] or 0
    if earlier is not None:
        if prompt == 0:
            prompt, cached = earlier.prompt, earlier.cached
        if completion is None:
            completion = earlier.completion
    return Usage(prompt, cached, completion or 0)


def _count(block: Any, name: str) -> int | None:
    value = block.get(name) if isinstance(block, dict) else None
    return value if type(value) is int and value >= 0 else None
