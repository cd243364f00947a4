"""Requests of real clients that the engine refuses as they are, and the gateway repairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

HI = {"role": "user", "content": "hi"}
MESSAGES, RESPONSES = "/v1/messages", "/v1/responses"


@dataclass(frozen=True)
class Case:
    """Attributes:
    status: what the engine itself answers.
    """

    name: str
    path: str
    body: dict[str, Any]
    status: int = 400

    def __str__(self) -> str:
        return f"{self.path.rpartition('/')[2]}: {self.name}"


def message(name: str, *content: dict[str, Any], status: int = 400, **fields: Any) -> Case:
    """A Messages request: its fields, or the blocks of its second turn."""
    body: dict[str, Any] = {"max_tokens": 4, "messages": [HI]}
    if content:
        body["messages"] = [HI, {"role": "assistant", "content": list(content)}, HI]
    return Case(name, MESSAGES, body | fields, status)


def response(name: str, *items: dict[str, Any], status: int = 400, **fields: Any) -> Case:
    """A Responses request: its fields, or the items between its first turn and its last."""
    body: dict[str, Any] = {"max_output_tokens": 4, "input": [HI, *items, HI]}
    return Case(name, RESPONSES, body | fields, status)


def thinking(budget: int, most: int) -> dict[str, Any]:
    return {"max_tokens": most, "thinking": {"type": "enabled", "budget_tokens": budget}}


FUNCTION = {"type": "function", "name": "shell", "parameters": {"type": "object"}}
OWN = {"name": "grep", "input_schema": {"type": "object"}}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": 'start: "a"'}
PAPER = {"type": "text", "media_type": "text/plain", "data": "All of it."}
SEARCHED = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
CALL = {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{}"}
RAN = {"type": "exec", "command": ["ls"], "env": {}}

CASES = [
    message("a server tool for the web", tools=[OWN, {"type": "web_search_20250305", "name": "w"}]),
    message("a server tool for a shell", tools=[OWN, {"type": "bash_20250124", "name": "bash"}]),
    message("a document", messages=[{**HI, "content": [{"type": "document", "source": PAPER}]}]),
    message("a server's tool call", {"type": "server_tool_use", "id": "s", "name": "w"}),
    message("a server's tool result", SEARCHED),
    message("a developer", messages=[{"role": "developer", "content": "Be short."}, HI]),
    message("no content", messages=[HI, {"role": "assistant", "content": None}, HI]),
    message("a call's input as text", {"type": "tool_use", "id": "t", "name": "grep", "input": ""}),
    message("too small a budget of thought", **thinking(500, 8)),
    message("a budget beyond all tokens", **thinking(4096, 8)),
    message("minimal effort", output_config={"effort": "minimal"}),
    message("no tokens at all", max_tokens=0),
    message("five stop sequences", stop_sequences=["§1", "§2", "§3", "§4", "§5"]),
    response("a custom tool", tools=[{"type": "custom", "name": "patch", "format": GRAMMAR}]),
    response("a tool of another server", tools=[FUNCTION, {"type": "of_next_year"}]),
    response("a demand for a search", tools=[FUNCTION], tool_choice={"type": "web_search"}),
    response("a fast tier", service_tier="fast"),
    response("ultra effort", reasoning={"effort": "ultra"}),
    response("no summary wanted", reasoning={"summary": "none"}),
    response(
        "encrypted reasoning",
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
    ),
    response("reasoning without a summary", {"type": "reasoning", "id": "rs_1", "content": []}),
    response(
        "a search in the past",
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "vllm"},
        },
    ),
    response(
        "a local shell in the past",
        {"type": "local_shell_call", "id": "ls", "call_id": "c", "status": "done", "action": RAN},
    ),
    response("a compaction", {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}),
    response(
        "an answer of nothing",
        {"type": "message", "role": "assistant", "content": []},
        status=500,
    ),
]
