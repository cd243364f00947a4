"""`POST /v1/responses`; nothing is stored, as vLLM has it by default."""

from __future__ import annotations

import secrets
from array import array
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.simulator import tokenizer
from gateway.simulator.engine import Generation
from gateway.simulator.faults import Fault
from gateway.simulator.prompts import as_json, text_of
from gateway.simulator.replies import EventReply, WholeReply, event
from gateway.simulator.service import Sampling, Service, now

ECHOED = ("instructions", "max_output_tokens", "metadata", "tool_choice", "tools")


class ResponsesRequest(Sampling, kw_only=True):
    input: str | list[Any]
    instructions: str | None = None
    max_output_tokens: int | None = None
    metadata: dict[str, Any] | None = None
    previous_response_id: str | None = None
    tool_choice: Any = "auto"
    tools: list[Any] = msgspec.field(default_factory=list)

    def prompt(self) -> array[int]:
        turns = [("tools", as_json(self.tools))] if self.tools else []
        if self.instructions:
            turns.append(("system", self.instructions))
        items = [self.input] if isinstance(self.input, str) else self.input
        turns += map(_turn, items)
        return tokenizer.conversation(turns)


def routes(service: Service) -> APIRouter:
    router = APIRouter()

    @router.post("/v1/responses")
    async def responses(request: Request) -> Response:
        body = await service.read(request, ResponsesRequest)
        if body.previous_response_id:
            raise _not_found(body.previous_response_id)
        generation = service.submit(body, body.prompt(), body.max_output_tokens)
        answer = _Answer(service, body, generation)
        if body.stream:
            return EventReply(service.engine, generation, answer.events())
        return WholeReply(service.engine, generation, answer.completed)

    @router.get("/v1/responses/{response_id}")
    @router.post("/v1/responses/{response_id}/cancel")
    async def stored(response_id: str) -> Response:
        raise _not_found(response_id)

    return router


class _Answer:
    """One response object as it grows."""

    def __init__(self, service: Service, body: ResponsesRequest, generation: Generation) -> None:
        self._generation = generation
        self._details = service.config.prompt_tokens_details
        self._item = f"msg_{secrets.token_hex(16)}"
        self._numbers = count()
        self._head = {
            "id": f"resp_{secrets.token_hex(16)}",
            "object": "response",
            "created_at": now(),
            "model": service.config.model,
            "parallel_tool_calls": True,
            "store": False,
            **{name: getattr(body, name) for name in ECHOED},
        }

    def completed(self, text: str) -> dict[str, Any]:
        """The response at its end."""
        sequence = self._generation.sequence
        usage: dict[str, Any] = {
            "input_tokens": sequence.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": sequence.generated,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": len(sequence.tokens),
        }
        if self._details:
            usage["input_tokens_details"]["cached_tokens"] = sequence.cached or 0
        cut = sequence.finish_reason == "length"
        return {
            **self._head,
            "status": "incomplete" if cut else "completed",
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "output": [self._message("completed", [_part(text)])],
            "usage": usage,
        }

    async def events(self) -> AsyncIterator[bytes]:
        """`created` and `in_progress` come at once, before the engine has begun."""
        begun = {
            **self._head,
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "output": [],
            "usage": None,
        }
        yield self._event("response.created", response=begun)
        yield self._event("response.in_progress", response=begun)
        pieces: list[str] = []
        while tokens := await self._generation.tokens():
            if not pieces:
                for frame in self._opening():
                    yield frame
            pieces.append(tokenizer.decode(tokens))
            yield self._event(
                "response.output_text.delta", **self._place(), delta=pieces[-1], logprobs=[]
            )
        if self._generation.sequence.finish_reason != "abort":
            for frame in self._closing("".join(pieces)):
                yield frame

    def _opening(self) -> list[bytes]:
        item = self._message("in_progress", [])
        return [
            self._event("response.output_item.added", output_index=0, item=item),
            self._event("response.content_part.added", **self._place(), part=_part("")),
        ]

    def _closing(self, text: str) -> list[bytes]:
        place = self._place()
        item = self._message("completed", [_part(text)])
        return [
            self._event("response.output_text.done", **place, text=text, logprobs=[]),
            self._event("response.content_part.done", **place, part=_part(text)),
            self._event("response.output_item.done", output_index=0, item=item),
            self._event("response.completed", response=self.completed(text)),
        ]

    def _place(self) -> dict[str, Any]:
        return {"item_id": self._item, "output_index": 0, "content_index": 0}

    def _message(self, status: str, content: list[Any]) -> dict[str, Any]:
        return {
            "id": self._item,
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        }

    def _event(self, name: str, **fields: Any) -> bytes:
        return event(name, {"type": name, "sequence_number": next(self._numbers), **fields})


def _turn(item: Any) -> tuple[str, str]:
    if isinstance(item, str):
        return "user", item
    if isinstance(item, dict) and "role" in item:
        return str(item["role"]), text_of(item.get("content"))
    return "tool", as_json(item)


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _not_found(response_id: str) -> Fault:
    return Fault(404, f"Response with id '{response_id}' not found.")
