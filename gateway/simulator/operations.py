"""Models, tokens, health and metrics."""

from __future__ import annotations

from array import array

import msgspec
from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.requests import Request
from starlette.responses import Response

from gateway.simulator import tokenizer
from gateway.simulator.faults import Fault, json_response
from gateway.simulator.metrics import EngineCollector
from gateway.simulator.prompts import ChatMessage, prompt_of
from gateway.simulator.service import Service, now

VERSION = "0.32.0+simulated"


class TokenizeRequest(msgspec.Struct):
    model: str | None = None
    prompt: str | None = None
    messages: list[ChatMessage] | None = None
    add_generation_prompt: bool = True

    def tokens(self) -> array[int]:
        if self.messages is not None:
            return prompt_of(self.messages, generate=self.add_generation_prompt)
        if self.prompt is None:
            raise Fault(400, "Either prompt or messages must be given.", "prompt")
        return tokenizer.encode(self.prompt)


class DetokenizeRequest(msgspec.Struct):
    tokens: list[int]
    model: str | None = None


def routes(service: Service) -> APIRouter:
    router = APIRouter()
    started = now()
    registry = CollectorRegistry()
    registry.register(
        EngineCollector(service.config, service.engine.scheduler, service.engine.metrics)
    )

    @router.get("/v1/models")
    async def models() -> Response:
        model = {
            "id": service.config.model,
            "object": "model",
            "created": started,
            "owned_by": "simulated",
            "root": service.config.model,
            "parent": None,
            "max_model_len": service.config.context,
            "permission": [],
        }
        return json_response({"object": "list", "data": [model]})

    @router.post("/tokenize")
    async def tokenize(request: Request) -> Response:
        body = await service.read(request, TokenizeRequest)
        service.check_model(body.model)
        tokens = body.tokens().tolist()
        found = {"count": len(tokens), "max_model_len": service.config.context, "tokens": tokens}
        return json_response({**found, "token_strs": None})

    @router.post("/detokenize")
    async def detokenize(request: Request) -> Response:
        body = await service.read(request, DetokenizeRequest)
        service.check_model(body.model)
        try:
            return json_response({"prompt": tokenizer.decode(body.tokens)})
        except ValueError as error:
            raise Fault(400, str(error), "tokens") from None

    @router.get("/health")
    @router.get("/ping")
    @router.post("/ping")
    async def health() -> Response:
        return Response(status_code=200 if service.engine.alive else 503)

    @router.get("/version")
    async def version() -> Response:
        return json_response({"version": VERSION, "simulated": True})

    @router.get("/server_info")
    async def server_info() -> Response:
        """As vLLM has it in development mode, in what of it names the chunk settings."""
        config = service.config
        scheduler = {
            "max_num_batched_tokens": config.max_num_batched_tokens,
            "max_num_seqs": config.max_num_seqs,
        }
        return json_response({"vllm_config": {"scheduler_config": scheduler}})

    @router.get("/load")
    async def load() -> Response:
        scheduler = service.engine.scheduler
        return json_response({"server_load": len(scheduler.running) + scheduler.waiting})

    @router.get("/metrics")
    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return router
