"""How commands reach a running gateway: its admin API, over HTTP."""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Any
from urllib.parse import quote

import httpx
import typer
from rich.console import Console

from gateway.cli.asking import client
from gateway.cli.key_form import origin, sendable
from gateway.cli.table import plain_table
from gateway.cli.usual_file import USUAL_FILE, locate, why_no_key
from gateway.errors import GatewayError

TIMEOUT = 10.0

ADMIN_KEY_VARIABLE = "GATEWAY_ADMIN_KEY"
IN_FILE = f"admin.key of {USUAL_FILE}"

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="GATEWAY_URL",
        help="Where the gateway listens; else as gateway.yaml says, if there, or port 8080 here.",
    ),
]
AdminKey = Annotated[
    str,
    typer.Option(
        "--key",
        envvar=ADMIN_KEY_VARIABLE,
        help="admin.key of its configuration; of gateway.yaml, if there.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the admin API's answer, for programs.")]


class Remote:
    """The admin API of one gateway. Paths are given in parts, which may hold any character.

    All methods return the decoded answer and raise GatewayError with a sentence for the terminal.

    Args:
        source: what gave the key where the environment did not.

    Raises:
        typer.BadParameter: the address is none, or there is no key.
    """

    def __init__(self, url: str | None, key: str, source: str = "--key") -> None:
        gateway = locate(url)
        self._url = gateway.address.root
        self._source = origin(key, ADMIN_KEY_VARIABLE, source) if key else IN_FILE
        key = key or gateway.admin_key
        if not key:
            raise typer.BadParameter(
                f"needed: set {ADMIN_KEY_VARIABLE} to admin.key of the gateway's configuration"
                + why_no_key(gateway),
                param_hint=source,
            )
        if not sendable(key):
            raise typer.BadParameter("holds characters no key has", param_hint=self._source)
        self._headers = {"authorization": f"Bearer {key}", "x-gateway-actor": _actor()}

    def get(self, *path: str, **query: str | int) -> Any:
        return self._ask("GET", path, query=query)

    def put(self, *path: str, body: dict[str, Any]) -> Any:
        return self._ask("PUT", path, body=body)

    def post(self, *path: str) -> Any:
        return self._ask("POST", path)

    def _ask(
        self,
        method: str,
        path: tuple[str, ...],
        query: dict[str, str | int] | None = None,
        body: dict[str, Any] | None = None,
    ) -> Any:
        target = "/".join((self._url, "admin/v1", *(quote(part, safe="") for part in path)))
        try:
            with client(self._url, TIMEOUT) as http:
                reply = http.request(method, target, params=query, json=body, headers=self._headers)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            raise GatewayError(
                f"No gateway answers at {self._url}. Is it running? Another address goes in "
                "GATEWAY_URL or --url."
            ) from None
        except httpx.TimeoutException:
            raise GatewayError(f"{self._url} did not answer within {TIMEOUT:g} s.") from None
        except httpx.HTTPError as error:
            raise GatewayError(f"{self._url} does not speak HTTP as expected: {error}.") from None
        return self._understood(reply)

    def _understood(self, reply: httpx.Response) -> Any:
        try:
            answer = reply.json()
            if reply.is_success:
                return answer
            message = str(answer["error"]["message"])
            if isinstance(answer["error"].get("code"), int):
                raise TypeError  # vLLM's errors look like the gateway's, but for a number as code.
        except (ValueError, KeyError, TypeError):
            raise GatewayError(
                f"What answers at {self._url} is no TTFT Gateway (HTTP {reply.status_code}). Set "
                "GATEWAY_URL or --url to the gateway's own address."
            ) from None
        if reply.status_code == 401:
            message = (
                f"The gateway at {self._url} does not know this admin key, which {self._source} "
                "gave. It has to be admin.key of its configuration."
            )
        raise GatewayError(message)


def show_json(answer: Any) -> None:
    """Print an answer for another program to read."""
    typer.echo(json.dumps(answer, indent=2, ensure_ascii=False))


def show_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under headings, a line each; into a pipe nothing is cut to a terminal's width."""
    console = Console(width=None if sys.stdout.isatty() else 400, highlight=False, markup=False)
    console.print(plain_table(headings, rows))


def percent(share: float) -> str:
    """A share from 0 to 1 as people write it."""
    return f"{100 * share:.3g} %"


def _actor() -> str:
    """Who changes something, for the history."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        return "cli"
    return f"{name} (cli)".encode("ascii", "replace").decode()[:100]
