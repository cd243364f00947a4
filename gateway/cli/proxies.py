"""HTTP_PROXY and its like: the proxy a client would go through, and how to keep it from that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote

from gateway.cli.address import Address


class Proxy(NamedTuple):
    """A proxy of the environment: the variable's name, and its address."""

    variable: str
    url: str

    @property
    def speaks_http(self) -> bool:
        """Whether it can be tried; SOCKS proxies take a library of their own."""
        return self.url.lower().startswith(("http://", "https://"))

    @property
    def shown(self) -> str:
        """Its address without credentials."""
        scheme, _, rest = self.url.partition("://")
        return f"{scheme}://{rest.rpartition('@')[2]}"


def applying(address: Address, env: Mapping[str, str]) -> Proxy | None:
    """The proxy clients use for an address, by the rules most of them share."""
    skipped, _ = _exempt(env)
    if any(_covers(part.strip().lower(), address) for part in skipped.split(",")):
        return None
    for name in (f"{address.scheme}_proxy", "all_proxy"):
        # The upper-case form comes second, as in curl, Python and Go.
        for variable in (name, name.upper()):
            value = env.get(variable, "")
            if value:
                return Proxy(variable, value if "://" in value else f"http://{value}")
    return None


def exemption(address: Address, env: Mapping[str, str]) -> str:
    """The line for a shell that keeps clients from using a proxy for an address."""
    hosts, variable = _exempt(env)
    own = ["127.0.0.1", "localhost"] if address.loopback else []
    if address.host not in own:
        own.insert(0, address.host)
    value = ",".join([*(part.strip() for part in hosts.split(",") if part.strip()), *own])
    # Where both spellings are there, programs differ in which one they believe.
    other = f" no_proxy={value}" if variable == "no_proxy" else ""
    return f"export NO_PROXY={value}{other}"


def credentials(url: str) -> list[str]:
    """The secrets in a proxy's address, as they stand there and as they are sent."""
    found = url.partition("://")[2].rpartition("@")[0] or url.rpartition("@")[0]
    _, _, password = found.partition(":")
    return [form for form in (found, password, unquote(password)) if form]


def _covers(part: str, address: Address) -> bool:
    """Whether an entry of NO_PROXY means this address: `*`, a host, a domain, each with a port."""
    if part == "*":
        return True
    name = part.lstrip("*.")
    host = address.host
    for form in (name, name.removesuffix(f":{address.port}")):
        bare = form.strip("[]")
        if bare and (host == bare or host.endswith(f".{bare}")):
            return True
    return False


def _exempt(env: Mapping[str, str]) -> tuple[str, str]:
    """The hosts that need no proxy, and the variable that says so."""
    for name in ("no_proxy", "NO_PROXY"):
        if env.get(name):
            return env[name], name
    return "", "NO_PROXY"
