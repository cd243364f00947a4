"""deploy/kubernetes: what it renders to, and that what is in it fits together."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway import __version__
from gateway.settings import load
from tests.deploy.test_compose import VLLM
from tests.support.deployment import ROOT, option, said, tool, write_secrets
from tests.support.kubernetes import (
    KUBERNETES,
    OVERLAYS,
    RENDERED,
    Manifest,
    configuration,
    container,
    labels,
    manifests,
    of_kind,
    selects,
)
from tests.support.prometheus import promtool, rules

OPERATOR = {"ServiceMonitor", "PrometheusRule"}
VERSIONS = ("1.32.0", "1.37.0")
ENGINES = {"vllm": ("512", "2048"), "simulated": ("512", "64")}
EVERY = pytest.mark.parametrize("overlay", OVERLAYS)
DEPLOYMENTS = [
    (overlay, name) for overlay in OVERLAYS for name in sorted(of_kind(overlay, "Deployment"))
]

# Prints the operator's resources as its own types, made from its CRDs, understood them.
UNDERSTOOD = """
import json, sys
from cloudcoil.models.prometheus_operator import v1
given = json.load(sys.stdin)
read = [getattr(v1, one["kind"]).model_validate(one) for one in given]
form = {"mode": "json", "by_alias": True, "exclude_unset": True}
json.dump([one.model_dump(**form) for one in read], sys.stdout)
"""


@pytest.mark.service
@EVERY
def test_what_is_rendered_is_what_is_committed(overlay: str) -> None:
    rendered = said("kubectl", "kustomize", str(KUBERNETES / "overlays" / overlay))
    assert rendered == (RENDERED / f"{overlay}.yaml").read_text(), "make manifests"


@pytest.mark.service
@EVERY
@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_knows_every_field(overlay: str, version: str, tmp_path: Path) -> None:
    known = [one for one in manifests(overlay) if one["kind"] not in OPERATOR]
    path = tmp_path / "known.yaml"
    path.write_text(yaml.safe_dump_all(known))
    said("kubernetes-validate", "--strict", "-k", version, str(path))


@pytest.mark.service
def test_the_prometheus_operator_knows_every_field() -> None:
    given = [one for one in manifests("vllm") if one["kind"] in OPERATOR]
    assert {one["kind"] for one in given} == OPERATOR
    python = Path(tool("kubernetes-validate")).parent / "python"
    done = subprocess.run(
        [python, "-c", UNDERSTOOD], input=json.dumps(given), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == given


def test_the_generated_file_is_up_to_date() -> None:
    script = KUBERNETES / "prometheus_rule.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    file = KUBERNETES / "monitoring" / "prometheus-rule.yaml"
    assert done.stdout == file.read_text(), "make manifests"


@pytest.mark.service
def test_the_rules_are_those_of_prometheus(tmp_path: Path) -> None:
    (rule,) = of_kind("vllm", "PrometheusRule").values()
    found = [one for group in rule["spec"]["groups"] for one in group["rules"]]
    assert found == rules(), "make manifests"
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump(rule["spec"]))
    assert f"{len(found)} rules found" in promtool("check", "rules", str(path))


@pytest.mark.parametrize(("overlay", "name"), DEPLOYMENTS)
def test_a_pod_keeps_to_the_restricted_standard(overlay: str, name: str) -> None:
    deployment = of_kind(overlay, "Deployment")[name]
    pod, inner = deployment["spec"]["template"]["spec"], container(deployment)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] >= 10000
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert inner["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    allowed = {"configMap", "secret", "emptyDir", "persistentVolumeClaim"}
    assert {kind for volume in pod["volumes"] for kind in set(volume) - {"name"}} <= allowed
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert {mount["name"] for mount in inner["volumeMounts"]} == {
        volume["name"] for volume in pod["volumes"]
    }


@pytest.mark.parametrize(("overlay", "name"), DEPLOYMENTS)
def test_a_pod_has_probes_and_bounds_and_one_version(overlay: str, name: str) -> None:
    deployment = of_kind(overlay, "Deployment")[name]
    inner = container(deployment)
    ready = "/ready" if name == "gateway" else "/health"
    paths = {"startupProbe": "/health", "livenessProbe": "/health", "readinessProbe": ready}
    for probe, path in paths.items():
        assert inner[probe]["httpGet"] == {"path": path, "port": "http"}
    assert "memory" in inner["resources"]["limits"]
    assert {"cpu", "memory"} <= set(inner["resources"]["requests"])
    tag = inner["image"].rpartition(":")[2]
    assert re.fullmatch(r"v?\d+\.\d+\.\d+|local", tag)
    if inner["image"].startswith("registry.example.com/ttft-gateway"):
        assert tag == __version__
    assert deployment["spec"]["replicas"] == 1


@EVERY
def test_the_gateways_pod_fits_its_configuration(overlay: str, tmp_path: Path) -> None:
    deployment = of_kind(overlay, "Deployment")["gateway"]
    pod, inner = deployment["spec"]["template"]["spec"], container(deployment)
    # Two pods must not have one SQLite file.
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    write_secrets(tmp_path)
    settings = load(configuration(overlay, tmp_path), {})
    drain = settings.server.drain_delay + settings.server.drain_timeout
    assert pod["terminationGracePeriodSeconds"] > drain
    # Readiness has to be seen before new connections are refused.
    probe = inner["readinessProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] < settings.server.drain_delay
    assert inner["ports"] == [{"name": "http", "containerPort": settings.server.port}]
    places = {mount["name"]: mount["mountPath"] for mount in inner["volumeMounts"]}
    assert settings.database_url.startswith(f"sqlite:///{places['data']}/")
    assert option(inner["args"], "--config") == f"{places['configuration']}/gateway.yaml"
    assert places["keys"] == "/run/secrets"


@EVERY
def test_backends_are_services_in_front_of_one_engine_each(overlay: str, tmp_path: Path) -> None:
    write_secrets(tmp_path)
    settings = load(configuration(overlay, tmp_path), {})
    (model,) = settings.models
    chunks = ENGINES[overlay]
    assert list(settings.backends) == [f"vllm-chunk-{chunk}" for chunk in chunks]
    for chunk, (name, backend) in zip(chunks, settings.backends.items(), strict=True):
        service = of_kind(overlay, "Service")[name]
        (port,) = service["spec"]["ports"]
        assert str(backend.url).rstrip("/") == f"http://{name}:{port['port']}"
        behind = [
            one
            for one in of_kind(overlay, "Deployment").values()
            if selects(service["spec"]["selector"], labels(one))
        ]
        assert [one["metadata"]["name"] for one in behind] == [name]
        args = container(behind[0])["args"]
        assert backend.engine is not None
        assert option(args, "--max-num-batched-tokens") == chunk
        assert backend.engine.max_num_batched_tokens == int(chunk)
        assert str(backend.engine.max_num_seqs) == option(args, "--max-num-seqs")
        served = "--model" if overlay == "simulated" else "--served-model-name"
        assert option(args, served) == model


def test_a_vllm_pod_has_a_gpu_room_for_its_model_and_time_to_load_it() -> None:
    for name in (f"vllm-chunk-{chunk}" for chunk in ENGINES["vllm"]):
        deployment = of_kind("vllm", "Deployment")[name]
        pod, inner = deployment["spec"]["template"]["spec"], container(deployment)
        assert inner["resources"]["limits"]["nvidia.com/gpu"] == 1
        assert inner["resources"]["requests"]["nvidia.com/gpu"] == 1
        startup = inner["startupProbe"]
        assert startup["periodSeconds"] * startup["failureThreshold"] >= 1800
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        claim = volumes["cache"]["persistentVolumeClaim"]["claimName"]
        assert claim in of_kind("vllm", "PersistentVolumeClaim")
        assert volumes["shm"]["emptyDir"]["medium"] == "Memory"
        assert {word for word in inner["args"] if word.startswith("--")} <= VLLM


@EVERY
def test_a_node_can_be_drained(overlay: str) -> None:
    budgets = of_kind(overlay, "PodDisruptionBudget")
    assert set(budgets) == {"gateway", "engines"}
    for budget in budgets.values():
        assert budget["spec"]["maxUnavailable"] == 1
        assert "minAvailable" not in budget["spec"]


def _policies(overlay: str, deployment: Manifest) -> dict[str, Manifest]:
    found = of_kind(overlay, "NetworkPolicy")
    return {
        name: one
        for name, one in found.items()
        if selects(one["spec"]["podSelector"], labels(deployment))
    }


@EVERY
def test_engines_hear_the_gateway_and_prometheus_only(overlay: str) -> None:
    for name in (f"vllm-chunk-{chunk}" for chunk in ENGINES[overlay]):
        policies = _policies(overlay, of_kind(overlay, "Deployment")[name])
        assert "nothing-by-default" in policies
        rules: list[Any] = [
            rule for one in policies.values() for rule in one["spec"].get("ingress", [])
        ]
        (rule,) = rules
        assert [sorted(source) for source in rule["from"]] == [
            ["podSelector"],
            ["namespaceSelector", "podSelector"],
        ]
        gateway, prometheus = (source["podSelector"] for source in rule["from"])
        assert selects(gateway, labels(of_kind(overlay, "Deployment")["gateway"]))
        assert prometheus["matchLabels"] == {"app.kubernetes.io/name": "prometheus"}


@EVERY
def test_the_gateway_reaches_engines_and_the_name_service_only(overlay: str) -> None:
    policies = _policies(overlay, of_kind(overlay, "Deployment")["gateway"])
    assert set(policies) == {"nothing-by-default", "gateway", "names"}
    (rule,) = policies["gateway"]["spec"]["egress"]
    (target,) = rule["to"]
    reached = {
        name
        for name, one in of_kind(overlay, "Deployment").items()
        if selects(target["podSelector"], labels(one))
    }
    assert reached == {f"vllm-chunk-{chunk}" for chunk in ENGINES[overlay]}


def test_prometheus_finds_services_by_the_names_rules_ask_for() -> None:
    monitors = of_kind("vllm", "ServiceMonitor")
    jobs = {"gateway": {"ttft-gateway"}, "engines": {"vllm"}}
    for name, monitor in monitors.items():
        selected = [
            one["metadata"]["labels"]
            for one in of_kind("vllm", "Service").values()
            if selects(monitor["spec"]["selector"], one["metadata"]["labels"])
        ]
        assert {found[monitor["spec"]["jobLabel"]] for found in selected} == jobs[name]
    (endpoint,) = monitors["gateway"]["spec"]["endpoints"]
    assert endpoint["authorization"]["credentials"] == {
        "name": "gateway-keys",
        "key": "metrics_key",
    }
    (endpoint,) = monitors["engines"]["spec"]["endpoints"]
    (relabeling,) = endpoint["relabelings"]
    assert relabeling["targetLabel"] == "backend"
    assert 'up{job="ttft-gateway"}' in str(rules()) and 'up{job="vllm"}' in str(rules())


@pytest.mark.service
def test_the_secret_is_made_of_the_files_that_the_configuration_names(tmp_path: Path) -> None:
    """The documented command, as far as it goes without a cluster."""
    text = (ROOT / "docs" / "deploy.md").read_text()
    (command,) = re.findall(r"^kubectl (create secret (?:.*\\\n)*.*)", text, re.MULTILINE)
    folder = tmp_path / "deploy" / "compose" / "secrets"
    folder.mkdir(parents=True)
    made = write_secrets(folder)
    words = command.replace("\\\n", " ").split()
    printed = said("kubectl", *words, "--dry-run=client", "--output=json", cwd=tmp_path)
    secret = json.loads(printed)
    assert secret["metadata"] == {"name": "gateway-keys", "namespace": "ttft-gateway"}
    named = re.findall(r"\${file:/run/secrets/(\w+)}", (RENDERED / "vllm.yaml").read_text())
    assert set(secret["data"]) == set(named) <= set(made)
