"""What the overlays of deploy/kubernetes render to, as committed."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.support.deployment import ROOT

KUBERNETES = ROOT / "deploy" / "kubernetes"
RENDERED = ROOT / "tests" / "deploy" / "rendered"
OVERLAYS = sorted(path.stem for path in RENDERED.glob("*.yaml"))

Manifest = dict[str, Any]


@cache
def manifests(overlay: str) -> list[Manifest]:
    return list(yaml.safe_load_all((RENDERED / f"{overlay}.yaml").read_text()))


def of_kind(overlay: str, kind: str) -> dict[str, Manifest]:
    """By name."""
    return {one["metadata"]["name"]: one for one in manifests(overlay) if one["kind"] == kind}


def container(deployment: Manifest) -> dict[str, Any]:
    (found,) = deployment["spec"]["template"]["spec"]["containers"]
    one: dict[str, Any] = found
    return one


def labels(deployment: Manifest) -> dict[str, str]:
    """Of its pods."""
    found: dict[str, str] = deployment["spec"]["template"]["metadata"]["labels"]
    return found


def selects(selector: dict[str, Any], found: dict[str, str]) -> bool:
    """Whether labels fit a selector, in either of its forms."""
    wanted: dict[str, str] = (
        selector.get("matchLabels", {}) if "matchLabels" in selector else (selector)
    )
    return wanted.items() <= found.items()


def configuration(overlay: str, folder: Path) -> Path:
    """The gateway's configuration as its pod sees it, with its keys in `folder`."""
    text = of_kind(overlay, "ConfigMap")["gateway-configuration"]["data"]["gateway.yaml"]
    path = folder / "gateway.yaml"
    path.write_text(text.replace("/run/secrets", str(folder)))
    return path
