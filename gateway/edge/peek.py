"""What the gateway reads of a request body before it passes the body on.

Only top-level fields are looked at; whatever else is in the body is the backend's to judge.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from gateway.errors import BadRequest
from gateway.protocols.fields import Fields, parse
from gateway.protocols.opening import echoed, opening
from gateway.records import Api

ENGINE_FIELDS = frozenset(
    {
        "priority",
        "kv_transfer_params",
        "ec_transfer_params",
        "cache_salt",
        "request_id",
        "data_parallel_rank",
    }
)
"""Fields of the engine with which one key could disturb or watch another's requests."""

_CAPS = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens"})
_LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\)\\u[dD][c-fC-F]"
)


class Peek:
    """The fields of one request that decide how it is handled. Holds views into the body.

    Attributes:
        fields: every top-level field, undecoded; `splice.set_fields` takes them.
        model: as the client named it, never empty.
        stream: the client asked for an event stream.
        include_usage: the client asked for the usage frame itself.
        caps_output: the client set a limit for generated tokens.
        metadata_user_id: `metadata.user_id`, where it is a string.
        prompt_cache_key, previous_response_id: likewise.
        echo_prompt: text that the answer repeats before it generates, if it was asked to.
        engine_fields: the names of `ENGINE_FIELDS` that are present.
    """

    __slots__ = (
        "_api",
        "_options",
        "caps_output",
        "echo_prompt",
        "engine_fields",
        "fields",
        "include_usage",
        "metadata_user_id",
        "model",
        "previous_response_id",
        "prompt_cache_key",
        "stream",
    )

    def __init__(self, fields: Fields, api: Api) -> None:
        self._api = api
        self.fields = fields
        self.model = _model(fields)
        # Most requests have few of these fields, and a look for each is a sixth of its decoding.
        self.stream = "stream" in fields and _flag(fields, "stream")
        _check_shapes(fields, api)
        self._options = _options(fields) if "stream_options" in fields else {}
        self.include_usage = self._options.get("include_usage") is True
        self.caps_output = not _CAPS.isdisjoint(fields) and any(
            _value(fields, name) is not None for name in _CAPS
        )
        metadata = _value(fields, "metadata") if "metadata" in fields else None
        self.metadata_user_id = _text(metadata.get("user_id")) if type(metadata) is dict else None
        self.prompt_cache_key = self.previous_response_id = None
        if "prompt_cache_key" in fields:
            self.prompt_cache_key = _text(_value(fields, "prompt_cache_key"))
        if "previous_response_id" in fields:
            self.previous_response_id = _text(_value(fields, "previous_response_id"))
        self.echo_prompt = echoed(api, fields) if "echo" in fields else None
        self.engine_fields = ENGINE_FIELDS & fields.keys()

    def fingerprint(self) -> bytes:
        """What the conversation opened with: system text and first user message.

        It stays the same from turn to turn, so it can stand for a session that has no name.
        """
        return opening(self._api, self.fields)

    def stream_options_with_usage(self) -> bytes:
        """The client's `stream_options`, with usage asked for, as JSON."""
        return msgspec.json.encode({**self._options, "include_usage": True})


def peek(body: bytes, api: Api) -> Peek:
    """Read what decides how a request is handled.

    Raises:
        BadRequest: the body is no JSON object, or a field that the gateway needs is missing or of
            a wrong type; the message names the field.
    """
    if not body.isascii():
        _check_utf8(body)
    try:
        fields = parse(body)
    except msgspec.ValidationError:
        raise BadRequest('The request body must be a JSON object, like {"model": …}.') from None
    except msgspec.DecodeError as error:
        raise BadRequest(_not_json(body, str(error))) from None
    except RecursionError:
        raise BadRequest("The request body is nested too deeply.") from None
    return Peek(fields, api)


def _check_utf8(body: bytes) -> None:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise BadRequest(
            f"The request body is not valid UTF-8 at byte {error.start}; encode it as UTF-8."
        ) from None


def _not_json(body: bytes, reason: str) -> str:
    if not body.strip():
        return "The request body is empty; send a JSON object with the fields of this API."
    escape = any(word in reason for word in ("truncated", "escape", "surrogate"))
    lone = _LONE_SURROGATE.search(body) if escape else None
    if lone is not None:
        return (
            f"The request body holds half of a surrogate pair at byte {lone.start()}: "
            "some text was cut in the middle of a character; remove it."
        )
    return f"The request body is not valid JSON: {reason.removeprefix('JSON is malformed: ')}."


def _value(fields: Fields, name: str) -> Any:
    raw = fields.get(name)
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        raise BadRequest(f"`{name}` could not be read.", param=name) from None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _model(fields: Fields) -> str:
    if "model" not in fields:
        raise BadRequest("`model` is missing; name one that GET /v1/models lists.", param="model")
    model = _value(fields, "model")
    if not isinstance(model, str) or not model:
        raise BadRequest("`model` must be a non-empty string.", param="model")
    return model


def _flag(fields: Fields, name: str) -> bool:
    value = _value(fields, name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise BadRequest(f"`{name}` must be true or false.", param=name)


def _options(fields: Fields) -> dict[str, Any]:
    options = _value(fields, "stream_options")
    if options is None:
        return {}
    if not isinstance(options, dict):
        raise BadRequest("`stream_options` must be an object.", param="stream_options")
    return options


def _check_shapes(fields: Fields, api: Api) -> None:
    if api is Api.CHAT or api is Api.MESSAGES:
        if "messages" not in fields:
            raise BadRequest("`messages` is missing; send a list of messages.", param="messages")
        if _first(fields["messages"]) != b"[":
            raise BadRequest("`messages` must be a list of messages.", param="messages")
    elif api is Api.COMPLETIONS:
        _check_text_or_list(fields, "prompt")
    elif api is Api.RESPONSES or api is Api.EMBEDDINGS:
        _check_text_or_list(fields, "input")


def _check_text_or_list(fields: Fields, name: str) -> None:
    raw = fields.get(name)
    if raw is not None and _first(raw) not in (b'"', b"[", b"n"):
        raise BadRequest(f"`{name}` must be a string or a list.", param=name)


def _first(raw: msgspec.Raw) -> bytes:
    return bytes(memoryview(raw)[:1])
