"""Is it the gateway that answers, and is its base URL given as clients want it?"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.cli.address import Address, configured, parse
from gateway.cli.answering import SERVICE, lacks_route, listed, wants_key
from gateway.cli.asking import Reply, Unanswered
from gateway.cli.doctor.case import Case
from gateway.cli.doctor.finding import Finding, Topic
from gateway.settings import Settings

TOPIC = Topic("base-url")


def check(case: Case) -> Iterator[Finding]:
    """Who answers, and whether the path is right."""
    front = case.front
    assert isinstance(front, Reply), "the caller has looked at reachability"
    if case.is_gateway:
        yield TOPIC.ok(f"{case.address.root} is a {SERVICE} {front.member('version')}.")
        yield _path(case)
    elif lacks_route(front):
        yield TOPIC.error(
            f"{case.address.given} is a {SERVICE}, but there is nothing under this path.",
            "Every request of a client that was given this base URL gets 404.",
            f"export OPENAI_BASE_URL={case.address.origin}/v1",
        )
    elif 300 <= front.status < 400:
        yield _redirect(case.address, front)
    else:
        yield _stranger(case, front)


def _path(case: Case) -> Finding:
    address = case.address
    bases = f"OpenAI SDKs and Codex: {address.openai}; Claude Code: {address.root}"
    if address.endpoint:
        return TOPIC.error(
            f"The base URL ends with {address.endpoint}, which is one route of it.",
            f"Clients add the route themselves, so every request gets 404. Base URLs for {bases}.",
            f"export OPENAI_BASE_URL={address.openai}",
        )
    if address.versions > 1:
        return TOPIC.warning(
            f"The base URL says /v1 {address.versions} times.",
            "This gateway understands it all the same; other servers answer 404, and what is "
            f"copied from here fails there. Base URLs for {bases}.",
            f"export OPENAI_BASE_URL={address.openai}",
        )
    return TOPIC.ok(f"Base URLs for {bases}.")


def _redirect(address: Address, front: Reply) -> Finding:
    try:
        target = parse(front.headers.get("location", ""))
    except ValueError:
        target = address
    why = "Most clients do not follow a redirect with a body, or turn the POST into a GET."
    if target.host == address.host and (target.scheme, address.scheme) == ("https", "http"):
        why += " Until then the key has travelled unencrypted."
    return TOPIC.error(
        f"{address.root} answers HTTP {front.status} and points to {target.given}.",
        why,
        f"export GATEWAY_URL={target.root if target is not address else 'http://HOST:PORT'}",
    )


def _stranger(case: Case, front: Reply) -> Finding:
    root = case.address.root
    listing = case.ask(f"{case.address.openai}/models")
    if wants_key(listing):
        return TOPIC.ok(f"A {SERVICE} answers at {case.address.openai}, though not at {root}/.")
    if isinstance(listing, Reply) and _is_engine(case, listing):
        return _engine(case)
    kind = front.headers.get("content-type", "no content type").partition(";")[0]
    server = front.headers.get("server", "")
    named = f", server {server[:60]}" if server else ""
    return TOPIC.error(
        f"{root} is no {SERVICE}: it answers HTTP {front.status}, {kind}{named}.",
        "Requests and keys go to another server, whose errors clients mistake for answers.",
        f"export GATEWAY_URL={_configured(case) or 'http://HOST:PORT'}",
    )


def _is_engine(case: Case, listing: Reply) -> bool:
    """vLLM owns its models, or, asked without a key, refuses with a string for an error."""
    if any(model.get("owned_by") == "vllm" for model in listed(listing)):
        return True
    version = case.ask(f"{case.address.root}/version")
    return isinstance(version, Reply) and isinstance(version.member("version"), str)


def _engine(case: Case) -> Finding:
    name = _backend_here(case)
    return TOPIC.error(
        f"{case.address.root} is a vLLM server{f', backend {name},' if name else ''} itself, not "
        "the gateway.",
        "Requests sent there are neither split nor timed nor counted, and the gateway's keys and "
        "model ids are unknown to it.",
        f"export GATEWAY_URL={_configured(case) or 'http://127.0.0.1:8080'}",
    )


def _backend_here(case: Case) -> str:
    """The backend of the configuration that has this address."""
    if isinstance(case.settings, Settings):
        for name, backend in case.settings.backends.items():
            if parse(backend.url).same_server(case.address):
                return name
    return ""


def _configured(case: Case) -> str:
    """Where the configuration has the gateway listen, as seen from this machine."""
    return configured(case.settings) if isinstance(case.settings, Settings) else ""


def unanswered(case: Case, topic: Topic, reply: Unanswered) -> Finding:
    """For checks whose later requests find no answer, although the first one did."""
    return topic.error(
        f"{case.address.root} answered once, and then no more ({reply.detail}).",
        "It fails or hangs under way; its log says why.",
        f"gateway doctor --only reachability --url {case.address.root}",
    )
