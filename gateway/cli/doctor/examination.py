"""The order of the topics, and a run through them in which no check stops another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from gateway.cli.asking import Unanswered
from gateway.cli.doctor import (
    base_url,
    claude_code,
    codex,
    configuration,
    credentials,
    proxies,
    reachability,
    readiness,
    replies,
    ttft,
)
from gateway.cli.doctor.case import Case
from gateway.cli.doctor.finding import Finding, Severity, Topic

Check = Callable[[Case], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Step:
    """One topic of the list; `asks` means that without a gateway there is nothing to see."""

    topic: Topic
    title: str
    check: Check
    asks: bool


STEPS = (
    Step(configuration.TOPIC, "Configuration file", configuration.check, asks=False),
    Step(reachability.TOPIC, "Reachability", reachability.check, asks=False),
    Step(proxies.TOPIC, "Proxy variables", proxies.check, asks=False),
    Step(base_url.TOPIC, "Base URL", base_url.check, asks=True),
    Step(readiness.TOPIC, "Readiness", readiness.check, asks=True),
    Step(credentials.TOPIC, "Key and models", credentials.check, asks=True),
    Step(replies.TOPIC, "A request, unstreamed", replies.check, asks=True),
    Step(codex.TOPIC, "Codex's files", codex.check, asks=False),
    Step(claude_code.TOPIC, "Claude Code's settings", claude_code.check, asks=False),
    Step(ttft.TOPIC, "Time to first token", ttft.check, asks=False),
)

TOPICS = tuple(step.topic.name for step in STEPS)


def examine(case: Case, only: Collection[str] = ()) -> Iterator[tuple[Step, Iterator[Finding]]]:
    """Each step with its findings, which are found while they are iterated.

    Args:
        only: names of topics; none means all.
    """
    chosen = [step for step in STEPS if not only or step.topic.name in only]
    told = any(step.check is reachability.check for step in chosen)
    for step in chosen:
        yield step, _findings(step, case, told)


def _findings(step: Step, case: Case, told: bool) -> Iterator[Finding]:
    """A step's findings with every secret masked; a check that fails is a finding, too."""
    try:
        if step.asks and isinstance(case.front, Unanswered):
            yield _masked(case, _not_reached(step.topic, case, case.front, told))
            return
        for finding in step.check(case):
            yield _masked(case, finding)
    except Exception as error:
        # What one check stumbles over must not keep the others from being seen.
        failed = step.topic.warning(
            f"This check failed itself: {type(error).__name__}: {error}",
            "What it would have found is unknown.",
            f"gateway doctor --only {step.topic.name} --json",
        )
        yield _masked(case, failed)


def _not_reached(topic: Topic, case: Case, front: Unanswered, told: bool) -> Finding:
    """A warning where reachability itself is an error of the same run."""
    finding = topic.error(
        f"Not checked, since {case.address.root} does not answer ({front.detail}).",
        "There is nothing to ask.",
        f"gateway doctor --only reachability --url {case.address.root}",
    )
    return replace(finding, severity=Severity.WARNING) if told else finding


def _masked(case: Case, finding: Finding) -> Finding:
    hide = case.mask.hide
    return replace(finding, seen=hide(finding.seen), why=hide(finding.why), fix=hide(finding.fix))
