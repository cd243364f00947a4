"""Requests for a native `/v1/messages`, repaired where vLLM would refuse or silently damage them.

What vLLM 0.32 does with each was found by asking it; everything else travels as it came, since
an engine finds a prompt in its cache only if it begins with the same bytes in every turn.
"""

from __future__ import annotations

import msgspec

from gateway.errors import BadRequest
from gateway.protocols.fields import Fields
from gateway.protocols.sanitise import blocks
from gateway.protocols.sanitise.parts import (
    Changes,
    decoded,
    elements,
    is_null,
    members,
    same,
    word,
)
from gateway.protocols.translate.messages_content import GAP, told
from gateway.protocols.translate.messages_request import budgeted

MOST_STOPS = 4
"""Stop sequences that vLLM takes. The first ones are kept: an answer that may go on further than
asked is of more use than none, and clients name what they rely on first."""

_encode = msgspec.json.encode


class _Object(msgspec.Struct, gc=False):
    """Any JSON object; its members are skipped."""


class _Tool(msgspec.Struct, gc=False):
    """A tool that says what it takes, so one that the client runs."""

    input_schema: _Object


_sound_tools = msgspec.json.Decoder(list[_Tool]).decode


def repair(fields: Fields) -> Changes:
    """Changes of top-level fields for `protocols.splice.set_fields`; empty where nothing is wrong.

    It serves `/v1/messages/count_tokens` too, which has the same fields but for the limits.

    Raises:
        BadRequest: the request demands a tool that only Anthropic's servers run.
    """
    changes: Changes = {}
    try:
        _conversation(fields, changes)
        _tools(fields, changes)
        _limits(fields, changes)
    except RecursionError:
        raise BadRequest("The request body is nested too deeply.") from None
    return changes


def _conversation(fields: Fields, changes: Changes) -> None:
    """Messages and system text; instructions that come before the first turn belong to it."""
    given = elements(fields.get("messages")) or []
    first = next((n for n, raw in enumerate(given) if not blocks.is_system(raw)), 0)
    lead = GAP.join(filter(None, map(blocks.instructions, given[:first])))
    new = [one for one in map(blocks.message, given[first:]) if one is not None]
    if not same(new, given):
        changes["messages"] = _encode(new)
    _system(fields.get("system"), lead, changes)


def _system(raw: msgspec.Raw | None, lead: str, changes: Changes) -> None:
    given = elements(raw)
    if given is not None:
        new = blocks.system(given)
        if lead:
            # vLLM joins the blocks with nothing between them.
            new.append(blocks.text(f"{GAP}{lead}" if new else lead))
        if not same(new, given):
            changes["system"] = _encode(new) if new else None
        return
    said = word(raw)
    whole = GAP.join(filter(None, (told(said), lead)))
    if whole != said:
        changes["system"] = _encode(whole) if whole else None


def _tools(fields: Fields, changes: Changes) -> None:
    """Leave out the tools that run at Anthropic: they have a type of their own and no schema."""
    raw = fields.get("tools")
    if raw is None or _are_sound(raw):
        return
    given = elements(raw) or []
    served = {name for one in given if (name := _server_tool(one)) is not None}
    if not served:
        return
    kept = [one for one in given if _server_tool(one) is None]
    _check_choice(fields, served, kept)
    changes["tools"] = _encode(kept) if kept else None
    if not kept and "tool_choice" in fields:
        changes["tool_choice"] = None


def _are_sound(raw: msgspec.Raw) -> bool:
    try:
        _sound_tools(raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _server_tool(raw: msgspec.Raw) -> str | None:
    """The name of a server tool; None for any other."""
    tool = members(raw) or {}
    kind = word(tool.get("type"))
    if kind in ("", "custom") or not is_null(tool.get("input_schema")):
        return None
    return word(tool.get("name")) or kind


def _check_choice(fields: Fields, served: set[str], kept: list[msgspec.Raw]) -> None:
    choice = members(fields.get("tool_choice")) or {}
    kind, name = word(choice.get("type")), word(choice.get("name"))
    if kind == "tool" and name in served:
        demanded = name
    elif kind == "any" and not kept:
        demanded = min(served)
    else:
        return
    raise BadRequest(
        f"`tool_choice` demands the server tool `{demanded[:100]}`, which this model's server "
        "does not run; leave `tool_choice` out, or give the tool an `input_schema` and run it "
        "in the client.",
        param="tool_choice",
    )


def _limits(fields: Fields, changes: Changes) -> None:
    """Numbers and words outside the range that vLLM takes, put to the nearest inside."""
    most = decoded(fields.get("max_tokens"))
    if type(most) is int and most == 0:
        # Anthropic only warms its cache then; the nearest to that is one token.
        changes["max_tokens"] = b"1"
    effort = None
    if "thinking" in fields:
        effort = _thinking(members(fields["thinking"]) or {}, changes)
    if effort is not None or "output_config" in fields:
        _effort(members(fields.get("output_config")) or {}, effort, changes)
    stops = elements(fields.get("stop_sequences")) if "stop_sequences" in fields else None
    if stops is not None and len(stops) > MOST_STOPS:
        different = list({bytes(one): one for one in stops}.values())
        changes["stop_sequences"] = _encode(different[:MOST_STOPS])


def _thinking(thinking: Fields, changes: Changes) -> str | None:
    """A budget becomes an effort, which is returned.

    vLLM refuses budgets, of any size, unless it was started with a reasoning configuration.
    """
    budget = decoded(thinking.get("budget_tokens"))
    if type(budget) is not int:
        return None
    kept = {name: value for name, value in thinking.items() if name != "budget_tokens"}
    changes["thinking"] = _encode({**kept, "type": "adaptive"})
    return budgeted(budget)


def _effort(config: Fields, budgeted: str | None, changes: Changes) -> None:
    """The effort that the request names, or else the one its budget stands for."""
    own = word(config.get("effort"))
    effort = "low" if own == "minimal" else own or budgeted
    if effort is not None and effort != own:
        changes["output_config"] = _encode({**config, "effort": effort})
