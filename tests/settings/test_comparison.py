"""Which comparisons hold, and what is said of those that do not."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.settings import BackendSettings, Model
from gateway.settings.comparison import Comparison, compare, loads, shares

ENGINE = {"max_num_batched_tokens": 512, "max_num_seqs": 128, "prefix_caching": True}
LARGE = ENGINE | {"max_num_batched_tokens": 2048}


def model(**arms: dict[str, Any]) -> Model:
    return Model.model_validate({"arms": arms})


def arm(weight: float, *backends: str, role: str | None = None) -> dict[str, Any]:
    return {"weight": weight, "backends": list(backends), "role": role}


def servers(**engines: dict[str, Any] | None) -> dict[str, BackendSettings]:
    return {
        name: BackendSettings.model_validate({"url": f"http://{name}:8000", "engine": engine})
        for name, engine in engines.items()
    }


def compared(of: Model, backends: dict[str, BackendSettings]) -> Comparison:
    comparison = compare(of, backends)
    assert comparison is not None
    return comparison


def test_shares_are_weights_of_the_whole_and_loads_shares_of_a_backend() -> None:
    uneven = model(x=arm(3, "a", "b"), y=arm(1, "c"), z=arm(0, "d"))

    assert shares(uneven) == {"x": 0.75, "y": 0.25, "z": 0.0}
    assert loads(uneven) == {"x": 0.375, "y": 0.25, "z": 0.0}


def test_equal_load_and_engines_that_differ_in_the_chunk_alone_hold() -> None:
    comparison = compared(
        model(x=arm(2, "a", "b"), y=arm(2, "c", "d")),
        servers(a=ENGINE, b=ENGINE, c=LARGE, d=LARGE),
    )

    assert comparison == Comparison("x", ("y",), confounded=(), cautions=())


def test_weights_in_proportion_to_the_backends_are_equal_load() -> None:
    thirds = model(x=arm(2, "a", "b"), y=arm(1, "c"))

    assert compared(thirds, servers(a=ENGINE, b=ENGINE, c=LARGE)).confounded == ()


def test_unequal_load_is_confounded() -> None:
    comparison = compared(model(x=arm(90, "a"), y=arm(10, "b")), servers(a=ENGINE, b=LARGE))

    assert comparison.confounded == (
        "a backend of y gets 10 % of the traffic, one of x 90 %: choose weights in proportion to "
        "the number of backends, or add a baseline arm",
    )


def test_a_baseline_takes_controls_place() -> None:
    comparison = compared(
        model(
            x=arm(90, "a", role="control"),
            y=arm(5, "b", role="canary"),
            z=arm(5, "c", role="baseline"),
        ),
        servers(a=ENGINE, b=LARGE, c=ENGINE),
    )

    assert (comparison.reference, comparison.others) == ("z", ("y",))
    assert comparison.confounded == ()


def test_a_baseline_must_run_controls_configuration() -> None:
    comparison = compared(
        model(
            x=arm(90, "a", role="control"),
            y=arm(5, "b", role="canary"),
            z=arm(5, "c", role="baseline"),
        ),
        servers(a=ENGINE, b=LARGE, c=ENGINE | {"max_num_batched_tokens": 256}),
    )

    assert comparison.confounded == (
        "the baseline z differs from the control x in max_num_batched_tokens: it must run the same",
    )


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"block_size": 32}, "block_size"),
        ({"prefix_caching": False, "max_num_seqs": 64}, "max_num_seqs, prefix_caching"),
        ({"gpu_memory_utilization": 0.5}, "gpu_memory_utilization"),
    ],
)
def test_engines_that_differ_in_more_than_the_chunk_are_confounded(
    change: dict[str, Any], named: str
) -> None:
    engine = ENGINE | {"block_size": 16, "gpu_memory_utilization": 0.9}
    comparison = compared(
        model(x=arm(1, "a"), y=arm(1, "b")), servers(a=engine, b=engine | LARGE | change)
    )

    assert comparison.confounded == (
        f"y differs from x in {named}, not only in the chunk settings",
    )


def test_what_an_engine_does_not_state_differs_from_nothing() -> None:
    comparison = compared(
        model(x=arm(1, "a"), y=arm(1, "b")), servers(a=ENGINE | {"block_size": 16}, b=LARGE)
    )

    assert comparison.confounded == ()


def test_backends_of_an_arm_must_be_alike() -> None:
    comparison = compared(
        model(x=arm(2, "a", "b"), y=arm(1, "c")), servers(a=ENGINE, b=LARGE, c=ENGINE)
    )

    assert comparison.confounded == (
        "the backends of x differ among themselves in max_num_batched_tokens",
    )


def test_two_names_of_one_server_are_confounded() -> None:
    backends = servers(a=ENGINE, b=LARGE)
    backends["b"] = BackendSettings.model_validate({"url": "http://a:8000", "engine": LARGE})

    comparison = compared(model(x=arm(1, "a"), y=arm(1, "b")), backends)

    assert comparison.confounded == ("b of y and a of x are the same server, http://a:8000",)


def test_one_machine_an_arm_calls_for_caution() -> None:
    comparison = compared(model(x=arm(2, "a", "b"), y=arm(1, "c")), servers(a=None, b=None, c=None))

    assert comparison.cautions == (
        "y has one backend: the comparison is one of machines as much as of configurations",
        "not every backend of x and y states its engine, so other differences may go unseen",
    )


def test_the_same_chunk_leaves_nothing_to_find() -> None:
    comparison = compared(model(x=arm(1, "a"), y=arm(1, "b")), servers(a=ENGINE, b=ENGINE))

    assert comparison.cautions == (
        "x and y have one backend each: the comparison is one of machines as much as of "
        "configurations",
        "y and x state the same max_num_batched_tokens: there is nothing to find",
    )


def test_arms_without_traffic_are_not_compared() -> None:
    backends = servers(a=ENGINE, b=LARGE, c=LARGE)

    assert compare(model(x=arm(1, "a"), y=arm(0, "b")), backends) is None
    left = compared(model(x=arm(0, "a", role="control"), y=arm(1, "b"), z=arm(1, "c")), backends)
    assert (left.reference, left.others) == ("y", ("z",))
