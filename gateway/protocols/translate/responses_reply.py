"""What a chat server answered as a response of the Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.protocols.translate.chat_frames import Chat, Delta, ToolCall, reply
from gateway.protocols.translate.responses_request import Asked

_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}

Item = Mapping[str, Any]


class TextKind(msgspec.Struct, frozen=True):
    """One of the three kinds of text an answer has.

    Attributes:
        item: the prefix of its items' ids.
        part: the type of the part that holds it.
        field: where the text stands in that part.
        event: what its deltas are called, without `.delta`.
        announced: whether its part has events of its own; reasoning goes without.
    """

    item: str
    part: str
    field: str
    event: str
    announced: bool = True

    def content(self, text: str) -> dict[str, Any]:
        """The part with a text in it."""
        part: dict[str, Any] = {"type": self.part, self.field: text}
        if self.part == "output_text":
            part |= {"annotations": [], "logprobs": []}
        return part

    def output(self, item_id: str, content: list[Any], status: str) -> Item:
        """An item of this kind."""
        if self.item == "rs":
            form: dict[str, Any] = {"type": "reasoning", "summary": []}
        else:
            form = {"type": "message", "role": "assistant"}
        return {"id": item_id, **form, "content": content, "status": status}


REASONING = TextKind("rs", "reasoning_text", "text", "response.reasoning_text", announced=False)
TEXT = TextKind("msg", "output_text", "text", "response.output_text")
REFUSAL = TextKind("msg", "refusal", "refusal", "response.refusal")


class Answer:
    """The response that one request gets, under the ids it has from its first event to its last.

    Args:
        model: as the client named it.
        request_id: what all ids are made of.
        created: Unix seconds.
    """

    __slots__ = ("_head", "id", "model", "names", "request_id")

    def __init__(self, asked: Asked, model: str, request_id: str, created: int) -> None:
        self.id = f"resp_{request_id}"
        self.model = model
        self.request_id = request_id
        self.names = asked.names
        self._head = {
            "id": self.id,
            "object": "response",
            "created_at": created,
            "model": model,
            "error": None,
            "store": False,
            **asked.echo,
        }

    def item_id(self, prefix: str, index: int) -> str:
        return f"{prefix}_{self.request_id}_{index}"

    def call_id(self, given: str | None, output: list[Item]) -> str:
        """What the next item's call is answered by: the backend's id, if it gave one of a kind."""
        if given and all(item.get("call_id") != given for item in output):
            return given
        return self.item_id("call", len(output))

    def call(self, index: int, call_id: str, name: str, arguments: str, status: str) -> Item:
        """The item of a tool call, under the client's own name for the tool.

        Args:
            name: the function that the backend called.
        """
        prefix = "ctc" if self.names.called(name).custom else "fc"
        item = {
            "id": self.item_id(prefix, index),
            "type": "function_call",
            "call_id": call_id,
            "name": name,
            "arguments": arguments,
            "status": status,
        }
        return self.names.restore(item)

    def begun(self) -> dict[str, Any]:
        """The response before there is any of it."""
        return self._response("in_progress", [], None, None)

    def ended(self, finish: str | None, output: list[Item], usage: Any) -> dict[str, Any]:
        """The response at its end.

        An answer that was cut is `incomplete`, which is the API's truth, although Codex then
        throws the turn away.

        Args:
            finish: chat's `finish_reason`.
            output: all items; without one Codex would ask again, so there is always one.
            usage: from `usage_of`.
        """
        reason = _REASONS.get(finish or "")
        return self._response(status_of(finish), output, usage, reason)

    def _response(
        self, status: str, output: list[Item], usage: Any, reason: str | None
    ) -> dict[str, Any]:
        return {
            **self._head,
            "status": status,
            "incomplete_details": {"reason": reason} if reason else None,
            "output": output,
            "usage": usage,
        }


def whole(answer: Answer, body: bytes) -> bytes:
    """An unstreamed chat reply as a response.

    Raises:
        ValueError: it is no chat reply.
    """
    choice, chat = reply(body)
    finish = choice.finish_reason
    output = _output(answer, choice.message or Delta(), status_of(finish))
    return msgspec.json.encode(answer.ended(finish, output, usage_of(chat)))


def _output(answer: Answer, message: Delta, status: str) -> list[Item]:
    """The items; `status` is that of the last one, all others have been completed."""
    said = [
        (kind, text)
        for kind, text in (
            (REASONING, message.thought),
            (TEXT, message.content),
            (REFUSAL, message.refusal),
        )
        if text
    ]
    calls = message.tool_calls or []
    if not said and not calls:
        said = [(TEXT, "")]
    last = len(said) + len(calls) - 1
    output: list[Item] = []
    for kind, text in said:
        state = status if len(output) == last else "completed"
        output.append(_text(answer, kind, len(output), text, state))
    for call in calls:
        state = status if len(output) == last else "completed"
        output.append(_call(answer, call, output, state))
    return output


def _call(answer: Answer, call: ToolCall, output: list[Item], status: str) -> Item:
    function = call.function
    name, arguments = (function.name or "", function.text) if function else ("", "")
    call_id = answer.call_id(call.id, output)
    return answer.call(len(output), call_id, name, arguments or "{}", status)


def _text(answer: Answer, kind: TextKind, index: int, text: str, status: str) -> Item:
    return kind.output(answer.item_id(kind.item, index), [kind.content(text)], status)


def status_of(finish: str | None) -> str:
    """`incomplete` where the answer was cut, of the response and of its items."""
    return "incomplete" if finish in _REASONS else "completed"


def usage_of(chat: Chat) -> dict[str, Any] | None:
    """The token counts as this API states them; `input_tokens` includes the cached ones."""
    counts = chat.counts
    if counts is None:
        return None
    details = (chat.usage or {}).get("completion_tokens_details")
    reasoning = details.get("reasoning_tokens") if isinstance(details, dict) else None
    return {
        "input_tokens": counts.prompt,
        "input_tokens_details": {"cached_tokens": counts.cached, "cache_write_tokens": 0},
        "output_tokens": counts.completion,
        "output_tokens_details": {
            "reasoning_tokens": reasoning if type(reasoning) is int and reasoning >= 0 else 0
        },
        "total_tokens": counts.prompt + counts.completion,
    }
