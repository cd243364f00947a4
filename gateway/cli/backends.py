"""`gateway backends`: the servers behind a gateway, taken out and put back."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.admin.backend_view import BackendView
from gateway.admin.views import ModelView
from gateway.cli.remote import (
    AdminKey,
    AsJson,
    Remote,
    Url,
    show_json,
    show_table,
)
from gateway.settings.tree import RELAYED_APIS

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

Name = Annotated[str, typer.Argument(help="The backend's name in the configuration.")]


@app.callback(invoke_without_command=True)
def backends(
    context: typer.Context, url: Url = None, key: AdminKey = "", as_json: AsJson = False
) -> None:
    """List the servers behind a gateway; `out` takes one out, `in` puts it back.

    Example: gateway backends
    """
    command = context.invoked_subcommand
    if command is None:
        list_backends(url, key, as_json)
    elif any(_given(context, name) for name in ("url", "key", "as_json")):
        # Silently acting on another gateway than the one named would be worse than a refusal.
        raise typer.BadParameter(f"options go after the command: gateway backends {command} …")


@app.command("list")
def list_backends(url: Url = None, key: AdminKey = "", as_json: AsJson = False) -> None:
    """List every backend with its state and load.

    Example: gateway backends list --json
    """
    answer = Remote(url, key).get("backends")
    if as_json:
        show_json(answer)
        return
    found = [BackendView.model_validate(one) for one in answer]
    show_table(
        ("BACKEND", "MODEL", "ARM", "STATE", "RUNNING", "APIS", "URL"),
        [(b.name, b.model, b.arm, b.state(), _running(b), _apis(b), b.url) for b in found],
    )
    for backend in found:
        for difference in backend.differences:
            typer.echo(f"{backend.name}: {difference}.", err=True)


@app.command("times")
def times(url: Url = None, key: AdminKey = "", as_json: AsJson = False) -> None:
    """Show where the time to first token went lately: gateway, network, engine's queue, prefill.

    Means of streamed requests over some minutes, of the gateway's own figures and those the
    engine tells, which is asked every 15 seconds; what an engine does not tell is "-".

    Example: gateway backends times
    """
    found = [BackendView.model_validate(one) for one in Remote(url, key).get("backends")]
    if as_json:
        show_json({one.name: one.ttft_parts and one.ttft_parts.model_dump() for one in found})
        return
    headings = ("REQUESTS", "TTFT ms", "GATEWAY", "NETWORK", "QUEUE", "PREFILL", "ENGINE'S REST")
    show_table(("BACKEND", "ARM", *headings), [(b.name, b.arm, *_parts(b)) for b in found])
    if found and all(one.ttft_parts is None for one in found):
        typer.echo(
            "No engine has told of streamed requests yet; each is asked every 15 seconds.", err=True
        )
    for one in found:
        parts = one.ttft_parts
        if parts is not None and not parts.comparable:
            typer.echo(
                f"{one.name}: the gateway timed {parts.requests} first tokens, its engine counted "
                f"{parts.engine_requests}: unstreamed requests, or somebody else's, are in the "
                "engine's figures, so the parts do not fit together.",
                err=True,
            )


@app.command("out")
def take_out(name: Name, url: Url = None, key: AdminKey = "", as_json: AsJson = False) -> None:
    """Send a backend nothing more; what runs on it finishes. It stays out across restarts.

    Example: gateway backends out vllm-b
    """
    remote = Remote(url, key)
    answer = remote.put("backends", name, body={"enabled": False})
    if as_json:
        show_json(answer)
        return
    backend = BackendView.model_validate(answer)
    typer.echo(f"{name} is out. Requests still running on it: {backend.outstanding}.")
    _warn(ModelView.model_validate(remote.get("models", backend.model)), backend.arm)


@app.command("in")
def put_back(name: Name, url: Url = None, key: AdminKey = "", as_json: AsJson = False) -> None:
    """Let a backend serve again.

    Example: gateway backends in vllm-b
    """
    answer = Remote(url, key).put("backends", name, body={"enabled": True})
    if as_json:
        show_json(answer)
    else:
        typer.echo(f"{name} is back: {BackendView.model_validate(answer).state()}.")


def _given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _running(backend: BackendView) -> str:
    return f"{backend.outstanding} of {backend.max_concurrency}"


def _parts(backend: BackendView) -> tuple[str, ...]:
    parts = backend.ttft_parts
    if parts is None:
        return ("0", *["-"] * 6)
    engine = (parts.engine_queue_ms, parts.engine_prefill_ms, parts.engine_other_ms)
    figures = (parts.total_ms, parts.gateway_ms, parts.network_ms, *engine)
    return (str(parts.requests), *("-" if ms is None else f"{ms:z.1f}" for ms in figures))


def _apis(backend: BackendView) -> str:
    if backend.apis is None:
        return "not known yet"
    return "all" if set(backend.apis) == set(RELAYED_APIS) else " ".join(backend.apis)


def _warn(model: ModelView, name: str) -> None:
    usable = {arm.name: sum(b.usable for b in arm.backends) for arm in model.arms}
    if not any(usable.values()):
        typer.echo(f"{model.name} has no usable backend left: its requests are refused.", err=True)
    elif not usable[name]:
        typer.echo(
            f"Arm {name} has no usable backend left: its share goes to the model's other arms, "
            "where the model allows that.",
            err=True,
        )
