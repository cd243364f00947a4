"""An arm has its colour everywhere, and is known without it."""

from __future__ import annotations

from gateway.bench.report.looks import COLOURS, PALETTE, looks
from gateway.bench.report.parts import WHOLE
from gateway.console.charts import ARM_COLOURS as CONSOLE
from grafana.source.style import ARM_COLOURS as GRAFANA


def test_arms_have_the_colours_of_the_dashboards() -> None:
    """Grafana's names of colours, and lighter ones of the same hue that no pair here shares."""
    hues: dict[str, set[str]] = {}
    for arm, colour in COLOURS.items():
        hues.setdefault(GRAFANA[arm], set()).add(colour)
    assert all(len(colours) == 1 for colours in hues.values()), hues
    assert len(hues) == len(set(COLOURS.values()))


def test_the_tones_are_the_consoles_in_its_order() -> None:
    assert set(CONSOLE) <= set(PALETTE)
    found = looks(["first", "second", "third"])
    assert [look.colour for look in found.values()] == list(CONSOLE[:3])


def test_an_arm_keeps_its_colour_whatever_its_place() -> None:
    assert looks(["chunk-64", "chunk-512"])["chunk-512"].colour == CONSOLE[0]
    assert looks(["chunk-512", "other"])["other"].colour != CONSOLE[0]


def test_arms_differ_in_dash_and_symbol_as_well() -> None:
    found = looks([f"a{number}" for number in range(35)]).values()
    assert len({(look.dash, look.symbol) for look in found}) == 35


def test_names_are_text_and_short() -> None:
    found = looks(["<a href='http://x'>b</a>", "long " * 40, ""])
    assert [look.label[:9] for look in found.values()] == ["&lt;a hre", "long long", WHOLE]
    assert all("<" not in look.label and len(look.label) < 60 for look in found.values())
