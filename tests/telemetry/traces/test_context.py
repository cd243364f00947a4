"""W3C Trace Context, by its rules and against OpenTelemetry's own propagator and sampler."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from opentelemetry.sdk.trace.sampling import Decision, TraceIdRatioBased
from opentelemetry.trace import get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from gateway.records import Trace
from gateway.telemetry.traces.context import TraceContexts

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{SPAN}-01"


def begin(
    *headers: tuple[str, str], ratio: float = 1.0, seed: int = 1
) -> tuple[Trace, dict[str, str]]:
    """The place of a request with these headers, and what the backend gets."""
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    trace, forwarded = TraceContexts(ratio, Random(seed)).begin(raw)
    assert len({name for name, _ in forwarded}) == len(forwarded), "a header is sent twice"
    return trace, {name.decode(): value.decode("latin-1") for name, value in forwarded}


def test_a_callers_trace_goes_on_below_our_own_span() -> None:
    trace, sent = begin(("x-a", "1"), ("traceparent", GOOD), ("tracestate", "a=1"), ("x-b", "2"))
    assert (trace.trace_id, trace.parent_id) == (int(TRACE, 16), int(SPAN, 16))
    assert trace.span_id not in (0, trace.parent_id)
    assert sent == {
        "x-a": "1",
        "x-b": "2",
        "traceparent": f"00-{TRACE}-{trace.span_id:016x}-01",
        "tracestate": "a=1",
    }


def test_without_a_caller_a_trace_begins_here() -> None:
    trace, sent = begin(("x-a", "1"))
    assert trace.parent_id == 0 and trace.sampled
    assert sent == {
        "x-a": "1",
        "traceparent": f"00-{trace.trace_id:032x}-{trace.span_id:016x}-03",
    }
    other, _ = begin(seed=2)
    assert (other.trace_id, other.span_id) != (trace.trace_id, trace.span_id)


@pytest.mark.parametrize(
    "parent",
    [
        "",
        "00",
        GOOD[:-1],
        GOOD + "-",
        GOOD + "-what-the-future-will-bring",
        GOOD.replace("00-", "ff-", 1),
        GOOD.upper(),
        GOOD.replace("-", "_"),
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-0x",
        f"00-{TRACE[:-1]}ä-{SPAN}-01",
        f"{GOOD}\n",
    ],
)
def test_an_invalid_parent_is_none_and_its_state_goes_with_it(parent: str) -> None:
    trace, sent = begin(("traceparent", parent), ("tracestate", "a=1"))
    assert trace.parent_id == 0
    assert trace.trace_id != int(TRACE, 16)
    assert "tracestate" not in sent


def test_two_parents_are_none() -> None:
    trace, _ = begin(("traceparent", GOOD), ("traceparent", GOOD.replace("4", "5")))
    assert trace.parent_id == 0 and f"{trace.trace_id:032x}" != TRACE


@pytest.mark.parametrize("rest", ["", "-what-the-future-will-bring"])
def test_a_later_version_is_read_as_far_as_it_is_known(rest: str) -> None:
    trace, sent = begin(("traceparent", f"cc-{TRACE}-{SPAN}-01{rest}"))
    assert trace.parent_id == int(SPAN, 16)
    assert sent["traceparent"] == f"00-{TRACE}-{trace.span_id:016x}-01"


@pytest.mark.parametrize(
    ("flags", "sent_flags", "sampled"),
    [("00", "00", False), ("01", "01", True), ("02", "02", False), ("ff", "03", True)],
)
@pytest.mark.parametrize("ratio", [0.0, 1.0])
def test_the_caller_decides_whether_its_trace_is_sampled(
    flags: str, sent_flags: str, sampled: bool, ratio: float
) -> None:
    trace, sent = begin(("traceparent", f"00-{TRACE}-{SPAN}-{flags}"), ratio=ratio)
    assert trace.sampled is sampled
    assert sent["traceparent"].endswith(f"-{sent_flags}")


def test_states_of_several_headers_are_one_in_their_order() -> None:
    states = [("tracestate", one) for one in ("b=2,, a=1 ", "", "tenant@vendor=x y")]
    trace, sent = begin(("traceparent", GOOD), *states)
    assert sent["tracestate"] == trace.state == "b=2,a=1,tenant@vendor=x y"


@pytest.mark.parametrize(
    "state", ["a", "a=", "=1", "A=1", "a=1,a=2", "a=ä", ",".join(f"k{n}=1" for n in range(33))]
)
def test_a_broken_state_is_dropped_and_the_parent_kept(state: str) -> None:
    trace, sent = begin(("traceparent", GOOD), ("tracestate", state))
    assert trace.parent_id == int(SPAN, 16)
    assert trace.state == "" and "tracestate" not in sent


def test_the_ratio_is_kept_by_the_rule_of_opentelemetrys_sampler() -> None:
    contexts, sampler = TraceContexts(0.25, Random(7)), TraceIdRatioBased(0.25)
    traces = [contexts.begin([])[0] for _ in range(4000)]
    assert [trace.sampled for trace in traces] == [
        sampler.should_sample(None, trace.trace_id, "").decision is Decision.RECORD_AND_SAMPLE
        for trace in traces
    ]
    assert 900 < sum(trace.sampled for trace in traces) < 1100


@pytest.mark.parametrize(("ratio", "share"), [(0.0, 0), (1.0, 1)])
def test_nothing_and_everything(ratio: float, share: int) -> None:
    contexts = TraceContexts(ratio, Random(7))
    assert all(contexts.begin([])[0].sampled == share for _ in range(500))


_digits = st.text("0123456789abcdefA", min_size=1, max_size=3)
_parents = st.one_of(
    st.from_regex(r"\A[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[a-z]*)?\Z"),
    st.tuples(_digits, st.sampled_from(["", "0"])).map(lambda t: GOOD.replace("0", "".join(t), 1)),
    st.text(st.characters(codec="ascii", exclude_characters="\r\n"), max_size=60),
)
_states = st.lists(
    st.one_of(
        st.from_regex(r"\A[a-z0-9][a-z0-9_*/@-]{0,4}=[!-~ ]{0,4}\Z"), st.just(""), st.just(" ")
    ),
    max_size=5,
).map(",".join)


@given(parent=_parents, states=st.lists(_states, max_size=3))
@example(parent=GOOD, states=["a=1", "b@c=2, d=3"])
def test_it_reads_what_opentelemetrys_propagator_reads(parent: str, states: list[str]) -> None:
    ours, _ = begin(("traceparent", parent), *(("tracestate", state) for state in states))
    carrier: dict[str, Any] = {"traceparent": [parent]} | ({"tracestate": states} if states else {})
    context = TraceContextTextMapPropagator().extract(carrier)
    theirs = get_current_span(context).get_span_context()
    assert (ours.parent_id or 0) == theirs.span_id
    if theirs.is_valid:
        assert ours.trace_id == theirs.trace_id
        assert ours.sampled == theirs.trace_flags.sampled
        assert ours.state == theirs.trace_state.to_header()
