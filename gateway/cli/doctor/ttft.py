"""Late first tokens without any error: each backend's health, model, chunk settings and cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gateway.cli.answering import listed
from gateway.cli.doctor import caches
from gateway.cli.doctor.case import Case, Cause
from gateway.cli.doctor.chunks import Chunks
from gateway.cli.doctor.finding import Finding, Severity, Topic
from gateway.cli.doctor.servers import Server, Unknown, ask, servers
from gateway.settings import Settings

TOPIC = Topic("ttft")


def check(case: Case) -> Iterator[Finding]:
    """Every backend in turn; what cannot be read of one does not hold up the others."""
    known = servers(case, TOPIC)
    if isinstance(known, Unknown):
        yield known.finding
        return
    if not known:
        yield TOPIC.warning(
            "The gateway has no backend.",
            "It can answer nothing.",
            "gateway init   # writes a commented gateway.yaml",
        )
    looks = caches.looks(case, known)
    for server in known:
        chunks, look = Chunks.of(case, server), looks[server.name]
        found = [
            *_health(case, server),
            *_served(case, server),
            *chunks.findings(TOPIC),
            *caches.findings(TOPIC, server, look, chunks),
        ]
        yield from found or [_fine(server, look, chunks)]


def _fine(server: Server, look: caches.Look, chunks: Chunks) -> Finding:
    period = look.period(judged=False)
    when = period[1] if period else "since its start"
    return TOPIC.ok(
        f"{server.name}: cache and memory are fine {when}, chunk settings {chunks.source}."
    )


def _health(case: Case, server: Server) -> Iterator[Finding]:
    if not server.enabled:
        yield TOPIC.warning(
            f"{server.name} was taken out.",
            "Its sessions went to other servers, whose caches do not know them.",
            f"gateway backends in {server.name}",
        )
    elif not server.usable:
        finding = TOPIC.error(
            f"{server.name} takes no requests now: it is down, or failed several in a row.",
            "Its sessions go to other servers, whose caches do not know them.",
            f"curl -si {server.url}/health",
        )
        yield _told(case, finding)


def _served(case: Case, server: Server) -> Iterator[Finding]:
    """Whether the engine knows the id the gateway asks it for, as the gateway or its list says."""
    if server.other_models is not None:
        wanted = _upstream(case, server.model)
        yield _another(case, server.name, server.model, wanted, server.other_models)
        return
    if not isinstance(case.settings, Settings):
        return
    asked = {
        name: model.upstream_model or name
        for name, model in case.settings.models.items()
        if any(server.name in arm.backends for arm in model.arms.values())
    }
    served = [one["id"] for one in listed(ask(case, server, "/v1/models"))] if asked else []
    for name, wanted in asked.items():
        if served and wanted not in served:
            yield _another(case, server.name, name, wanted, served)


def _upstream(case: Case, model: str) -> str:
    """What the gateway asks engines for, where the file tells; else what clients ask for."""
    known = case.settings.models.get(model) if isinstance(case.settings, Settings) else None
    return (known and known.upstream_model) or model


def _another(case: Case, server: str, model: str, wanted: str, served: list[str]) -> Finding:
    finding = TOPIC.error(
        f"{server} serves no model {wanted} but {', '.join(served[:10]) or 'none'}.",
        "It counts as up, but answers nothing: its requests go to other servers of the model, "
        "where that is allowed, and fail with 502 or 503 otherwise.",
        f"--served-model-name {wanted}   # where the engine is started; or upstream_model "
        f"under models.{model}",
    )
    return _told(case, finding)


def _told(case: Case, finding: Finding) -> Finding:
    """Where no server of a model is left, that is the error, and this tells which they are."""
    known = Cause.SERVERS in case.causes
    return replace(finding, severity=Severity.WARNING) if known else finding
