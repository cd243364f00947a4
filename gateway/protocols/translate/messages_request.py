"""A Messages request as a chat request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from gateway.errors import BadRequest
from gateway.protocols.translate.messages_blocks import OutputConfig, Request, Tool, ToolChoice
from gateway.protocols.translate.messages_turns import chat_messages

Json = dict[str, Any]

_decode = msgspec.json.Decoder(Request).decode

_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium"}
"""What every chat server knows; beyond `medium` there is only `high`."""

_BUDGETS = ((4096, "low"), (16384, "medium"))
"""Thinking budgets below these as efforts. vLLM's own `thinking_token_budget` is refused by
engines that were started without a reasoning configuration."""

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_ENGINE_FIELDS = ("cache_salt", "priority", "kv_transfer_params")


def read(body: bytes) -> Request:
    """Read a Messages request.

    Raises:
        BadRequest: it is none; the message and `param` name the field at fault.
    """
    try:
        if not body.isascii():
            body.decode()  # Parts that travel as they are would not be looked at.
        return _decode(body)
    except msgspec.ValidationError as fault:
        raise _misplaced(str(fault)) from None
    except (msgspec.DecodeError, UnicodeError) as fault:
        raise BadRequest(f"The request body is not JSON: {fault}.") from None
    except RecursionError:
        raise BadRequest("The request body is nested too deeply.") from None


def chat_request(request: Request) -> bytes:
    """The chat request that asks for the same.

    Raises:
        BadRequest: a chat server cannot do what is asked.
    """
    return _written(_fields, request)


def prompt_request(request: Request) -> bytes:
    """Those fields of the chat request that make its prompt.

    Raises:
        BadRequest: as `chat_request`.
    """
    return _written(_prompt_fields, request)


def _written(fields: Callable[[Request], Json], request: Request) -> bytes:
    try:
        return msgspec.json.encode(fields(request))
    except RecursionError:
        raise BadRequest("The request body is nested too deeply.") from None
    except ValueError as fault:  # Raw parts of the body are first looked at here.
        raise BadRequest(f"The request body cannot be read: {fault}.") from None


def _prompt_fields(request: Request) -> Json:
    fields: Json = {"model": request.model, "messages": chat_messages(request)}
    tools = [_tool(tool) for tool in request.tools or () if _runs(tool)]
    if tools:
        fields["tools"] = tools
    kwargs = _template_kwargs(request)
    if kwargs is not None:
        fields["chat_template_kwargs"] = kwargs
    return fields


def _misplaced(fault: str) -> BadRequest:
    reason, _, place = fault.partition(" - at `$")
    path = place.rstrip("`").lstrip(".")
    if reason.startswith("Object missing required field `"):
        missing = reason.split("`")[1]
        path, reason = f"{path}.{missing}" if path else missing, "This field is required"
    return BadRequest(f"{path}: {reason}." if path else f"{reason}.", param=path or None)


def _fields(request: Request) -> Json:
    fields = _prompt_fields(request)
    if request.max_tokens is not None:
        # Zero asks for nothing but a warm cache, which takes a chat server one token.
        fields["max_tokens"] = max(1, request.max_tokens)
    for name in ("temperature", "top_p", "top_k"):
        value = getattr(request, name)
        if value is not None:
            fields[name] = value
    if request.stop_sequences:
        fields["stop"] = request.stop_sequences
    _choose_tool(request, fields)
    _shape_output(request, fields)
    for name in _ENGINE_FIELDS:
        value = getattr(request, name)
        if value is not msgspec.UNSET:
            fields[name] = value
    if request.stream:
        fields["stream"] = True
        fields["stream_options"] = {"include_usage": True}
    return fields


def _runs(tool: Tool) -> bool:
    """Whether the client runs it. What Anthropic's servers would run, nobody runs here."""
    return tool.input_schema is not msgspec.UNSET and bytes(tool.input_schema) != b"null"


def _tool(tool: Tool) -> Json:
    function: Json = {"name": tool.name, "parameters": tool.input_schema}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _choose_tool(request: Request, fields: Json) -> None:
    choice = request.tool_choice
    if choice is None:
        return
    if choice.type in ("tool", "any"):
        _check_choice(choice, request.tools or [])
    elif "tools" not in fields:
        return
    if choice.type == "tool":
        fields["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
    else:
        fields["tool_choice"] = _CHOICES[choice.type]
    if choice.disable_parallel_tool_use:
        fields["parallel_tool_calls"] = False


def _check_choice(choice: ToolChoice, tools: list[Tool]) -> None:
    named = choice.type == "tool"
    usable = [tool for tool in tools if not named or tool.name == choice.name]
    if any(map(_runs, usable)):
        return
    param = "tool_choice.name" if named else "tool_choice.type"
    if usable:
        reason = "This model's server cannot run Anthropic's own tools; give one an input_schema"
    else:
        reason = f"There is no tool named {choice.name!r}" if named else "There are no tools"
    raise BadRequest(f"{param}: {reason}.", param=param)


def _shape_output(request: Request, fields: Json) -> None:
    config = request.output_config or OutputConfig()
    form = config.format or request.output_format
    if form is not None:
        schema = {"name": "answer", "schema": form.schema, "strict": True}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    thinking = request.thinking
    if thinking is not None and thinking.type == "disabled":
        return
    if config.effort is not None:
        fields["reasoning_effort"] = _EFFORTS.get(config.effort, "high")
    elif thinking is not None and thinking.budget_tokens is not None:
        fields["reasoning_effort"] = budgeted(thinking.budget_tokens)


def budgeted(tokens: int) -> str:
    """The effort that stands for a thinking budget of so many tokens."""
    return next((effort for limit, effort in _BUDGETS if tokens < limit), "high")


def _template_kwargs(request: Request) -> msgspec.Raw | Json | None:
    """`enable_thinking` is how templates that can do without thinking are told so."""
    own = request.chat_template_kwargs
    if own is not msgspec.UNSET:
        return own
    thinking = request.thinking
    if thinking is not None and thinking.type == "disabled":
        return {"enable_thinking": False}
    return None
