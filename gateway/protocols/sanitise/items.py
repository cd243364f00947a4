"""The items of a Responses request, each repaired by itself, so the same in every turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from gateway.protocols.fields import Fields
from gateway.protocols.sanitise.parts import (
    elements,
    encoded,
    is_null,
    members,
    same,
    word,
)
from gateway.protocols.translate import responses_notes as notes
from gateway.protocols.translate.responses_items import as_object
from gateway.protocols.translate.responses_tools import Called, Names

_Items = list[msgspec.Raw]
_SYSTEM = frozenset({"system", "developer"})
_TEXTS = frozenset({"input_text", "output_text", "text"})
_NULL = msgspec.Raw(b"null")


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
    return _of_others(raw, seen)


def instructions(raw: msgspec.Raw) -> tuple[str, str] | None:
    """The role and the text of a message that gives instructions; None for any other item."""
    try:
        seen = _look(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    if seen.type != "message" or seen.role not in _SYSTEM:
        return None
    given = elements(seen.content)
    if given is None:
        return seen.role, word(seen.content)
    parts = [members(one) or {} for one in given]
    if any(word(part.get("type")) not in _TEXTS for part in parts):
        return None
    return seen.role, "\n".join(word(part.get("text")) for part in parts)


def _message(raw: msgspec.Raw, seen: _Item, names: Names) -> _Items:
    if seen.role in _SYSTEM:
        # Templates want the system's words first, and know no developer; in its place the text
        # can only be the user's.
        seen.role = "user"
        raw = _changed(raw, role=encoded("user"))
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
    if given is None:
        given = ""
    called = as_object(given if isinstance(given, str) else _text_of(encoded(given)))
    if called == seen.arguments and seen.namespace is None and function == seen.name:
        return [raw]
    fields = members(raw) or {}
    fields.pop("namespace", None)
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
    given = _text_of(encoded({"input": word(fields.get("input"))}))
    return [_function_call(fields, function, given)]


def _custom_output(raw: msgspec.Raw, seen: _Item, names: Names) -> _Items:
    return _output(_changed(raw, type=encoded("function_call_output")), seen, names)


_REPAIRS: dict[str, Callable[[msgspec.Raw, _Item, Names], _Items]] = {
    "message": _message,
    "function_call": _call,
    "function_call_output": _output,
    "reasoning": _reasoning,
    "custom_tool_call": _custom_call,
    "custom_tool_call_output": _custom_output,
}


def _of_others(raw: msgspec.Raw, seen: _Item) -> _Items:
    """What tools that are no functions leave in a conversation, told as in a translated one."""
    fields, kind = members(raw) or {}, seen.type
    if kind in notes.CALLS:
        did = fields.get("action") or fields.get("operation") or fields.get("arguments")
        called = as_object(word(did) or _text_of(did or encoded({})))
        return [_function_call(fields, notes.CALLS[kind], called)]
    if kind in notes.RESULTS:
        output = fields.get("output") or encoded("")
        said = word(output) if _is_text(output) else _text_of(output)
        answers = _answers(fields)
        return [encoded({"type": "function_call_output", "call_id": answers, "output": said})]
    if kind in notes.NOTED:
        said = notes.note(kind, seen.name, fields.get("action"))
        return [encoded({"type": "message", "role": "assistant", "content": said})]
    if kind in notes.COMPACTED:
        return [encoded({"type": "message", "role": "user", "content": notes.COMPACTION})]
    return [] if kind in notes.SILENT else [raw]


def _function_call(fields: Fields, name: str, called: str) -> msgspec.Raw:
    call = {
        "type": "function_call",
        "call_id": _answers(fields),
        "name": name,
        "arguments": called,
    }
    return encoded({"id": fields["id"], **call} if "id" in fields else call)


def _answers(fields: Fields) -> msgspec.Raw:
    """By which id a call and its result belong together."""
    given = fields.get("call_id")
    return fields.get("id", _NULL) if given is None or is_null(given) else given


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


def _changed(raw: msgspec.Raw, **changes: msgspec.Raw) -> msgspec.Raw:
    return encoded({**(members(raw) or {}), **changes})


def _text_of(raw: msgspec.Raw) -> str:
    return bytes(raw).decode()


def _is_list(raw: msgspec.Raw) -> bool:
    return bytes(memoryview(raw)[:1]) == b"["


def _is_text(raw: msgspec.Raw) -> bool:
    return bytes(memoryview(raw)[:1]) == b'"'
