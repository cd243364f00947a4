"""`POST /v1/completions`."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.simulator import tokenizer
from gateway.simulator.engine import Generation
from gateway.simulator.faults import Fault
from gateway.simulator.replies import DONE, Around, EventReply, WholeReply, data
from gateway.simulator.service import Sampling, Service, StreamOptions, now, request_id, usage

DEFAULT_MAX_TOKENS = 16


class CompletionRequest(Sampling, kw_only=True):
    prompt: str | list[Any]
    max_tokens: int | None = DEFAULT_MAX_TOKENS
    echo: bool | None = False
    stream_options: StreamOptions | None = None


def routes(service: Service) -> APIRouter:
    router = APIRouter()

    @router.post("/v1/completions")
    async def completions(request: Request) -> Response:
        body = await service.read(request, CompletionRequest)
        prompt = _prompt(body.prompt)
        echo = _text(prompt) if body.echo else ""
        generation = service.submit(body, prompt, body.max_tokens)
        head = {
            "id": request_id(request, "cmpl"),
            "object": "text_completion",
            "created": now(),
            "model": service.config.model,
        }
        details = service.config.prompt_tokens_details
        if not body.stream:
            render = _whole(head, generation, echo, details)
            return WholeReply(service.engine, generation, render)
        options = body.stream_options or StreamOptions()
        with_usage = details if options.include_usage else None
        return EventReply(service.engine, generation, _frames(head, generation, echo, with_usage))

    return router


def _prompt(prompt: str | list[Any]) -> array[int]:
    if isinstance(prompt, list) and len(prompt) == 1 and not isinstance(prompt[0], int):
        prompt = prompt[0]
    if isinstance(prompt, str):
        return tokenizer.encode(prompt)
    if not isinstance(prompt, list) or not all(type(token) is int for token in prompt):
        message = "The simulated engine takes one prompt: a string or a list of token ids."
        raise Fault(400, message, "prompt")
    try:
        return array("I", prompt)
    except OverflowError:
        raise Fault(400, "A token id is out of vocabulary.", "prompt") from None


def _text(prompt: array[int]) -> str:
    try:
        return tokenizer.decode(prompt)
    except ValueError as error:
        raise Fault(400, str(error), "prompt") from None


def _choice(text: str, reason: str | None) -> list[dict[str, Any]]:
    choice = {
        "index": 0,
        "text": text,
        "logprobs": None,
        "finish_reason": reason,
        "stop_reason": None,
    }
    return [choice]


def _whole(
    head: dict[str, Any], generation: Generation, echo: str, details: bool
) -> Callable[[str], dict[str, Any]]:
    def render(text: str) -> dict[str, Any]:
        choices = _choice(echo + text, generation.sequence.finish_reason)
        return {**head, "choices": choices, "usage": usage(generation, details=details)}

    return render


async def _frames(
    head: dict[str, Any], generation: Generation, echo: str, details: bool | None
) -> AsyncIterator[bytes]:
    """The prompt, where it is echoed, stands in the first frame, before the first token."""
    of = Around(data({**head, "choices": _choice(Around.SLOT, None)}))
    while tokens := await generation.tokens():
        reason = generation.sequence.finish_reason
        if echo or reason:
            text = echo + tokenizer.decode(tokens)
            yield data({**head, "choices": _choice(text, reason)})
            echo = ""
        else:
            yield of(tokens)
    if generation.sequence.finish_reason == "abort":
        return
    if details is not None:
        yield data({**head, "choices": [], "usage": usage(generation, details=details)})
    yield DONE
