"""The lines of a request's head that differ from request to request."""

from __future__ import annotations


def fits(value: str) -> bool:
    """Whether a header can hold this value as it is: one line, and no blanks that a server drops.

    A line break would end the line, and what follows it would be a header, or a request, of its
    own.
    """
    return value.isprintable() and value == value.strip()


def arm(name: str) -> bytes:
    """Chooses an arm, whose name `fits`; nothing for the empty one."""
    return b"x-gateway-arm: %b\r\n" % name.encode() if name else b""


def session(identity: str) -> bytes:
    """Names a conversation by what `fits`; nothing for none."""
    return b"x-session-id: %b\r\n" % identity.encode() if identity else b""
