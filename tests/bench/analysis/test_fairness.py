"""What is said of conditions that were not equal."""

from __future__ import annotations

from dataclasses import replace

from gateway.bench.analysis.fairness import confounds, remarks
from gateway.bench.results import ArmSummary, ClientCost, ErrorKind, GpuUse
from tests.bench.made import arms_of, failed, ok, round_of

EVEN = arms_of(("1", "2"), a=[1, 1, 1], b=[2, 2, 2])


def with_backends(arm: ArmSummary, **counts: int) -> ArmSummary:
    return replace(arm, backends=counts)


def test_equal_load_is_said_to_be_equal() -> None:
    assert confounds(EVEN) == ()
    assert "Load per backend was equal in all arms." in remarks(EVEN, ())


def test_more_backends_in_one_arm_confound() -> None:
    one, two = with_backends(EVEN[0], x=60), with_backends(EVEN[1], y=30, z=30)
    (sentence,) = confounds([one, two])
    assert "load per backend was not equal" in sentence
    assert "a got 100 %" in sentence and "b 50 %" in sentence
    assert not any("was equal" in remark for remark in remarks([one, two], ()))


def test_a_hash_that_splits_unevenly_by_chance_does_not() -> None:
    assert confounds([with_backends(EVEN[0], x=32, y=28), with_backends(EVEN[1], z=30, w=30)]) == ()


def test_replies_that_name_no_backend_leave_it_unknown() -> None:
    arms = [with_backends(one) for one in EVEN]
    assert confounds(arms) == ()
    assert any("is not known" in remark for remark in remarks(arms, ()))


def test_another_arm_that_stood_in_confounds() -> None:
    (sentence,) = confounds([replace(EVEN[0], served={"a": 50, "b": 10}), EVEN[1]])
    assert "10 of 60 requests to a were served by another arm" in sentence


def test_unequal_failures_confound() -> None:
    (sentence,) = confounds([replace(EVEN[0], errors={"timeout": 3}), EVEN[1]])
    assert "a 5 %, b 0 %" in sentence


def test_one_backend_an_arm_compares_machines() -> None:
    found = remarks(arms_of(a=[1] * 3, b=[1] * 3), ())
    assert any(remark.startswith("One backend served a and b") for remark in found)


def test_gpus_that_nobody_assigned_are_said_to_be_all_of_them() -> None:
    rounds = [round_of("a", 1, [ok(1.0)], gpus=(GpuUse(name="0", memory_peak=0.5),))]
    assert any("--gpu ARM=0,1" in remark for remark in remarks(EVEN, rounds))
    rounds = [round_of("a", 1, [ok(1.0)], gpus=(GpuUse(name="0", arm="a"),))]
    assert not any("--gpu" in remark for remark in remarks(EVEN, rounds))


def test_one_arm_alone_is_not_compared() -> None:
    (arm,) = arms_of(a=[1, 1, 1])
    assert confounds([arm]) == () and remarks([arm], ()) == ()


def test_the_limit_of_another_is_not_called_the_keys() -> None:
    busy = failed(ErrorKind.STATUS, status=429, detail="Rate limit reached; try again in 1s.")
    assert remarks(arms_of(a=[1, 1, 1]), [round_of("a", 1, [ok(1.0), busy])]) == ()


def test_too_few_rounds_are_said() -> None:
    assert "1 round is complete of each arm" in remarks(arms_of(a=[1]), ())[0]


def test_a_client_that_takes_part_in_what_it_measures_is_said() -> None:
    cost = ClientCost(cpu_ms_per_request=1, cpu_share=1, send_ms=1, ttft_share=0.061)
    rounds = [round_of("a", n, [ok(1.0)], client=cost) for n in (1, 2, 3)]
    found = remarks(arms_of(a=[1, 1, 1]), rounds)
    assert any("6.1 % of the median TTFT" in remark for remark in found)
