"""Embeddings, rerank and score: values that depend on the text and mean nothing.

A vLLM server has either these or the generating APIs, by its model; a simulated one has both.
They are computed at once and do not occupy the engine.
"""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.simulator import tokenizer
from gateway.simulator.faults import json_response
from gateway.simulator.prompts import text_of
from gateway.simulator.service import Service, now, request_id

DIMENSIONS = 16


class EmbeddingRequest(msgspec.Struct):
    input: str | list[Any]
    model: str | None = None


class RerankRequest(msgspec.Struct):
    query: str
    documents: list[Any]
    model: str | None = None
    top_n: int = 0


class ScoreRequest(msgspec.Struct):
    text_1: str | list[str]
    text_2: str | list[str]
    model: str | None = None


def routes(service: Service) -> APIRouter:
    router = APIRouter()
    model = service.config.model

    @router.post("/v1/embeddings")
    async def embeddings(request: Request) -> Response:
        body = await service.read(request, EmbeddingRequest)
        service.check_model(body.model)
        texts = _inputs(body.input)
        data = [
            {"index": index, "object": "embedding", "embedding": embedding(text)}
            for index, text in enumerate(texts)
        ]
        head = {"id": request_id(request, "embd"), "object": "list", "created": now()}
        return json_response({**head, "model": model, "data": data, "usage": _usage(texts)})

    @router.post("/rerank")
    @router.post("/v1/rerank")
    @router.post("/v2/rerank")
    async def rerank(request: Request) -> Response:
        body = await service.read(request, RerankRequest)
        service.check_model(body.model)
        texts = [text_of(document) for document in body.documents]
        results = [
            {
                "index": index,
                "document": {"text": text},
                "relevance_score": similarity(body.query, text),
            }
            for index, text in enumerate(texts)
        ]
        results.sort(key=lambda result: -float(str(result["relevance_score"])))
        usage = {"total_tokens": _tokens([body.query] * len(texts) + texts)}
        found = results[: body.top_n or None]
        head = {"id": request_id(request, "rerank"), "model": model}
        return json_response({**head, "usage": usage, "results": found})

    @router.post("/score")
    @router.post("/v1/score")
    async def score(request: Request) -> Response:
        body = await service.read(request, ScoreRequest)
        service.check_model(body.model)
        left, right = _inputs(body.text_1), _inputs(body.text_2)
        left = left * len(right) if len(left) == 1 else left
        data = [
            {"index": index, "object": "score", "score": similarity(one, other)}
            for index, (one, other) in enumerate(zip(left, right, strict=False))
        ]
        head = {"id": request_id(request, "score"), "object": "list", "created": now()}
        usage = _usage(left + right)
        return json_response({**head, "model": model, "data": data, "usage": usage})

    return router


def embedding(text: str) -> list[float]:
    """A vector of length 1, the same for the same text."""
    digest = blake2b(text.encode(errors="surrogatepass"), digest_size=DIMENSIONS).digest()
    values = [byte - 127.5 for byte in digest]
    length = math.hypot(*values)
    return [value / length for value in values]


def similarity(one: str, other: str) -> float:
    """From 0 to 1: the share of `one`'s words that are in `other`, too."""
    words = set(one.lower().split())
    return len(words & set(other.lower().split())) / len(words) if words else 0.0


def _inputs(given: str | list[Any]) -> list[str]:
    if isinstance(given, str) or all(type(token) is int for token in given):
        return [text_of(given)]
    return [text_of(one) for one in given]


def _tokens(texts: list[str]) -> int:
    return sum(len(tokenizer.encode(text)) for text in texts)


def _usage(texts: list[str]) -> dict[str, int]:
    tokens = _tokens(texts)
    return {"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0}
