"""`POST /v1/messages` and `/v1/messages/count_tokens`, as vLLM speaks Anthropic's API."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.simulator.engine import Generation
from gateway.simulator.faults import Fault, json_response
from gateway.simulator.prompts import ChatMessage, prompt_of, text_of
from gateway.simulator.replies import Around, EventReply, WholeReply, event
from gateway.simulator.service import Sampling, Service, request_id

STOP_REASONS = {"stop": "end_turn", "length": "max_tokens"}


class CountRequest(Sampling, kw_only=True):
    messages: list[ChatMessage]
    system: Any = None
    tools: list[Any] | None = None

    def prompt(self) -> array[int]:
        system = [ChatMessage("system", text_of(self.system))] if self.system else []
        return prompt_of(system + self.messages, self.tools)


class MessagesRequest(CountRequest, kw_only=True):
    max_tokens: int


def routes(service: Service) -> APIRouter:
    router = APIRouter()

    @router.post("/v1/messages")
    async def messages(request: Request) -> Response:
        # A faulty body is answered in the OpenAI shape, other faults in Anthropic's.
        body = await service.read(request, MessagesRequest)
        try:
            generation = service.submit(body, body.prompt(), body.max_tokens)
        except Fault as fault:
            return fault.anthropic_response()
        head = {
            "id": request_id(request, "chatcmpl"),
            "type": "message",
            "role": "assistant",
            "model": service.config.model,
        }
        details = service.config.prompt_tokens_details
        if body.stream:
            return EventReply(service.engine, generation, _events(head, generation, details))

        def render(text: str) -> dict[str, Any]:
            return {
                **head,
                "content": [{"type": "text", "text": text}],
                "stop_reason": _stop_reason(generation),
                "stop_sequence": None,
                "usage": _usage(generation, details),
            }

        return WholeReply(service.engine, generation, render)

    @router.post("/v1/messages/count_tokens")
    async def count_tokens(request: Request) -> Response:
        body = await service.read(request, CountRequest)
        try:
            service.check_model(body.model)
        except Fault as fault:
            return fault.anthropic_response()
        return json_response({"input_tokens": len(body.prompt())})

    return router


async def _events(
    head: dict[str, Any], generation: Generation, details: bool
) -> AsyncIterator[bytes]:
    """No ping, no [DONE]; nothing comes before the first token."""
    tokens = await generation.tokens()
    if tokens:
        start = {
            **head,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**_usage(generation, details), "output_tokens": 0},
        }
        yield event("message_start", {"type": "message_start", "message": start})
        yield _block("start", content_block={"type": "text", "text": ""})
    of = Around(_block("delta", delta={"type": "text_delta", "text": Around.SLOT}))
    while tokens:
        yield of(tokens)
        tokens = await generation.tokens()
    if generation.sequence.finish_reason == "abort":
        return
    yield _block("stop")
    end = {"stop_reason": _stop_reason(generation), "stop_sequence": None}
    last = {"type": "message_delta", "delta": end, "usage": _usage(generation, details)}
    yield event("message_delta", last)
    yield event("message_stop", {"type": "message_stop"})


def _block(what: str, **fields: Any) -> bytes:
    name = f"content_block_{what}"
    return event(name, {"type": name, "index": 0, **fields})


def _stop_reason(generation: Generation) -> str | None:
    return STOP_REASONS.get(generation.sequence.finish_reason or "")


def _usage(generation: Generation, details: bool) -> dict[str, int]:
    """`input_tokens` leaves cached tokens out where they are stated."""
    sequence = generation.sequence
    cached = (sequence.cached or 0) if details else 0
    found = {
        "input_tokens": sequence.prompt_tokens - cached,
        "output_tokens": sequence.generated,
    }
    if details:
        found["cache_read_input_tokens"] = cached
    return found
