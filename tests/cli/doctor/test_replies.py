"""KeyError: 'choices': what the server had really said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.doctor.finding import Severity
from gateway.cli.doctor.replies import SHOWN
from tests.cli.doctor.cases import HANGING, case, found, one, other, reply
from tests.support.running import KEY
from tests.support.simulated import Simulated

pytestmark = pytest.mark.asyncio(loop_scope="module")


def body_file(home: Path, **body: Any) -> Path:
    path = home / "body.json"
    path.write_text(json.dumps(body))
    return path


async def test_an_answer_is_an_answer(both: Simulated, home: Path) -> None:
    finding = one(await found(case(both.it.url, home), "reply"))
    record = await both.it.record()
    assert finding.severity is Severity.OK and "with choices" in finding.seen
    assert (record.model, record.stream) == ("m", False)
    assert record.usage is not None and record.usage.completion == 1


async def test_an_unknown_model(both: Simulated, home: Path) -> None:
    finding = one(await found(case(both.it.url, home, given_model="gpt5"), "reply"))
    assert finding.severity is Severity.ERROR
    assert "HTTP 404: the model is unknown. The raw reply: {" in finding.seen
    assert "There is no model `gpt5`" in finding.seen
    assert "KeyError: 'choices'" in finding.why and "reading 'choices'" in finding.why
    assert finding.fix == "export GATEWAY_MODEL=m"


async def test_a_key_that_is_not_known(both: Simulated, home: Path) -> None:
    the = case(both.it.url, home, given_key="sk-WrongWrong0123456789XyZ")
    finding = one(await found(the, "reply"))
    assert "HTTP 401: the key was refused" in finding.seen
    assert finding.fix == "gateway doctor --only credentials"


async def test_no_key_no_request(both: Simulated, home: Path) -> None:
    finding = one(await found(case(both.it.url, home, given_key=""), "reply"))
    assert (finding.severity, both.it.records) == (Severity.WARNING, [])


@pytest.mark.parametrize(
    ("path", "body", "member"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}, "choices"),
        ("/v1/completions", {"prompt": "hi"}, "choices"),
        ("/v1/responses", {"input": "hi"}, "output"),
        (
            "/v1/messages",
            {"system": "s", "max_tokens": 3, "messages": [{"role": "user", "content": "hi"}]},
            "content",
        ),
    ],
)
async def test_a_body_of_ones_own_is_sent_unstreamed(
    both: Simulated, home: Path, path: str, body: dict[str, Any], member: str
) -> None:
    streamed = {**body, "stream": True}
    if member == "choices":
        streamed["stream_options"] = {"include_usage": True}
    the = case(both.it.url, home, request=body_file(home, **streamed))
    finding = one(await found(the, "reply"))
    record = await both.it.record()
    assert finding.seen == f"POST {path} gives an answer, with {member}."
    assert (record.path, record.stream, record.model) == (path, False, "m")


async def test_a_body_of_ones_own_at_fault(both: Simulated, home: Path) -> None:
    the = case(both.it.url, home, request=body_file(home, model="m", messages="hi"))
    finding = one(await found(the, "reply"))
    assert "HTTP 400: the request itself is at fault" in finding.seen
    assert "messages" in finding.seen


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ('{"model": "m",}', "line 1 column"),
        ("[1]", "it is JSON, but no object"),
        (None, "No such file or directory"),
    ],
)
async def test_a_body_that_is_none(
    both: Simulated, home: Path, content: str | None, fault: str
) -> None:
    path = home / "body.json"
    if content is not None:
        path.write_text(content)
    finding = one(await found(case(both.it.url, home, request=path), "reply"))
    assert finding.severity is Severity.ERROR and fault in finding.seen
    assert both.it.records == []


async def test_the_rest_of_ones_own_body_stays_byte_for_byte(home: Path) -> None:
    path = home / "body.json"
    path.write_bytes(b'{ "stream" : true, "messages":[ {"content":"\\u00e9"} ], "model":"x" }')
    async with other(lambda target, head: reply('{"choices":[{}]}')) as server:
        await found(case(server.url, home, request=path), "reply")
    assert server.bodies[-1] == (
        b'{ "stream" : false, "messages":[ {"content":"\\u00e9"} ], "model":"x" }'
    )


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (reply("<html>", "502 Bad Gateway", content_type="text/html"), "502: a web page"),
        (reply("", "500 Oops"), "500: an empty body. The raw reply: (empty)"),
        (reply('{"detail":"Not Found"}', "404 Not Found"), "404: JSON of another kind"),
        (reply('{"error":{"message":"quota"}}'), "200: an error with the status of success"),
        (reply('{"error":"Unauthorized"}', "401 Unauthorized"), "401: the key was refused"),
        (reply('{"content":[{"text":"hi"}]}'), "200: an answer of another API, with content"),
        (reply('{"choices":[]}'), "200: an answer with no choice in it"),
        (reply("data: {}\n\n", content_type="text/event-stream"), "200: an event stream"),
        (reply('{"error":{"message":"slow"}}', "429 Slow"), "429: a limit of the key"),
        (reply('{"error":{"code":"no_backend"}}', "503 None"), "503: no engine could answer"),
    ],
)
async def test_what_came_instead_of_an_answer(home: Path, answer: bytes, what: str) -> None:
    listing = reply('{"data":[{"id":"m"}]}')
    async with other(lambda t, head: listing if t == "/v1/models" else answer) as server:
        finding = one(await found(case(server.url, home), "reply"))
    assert finding.severity is Severity.ERROR
    assert f"gives no answer but HTTP {what}" in finding.seen


async def test_the_raw_reply_is_bounded_masked_and_harmless_to_print(home: Path) -> None:
    """A server that repeats the key, has one of its own, and steers terminals."""
    jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"
    said = f"bad key {KEY}, sk-engine-0123456789abcdef \x1b[2J {jwt} " + "x" * 2000
    answer = reply(json.dumps({"error": {"message": said}}, ensure_ascii=False), "401 No")
    async with other(lambda target, head: answer) as server:
        finding = one(await found(case(server.url, home), "reply"))
    text = str(finding)
    assert "bad key sk-t… (30 characters), sk-e… (26 characters)" in finding.seen
    assert KEY not in text and "0123456789abcdef" not in text and jwt not in text
    assert "\x1b" not in finding.seen
    assert "x" * 200 in finding.seen and len(finding.seen) < SHOWN + 200


async def test_a_secret_across_the_cut_is_not_half_shown(home: Path) -> None:
    said = "y" * (SHOWN - 5) + KEY
    async with other(lambda target, head: reply(said, "500 Oops")) as server:
        finding = one(await found(case(server.url, home), "reply"))
    assert "sk-te" not in finding.seen


def dead_end(target: str, head: str) -> bytes:
    return b"" if target == "/v1/chat/completions" else reply("{}")


async def test_a_connection_that_breaks(home: Path) -> None:
    async with other(dead_end) as server:
        finding = one(await found(case(server.url, home), "reply"))
    assert "The connection broke instead of a reply" in finding.seen


def hang(target: str, head: str) -> bytes:
    return HANGING if target == "/v1/chat/completions" else reply("{}")


async def test_an_engine_that_takes_too_long(home: Path) -> None:
    async with other(hang) as server:
        finding = one(await found(case(server.url, home, patience=0.3), "reply"))
    assert finding.seen == "No reply within 0.3 s."
    assert finding.fix.startswith("gateway doctor --only ttft")


@pytest.mark.parametrize(
    ("key", "seen"),
    [
        ("", "Not tried: there is no key to send."),
        (KEY + "\n", "Not tried: the key cannot be sent."),
    ],
)
async def test_without_a_key_that_can_be_sent_nothing_is_tried(
    both: Simulated, home: Path, key: str, seen: str
) -> None:
    finding = one(await found(case(both.it.url, home, given_key=key), "reply"))
    assert (finding.seen, finding.fix) == (seen, "gateway doctor --only credentials")
