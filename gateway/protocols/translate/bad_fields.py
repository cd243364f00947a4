"""Faults of a request's fields, told by their path as the client would write it."""

from __future__ import annotations

import re

import msgspec

from gateway.errors import BadRequest

_PLACE = re.compile(r"^(.*?)(?: - at `\$(.*)`)?$", re.DOTALL)


def fault(path: str, what: str) -> BadRequest:
    """What is wrong with one field: `what` continues the sentence that its path begins."""
    return BadRequest(f"{path} {what}.", param=path)


def of_decoding(error: Exception, within: str = "") -> BadRequest:
    """What msgspec found, as a fault of the request.

    Args:
        within: the path of what was decoded; empty for the request itself.
    """
    if not isinstance(error, msgspec.ValidationError):
        reason = "nested too deeply" if isinstance(error, RecursionError) else "no JSON"
        return BadRequest(f"{within or 'The request body'} is {reason}.", param=within or None)
    found = _PLACE.match(str(error))
    assert found is not None
    path = f"{within}{found[2] or ''}".removeprefix(".")
    said = found[1].replace("Object", "object").rstrip(".")
    said = said[:1].lower() + said[1:]
    return BadRequest(f"{path or 'The request body'}: {said}.", param=path or None)
