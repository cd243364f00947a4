"""HTTP_PROXY and its like: would a client go through one to reach the gateway?

"Local proxy failed" and a refused connection to an address nobody typed come from here. The
gateway itself ignores these variables; clients do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from gateway.cli.doctor.address import Address
from gateway.cli.doctor.asking import Reply, Unanswered
from gateway.cli.doctor.case import Case
from gateway.cli.doctor.finding import Finding, Topic

TOPIC = Topic("proxy")

_VARIABLE = re.compile(r"(?:https?|all)_proxy", re.IGNORECASE)


class Proxy(NamedTuple):
    """A proxy of the environment: the variable's name, and its address."""

    variable: str
    url: str


def check(case: Case) -> Iterator[Finding]:
    """Which proxy a client would use for the gateway's address, and what comes of it."""
    address = case.address
    present = sorted(name for name, value in case.env.items() if value and _VARIABLE.match(name))
    for name in present:
        case.mask.add(*_credentials(case.env[name]))
    proxy = applying(address, case.env)
    if proxy is None:
        if present:
            yield TOPIC.ok(f"{', '.join(present)} set, but not for {address.host}.")
        else:
            yield TOPIC.ok("No proxy variable is set.")
        return
    yield _tried(case, proxy)


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


def _tried(case: Case, proxy: Proxy) -> Finding:
    seen = f"{proxy.variable}={_shown(proxy.url)} is set, and {case.address.host} is not exempt"
    fix = _exemption(case)
    if urlsplit(proxy.url).scheme not in ("http", "https"):
        return TOPIC.warning(
            f"{seen}.",
            "Clients send every request and key through it; whether it lets streams pass was not "
            "tried.",
            fix,
        )
    try:
        reply = case.ask(f"{case.address.root}/", proxy=proxy.url)
    except ValueError:
        return TOPIC.error(f"{seen}; it is no address.", "Clients fail at once.", fix)
    if isinstance(reply, Unanswered):
        return TOPIC.error(
            f"{seen}; through it nothing answers ({reply.detail}).",
            "Clients report that the local proxy failed, or that a connection was refused, "
            "although the gateway may be fine: they never get to it.",
            fix,
        )
    direct = case.front
    if not isinstance(direct, Reply) or reply.status == direct.status:
        return TOPIC.warning(
            f"{seen}; the gateway's address answers through it.",
            "Every request and key of a client goes through the proxy, which adds to each time "
            "to first token and may hold streams back.",
            fix,
        )
    return TOPIC.error(
        f"{seen}; it answers HTTP {reply.status} where the gateway says {direct.status}.",
        "Clients get the proxy's own page instead of an answer, and many fail while they parse it.",
        fix,
    )


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


def _exemption(case: Case) -> str:
    """The line that keeps clients from using the proxy for the gateway."""
    hosts, variable = _exempt(case.env)
    own = ["127.0.0.1", "localhost"] if case.address.loopback else []
    if case.address.host not in own:
        own.insert(0, case.address.host)
    value = ",".join([*(part.strip() for part in hosts.split(",") if part.strip()), *own])
    # Where both spellings are there, programs differ in which one they believe.
    other = f" no_proxy={value}" if variable == "no_proxy" else ""
    return f"export NO_PROXY={value}{other}"


def _shown(url: str) -> str:
    """A proxy's address without credentials."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def _credentials(url: str) -> list[str]:
    """The secrets in a proxy's address, as they stand there and as they are sent."""
    found = url.partition("://")[2].rpartition("@")[0] or url.rpartition("@")[0]
    _, _, password = found.partition(":")
    return [form for form in (found, password, unquote(password)) if form]
