"""`gateway canary`: how a model's traffic is split, seen and changed by hand."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from gateway.admin.views import ArmView, ChangeView, ModelView
from gateway.cli.remote import (
    AdminKey,
    AsJson,
    Remote,
    Url,
    percent,
    show_json,
    show_table,
)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    help="See and change how a model's traffic is split among its arms.",
)


@app.command("set")
def set_weights(
    model: Annotated[str, typer.Argument(help="Model id or alias.", callback=_no_weight)],
    weights: Annotated[list[str], typer.Argument(metavar="ARM=WEIGHT")],
    reason: Annotated[str, typer.Option(help="Kept in the history.")] = "",
    revision: Annotated[
        int | None, typer.Option(help="Change nothing unless this revision is in force.")
    ] = None,
    url: Url = None,
    key: AdminKey = "",
    as_json: AsJson = False,
) -> None:
    """Set weights of a model's arms; arms that are not named keep theirs.

    Only the sessions that must move do. The weights survive a restart, until the arm's weight in
    the configuration file is changed.

    Example: gateway canary set llama-3-70b chunk-512=90 chunk-2048=10 --reason "first step"
    """
    remote = Remote(url, key)
    body: dict[str, Any] = {"weights": _parsed(weights), "reason": reason}
    if revision is not None:
        body["revision"] = revision
    answer = remote.put("models", model, "weights", body=body)
    if as_json:
        show_json(answer)
    else:
        _show(ModelView.model_validate(answer), None)


@app.command("status")
def status(
    model: Annotated[str | None, typer.Argument(help="Model id or alias; all without.")] = None,
    url: Url = None,
    key: AdminKey = "",
    as_json: AsJson = False,
) -> None:
    """Show each arm's weight, share and servers, and who set the weights last.

    Example: gateway canary status llama-3-70b
    """
    remote = Remote(url, key)
    answers = [remote.get("models", model)] if model else remote.get("models")
    if as_json:
        show_json(answers[0] if model else answers)
        return
    for number, answer in enumerate(answers):
        view = ModelView.model_validate(answer)
        last = remote.get("history", model=view.name, limit=1)
        if number:
            typer.echo()
        _show(view, ChangeView.model_validate(last[0]) if last else None)


def _no_weight(model: str) -> str:
    if "=" in model:
        raise typer.BadParameter(
            f"{model!r} is a weight; the model comes first: gateway canary set llama-3-70b {model}"
        )
    return model


def _parsed(weights: list[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for text in weights:
        arm, _, number = text.rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = math.nan
        if not arm or not math.isfinite(weight) or weight < 0:
            raise typer.BadParameter(
                f"{text!r} is no ARM=WEIGHT with a weight of at least 0, such as chunk-512=90"
            )
        if arm in found:
            raise typer.BadParameter(f"{arm} is named twice")
        found[arm] = weight
    return found


def _show(model: ModelView, last: ChangeView | None) -> None:
    origin = "as in the file"
    if last is not None and last.revision == model.revision:
        reason = f": {last.reason}" if last.reason else ""
        origin = f"set by {last.by} at {last.at:%Y-%m-%d %H:%M:%S} UTC{reason}"
    elif model.revision:
        origin = "set while the gateway runs"
    typer.echo(f"{model.name}: revision {model.revision}, {origin}")
    show_table(
        ("ARM", "ROLE", "WEIGHT", "SHARE", "IN FILE", "BACKENDS"),
        [
            (
                arm.name,
                arm.role or "-",
                f"{arm.weight:g}",
                percent(arm.share),
                f"{arm.file_weight:g}",
                f"{_usable(arm)} of {len(arm.backends)} usable",
            )
            for arm in model.arms
        ],
    )
    for why in model.confounded:
        typer.echo(f"Confounded: {why}.")
    for arm in model.arms:
        if arm.weight and not _usable(arm):
            typer.echo(f"{arm.name} has a share of the traffic and no usable backend.", err=True)


def _usable(arm: ArmView) -> int:
    return sum(backend.usable for backend in arm.backends)
