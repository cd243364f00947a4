"""Is the gateway ready for requests: not on its way out, and every arm able to answer?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.cli.asking import Reply, Unanswered
from gateway.cli.doctor.base_url import unanswered
from gateway.cli.doctor.case import Case, Cause
from gateway.cli.doctor.finding import Finding, Topic

TOPIC = Topic("readiness")


def check(case: Case) -> Iterator[Finding]:
    """What `/ready` says: of the process, and of each model."""
    reply = case.ask(f"{case.address.root}/ready")
    if isinstance(reply, Unanswered):
        yield unanswered(case, TOPIC, reply)
        return
    status, models = reply.member("status"), reply.member("models")
    if not isinstance(status, str) or not isinstance(models, dict):
        yield _untold(case, reply)
        return
    found = [*_draining(case, status), *_models(case, models)]
    yield from found or [
        TOPIC.ok("It is ready, and every arm has a server that takes requests for its model.")
    ]


def _untold(case: Case, reply: Reply) -> Finding:
    return TOPIC.warning(
        f"{case.address.root}/ready tells nothing (HTTP {reply.status}).",
        "Whether it is shutting down, and which models have a server left, is not known.",
        "gateway doctor --only base-url",
    )


def _draining(case: Case, status: str) -> Iterator[Finding]:
    if status == "draining":
        yield TOPIC.error(
            "The gateway is shutting down: it lets open requests finish, and then is gone.",
            "Load balancers send it nothing more, and clients that keep to it soon find "
            "connections refused.",
            f"gateway serve -c {case.config or 'gateway.yaml'}   # once it has ended",
        )


def _models(case: Case, models: Mapping[str, Any]) -> Iterator[Finding]:
    for model, told in models.items():
        arms = told.get("arms", {}) if isinstance(told, dict) else {}
        lost = {name: lack for name, arm in arms.items() if (lack := _lack(arm))}
        lack = " and ".join(sorted(set(lost.values()), reverse=True))
        if lost and len(lost) == len(arms):
            case.causes.add(Cause.SERVERS)
            yield TOPIC.error(
                f"No server of model {model} {lack}.",
                "Every request for it gets 502 or 503.",
                "gateway backends",
            )
        elif lost:
            yield TOPIC.warning(
                f"No server of model {model}, arm {', '.join(lost)}, {lack}.",
                "Its sessions go to other arms, where the model allows that, and find their "
                "prompts in no cache; a comparison of the arms means nothing meanwhile.",
                "gateway backends",
            )


def _lack(arm: Mapping[str, Any]) -> str:
    """What none of an arm's servers does; empty where one can answer."""
    if not arm.get("usable"):
        return "takes requests"
    # A gateway of an older version does not tell.
    return "" if arm.get("serving", True) else "serves the model it is asked for"
