"""Items that stand for what the API's operator runs: searches, shells, sandboxes, compaction.

A shell and its kin are run by the client, so they are tool calls in all but name. Of the rest
only a short note is left, so that the conversation still makes sense.
"""

from __future__ import annotations

import msgspec

CALLS = {
    "local_shell_call": "local_shell",
    "shell_call": "shell",
    "apply_patch_call": "apply_patch",
    "computer_call": "computer",
    "tool_search_call": "tool_search",
}
"""Items that call a tool of the client's, and what the tool is called here."""

RESULTS = frozenset(
    {
        "local_shell_call_output",
        "shell_call_output",
        "apply_patch_call_output",
        "computer_call_output",
        "tool_search_output",
    }
)
"""What came of such a call."""

NOTED = {
    "web_search_call": "web search",
    "file_search_call": "file search",
    "code_interpreter_call": "code run",
    "image_generation_call": "image generated",
    "mcp_call": "tool called",
    "program": "program run",
}
"""What the operator did for the assistant, in two words."""

COMPACTED = frozenset({"compaction", "compaction_summary", "context_compaction"})
COMPACTION = "[Earlier parts of this conversation were left out here.]"

SILENT = frozenset(
    {
        "mcp_list_tools",
        "mcp_approval_request",
        "mcp_approval_response",
        "compaction_trigger",
        "program_output",
        "ghost_snapshot",
    }
)
"""Bookkeeping that says nothing to a model."""


class _Action(msgspec.Struct, gc=False):
    query: str | None = None
    queries: list[str] | None = None
    url: str | None = None


_action = msgspec.json.Decoder(_Action).decode


def note(kind: str, name: str | None, action: bytes | msgspec.Raw | None) -> str:
    """What to say of an item in `NOTED`: `[web search: weather seattle]`.

    Args:
        action: the item's `action`, JSON.
    """
    about = name or ""
    if action is not None:
        try:
            did = _action(action)
        except (msgspec.DecodeError, RecursionError):
            did = _Action()
        about = did.query or ", ".join(did.queries or ()) or did.url or about
    return f"[{NOTED[kind]}: {about}]" if about else f"[{NOTED[kind]}]"
