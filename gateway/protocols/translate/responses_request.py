"""A Responses request as a chat request.

Left out, since a chat server has no use for it or must not know: `store`, `include`, `metadata`,
`client_metadata`, `prompt_cache_key`, `safety_identifier`, `user`, `service_tier`, `truncation`,
`max_tool_calls`, `top_logprobs`, `text.verbosity`, `reasoning.summary`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import BadRequest
from gateway.protocols.translate.bad_fields import fault, of_decoding, within
from gateway.protocols.translate.responses_choice import choose
from gateway.protocols.translate.responses_items import SEND_ALL, Conversation, Item
from gateway.protocols.translate.responses_parts import ABSENT, given
from gateway.protocols.translate.responses_tools import Names, Tool, flatten

# `minimal` and `none` are unknown to some engines, and so is whatever is more than `high`; these
# three every engine that knows the field takes.
_EFFORTS = {
    "none": "low",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
    "ultra": "high",
}


class _Format(msgspec.Struct, gc=False):
    type: str
    name: str | None = None
    description: str | None = None
    schema: msgspec.Raw = ABSENT
    strict: bool | None = None


class _Text(msgspec.Struct, gc=False):
    format: _Format | None = None


class _Reasoning(msgspec.Struct, gc=False):
    effort: str | None = None


class _Declared(msgspec.Struct, gc=False):
    """A tool, with its schema as it came: a coding agent's tools are a third of its request."""

    type: str
    name: str | None = None
    description: str | None = None
    parameters: msgspec.Raw = ABSENT
    strict: bool | None = None
    format: Any = None
    tools: list[_Declared] | None = None

    def plain(self) -> Tool:
        """As `flatten` takes it."""
        tool: Tool = {"type": self.type}
        _put(tool, "name", self.name)
        _put(tool, "description", self.description)
        _put(tool, "parameters", given(self.parameters))
        _put(tool, "strict", self.strict)
        _put(tool, "format", self.format)
        if self.tools is not None:
            tool["tools"] = [inner.plain() for inner in self.tools]
        return tool


class _Engine(msgspec.Struct, gc=False):
    """What vLLM takes on either API under the same name, whatever it holds."""

    temperature: msgspec.Raw = ABSENT
    top_p: msgspec.Raw = ABSENT
    top_k: msgspec.Raw = ABSENT
    min_p: msgspec.Raw = ABSENT
    seed: msgspec.Raw = ABSENT
    stop: msgspec.Raw = ABSENT
    presence_penalty: msgspec.Raw = ABSENT
    frequency_penalty: msgspec.Raw = ABSENT
    repetition_penalty: msgspec.Raw = ABSENT
    ignore_eos: msgspec.Raw = ABSENT
    min_tokens: msgspec.Raw = ABSENT
    chat_template_kwargs: msgspec.Raw = ABSENT
    cache_salt: msgspec.Raw = ABSENT
    priority: msgspec.Raw = ABSENT
    kv_transfer_params: msgspec.Raw = ABSENT


class _Request(_Engine, gc=False):
    model: str = ""
    input: str | list[Item] | None = None
    instructions: str | None = None
    tools: list[_Declared] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: int | None = None
    text: _Text | None = None
    reasoning: _Reasoning | None = None
    stream: bool | None = None
    metadata: dict[str, msgspec.Raw] | None = None
    previous_response_id: str | None = None
    conversation: Any = None
    background: bool | None = None
    prompt: Any = None


class Asked(msgspec.Struct, gc=False):
    """What was asked, as the backend gets it and as the answer has to remember it.

    Attributes:
        body: the chat request, JSON.
        names: what its functions are called by the client.
        echo: the settings that a response repeats.
    """

    body: bytes
    names: Names
    echo: dict[str, Any]


_decode = msgspec.json.Decoder(_Request).decode
_ENGINE = _Engine.__struct_fields__


def read(body: bytes) -> Asked:
    """Read a Responses request.

    Raises:
        BadRequest: it is none, or asks for what a chat server cannot give; `param` says where.
    """
    try:
        return _asked(_decode(body))
    except (msgspec.DecodeError, RecursionError) as error:
        # What could just be read may be too deep to be written, one level further down.
        raise of_decoding(error) from None


def _asked(request: _Request) -> Asked:
    _refuse(request)
    functions, names = flatten([tool.plain() for tool in request.tools or ()])
    functions, choice = choose(request.tool_choice, functions, names)
    chat: dict[str, Any] = {"model": request.model, "messages": _messages(request, names)}
    if functions:
        chat["tools"] = [_tool(function) for function in functions]
        _put(chat, "tool_choice", choice)
        _put(chat, "parallel_tool_calls", request.parallel_tool_calls)
    _put(chat, "max_tokens", request.max_output_tokens)
    _put(chat, "response_format", _response_format(request.text))
    _put(chat, "reasoning_effort", _effort(request.reasoning))
    for name in _ENGINE:
        _put(chat, name, given(getattr(request, name)))
    if request.stream:
        chat["stream"] = True
        chat["stream_options"] = {"include_usage": True}
    return Asked(msgspec.json.encode(chat), names, _echo(request))


def _refuse(request: _Request) -> None:
    """Raise for what needs a server that keeps responses, prompts or work in the background."""
    for name in ("previous_response_id", "conversation"):
        if getattr(request, name) is not None:
            raise fault(name, f"cannot be used here. {SEND_ALL}")
    if request.prompt is not None:
        raise fault("prompt", "refers to a stored prompt, and none are kept; send its text")
    if request.background:
        raise fault("background", "is not possible with this model; leave it out")
    if request.max_output_tokens is not None and request.max_output_tokens < 1:
        raise fault("max_output_tokens", "has to be at least 1")


def _messages(request: _Request, names: Names) -> list[dict[str, Any]]:
    conversation = Conversation(names, request.instructions)
    if isinstance(request.input, str):
        conversation.user(request.input)
    else:
        for index, item in enumerate(request.input or ()):
            try:
                conversation.add(item)
            except BadRequest as error:
                raise within(f"input[{index}]", error) from None
    conversation.close()
    if not conversation.messages:
        raise fault("input", "has to be text or a list of at least one message")
    return conversation.messages


def _tool(function: Tool) -> dict[str, Any]:
    described = {
        "name": function["name"],
        "parameters": function.get("parameters") or {"type": "object", "properties": {}},
    }
    _put(described, "description", function.get("description"))
    _put(described, "strict", function.get("strict"))
    return {"type": "function", "function": described}


def _response_format(text: _Text | None) -> dict[str, Any] | None:
    form = text.format if text is not None else None
    if form is None or form.type == "text":
        return None
    if form.type == "json_object":
        return {"type": "json_object"}
    if form.type != "json_schema":
        raise fault("text.format.type", "has to be text, json_object or json_schema")
    if given(form.schema) is None:
        raise fault("text.format.schema", "has to be a JSON schema")
    schema: dict[str, Any] = {"name": form.name or "answer", "schema": form.schema}
    _put(schema, "description", form.description)
    _put(schema, "strict", form.strict)
    return {"type": "json_schema", "json_schema": schema}


def _effort(reasoning: _Reasoning | None) -> str | None:
    if reasoning is None or reasoning.effort is None:
        return None
    if reasoning.effort not in _EFFORTS:
        raise fault("reasoning.effort", f"has to be one of {', '.join(_EFFORTS)}")
    return _EFFORTS[reasoning.effort]


def _echo(request: _Request) -> dict[str, Any]:
    """Not the tools and instructions: they would delay the first event by tens of kilobytes."""
    choice = "auto" if request.tool_choice is None else request.tool_choice
    return {
        "instructions": None,
        "max_output_tokens": request.max_output_tokens,
        "metadata": request.metadata or {},
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "temperature": given(request.temperature),
        "tool_choice": msgspec.Raw(msgspec.json.encode(choice)),
        "tools": [],
        "top_p": given(request.top_p),
    }


def _put(into: dict[str, Any], name: str, value: Any) -> None:
    if value is not None:
        into[name] = value
