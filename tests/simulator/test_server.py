"""Routes that do not generate, and what bad requests get."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.simulator.pooling import embedding, similarity
from tests.simulator.running import Server, serving

HELLO = [{"role": "user", "content": "Hello"}]


async def test_it_says_everywhere_that_it_is_simulated(server: Server) -> None:
    reply = await server.client.get("/version")
    assert reply.json()["simulated"] is True
    assert reply.json()["version"] == "0.32.0+simulated"
    for path in ("/health", "/nowhere", "/v1/models"):
        found = (await server.client.get(path)).headers.get_list("server")
        assert [name.partition("/")[0] for name in found] == ["simulated-vllm"]
    streamed = await server.client.post(
        "/v1/completions", json={"prompt": "x", "max_tokens": 1, "stream": True}
    )
    assert streamed.headers["server"].startswith("simulated-vllm")
    assert (
        "# HELP vllm:num_requests_running Simulated:" in (await server.client.get("/metrics")).text
    )


async def test_the_model_is_listed_with_its_context(server: Server) -> None:
    (model,) = (await server.client.get("/v1/models")).json()["data"]
    assert (model["id"], model["max_model_len"]) == ("m", 131_072)


async def test_tokens_there_and_back(server: Server) -> None:
    found = (await server.post("/tokenize", model="m", prompt="Hello wörld")).json()
    assert found["count"] == len(found["tokens"]) == 4
    back = await server.post("/detokenize", model="m", tokens=found["tokens"])
    assert back.json() == {"prompt": "Hello wörld"}


async def test_a_conversation_is_tokenized_as_it_is_prompted(server: Server) -> None:
    found = (await server.post("/tokenize", messages=HELLO)).json()
    chat = await server.post("/v1/chat/completions", messages=HELLO, max_tokens=1)
    assert found["count"] == chat.json()["usage"]["prompt_tokens"]


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_ping(server: Server, method: str) -> None:
    assert (await server.client.request(method, "/ping")).status_code == 200


async def test_its_routes_are_told_without_a_warning(server: Server) -> None:
    """Gateways ask for them; a warning, an error in tests, stood among the simulator's output."""
    paths = (await server.client.get("/openapi.json")).json()["paths"]
    assert {"/v1/messages", "/v1/responses"} <= paths.keys()
    assert paths["/ping"].keys() == {"get", "post"}


async def test_a_dead_engine_is_unhealthy_and_serves_nobody(server: Server) -> None:
    assert (await server.client.get("/health")).status_code == 200
    server.engine.alive = False
    assert (await server.client.get("/health")).status_code == 503
    assert (await server.post("/v1/completions", prompt="x")).status_code == 503


async def test_load_counts_running_and_waiting() -> None:
    async with serving(speed=0.01, max_num_seqs=1) as server:
        generations = [server.post("/v1/completions", prompt="x") for _ in range(3)]
        tasks = [asyncio.create_task(one) for one in generations]
        await server.until(running=1)
        async with asyncio.timeout(1):
            while (await server.client.get("/load")).json() != {"server_load": 3}:
                await asyncio.sleep(0.005)
        assert await server.metric("vllm:num_requests_waiting") == 2
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_metrics_have_vllms_names(server: Server) -> None:
    prompt = "y" * 400
    for _ in range(2):
        await server.post("/v1/completions", prompt=prompt, max_tokens=5)
    assert await server.metric("vllm:prefix_cache_queries_total") == 200
    assert await server.metric("vllm:prefix_cache_hits_total") == 96
    assert await server.metric("vllm:prompt_tokens_cached_total") == 96
    assert await server.metric("vllm:prompt_tokens_total") == 200
    assert await server.metric("vllm:generation_tokens_total") == 10
    assert await server.metric("vllm:num_preemptions_total") == 0
    assert await server.metric("vllm:request_success_total", finished_reason="length") == 2
    assert await server.metric("vllm:time_to_first_token_seconds_count") == 2
    assert await server.metric("vllm:time_to_first_token_seconds_bucket", le="2560.0") == 2
    assert await server.metric("vllm:inter_token_latency_seconds_count") == 8
    assert await server.metric("vllm:e2e_request_latency_seconds_bucket", le="0.3") == 2
    info = next(
        line
        for line in (await server.client.get("/metrics")).text.splitlines()
        if line.startswith("vllm:cache_config_info")
    )
    assert 'block_size="16"' in info
    assert 'num_gpu_blocks="28000"' in info
    # Nowhere, as from vLLM: a gateway that wants it must be told.
    assert "max_num_batched_tokens" not in (await server.client.get("/metrics")).text


async def test_embeddings_depend_on_the_text(server: Server) -> None:
    reply = (await server.post("/v1/embeddings", model="m", input=["a", "b", "a"])).json()
    found = [one["embedding"] for one in reply["data"]]
    assert found[0] == found[2] != found[1]
    assert reply["usage"] == {"prompt_tokens": 3, "total_tokens": 3, "completion_tokens": 0}
    assert sum(value * value for value in embedding("a")) == pytest.approx(1)


async def test_rerank_puts_what_shares_words_first(server: Server) -> None:
    body = {"query": "red fox", "documents": ["blue", "a red fox", {"text": "fox"}], "top_n": 2}
    reply = (await server.post("/v1/rerank", **body)).json()
    found = [(one["index"], one["relevance_score"]) for one in reply["results"]]
    assert found == [(1, 1.0), (2, 0.5)]


async def test_score_pairs_one_with_many(server: Server) -> None:
    reply = (await server.post("/v1/score", text_1="red fox", text_2=["fox", "red fox"])).json()
    assert [one["score"] for one in reply["data"]] == [0.5, 1.0]
    assert similarity("", "x") == 0.0


CHAT = "/v1/chat/completions"


@pytest.mark.parametrize(
    ("path", "body", "status", "param", "words"),
    [
        (CHAT, {"model": "x", "messages": HELLO}, 404, "model", "The model `x` does not exist."),
        (CHAT, {"messages": "Hello"}, 400, "messages", "Expected `array`"),
        (CHAT, {"model": "m"}, 400, None, "missing required field `messages`"),
        (CHAT, {"messages": HELLO, "max_tokens": 0}, 400, "max_tokens", "at least 1, got 0"),
        (CHAT, {"messages": HELLO, "n": 2}, 400, "n", "one choice only"),
        (CHAT, {"messages": [{"role": 1}]}, 400, "messages[0].role", "Expected `str`"),
        ("/v1/completions", {"prompt": ""}, 400, "prompt", "cannot be empty"),
        ("/v1/completions", {"prompt": ["a", "b"]}, 400, "prompt", "takes one prompt"),
        ("/v1/completions", {"prompt": [-1]}, 400, "prompt", "out of vocabulary"),
        ("/v1/messages", {"messages": HELLO}, 400, None, "`max_tokens`"),
        ("/v1/responses", {"input": 3}, 400, "input", "Expected"),
        (
            "/v1/responses",
            {"input": "x", "previous_response_id": "resp_1"},
            404,
            None,
            "Response with id 'resp_1' not found.",
        ),
        ("/tokenize", {"model": "m"}, 400, "prompt", "Either prompt or messages"),
        ("/detokenize", {"tokens": [4294967295]}, 400, "tokens", "out of vocabulary"),
        ("/v1/nowhere", {}, 404, None, "Not Found"),
    ],
)
async def test_faults_have_the_openai_shape(
    server: Server, path: str, body: dict[str, Any], status: int, param: str | None, words: str
) -> None:
    reply = await server.post(path, **body)
    assert reply.status_code == status
    error = reply.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert words in error["message"]
    kind = "NotFoundError" if status == 404 else "BadRequestError"
    assert (error["type"], error["param"], error["code"]) == (kind, param, status)


async def test_a_body_that_is_not_json_is_a_bad_request(server: Server) -> None:
    for body in (b"{", b"\xff"):
        reply = await server.client.post(CHAT, content=body)
        assert reply.status_code == 400
        assert "not JSON" in reply.json()["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
async def test_too_long_a_context_is_refused_in_vllms_words(stream: bool) -> None:
    async with serving(max_model_len=100) as server:
        body = {"prompt": "x" * 200, "max_tokens": 51, "stream": stream}
        reply = await server.post("/v1/completions", **body)
        fits = await server.post("/v1/completions", **{**body, "max_tokens": 50})
    assert reply.status_code == 400
    assert reply.json()["error"]["message"].startswith(
        "This model's maximum context length is 100 tokens. However, you requested 51 output "
        "tokens and your prompt contains at least 50 input tokens"
    )
    assert fits.status_code == 200


async def test_messages_faults_carry_vllms_type_names_in_anthropics_shape(server: Server) -> None:
    for path in ("/v1/messages", "/v1/messages/count_tokens"):
        reply = await server.post(path, model="x", messages=HELLO, max_tokens=1)
        assert reply.status_code == 404
        assert reply.json() == {
            "type": "error",
            "error": {"type": "NotFoundError", "message": "The model `x` does not exist."},
        }


@pytest.mark.parametrize("path", ["/v1/responses/resp_1", "/v1/responses/resp_1/cancel"])
async def test_no_response_is_kept(server: Server, path: str) -> None:
    method = "POST" if path.endswith("cancel") else "GET"
    assert (await server.client.request(method, path)).status_code == 404


async def test_the_key_is_asked_for_where_vllm_asks_and_only_as_a_bearer() -> None:
    async with serving(api_key="secret") as server:
        get = server.client.get
        for headers in ({}, {"x-api-key": "secret"}, {"authorization": "Bearer secreT"}):
            refused = await get("/v1/models", headers=headers)
            assert (refused.status_code, refused.json()) == (401, {"error": "Unauthorized"})
        rerank = {"query": "a", "documents": []}
        assert (await server.post("/v2/rerank", **rerank)).status_code == 401
        let_in = await get("/v1/models", headers={"authorization": "Bearer secret"})
        assert let_in.status_code == 200
        for path in ("/metrics", "/health", "/version"):
            assert (await get(path)).status_code == 200
        assert (await server.post("/tokenize", prompt="x")).status_code == 200
