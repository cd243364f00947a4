"""docker-compose.yml: its form, what each profile starts, and how little each container may do."""

from __future__ import annotations

import json
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.settings import load
from tests.support.deployment import (
    COMPOSE,
    CONFIGURATIONS,
    ROOT,
    Service,
    document,
    mounts,
    option,
    said,
    services,
    write_secrets,
)
from tests.support.prometheus import DEPLOYED

SECRETS = ROOT / "deploy" / "compose" / "make-secrets"
ALWAYS = {"prometheus", "grafana"}
EXPORTERS = {"dcgm-exporter-a", "dcgm-exporter-b"}
PROFILES = {
    "": {"gateway", "engine-a", "engine-b"},
    "simulated": {"gateway", "engine-a", "engine-b"},
    "gpu": {"gateway-gpu", "vllm-a", "vllm-b", "vllm-cache"},
    "simulated console": {"gateway", "engine-a", "engine-b", "console"},
    "gpu gpu-metrics": {"gateway-gpu", "vllm-a", "vllm-b", "vllm-cache", *EXPORTERS},
}
# What gives a volume away has to be root, and ends at once. NVIDIA's image is made for root.
ROOTS = {"vllm-cache", *EXPORTERS}
EVERY = pytest.mark.parametrize("name", services())

# Flags of vLLM 0.32; an unknown one ends it with status 2.
VLLM = {
    "--served-model-name",
    "--port",
    "--max-num-batched-tokens",
    "--max-num-seqs",
    "--enable-prompt-tokens-details",
}


@pytest.mark.service
def test_it_follows_the_compose_specification() -> None:
    said("check-jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE))


@pytest.mark.service
@pytest.mark.parametrize("profiles", PROFILES)
def test_a_profile_swaps_engines_and_gateway(profiles: str) -> None:
    """As Docker Compose itself reads it, which needs no engine for that."""
    options = [word for profile in profiles.split() for word in ("--profile", profile)]
    started = said("docker-compose", *options, "config", "--services").split()
    assert set(started) == PROFILES[profiles] | ALWAYS


@pytest.mark.service
def test_docker_compose_reads_the_addresses_and_secrets_that_are_meant() -> None:
    profiles = ("gpu", "simulated", "console", "gpu-metrics")
    options = [word for profile in profiles for word in ("--profile", profile)]
    read = json.loads(said("docker-compose", *options, "config", "--format", "json"))
    published = {
        name: (port["host_ip"], port["published"])
        for name, service in read["services"].items()
        for port in service.get("ports", [])
    }
    assert published == {
        "gateway": ("127.0.0.1", "8080"),
        "gateway-gpu": ("127.0.0.1", "8080"),
        "grafana": ("127.0.0.1", "3000"),
        "console": ("127.0.0.1", "8090"),
    }
    folder = str(SECRETS.parent / "secrets")
    assert all(Path(one["file"]).parent == Path(folder) for one in read["secrets"].values())


@EVERY
def test_a_container_can_do_no_more_than_it_must(name: str) -> None:
    service = services()[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service.get("cap_add", []) == (["CHOWN"] if name == "vllm-cache" else [])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}
    assert not {"privileged", "pid", "ipc", "devices"} & set(service)
    user = service.get("user", "0").split(":")[0]
    assert (user == "0") is (name in ROOTS)


@EVERY
def test_a_container_says_whether_it_is_well(name: str) -> None:
    service = services()[name]
    of_the_image = service["image"] == "ttft-gateway:local"
    assert ("healthcheck" in service or of_the_image) is (name not in ROOTS)


@EVERY
def test_an_image_is_one_version(name: str) -> None:
    image, _, tag = services()[name]["image"].partition(":")
    assert re.fullmatch(r"v?\d+\.\d+\.\d+(-\d+\.\d+\.\d+-distroless)?|local", tag), image
    assert ("build" in services()[name]) is (tag == "local")


@EVERY
def test_what_is_mounted_is_there(name: str) -> None:
    service = services()[name]
    for source in mounts(service).values():
        if source.startswith("."):
            assert (ROOT / source).exists(), source
        else:
            assert source in document()["volumes"]
    for volume in service.get("volumes", []):
        assert volume.endswith(":ro") is volume.startswith("."), volume
    assert _secrets(service) <= set(document()["secrets"])


def _secrets(service: Service) -> set[str]:
    found = service.get("secrets", [])
    return {one if isinstance(one, str) else one["source"] for one in found}


@pytest.mark.parametrize("name", ["gateway", "gateway-gpu"])
def test_a_gateways_configuration_fits_its_container(name: str, tmp_path: Path) -> None:
    service = services()[name]
    path = ROOT / _in_project(service, option(service["command"], "--config"))
    wanted = set(re.findall(r"\${file:/run/secrets/(\w+)}", path.read_text()))
    assert wanted == _secrets(service)
    settings = load(_with_secrets(path, tmp_path), {})
    assert settings.database_url.startswith("sqlite:////var/lib/gateway/")
    assert mounts(service)["/var/lib/gateway"] in document()["volumes"]
    drain = settings.server.drain_delay + settings.server.drain_timeout
    assert int(service["stop_grace_period"].removesuffix("s")) > drain
    assert service["ports"] == ["${BIND_ADDRESS:-127.0.0.1}:${GATEWAY_PORT:-8080}:8080"]
    assert (settings.server.host, settings.server.port) == ("0.0.0.0", 8080)


def _in_project(service: Service, path: str) -> str:
    """The path in the project of a file that a container sees under `path`."""
    folder, _, file = path.rpartition("/")
    return f"{mounts(service)[folder]}/{file}"


def _with_secrets(path: Path, folder: Path) -> Path:
    """A copy of a configuration whose keys are there."""
    write_secrets(folder)
    copy = folder / path.name
    copy.write_text(path.read_text().replace("/run/secrets/", f"{folder}/"))
    return copy


@pytest.mark.parametrize(
    ("file", "engines"),
    [("simulated", ("engine-a", "engine-b")), ("gpu", ("vllm-a", "vllm-b"))],
)
def test_a_configuration_says_of_its_engines_what_they_are_started_with(
    file: str, engines: tuple[str, str]
) -> None:
    settings = yaml.safe_load((CONFIGURATIONS / f"{file}.yaml").read_text())
    (model,) = settings["models"]
    for (backend, stated), service in zip(settings["backends"].items(), engines, strict=True):
        command = services()[service]["command"]
        assert stated["url"] == f"http://{backend}:{option(command, '--port')}"
        assert backend in _names(service)
        assert "engines" in services()[service]["networks"]
        assert stated["engine"].pop("prefix_caching") is True
        for fact, value in stated["engine"].items():
            assert option(command, f"--{fact.replace('_', '-')}") == str(value)
        served = "--model" if file == "simulated" else "--served-model-name"
        assert option(command, served) == model
        if file == "gpu":
            assert {word for word in command if word.startswith("--")} <= VLLM


def _names(name: str) -> set[str]:
    """What other containers can call a service."""
    networks = services()[name].get("networks", {})
    listed: list[Any] = list(networks.values()) if isinstance(networks, dict) else []
    return {name}.union(*(network.get("aliases", []) for network in listed))


def test_prometheus_finds_its_files_and_targets() -> None:
    service = services()["prometheus"]
    seen = mounts(service)
    assert ROOT / seen["/etc/prometheus/prometheus.yml"] == DEPLOYED / "prometheus.yml"
    for folder in ("rules", "targets"):
        assert (ROOT / seen[f"/etc/prometheus/{folder}"]).resolve() == DEPLOYED / folder
    scrapes = yaml.safe_load((DEPLOYED / "prometheus.yml").read_text())["scrape_configs"]
    (key,) = [job["authorization"]["credentials_file"] for job in scrapes if "authorization" in job]
    assert service["secrets"] == [
        {"source": "metrics_key", "target": f"/etc/prometheus/{key}"},
    ]
    for kind, owners in (("gateway", ["gateway"]), ("engines", ["vllm-a", "vllm-b"])):
        targets = yaml.safe_load((DEPLOYED / "targets" / f"{kind}.yml").read_text())
        hosts = [target.split(":")[0] for entry in targets for target in entry["targets"]]
        assert hosts == owners
        assert set(hosts) <= set().union(*map(_names, services()))


def test_grafana_gets_the_dashboards_where_its_provisioning_looks_for_them() -> None:
    service = services()["grafana"]
    provisioning = ROOT / mounts(service)["/etc/grafana/provisioning"]
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "ttft-gateway.yml").read_text())[
        "providers"
    ]
    dashboards = ROOT / mounts(service)[provider["options"]["path"]]
    assert list(dashboards.glob("*.json"))
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yml").read_text())[
        "datasources"
    ]
    assert source["url"] == "http://prometheus:9090"
    assert set(services()["prometheus"]["networks"]) & set(service["networks"]) == {"front"}
    password = service["environment"]["GF_SECURITY_ADMIN_PASSWORD__FILE"]
    assert password == "/run/secrets/grafana_password"
    assert "grafana_password" in service["secrets"]


def test_engines_are_reached_by_the_gateway_and_prometheus_only() -> None:
    assert document()["networks"]["engines"] == {"internal": True}
    there = {name for name, one in services().items() if "engines" in one.get("networks", [])}
    gateways = {"gateway", "gateway-gpu", "prometheus"}
    assert there == {"engine-a", "engine-b", "vllm-a", "vllm-b"} | gateways | EXPORTERS


def test_secrets_are_made_once_and_are_nobody_elses(tmp_path: Path) -> None:
    script = tmp_path / "compose" / SECRETS.name
    script.parent.mkdir()
    shutil.copy(SECRETS, script)
    folder = script.parent / "secrets"
    subprocess.run(["sh", str(script)], check=True, capture_output=True)
    made = {path.name: path.read_text() for path in folder.iterdir()}
    assert set(made) == set(document()["secrets"])
    assert all(re.fullmatch(r"[0-9a-f]{64}", value) for value in made.values())
    assert len(set(made.values())) == len(made)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o644}
    again = subprocess.run(["sh", str(script)], check=True, capture_output=True, text=True)
    assert again.stdout == ""
    assert {path.name: path.read_text() for path in folder.iterdir()} == made
