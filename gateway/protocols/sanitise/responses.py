"""Requests for a native `/v1/responses`, repaired where vLLM would refuse or silently damage them.

What vLLM 0.32 does with each was found by asking it; everything else travels as it came. Names
that had to be changed on the way in are given back on the way out by `restore.Restore`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.errors import BadRequest
from gateway.protocols.fields import Fields
from gateway.protocols.sanitise.items import instructions, item
from gateway.protocols.sanitise.parts import (
    Changes,
    decoded,
    elements,
    encoded,
    is_null,
    members,
    same,
    word,
)
from gateway.protocols.translate.messages_content import GAP
from gateway.protocols.translate.responses_choice import choose
from gateway.protocols.translate.responses_tools import Called, Names, flatten

_TIERS = frozenset({"auto", "default", "flex", "scale", "priority"})
_SUMMARIES = frozenset({"auto", "concise", "detailed"})
_INCLUDED = frozenset(
    {
        "code_interpreter_call.outputs",
        "computer_call_output.output.image_url",
        "file_search_call.results",
        "message.input_image.image_url",
        "message.output_text.logprobs",
        "reasoning.encrypted_content",
    }
)
# More than any engine knows; `high` is the most that all of them and their templates do.
_BEYOND = frozenset({"max", "ultra"})
_DEMANDS = frozenset({"function", "custom", "allowed_tools"})

_encode = msgspec.json.encode


class _Function(msgspec.Struct, gc=False, tag="function"): ...


_only_functions = msgspec.json.Decoder(list[_Function]).decode


def repair(fields: Fields) -> tuple[Changes, Names | None]:
    """Changes of top-level fields for `protocols.splice.set_fields`, empty where nothing is wrong.

    The names are those of tools that had to become functions, for the way back; None if none had.

    Raises:
        BadRequest: among such tools is one that is none; the message says which.
    """
    changes: Changes = {}
    try:
        names = _tools(fields, changes)
        known = names or Names()
        _input(fields, known, changes)
        _choice(fields, known, changes)
        _options(fields, changes)
    except RecursionError:
        raise BadRequest("The request body is nested too deeply.") from None
    return changes, names


def _input(fields: Fields, names: Names, changes: Changes) -> None:
    """The items; what instructs before the first turn becomes one system message.

    Templates take one at most, at the beginning, and few know a developer.
    """
    given = elements(fields.get("input"))
    if given is None:
        return
    lead = _lead(given) if is_null(fields.get("previous_response_id")) else []
    own, head = word(fields.get("instructions")), 0
    if not own and [role for role, _ in lead] == ["system"]:
        lead, head = [], 1
    elif lead:
        texts = (own, *(text for _, text in lead))
        changes["instructions"] = _encode(GAP.join(filter(None, texts)))
    turns = given[len(lead) + head :]
    new = [*given[:head], *(one for raw in turns for one in item(raw, names))]
    if not same(new, given):
        changes["input"] = _encode(new)


def _lead(given: list[msgspec.Raw]) -> list[tuple[str, str]]:
    """Role and text of the instructions that a conversation begins with, if more than those."""
    lead: list[tuple[str, str]] = []
    for raw in given:
        told = instructions(raw)
        if told is None:
            return lead
        lead.append(told)
    return []


def _tools(fields: Fields, changes: Changes) -> Names | None:
    """Make functions of the tools that are none, the same ones in every turn."""
    raw = fields.get("tools")
    if raw is None or is_null(raw) or _are_functions(raw):
        return None
    given = elements(raw) or []
    tools = [_tool(one) for one in given]
    if not any(isinstance(tool, dict) and tool.get("type") != "function" for tool in tools):
        return None  # for the backend to judge
    functions, names = flatten(tools)
    bytes_of = {id(tool): one for tool, one in zip(tools, given, strict=True)}
    changes["tools"] = _encode([bytes_of.get(id(one), one) for one in functions])
    if not functions:
        changes["tools"] = None
        if "tool_choice" in fields:
            changes["tool_choice"] = None
    return names


def _tool(raw: msgspec.Raw) -> Any:
    """A tool as `flatten` reads it; of a function, which stays, that is no more than its name."""
    fields = members(raw)
    if fields is None or word(fields.get("type")) != "function":
        return decoded(raw)
    return {**fields, "type": "function", "name": word(fields.get("name"))}


def _are_functions(raw: msgspec.Raw) -> bool:
    try:
        _only_functions(raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _choice(fields: Fields, names: Names, changes: Changes) -> None:
    """A choice among functions; of tools that are not here the model cannot choose any."""
    choice = members(fields.get("tool_choice"))
    if choice is None or "tool_choice" in changes:
        return
    kind, name = word(choice.get("type")), word(choice.get("name"))
    namespace = word(choice.get("namespace")) or None
    if kind not in _DEMANDS:
        changes["tool_choice"] = b'"auto"'
    elif kind == "allowed_tools":
        _allow(fields, names, changes)
    elif kind == "custom" or namespace is not None:
        function = names.function(Called(name, namespace, custom=kind == "custom"))
        changes["tool_choice"] = _encode({"type": "function", "name": function})


def _allow(fields: Fields, names: Names, changes: Changes) -> None:
    """Leave the other tools out: vLLM takes the choice for `auto`, and would offer them all."""
    raw = changes.get("tools") or fields.get("tools")
    given = elements(msgspec.Raw(raw)) if raw is not None else None
    functions = [_tool(one) for one in given or ()]
    if not all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in functions):
        return  # for the backend to judge
    allowed, mode = choose(decoded(fields["tool_choice"]), functions, names)
    kept = {id(function) for function in allowed}
    offered = [
        one for one, function in zip(given or (), functions, strict=True) if id(function) in kept
    ]
    changes["tools"] = _encode(offered) if offered else None
    changes["tool_choice"] = _encode(mode) if offered else None


def _options(fields: Fields, changes: Changes) -> None:
    """Words that vLLM does not know: the nearest that it does, or none at all."""
    tier = fields.get("service_tier")
    if tier is not None and word(tier) not in _TIERS:
        changes["service_tier"] = None
    reasoning = members(fields.get("reasoning"))
    if reasoning is not None:
        told = dict(reasoning)
        if word(told.get("effort")) in _BEYOND:
            told["effort"] = encoded("high")
        for name in ("summary", "generate_summary"):
            if name in told and not is_null(told[name]) and word(told[name]) not in _SUMMARIES:
                del told[name]
        if told != reasoning:
            changes["reasoning"] = _encode(told)
    included = elements(fields.get("include"))
    if included is not None:
        known = [one for one in included if word(one) in _INCLUDED]
        if len(known) < len(included):
            changes["include"] = _encode(known) if known else None
