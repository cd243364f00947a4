"""A backend's proxy: its form, and its credentials, which no fault and no dump repeats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.errors import ConfigError
from gateway.settings import Settings, load
from tests.settings.samples import changed

SECRET = "pr0xy-pa55word"


def loaded(tmp_path: Path, proxy: object) -> Settings:
    path = tmp_path / "gateway.yaml"
    path.write_text(json.dumps(changed(("backends/vllm-a/proxy", proxy))))
    return load(path, {"PROXY_PASSWORD": SECRET})


@pytest.mark.parametrize(
    "url", ["http://p", "http://p:3128/", f"http://u:{SECRET}@[::1]:1", "http://u:%40@p"]
)
def test_an_http_proxy_with_and_without_credentials(tmp_path: Path, url: str) -> None:
    proxy = loaded(tmp_path, url).backends["vllm-a"].proxy
    assert proxy is not None and proxy.get_secret_value() == url


def test_its_password_comes_from_elsewhere_and_is_not_shown(tmp_path: Path) -> None:
    settings = loaded(tmp_path, "http://u:${PROXY_PASSWORD}@p:3128")
    proxy = settings.backends["vllm-a"].proxy
    assert proxy is not None and proxy.get_secret_value() == f"http://u:{SECRET}@p:3128"
    assert SECRET not in f"{settings!r} {settings} {settings.model_dump_json()}"


@pytest.mark.parametrize(
    "url",
    [
        *("p:3128", "https://p", "socks5://p", "http://", "http://p:0", "http://p:x"),
        *("http://p/path", "http://p?q", "http://p p", "", 3128),
    ],
)
def test_anything_else_is_refused_without_being_repeated(tmp_path: Path, url: object) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, url)
    (one,) = caught.value.faults
    assert one.startswith("backends.vllm-a.proxy: ")


def test_no_fault_repeats_a_password(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, f"socks5://u:{SECRET}@p:1080")
    assert SECRET not in str(caught.value.faults)
