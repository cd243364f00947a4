from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client import Histogram as Reference
from prometheus_client.parser import text_string_to_metric_families

from gateway.telemetry.series import Counter, Family, Histogram, labels_text

BOUNDS = (0.001, 0.5, 1.0, 60.0)


@given(st.lists(st.floats(min_value=0, max_value=100)))
def test_counts_as_prometheus_client_does(values: list[float]) -> None:
    registry = CollectorRegistry()
    reference = Reference("h", "H.", ["a"], buckets=BOUNDS, registry=registry).labels("x")
    family = Family("h", ("a",), "H.", lambda name, labels: Histogram(name, labels, BOUNDS))
    for value in values:
        reference.observe(value)
        family["x",].observe(value)
    family["x",].observe_all([])
    theirs = [
        line for line in generate_latest(registry).decode().splitlines() if "_created" not in line
    ]
    ours = "".join(family.pieces()).splitlines()
    assert _numbers(ours) == _numbers(theirs)


def _numbers(lines: list[str]) -> dict[str, float]:
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in lines
        if not line.startswith("#")
    }


@given(st.lists(st.floats(min_value=0, max_value=100, width=32)))
def test_many_at_once_equal_one_by_one(values: list[float]) -> None:
    one_by_one, at_once = Histogram("h", "", BOUNDS), Histogram("h", "", BOUNDS)
    for value in values:
        one_by_one.observe(value)
    at_once.observe_all(array("f", values))
    assert at_once.counts == one_by_one.counts
    assert at_once.sum == pytest.approx(one_by_one.sum)


def test_a_bound_belongs_to_the_bucket_it_closes() -> None:
    histogram = Histogram("h", "", BOUNDS)
    histogram.observe(0.5)
    histogram.observe(60.1)
    assert histogram.counts == [0, 1, 0, 0, 1]


@given(st.text())
def test_any_label_value_survives_the_text_format(value: str) -> None:
    family = Family("c_total", ("a", "b"), "C.", Counter)
    family[value, "plain"].value += 3
    # The parser works on lines, so it is given one document with universal newlines off.
    text = "".join(family.pieces())
    (parsed,) = text_string_to_metric_families(text)
    assert [(sample.labels, sample.value) for sample in parsed.samples] == [
        ({"a": value, "b": "plain"}, 3.0)
    ]


def test_labels_in_the_order_of_their_names() -> None:
    assert labels_text(("b", "a"), ("1", 'x"\n\\')) == 'b="1",a="x\\"\\n\\\\"'


def test_a_series_is_made_once() -> None:
    family = Family("c_total", ("a",), "C.", Counter)
    family["x",].value += 1
    assert family["x",].value == 1
    assert (
        "".join(family.pieces()) == '# HELP c_total C.\n# TYPE c_total counter\nc_total{a="x"} 1\n'
    )
