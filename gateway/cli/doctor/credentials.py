"""401 and 403: is the key whole, is it known here, and which models may it use?"""

from __future__ import annotations

from collections.abc import Iterator

from gateway.cli.asking import Reply, Unanswered
from gateway.cli.doctor.base_url import unanswered
from gateway.cli.doctor.case import Case, Cause
from gateway.cli.doctor.finding import Finding, Topic
from gateway.cli.key_form import flaws, sendable
from gateway.cli.masking import bare, masked
from gateway.settings import Settings

TOPIC = Topic("credentials")

_SET = "export GATEWAY_KEY=KEY   # a key of the keys: section of gateway.yaml, whole"


def check(case: Case) -> Iterator[Finding]:
    """The key's form, then what the gateway says to it, then the model."""
    key, source = case.key
    if not key:
        yield _missing(case)
        return
    wrong = flaws(key)
    if wrong and not _accepted(case, key):
        case.causes.add(Cause.KEY)
        yield TOPIC.error(
            f"The key {masked(key)} of {source} cannot be right: {'; '.join(wrong)}.",
            "The gateway compares keys character by character, so it answers 401.",
            _repaired(case, key),
        )
    else:
        yield from _asked(case, key, source)


def _accepted(case: Case, key: str) -> bool:
    """Whether the gateway takes a key whose form is wrong, which is its own affair then."""
    return sendable(key) and isinstance(case.listing, Reply) and case.listing.ok


def _missing(case: Case) -> Finding:
    variable = "GATEWAY_KEY" in case.env
    case.causes.add(Cause.KEY)
    return TOPIC.error(
        "GATEWAY_KEY is set, but empty." if variable else "No key was given.",
        "Clients whose key is unset or empty get 401 for every request; many send an empty "
        "header instead of saying so.",
        _SET,
    )


def _repaired(case: Case, key: str) -> str:
    """The line that sets the key right, where what is left of it is known to be one."""
    core = bare(key)
    if core != key and not flaws(core):
        reply = case.ask(f"{case.address.openai}/models", key=core)
        if isinstance(reply, Reply) and reply.ok:
            return (
                "export GATEWAY_KEY=KEY   # what is left without that is a key: "
                f"{masked(core)} alone"
            )
    return _SET


def _asked(case: Case, key: str, source: str) -> Iterator[Finding]:
    listing = case.listing
    if isinstance(listing, Unanswered):
        yield unanswered(case, TOPIC, listing)
    elif listing.status == 401:
        case.causes.add(Cause.KEY)
        yield _refused(case, key, source)
    elif listing.status == 403:
        yield _forbidden(case, listing)
    elif not listing.ok:
        yield TOPIC.error(
            f"GET {case.address.openai}/models answers HTTP {listing.status}.",
            "Whether the key is good cannot be told, and clients that list models fail.",
            "gateway doctor --only base-url",
        )
    elif not case.models:
        yield TOPIC.error(
            f"The key {masked(key)} is known, and may use no model.",
            "Every request with it gets 404.",
            'models: ["*"]   # at this key, in the keys: section of gateway.yaml',
        )
    else:
        names = ", ".join(case.models)
        if _asks_for_none(case):
            yield TOPIC.warning(
                f"{case.address.root} lists its models ({names}) without a key, too, so whether "
                f"{masked(key)} of {source} is a key of the gateway is not known.",
                "The gateway always asks for one: this is an engine or another server.",
                "gateway doctor --only base-url",
            )
            return
        yield TOPIC.ok(f"The key {masked(key)} of {source} is known; it may use {names}.")
        if case.given_model:
            yield _model(case)


def _asks_for_none(case: Case) -> bool:
    if case.is_gateway:
        return False
    listing = case.ask(f"{case.address.openai}/models")
    return isinstance(listing, Reply) and listing.ok


def _refused(case: Case, key: str, source: str) -> Finding:
    seen = f"401: the key {masked(key)} of {source} is not one of this gateway's."
    if key == case.admin_key:
        return TOPIC.error(
            f"{seen} It is the admin key.",
            "The admin key opens /admin/v1 and nothing else.",
            _SET,
        )
    other = case.ask(f"{case.address.openai}/models", headers={"x-api-key": key})
    if isinstance(other, Reply) and other.ok:
        return TOPIC.error(
            "401 with Authorization: Bearer, while the same key in x-api-key is accepted.",
            "Something between client and gateway takes the Authorization header away or fills it "
            "itself; OpenAI SDKs and Codex know no other.",
            "proxy_set_header Authorization $http_authorization;   # nginx, in the location",
        )
    if isinstance(case.settings, Settings) and source.startswith("key "):
        return TOPIC.error(
            seen,
            "The running gateway has another configuration than this file, or did not take over "
            "its last change.",
            "gateway reload",
        )
    return TOPIC.error(
        seen,
        "It was made for another server, was changed since, or a part of it was lost in copying.",
        _SET,
    )


def _forbidden(case: Case, listing: Reply) -> Finding:
    message = listing.member("error", "message")
    said = f": {message[:200]}" if isinstance(message, str) else ""
    return TOPIC.error(
        f"403 for the list of models{said}.",
        "The gateway never answers so here: something before it, such as a firewall or an OAuth "
        "proxy, turns requests away.",
        f"curl -si {case.address.openai}/models | head -20",
    )


def _model(case: Case) -> Finding:
    name = case.given_model
    served = case.serves(name)
    if served:
        return TOPIC.ok(f"Model {name} is served.")
    if served is None:
        return TOPIC.warning(
            f"Whether model {name} is served could not be asked.",
            "Requests for a model that is not get 404.",
            f"gateway doctor --only credentials --model {case.models[0]}",
        )
    return TOPIC.error(
        f"Model {name} is unknown here, or this key may not use it.",
        f"Requests for it get 404. Ids to use: {', '.join(case.models)}.",
        f"export GATEWAY_MODEL={case.models[0]}",
    )
