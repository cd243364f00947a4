"""What the API routes share: reading a request, and handing it to the engine."""

from __future__ import annotations

import secrets
import time
from array import array
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from gateway.simulator.engine import Engine, Generation
from gateway.simulator.faults import Fault, too_long, unknown_model
from gateway.simulator.sequence import Sequence

T = TypeVar("T")


class Sampling(msgspec.Struct):
    """The fields every generating API has that the simulator heeds; others are let pass."""

    model: str | None = None
    stream: bool | None = False
    cache_salt: str | None = None
    ignore_eos: bool = False
    n: int | None = 1


class StreamOptions(msgspec.Struct):
    """Of chat completions and completions."""

    include_usage: bool | None = False


class Service:
    """One engine as the routes see it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.config = engine.config

    async def read(self, request: Request, form: type[T]) -> T:
        """The body as `form`.

        Raises:
            Fault: 400 naming the field, as vLLM has it (not 422).
        """
        try:
            return msgspec.json.decode(await request.body(), type=form)
        except msgspec.ValidationError as error:
            _, _, path = str(error).partition(" - at ")
            raise Fault(400, str(error), path.strip("`").removeprefix("$.") or None) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Fault(400, f"The body is not JSON: {error}") from None

    def submit(self, fields: Sampling, prompt: array[int], wanted: int | None) -> Generation:
        """Have the engine answer `prompt` with at most `wanted` tokens; None for all there is.

        Raises:
            Fault: an unknown model, or more tokens than the context or the cache holds.
        """
        self.check_model(fields.model)
        if (fields.n or 1) != 1:
            raise Fault(400, "The simulated engine generates one choice only.", "n")
        if not self.engine.alive:
            raise Fault(503, "The engine is dead.")
        room = self.config.context - len(prompt)
        if wanted is not None and wanted < 1:
            raise Fault(400, f"max_tokens must be at least 1, got {wanted}.", "max_tokens")
        if room < (wanted or 1):
            raise too_long(self.config.context, len(prompt), wanted or 1)
        if not prompt:
            raise Fault(400, "The prompt cannot be empty.", "prompt")
        sequence = Sequence(
            prompt,
            wanted or room,
            None if fields.ignore_eos else self.config.answer_tokens,
            fields.cache_salt or "",
        )
        return self.engine.submit(sequence)

    def check_model(self, name: str | None) -> None:
        """Raises:
        Fault: 404, unless it is the one there is, or left out.
        """
        if name is not None and name != self.config.model:
            raise unknown_model(name)


def usage(generation: Generation, *, details: bool) -> dict[str, Any]:
    """In the form of chat completions and completions."""
    sequence = generation.sequence
    found: dict[str, Any] = {
        "prompt_tokens": sequence.prompt_tokens,
        "total_tokens": len(sequence.tokens),
        "completion_tokens": sequence.generated,
    }
    if details:
        found["prompt_tokens_details"] = {"cached_tokens": sequence.cached or 0}
    return found


def request_id(request: Request, prefix: str) -> str:
    """vLLM takes the client's `X-Request-Id`."""
    return f"{prefix}-{request.headers.get('x-request-id') or secrets.token_hex(16)}"


def now() -> int:
    return int(time.time())
