"""HTTP_PROXY and its like: would a client go through one to reach the gateway?

"Local proxy failed" and a refused connection to an address nobody typed come from here. The
gateway itself ignores these variables; clients do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gateway.cli.asking import Reply, Unanswered
from gateway.cli.doctor.case import Case
from gateway.cli.doctor.finding import Finding, Topic
from gateway.cli.proxies import Proxy, applying, credentials, exemption

TOPIC = Topic("proxy")

_VARIABLE = re.compile(r"(?:https?|all)_proxy", re.IGNORECASE)


def check(case: Case) -> Iterator[Finding]:
    """Which proxy a client would use for the gateway's address, and what comes of it."""
    address = case.address
    present = sorted(name for name, value in case.env.items() if value and _VARIABLE.match(name))
    for name in present:
        case.mask.add(*credentials(case.env[name]))
    proxy = applying(address, case.env)
    if proxy is None:
        if present:
            yield TOPIC.ok(f"{', '.join(present)} set, but not for {address.host}.")
        else:
            yield TOPIC.ok("No proxy variable is set.")
        return
    yield _tried(case, proxy)


def _tried(case: Case, proxy: Proxy) -> Finding:
    seen = f"{proxy.variable}={proxy.shown} is set, and {case.address.host} is not exempt"
    fix = exemption(case.address, case.env)
    if not proxy.speaks_http:
        return TOPIC.warning(
            f"{seen}.",
            "Clients send every request and key through it; whether it lets streams pass was not "
            "tried.",
            fix,
        )
    reply = case.ask(f"{case.address.root}/", proxy=proxy.url)
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
