"""What a load test says of those it asks besides."""

from __future__ import annotations

import pytest
import typer

from gateway.cli.bench_subject import engines_of, gpu_arms, sources_of


def test_a_result_tells_addresses_without_what_may_be_secret() -> None:
    engines = engines_of(["a=http://user:password@e:8001/v1", "x=http://e:8002"], ["a"])
    exporters = ["http://user:password@h:9400/metrics?token=secret"]
    found = sources_of(engines, exporters, gpu_arms(["a=0,1"]))
    assert found.engines == {"a": "http://e:8001", "x": "http://e:8002"}
    assert found.exporters == ("http://h:9400/metrics",)
    assert found.gpus == {"0": "a", "1": "a"}
    assert [one.arm for one in engines] == ["a", ""]


def test_an_address_without_a_name_is_not_repeated() -> None:
    with pytest.raises(typer.BadParameter) as refused:
        engines_of(["https://user:password@e:8001"], [])
    assert "password" not in refused.value.message
