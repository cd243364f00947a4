"""`POST /v1/chat/completions`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.simulator.engine import Generation
from gateway.simulator.prompts import ChatMessage, prompt_of
from gateway.simulator.replies import DONE, Around, EventReply, WholeReply, data
from gateway.simulator.service import Sampling, Service, StreamOptions, now, request_id, usage


class ChatRequest(Sampling, kw_only=True):
    messages: list[ChatMessage]
    tools: list[Any] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stream_options: StreamOptions | None = None


def routes(service: Service) -> APIRouter:
    router = APIRouter()

    @router.post("/v1/chat/completions")
    async def chat_completions(request: Request) -> Response:
        body = await service.read(request, ChatRequest)
        wanted = body.max_completion_tokens
        generation = service.submit(
            body,
            prompt_of(body.messages, body.tools),
            body.max_tokens if wanted is None else wanted,
        )
        head = {
            "id": request_id(request, "chatcmpl"),
            "created": now(),
            "model": service.config.model,
        }
        details = service.config.prompt_tokens_details
        if not body.stream:
            render = _whole(head, generation, details)
            return WholeReply(service.engine, generation, render)
        options = body.stream_options or StreamOptions()
        with_usage = details if options.include_usage else None
        return EventReply(service.engine, generation, _frames(head, generation, with_usage))

    return router


def _whole(
    head: dict[str, Any], generation: Generation, details: bool
) -> Callable[[str], dict[str, Any]]:
    def render(text: str) -> dict[str, Any]:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text, "tool_calls": []},
            "logprobs": None,
            "finish_reason": generation.sequence.finish_reason,
            "stop_reason": None,
        }
        return {
            **head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": usage(generation, details=details),
        }

    return render


async def _frames(
    head: dict[str, Any], generation: Generation, details: bool | None
) -> AsyncIterator[bytes]:
    """The role frame comes with the first token, as from vLLM 0.32; usage only where asked for."""
    head = {**head, "object": "chat.completion.chunk"}
    of = Around(_frame(head, {"content": Around.SLOT}))
    tokens = await generation.tokens()
    if tokens:
        yield _frame(head, {"role": "assistant", "content": ""})
    while tokens:
        yield of(tokens)
        tokens = await generation.tokens()
    reason = generation.sequence.finish_reason
    if reason == "abort":
        return
    yield _frame(head, {}, reason)
    if details is not None:
        yield data({**head, "choices": [], "usage": usage(generation, details=details)})
    yield DONE


def _frame(head: dict[str, Any], delta: dict[str, str], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    return data({**head, "choices": [choice]})
