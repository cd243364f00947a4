"""The page as a file: whole, bounded, and of nobody else's making."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from gateway.bench.report import page, repeat
from gateway.bench.results import BenchResult, Sources
from gateway.errors import GatewayError
from tests.bench.made import failed, round_of
from tests.bench.report.made import LOAD, result_of, samples, two_arms

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
MIB = 1 << 20


class Elements(HTMLParser):
    """Notes each element with its attributes, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style"):
            self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def rendered(result: BenchResult) -> tuple[str, Elements]:
    text = page.render(result, page.packages())
    return text, Elements(text)


def evil() -> BenchResult:
    """Every text that comes from elsewhere is an attack."""
    rounds = [
        round_of(
            f"{EVIL}{arm}", number, [*samples([100.0 * arm + number] * 9, f"{EVIL}{arm}"), bad]
        )
        for arm in (1, 2)
        for number in (1, 2, 3)
        for bad in [failed(detail=EVIL, arm=EVIL, backend=EVIL)]
    ]
    whole = result_of(rounds, model=EVIL, url=EVIL, gateway_version=EVIL, date=EVIL)
    arms = tuple(replace(arm, engine={EVIL: EVIL}) for arm in whole.arms)
    load = replace(LOAD, workload=EVIL, api=EVIL, dataset=EVIL, extra=(EVIL,))
    sources = Sources(engines={EVIL: EVIL}, exporters=(EVIL,), gpus={EVIL: EVIL})
    return replace(whole, arms=arms, remarks=(EVIL,), load=load, sources=sources)


def test_it_loads_nothing_and_forbids_itself_to() -> None:
    _, elements = rendered(two_arms())
    fetched = [
        (tag, name, value)
        for tag, attributes in elements.found
        for name, value in attributes.items()
        if name in ("src", "href", "srcset", "data", "action") and not (value or "").startswith("#")
    ]
    assert fetched == []
    (policy,) = [one["content"] for one in elements.named("meta") if "http-equiv" in one]
    assert policy is not None and policy.startswith("default-src 'none';")
    assert "http" not in policy


def test_what_comes_from_elsewhere_stays_text() -> None:
    text, elements = rendered(evil())
    assert "alert(1)</script>" not in text and "<img" not in text
    assert elements.named("img") == []
    drawn = [one for _, one in elements.found if one.get("role") == "img"]
    assert len(elements.named("script")) == 1 + len(drawn), "Plotly's, and one a chart"
    assert elements.text.count(EVIL) > 20, "it is shown as it is"
    # Plotly takes text for HTML of its own: names reach it escaped.
    assert re.search(r'"name":"&lt;(\\u002f|/)script&gt;', text)


def test_headings_and_charts_can_be_found_and_heard() -> None:
    _, elements = rendered(two_arms())
    ids = [one["id"] for _, one in elements.found if "id" in one]
    assert len(ids) == len(set(ids))
    targets = [(one["href"] or "").removeprefix("#") for one in elements.named("a")]
    assert set(targets) <= set(ids)
    drawn = [one["aria-label"] for _, one in elements.found if one.get("role") == "img"]
    assert len(drawn) == 5
    assert "chunk-64: P50" in (drawn[0] or "")
    levels = [int(tag[1]) for tag, _ in elements.found if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert elements.text.count("These figures as a table") == 5


@pytest.mark.parametrize("yes", [True, False])
def test_simulated_and_interrupted_are_loud(yes: bool) -> None:
    _, elements = rendered(two_arms(simulated=yes, interrupted=yes))
    assert ("Simulated." in elements.text) is yes
    assert ("Interrupted." in elements.text and "6 complete turns" in elements.text) is yes
    badges = [one for one in elements.named("span") if one.get("class") == "badge"]
    assert len(badges) == (6 if yes else 0), "one at the answer, and one at each chart"


def test_a_run_without_a_round_says_so() -> None:
    _, elements = rendered(result_of([], interrupted=True))
    assert "Nothing was measured: no round was complete." in elements.text
    assert not [one for _, one in elements.found if one.get("role") == "img"]


def test_the_load_is_told_and_what_an_early_file_lacks_only_there() -> None:
    _, early = rendered(two_arms())
    _, whole = rendered(two_arms(load=replace(LOAD, prefix_tokens=1600, warm_up=True)))
    assert repeat.OLDER in early.text and repeat.OLDER not in whole.text
    assert "about 1,600 tokens" in whole.text and "--prefix-tokens 1600" in whole.text


def test_a_large_run_stays_a_small_file() -> None:
    some = samples([float(n * 7919 % 2003) for n in range(15_000)])
    rounds = [round_of(arm, number, some) for arm in ("a", "b", "c", "d") for number in (1, 2)]
    load = replace(LOAD, request_rate=100.0, concurrency=None)
    text, elements = rendered(result_of(rounds, load=load))
    assert len(text.encode()) < 6 * MIB
    assert elements.text.count("Of 30,000 requests of") == 8
    assert "The curve of a, b, c, d is drawn through 1,000" in elements.text


def test_a_missing_package_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(GatewayError, match=r"jinja2: pip install '\.\[bench\]'"):
        page.packages()
