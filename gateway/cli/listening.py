"""Where commands that serve listen, and the sentence for when they cannot."""

from __future__ import annotations

import os
import socket

BACKLOG = 4096
"""Connections that wait to be accepted."""


def listen(host: str, port: int, advice: str) -> socket.socket:
    """A listening socket.

    Raises:
        OSError: the port is taken, or the address not this machine's; `advice` stands at the end.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        # Python adds the address to the reason; errors of name look-ups have numbers of their own.
        errno = error.errno or 0
        reason = os.strerror(errno) if errno > 0 else error.strerror
        raise OSError(f"cannot listen on {host}:{port}: {reason}. {advice}") from None
