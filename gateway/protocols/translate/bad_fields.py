"""Faults of a request's fields, told by their path as the client would write it."""

from __future__ import annotations

import re

import msgspec

from gateway.errors import BadRequest

_PLACE = re.compile(r"^(.*?)(?: - at `\$(.*)`)?$", re.DOTALL)


def fault(path: str, what: str) -> BadRequest:
    """What is wrong with one field: `what` continues the sentence that its path begins."""
    return BadRequest(f"{path} {what}.", param=path)


def within(prefix: str, error: BadRequest) -> BadRequest:
    """A fault told by its path within something, as one of the whole request.

    Args:
        prefix: the path of what it was found in.
    """
    path = error.param or ""
    joint = "." if path and not path.startswith("[") else ""
    return BadRequest(f"{prefix}{joint}{error.message}", param=f"{prefix}{joint}{path}")


def of_decoding(error: Exception) -> BadRequest:
    """What msgspec found, as a fault of the request."""
    if not isinstance(error, msgspec.ValidationError):
        reason = "nested too deeply" if isinstance(error, RecursionError) else "no JSON"
        return BadRequest(f"The request body is {reason}.")
    found = _PLACE.match(str(error))
    assert found is not None
    path = (found[2] or "").removeprefix(".")
    said = found[1].replace("Object", "object").rstrip(".")
    said = said[:1].lower() + said[1:]
    return BadRequest(f"{path or 'The request body'}: {said}.", param=path or None)
