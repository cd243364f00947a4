"""The base URL in a client program's settings: is it right, and is it this gateway's?"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.cli.address import Address, parse
from gateway.cli.doctor.case import Case
from gateway.cli.doctor.finding import Finding, Topic
from gateway.cli.masking import masked


def check(
    case: Case, topic: Topic, *, name: str, url: str, versioned: bool, line: str
) -> Iterator[Finding]:
    """Findings about one base URL; none if it is as it should be.

    Args:
        name: what the setting is called, with its file.
        versioned: whether this client wants `/v1` at the end, or adds it itself.
        line: the setting's line, with `{url}` for the right value.
    """
    try:
        address = parse(url)
    except ValueError:
        yield topic.error(
            f"{name} is no http(s)://HOST:PORT: {masked(url)}.",
            "Every request fails before it is sent.",
            line.format(url=_right(case.address, versioned)),
        )
        return
    fix = line.format(url=_right(address, versioned))
    if address.endpoint:
        yield topic.error(
            f"{name} ends with {address.endpoint}.",
            "The client adds the route itself, so every request gets 404.",
            fix,
        )
    elif address.versions != versioned:
        yield _versions(topic, name, address, versioned, fix)
    if not address.same_server(case.address):
        yield topic.warning(
            f"{name} is {address.given}, and what was examined here is {case.address.root}.",
            "The client's requests go to another server than the one these findings are about.",
            line.format(url=_right(case.address, versioned)),
        )
    elif address.scheme != case.address.scheme:
        yield topic.error(
            f"{name} says {address.scheme}://, and the gateway is examined as "
            f"{case.address.scheme}://.",
            "On one port only one of the two can be right; the other fails in the handshake.",
            line.format(url=_right(case.address, versioned)),
        )


def _versions(topic: Topic, name: str, address: Address, versioned: bool, fix: str) -> Finding:
    if address.versions > 1:
        what = f"says /v1 {address.versions} times"
    elif versioned:
        what = "does not end with /v1"
    else:
        what = "ends with /v1, which the client adds itself"
    return topic.warning(
        f"{name} {what}: {address.given}.",
        "This gateway understands it all the same; nearly every other server answers 404.",
        fix,
    )


def _right(address: Address, versioned: bool) -> str:
    return address.openai if versioned else address.root
