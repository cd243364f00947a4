"""Where commands that serve listen, and the sentence for when they cannot."""

from __future__ import annotations

import errno
import os
import socket

BACKLOG = 4096
"""Connections that wait to be accepted."""

_NOT_HERE = (errno.EADDRNOTAVAIL, socket.EAI_NONAME, socket.EAI_AGAIN)


def listen(host: str, port: int, host_by: str, advice: str) -> socket.socket:
    """A listening socket.

    Args:
        host_by: what sets the host, for when it is none of this machine's.
        advice: for all other cases; most often the port is taken.

    Raises:
        OSError: a sentence with what to do.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        # Python adds the address to the reason; errors of name look-ups have numbers of their own.
        number = error.errno or 0
        reason = os.strerror(number) if number > 0 else error.strerror
        if number in _NOT_HERE:
            advice = f"Set {host_by} to an address of this machine, or to 0.0.0.0 for all of them."
        raise OSError(f"cannot listen on {host}:{port}: {reason}. {advice}") from None
