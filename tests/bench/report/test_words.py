"""What a report says before its charts."""

from __future__ import annotations

from dataclasses import replace

from gateway.bench.report import words
from gateway.bench.results import ErrorKind
from tests.bench.made import failed, round_of
from tests.bench.report.made import result_of, samples, two_arms


def test_a_difference_is_said_with_what_it_rests_on() -> None:
    (answer,) = words.answers(two_arms())
    assert (answer.verdict, answer.kind) == (
        "chunk-64 answers later than chunk-512 (P50, P90, P99).",
        "shown",
    )
    assert "the spreads do not overlap" in answer.sentences[0]


def test_no_difference_is_called_one_when_spreads_overlap() -> None:
    ttfts = {"a": (100.0, 200.0, 300.0), "b": (150.0, 250.0, 350.0)}
    (answer,) = words.answers(two_arms(ttfts))
    assert answer.verdict == "No difference in TTFT between b and a is shown."
    assert answer.kind == "open"


def test_confounded_arms_cannot_be_compared_and_that_comes_first() -> None:
    result = two_arms()
    first, second, *rest = result.rounds
    bad = replace(second, samples=(*second.samples[1:], failed()))
    found = result_of([first, bad, *rest])
    found = replace(found, remarks=("Something else.", *found.remarks))
    (answer,) = words.answers(found)
    assert answer.kind == "confounded"
    assert answer.verdict.endswith("cannot be compared: the conditions were not equal.")
    assert words.remarks(found)[0].startswith("Confounded: not the same share of requests failed")
    assert words.remarks(found)[-1] == "Something else."


def test_one_arm_has_its_figures_for_an_answer_and_nothing_has_none() -> None:
    rounds = [round_of("a", number, samples([100.0 * number])) for number in (1, 2, 3)]
    (answer,) = words.answers(result_of(rounds))
    expected = "TTFT of a: P50 200 ms, P90 200 ms, P99 200 ms, the medians of 3 rounds."
    assert answer.verdict == expected
    assert words.answers(result_of([])) == []


def test_figures_are_medians_with_their_spread_and_what_nobody_has_is_left_out() -> None:
    rows = {row[0]: row[1:] for row in words.figures(two_arms()).rows}
    assert rows["TTFT P90"] == ("118.1 ms (108.1-128.1 ms)", "228.1 ms (208.1-248.1 ms)")
    assert rows["KV cache in use, peak"] == ("20 % (10-30 %)", "20 % (10-30 %)")
    assert rows["GPU memory in use, peak"] == ("50 %", "50 %")
    assert rows["Failed"] == ("0", "0")
    assert "GPU utilisation" not in rows and "Inter-token latency, P90" not in rows


def test_thresholds_say_what_is_the_same_for_all_arms_once() -> None:
    found = words.thresholds(two_arms({"a": (300.0,) * 3, "b": (400.0,) * 3}))
    said = [(held, sentence.partition(" does")[0]) for held, sentence in found]
    assert ("holds", "a: P90 TTFT ≤ 350 ms: holds, at 308.1 ms.") in said
    assert ("does not hold", "b: P90 TTFT ≤ 350 ms:") in said
    assert [held for held, said in found if "GPU utilisation" in said] == ["not judged"]


def test_failures_are_counted_by_kind_with_what_the_first_said() -> None:
    status = [
        failed(ErrorKind.STATUS, status=429, detail=detail)
        for detail in ("slow down" * 99, "later")
    ]
    table = words.failures(result_of([round_of("a", 1, [*samples([1.0]), *status, failed()])]))
    assert table is not None
    first, second = table.rows
    assert first[:3] == ("a", "status 429", "2") and len(first[3]) == words.LONGEST_DETAIL
    assert second == ("a", "timeout", "1", "-")
