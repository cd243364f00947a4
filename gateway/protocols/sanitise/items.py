"""The items of a Responses request, each repaired by itself, so the same in every turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from gateway.protocols.fields import Fields
from gateway.protocols.sanitise.parts import (
    arguments,
    decoded,
    elements,
    encoded,
    is_null,
    members,
    same,
    word,
)
from gateway.protocols.translate.responses_tools import Called, Names

_Items = list[msgspec.Raw]
_NULL = msgspec.Raw(b"null")
# A picture that a server made stands in its call.
_LONGEST_NOTE = 2000


class _Item(msgspec.Struct, gc=False):
    """What tells whether an item needs repair. Long texts are not copied to be looked at."""

    type: str = "message"
    role: str | None = None
    id: str | None = None
    status: str | None = None
    content: msgspec.Raw = _NULL
    summary: msgspec.Raw = _NULL
    encrypted_content: msgspec.Raw = _NULL
    output: msgspec.Raw = _NULL
    name: str = ""
    namespace: str | None = None
    arguments: Any = None


_look = msgspec.json.Decoder(_Item).decode


def item(raw: msgspec.Raw, names: Names) -> _Items:
    """An item as vLLM takes it: itself, if it does; none where nothing of it can be read."""
    try:
        seen = _look(raw)
    except (msgspec.DecodeError, RecursionError):
        return [raw]  # for the backend to judge
    repair = _REPAIRS.get(seen.type)
    if repair is not None:
        return repair(raw, seen, names)
    return _of_other_tool(raw, seen, names)


def _message(raw: msgspec.Raw, seen: _Item, names: Names) -> _Items:
    content = seen.content
    if is_null(content):
        return [_changed(raw, content=encoded(""))] if seen.role else [raw]
    if not _is_list(content):
        return [raw]
    if seen.role != "assistant":
        new = _with_details(content)
        return [raw if new is content else _changed(raw, content=new)]
    parts = elements(content) or []
    if len(parts) == 1 and seen.id and seen.status:
        return [raw]
    # Without an id or a status vLLM refuses it, without a part it fails, and of several parts it
    # reads the first; a plain text it takes as it is.
    said = [members(part) or {} for part in parts]
    texts = [word(part.get("text")) or word(part.get("refusal")) for part in said]
    return [encoded({"type": "message", "role": "assistant", "content": "".join(texts)})]


def _call(raw: msgspec.Raw, seen: _Item, names: Names) -> _Items:
    function = names.function(Called(seen.name, seen.namespace))
    given = seen.arguments
    sound = isinstance(given, str) and members(msgspec.Raw(given.encode())) is not None
    if sound and seen.namespace is None and function == seen.name:
        return [raw]
    fields = members(raw) or {}
    fields.pop("namespace", None)
    called = encoded(given if sound else _text_of(arguments(given)))
    return [encoded({**fields, "name": function, "arguments": called})]


def _output(raw: msgspec.Raw, seen: _Item, names: Names) -> _Items:
    if not _is_list(seen.output):
        return [raw]
    new = _with_details(seen.output)
    return [raw if new is seen.output else _changed(raw, output=new)]


def _reasoning(raw: msgspec.Raw, seen: _Item, names: Names) -> _Items:
    sealed = not is_null(seen.encrypted_content)
    if not sealed and _is_list(seen.summary) and seen.id:
        return [raw]
    if sealed and not elements(seen.content) and not elements(seen.summary):
        return []  # sealed for the server that wrote it: there is nothing to read here
    fields = members(raw) or {}
    if sealed:
        del fields["encrypted_content"]
    if not _is_list(seen.summary):
        fields["summary"] = encoded([])
    return [encoded({"id": "rs_0", **fields} if seen.id is None else fields)]


def _custom_call(raw: msgspec.Raw, seen: _Item, names: Names) -> _Items:
    fields = members(raw) or {}
    function = names.function(Called(seen.name, seen.namespace, custom=True))
    return [_function_call(fields, function, {"input": word(fields.get("input"))})]


def _custom_output(raw: msgspec.Raw, seen: _Item, names: Names) -> _Items:
    return _output(_changed(raw, type=encoded("function_call_output")), seen, names)


def _compaction(raw: msgspec.Raw, seen: _Item, names: Names) -> _Items:
    note = "[The conversation before this was summed up in a form that cannot be read here.]"
    return [encoded({"type": "message", "role": "user", "content": note})]


def _itself(raw: msgspec.Raw, seen: _Item, names: Names) -> _Items:
    return [raw]


_REPAIRS: dict[str, Callable[[msgspec.Raw, _Item, Names], _Items]] = {
    "message": _message,
    "function_call": _call,
    "function_call_output": _output,
    "reasoning": _reasoning,
    "custom_tool_call": _custom_call,
    "custom_tool_call_output": _custom_output,
    "compaction": _compaction,
    "compaction_summary": _compaction,
    "item_reference": _itself,
}


def _of_other_tool(raw: msgspec.Raw, seen: _Item, names: Names) -> _Items:
    """Calls of tools that are no functions: as functions where the client ran them.

    What a server ran (a web search) has no id to answer to, and its result is part of the call;
    a note of it stays.
    """
    fields = members(raw) or {}
    answers = word(fields.get("call_id"))
    kind = seen.type
    if kind.endswith("_output") and answers:
        output = fields.get("output", _without(fields, "type", "id", "call_id", "status"))
        said = word(output) or _text_of(output)
        return [encoded({"type": "function_call_output", "call_id": answers, "output": said})]
    if not kind.endswith("_call"):
        return [raw]
    given = fields.get("action", _without(fields, "type", "id", "call_id", "status"))
    tool = kind.removesuffix("_call")
    if answers:
        return [_function_call(fields, tool, given)]
    said = _text_of(given)
    note = f"[{tool}: {said if len(said) <= _LONGEST_NOTE else said[:_LONGEST_NOTE] + '…'}]"
    return [encoded({"type": "message", "role": "assistant", "content": note})]


def _function_call(fields: Fields, name: str, given: Any) -> msgspec.Raw:
    call = {
        "type": "function_call",
        "call_id": fields.get("call_id", _NULL),
        "name": name,
        "arguments": _text_of(_arguments_of(given)),
    }
    return encoded({"id": fields["id"], **call} if "id" in fields else call)


def _arguments_of(given: Any) -> msgspec.Raw:
    return arguments(decoded(given) if isinstance(given, msgspec.Raw) else given)


def _with_details(content: msgspec.Raw) -> msgspec.Raw:
    """Parts whose images all say how closely to look, which vLLM wants to be told."""
    if b'"input_image"' not in memoryview(content).tobytes():
        return content
    given = elements(content) or []
    new = [_with_detail(part) for part in given]
    return content if same(new, given) else encoded(new)


def _with_detail(raw: msgspec.Raw) -> msgspec.Raw:
    fields = members(raw) or {}
    if word(fields.get("type")) != "input_image" or not is_null(fields.get("detail")):
        return raw
    return encoded({**fields, "detail": "auto"})


def _without(fields: Fields, *names: str) -> msgspec.Raw:
    return encoded({name: value for name, value in fields.items() if name not in names})


def _changed(raw: msgspec.Raw, **changes: msgspec.Raw) -> msgspec.Raw:
    return encoded({**(members(raw) or {}), **changes})


def _text_of(raw: msgspec.Raw) -> str:
    return bytes(raw).decode()


def _is_list(raw: msgspec.Raw) -> bool:
    return bytes(memoryview(raw)[:1]) == b"["
