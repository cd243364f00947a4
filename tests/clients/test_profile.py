"""What a profile decides while a request runs: how its client is told of failures, and kept."""

from __future__ import annotations

from typing import Any

import pytest

from gateway import errors
from gateway.clients.anthropic_python import ANTHROPIC_PYTHON
from gateway.clients.claude_code import CLAUDE_CODE
from gateway.clients.codex import CODEX
from gateway.clients.known import CLIENTS, OTHER
from gateway.clients.openai_python import OPENAI_PYTHON
from gateway.clients.profile import LONG_WAIT, Profile
from gateway.errors import BadRequest, GatewayError, RateLimited
from gateway.protocols import faults
from gateway.protocols.sse import Reader
from gateway.records import Api

EVERYBODY = [*CLIENTS.values(), OTHER]
TOO_LONG = BadRequest(
    "Input length (9000) exceeds model's maximum context length (8192).",
    param="messages",
    code="context_length_exceeded",
    detail="HTTP 400: vllm-a",
)
QUOTA = RateLimited("The month's tokens are used up.", retry_after=3600.0, detail="team a")
SOON = RateLimited("Try again in 2s.", retry_after=2.0)

every_client = pytest.mark.parametrize("profile", EVERYBODY, ids=lambda profile: profile.name)


def facts(error: GatewayError) -> tuple[Any, ...]:
    return (
        error.status,
        error.message,
        error.code,
        error.param,
        error.detail,
        error.retry_after,
        error.outcome,
    )


# A prompt that is too long


@every_client
def test_clients_of_the_messages_api_learn_of_a_long_prompt_in_its_words(profile: Profile) -> None:
    told = profile.reword(Api.MESSAGES, TOO_LONG)
    said = "prompt is too long: 9000 tokens > 8192 maximum"
    assert facts(told) == (400, said, *facts(TOO_LONG)[2:])
    assert told.anthropic_type == "invalid_request_error"


@pytest.mark.parametrize("api", [Api.CHAT, Api.COMPLETIONS, Api.RESPONSES, Api.OTHER])
@every_client
def test_others_keep_the_engines_words(profile: Profile, api: Api) -> None:
    assert profile.reword(api, TOO_LONG) is TOO_LONG


# A limit


def test_codex_gives_up_on_a_used_up_quota_and_waits_for_a_short_limit() -> None:
    told = CODEX.reword(Api.RESPONSES, QUOTA)
    assert (told.status, told.code, told.retry_after) == (429, "insufficient_quota", 3600.0)
    assert facts(told)[4:] == facts(QUOTA)[4:]
    assert CODEX.reword(Api.RESPONSES, SOON) is SOON
    assert not CODEX.in_stream(Api.RESPONSES, told)


def test_codex_is_told_of_a_quota_within_a_stream_by_the_code_that_stops_it() -> None:
    told = CODEX.reword(Api.RESPONSES, QUOTA)
    event = faults.stream_event(Api.RESPONSES, told, "r", 3)
    assert b'"code":"insufficient_quota"' in event
    event = faults.stream_event(Api.RESPONSES, SOON, "r", 3)
    assert b'"code":"rate_limit_exceeded"' in event


def test_codex_waits_for_an_engine_that_says_how_long_and_gives_up_at_one_that_is_full() -> None:
    for wait in (1.5, LONG_WAIT):
        limited = errors.BackendLimited("Try again in 2 s.", detail="vllm-a", retry_after=wait)
        told = CODEX.reword(Api.RESPONSES, limited)
        assert type(told) is RateLimited
        assert facts(told)[:6] == (
            429,
            limited.message,
            "rate_limit_exceeded",
            None,
            "vllm-a",
            wait,
        )
        assert not CODEX.in_stream(Api.RESPONSES, told)
        event = faults.stream_event(Api.RESPONSES, told, "r", 3)
        assert b'"code":"rate_limit_exceeded"' in event and b"ry again in 2 s." in event
        assert all(p is CODEX or p.reword(p.api, limited) is limited for p in EVERYBODY)
    full = errors.BackendOverloaded("In a moment.", retry_after=1)
    assert CODEX.reword(Api.RESPONSES, full) is full
    assert b"server_is_overloaded" in faults.stream_event(Api.RESPONSES, full, "r", 3)


@pytest.mark.parametrize("profile", [CLAUDE_CODE, OPENAI_PYTHON, ANTHROPIC_PYTHON])
def test_a_long_wait_is_not_sat_out(profile: Profile) -> None:
    stop = [(b"x-should-retry", b"false")]
    assert list(profile.error_headers(QUOTA)) == stop
    assert profile.reword(profile.api, QUOTA) is QUOTA
    assert not profile.error_headers(SOON)
    assert not profile.error_headers(RateLimited("", retry_after=LONG_WAIT))
    assert list(profile.error_headers(RateLimited("", retry_after=LONG_WAIT + 0.1))) == stop
    assert not profile.error_headers(RateLimited("without a time"))


def test_the_sdk_within_qwen_leaves_trying_to_qwen() -> None:
    assert list(CLIENTS["qwen"].error_headers(errors.BackendFailed("")))
    assert not CLIENTS["qwen"].error_headers(SOON)
    assert not OPENAI_PYTHON.error_headers(errors.BackendFailed(""))


def test_an_unknown_key_is_not_tried_again() -> None:
    assert list(CLAUDE_CODE.error_headers(errors.Unauthorized("")))
    assert not CLAUDE_CODE.error_headers(errors.Forbidden(""))


HOPELESS = [
    errors.BackendMisconfigured("Tell the operator.", detail="HTTP 401: vllm-a"),
    errors.BackendLimited("Again in 3600 s.", retry_after=3600.0),
]


@pytest.mark.parametrize("error", HOPELESS, ids=lambda error: type(error).__name__)
def test_what_no_try_can_change_is_told_as_what_its_client_does_not_try_again(
    error: GatewayError,
) -> None:
    stop = [(b"x-should-retry", b"false")]
    for profile in (CLAUDE_CODE, OPENAI_PYTHON, ANTHROPIC_PYTHON):
        assert profile.reword(profile.api, error) is error
        assert list(profile.error_headers(error)) == stop
    statuses = {"codex": 400, "cline": 403, "qwen": 403, "opencode": 403}
    for name, status in statuses.items():
        if name == "opencode" and error.retry_after:
            continue  # it waits, and says so
        told = CLIENTS[name].reword(CLIENTS[name].api, error)
        # For the record it stays what it was; the words and the code are the same, too.
        assert (told.status, *facts(told)[1:6]) == (status, *facts(error)[1:6])
        assert not CLIENTS[name].in_stream(Api.RESPONSES, told)
    assert OTHER.reword(OTHER.api, error) is error


def test_a_used_up_limit_ends_the_tries_of_cline_and_qwen_but_not_opencodes_patience() -> None:
    for name in ("cline", "qwen"):
        told = CLIENTS[name].reword(Api.CHAT, QUOTA)
        assert facts(told) == (403, *facts(QUOTA)[1:])
        assert CLIENTS[name].reword(Api.CHAT, SOON) is SOON
    assert CLIENTS["opencode"].reword(Api.CHAT, QUOTA) is QUOTA
    assert CLIENTS["opencode"].reword(Api.CHAT, HOPELESS[1]) is HOPELESS[1]


def test_a_server_that_may_recover_is_tried_again() -> None:
    for error in (errors.BackendFailed(""), errors.BackendOverloaded("", retry_after=LONG_WAIT)):
        assert all(profile.reword(profile.api, error) is error for profile in EVERYBODY)
        assert not CLAUDE_CODE.error_headers(error)


def test_who_does_not_heed_the_header_is_not_sent_it() -> None:
    for profile in (CODEX, OTHER, CLIENTS["curl"], CLIENTS["opencode"], CLIENTS["cline"]):
        assert not profile.error_headers(QUOTA)


# How Codex fails


@pytest.mark.parametrize(
    "error",
    [
        errors.NoBackend("nothing serves"),
        errors.Overloaded("full"),
        errors.BackendOverloaded("busy"),
        errors.BackendFailed("broke"),
        errors.BackendTimeout("slow"),
        errors.GatewayError("ours"),
        TOO_LONG,
    ],
)
def test_codex_gets_a_failed_stream_where_a_status_would_cost_30_requests(
    error: GatewayError,
) -> None:
    assert CODEX.in_stream(Api.RESPONSES, error)
    assert not CODEX.in_stream(Api.CHAT, error)
    for profile in EVERYBODY:
        assert profile is CODEX or not profile.in_stream(Api.RESPONSES, error)


@pytest.mark.parametrize(
    "kind",
    [
        errors.BadRequest,
        errors.Unauthorized,
        errors.Forbidden,
        errors.NotFound,
        errors.TooLarge,
        errors.RateLimited,
    ],
)
def test_codex_gets_a_status_for_what_is_the_requests_own_fault(kind: type[GatewayError]) -> None:
    assert not CODEX.in_stream(Api.RESPONSES, kind("no"))


@pytest.mark.parametrize("kind", [errors.Forbidden, errors.NotFound, errors.TooLarge])
def test_codex_is_refused_by_the_one_status_it_does_not_try_again(kind: type[GatewayError]) -> None:
    error = kind("There is no model `x` here.", param="model", code="model_not_found")
    assert facts(CODEX.reword(Api.RESPONSES, error)) == (400, *facts(error)[1:])
    assert CLAUDE_CODE.reword(Api.MESSAGES, error) is error


def test_the_status_of_an_unknown_key_stays() -> None:
    error = errors.Unauthorized("Send a key.")
    assert all(profile.reword(profile.api, error) is error for profile in EVERYBODY)


@every_client
def test_the_original_is_never_changed(profile: Profile) -> None:
    before = [facts(error) for error in (TOO_LONG, QUOTA, SOON)]
    for error in (TOO_LONG, QUOTA, SOON):
        for api in Api:
            profile.reword(api, error)
    assert [facts(error) for error in (TOO_LONG, QUOTA, SOON)] == before


# Signs of life


def data_of(sign: bytes) -> bytes:
    (event,) = Reader().feed(sign)
    return event.data


def test_codex_counts_events_only_and_gets_one_from_the_start() -> None:
    for begun in (False, True):
        assert data_of(CODEX.keepalive(Api.RESPONSES, begun=begun)) == b'{"type":"ping"}'


def test_the_official_sdk_gets_a_comment_until_the_answer_has_begun() -> None:
    assert data_of(OPENAI_PYTHON.keepalive(Api.RESPONSES, begun=False)) == b""
    assert data_of(OPENAI_PYTHON.keepalive(Api.RESPONSES, begun=True)) == b'{"type":"ping"}'


@every_client
def test_chat_gets_comments_and_messages_pings(profile: Profile) -> None:
    for begun in (False, True):
        assert data_of(profile.keepalive(Api.CHAT, begun=begun)) == b""
        assert data_of(profile.keepalive(Api.MESSAGES, begun=begun)) == b'{"type": "ping"}'
