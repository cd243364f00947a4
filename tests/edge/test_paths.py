"""Paths, right and nearly right, and what each one means."""

from __future__ import annotations

import sys

import pytest

from gateway.edge.paths import ENDPOINTS, HotPaths, canonical
from gateway.records import Api


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/", "/"),
        ("", "/"),
        ("//", "/"),
        ("/v1", "/"),
        ("/v1/", "/"),
        ("/api", "/"),
        ("/api/v1/", "/"),
        ("/anthropic", "/"),
        ("/v1/models", "/models"),
        ("/models", "/models"),
        ("/api/models/", "/models"),
        ("/v1/v1/chat/completions", "/chat/completions"),
        ("/openai/v1/chat/completions", "/chat/completions"),
        ("/anthropic/v1/messages", "/messages"),
        ("//v1//chat///completions//", "/chat/completions"),
        ("/v1/models/v1/api", "/models/v1/api"),
        ("/v1/models/org/name", "/models/org/name"),
        ("/health", "/health"),
        ("/admin/v1/keys", "/admin/v1/keys"),
        # What only looks like a prefix.
        ("/v1x/models", "/v1x/models"),
        ("/apiary", "/apiary"),
        ("/v2/models", "/v2/models"),
        ("/V1/models", "/V1/models"),
        ("v1/models", "v1/models"),
    ],
)
def test_one_spelling(path: str, meant: str) -> None:
    assert canonical(path) == meant
    assert canonical(meant) == meant


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda one: one.path.decode())
@pytest.mark.parametrize("base", ["", "/v1", "/api", "/api/v1", "/v1/v1", "/anthropic", "//v1/"])
def test_every_endpoint_under_every_base(endpoint: object, base: str) -> None:
    assert endpoint in ENDPOINTS
    name = next(one for one in ENDPOINTS if one is endpoint).path.decode().removeprefix("/v1")
    paths = HotPaths()
    for target in (base + name, f"{base}{name}/", f"{base}{name}?beta=true", f"{base}{name}?a/b"):
        for _ in range(2):  # found, and remembered
            assert paths.find(target.encode()) is endpoint


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/v1",
        "/v1/models",
        "/v1/chat",
        "/v1/chat/completions/x",
        "/v1/chat/completions/..",
        "/v1/chat%2Fcompletions",
        "/v1/Chat/Completions",
        "/?/v1/chat/completions",
        "/v1/responses/resp_1",
        "/health",
        "/metrics",
        "/admin/v1/reload",
        "*",
        "",
    ],
)
def test_what_is_not_hot(target: str) -> None:
    paths = HotPaths()
    for _ in range(2):
        assert paths.find(target.encode()) is None


def test_what_each_endpoint_is() -> None:
    by_path = {endpoint.path.decode(): endpoint for endpoint in ENDPOINTS}
    assert {path for path, one in by_path.items() if one.streams} == {
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/messages",
        "/v1/responses",
    }
    counting = by_path["/v1/messages/count_tokens"]
    assert (counting.api, counting.dialect) == (Api.OTHER, Api.MESSAGES)
    assert by_path["/v1/embeddings"].api is Api.EMBEDDINGS
    for name in ("/v1/rerank", "/v1/score", "/tokenize", "/detokenize"):
        assert by_path[name].api is Api.OTHER


def test_nobody_fills_memory_with_spellings() -> None:
    paths = HotPaths(size=50)
    for n in range(500):
        paths.find(b"/v1/chat/completions" + b"/" * n)
        paths.find(b"/nowhere/%d" % n)
        paths.find(b"/" * 60_000 + b"v1/chat/completions?%d" % n)
    held = sum(sys.getsizeof(target) for target in paths._seen)
    assert len(paths._seen) <= 50 + len(ENDPOINTS)
    assert held < 50_000
    assert paths.find(b"/api/chat/completions") is ENDPOINTS[0], "the rest is looked up each time"
