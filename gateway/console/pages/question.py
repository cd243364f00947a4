"""What the playground asks: the form, and what it says within its limits."""

from __future__ import annotations

from nicegui import ui

from gateway.admin.views import ModelView
from gateway.console.asking import APIS
from gateway.records import Api

MOST_FILLER = 200_000
MOST_ROUNDS = 50
LONGEST_ANSWER = 4096
SHORTEST_ANSWER = 16
"""Tokens; some APIs allow no fewer."""

PROMPT = "Explain in a few sentences what the time to first token depends on."


class Form:
    """Its values are held within limits here: what a browser sends need not keep to its fields'.

    Args:
        has_key: the console has a key to use where none is typed.
    """

    def __init__(self, models: list[ModelView], *, has_key: bool) -> None:
        self._models = {model.name: model for model in models}
        names = list(self._models)
        with ui.element("div").classes("fields"):
            self._model = ui.select(names, value=names[0], label="Model", on_change=self._arms)
            self._one = ui.select([], label="One arm")
            self._other = ui.select([], label="Other arm")
            self._api = ui.select({api: api.value for api in APIS}, value=Api.CHAT, label="API")
        self._key = _key(has_key)
        self._prompt = ui.textarea("Prompt", value=PROMPT).props("outlined autogrow")
        with ui.element("div").classes("fields"):
            self._filler = ui.number("Filler before it, tokens", value=2000, min=0, step=500)
            self._longest = ui.number("Longest answer, tokens", value=64, min=SHORTEST_ANSWER)
            self._rounds = ui.number("Repeat", value=1, min=1, max=MOST_ROUNDS)
            self._fresh = ui.checkbox("New filler each time, so that nothing is cached", value=True)
        for field in (self._model, self._one, self._other, self._api):
            field.props("outlined dense")
        for number in (self._filler, self._longest, self._rounds):
            number.props("outlined dense")
        self._arms()

    @property
    def all_arms(self) -> list[str]:
        return [arm.name for arm in self._models[self.model].arms]

    @property
    def arms(self) -> list[str]:
        """The two to ask; one where both are the same."""
        return list(dict.fromkeys((str(self._one.value), str(self._other.value))))

    @property
    def model(self) -> str:
        return str(self._model.value)

    @property
    def api(self) -> Api:
        return Api(self._api.value)

    @property
    def key(self) -> str:
        return str(self._key.value or "").strip()

    @property
    def prompt(self) -> str:
        return str(self._prompt.value or "")

    @property
    def filler(self) -> int:
        return _within(self._filler.value, 0, MOST_FILLER)

    @property
    def longest(self) -> int:
        return _within(self._longest.value, SHORTEST_ANSWER, LONGEST_ANSWER)

    @property
    def rounds(self) -> int:
        return _within(self._rounds.value, 1, MOST_ROUNDS)

    @property
    def fresh(self) -> bool:
        return bool(self._fresh.value)

    def fault(self, key: str) -> str:
        """What is missing, or nothing."""
        if not key:
            return "Give one of the keys in the gateway's configuration."
        if not (key.isascii() and key.isprintable()):
            return "The key holds characters no key has."
        return "" if self.prompt.strip() else "Write a prompt."

    def _arms(self) -> None:
        arms = self.all_arms
        self._one.set_options(arms, value=arms[0])
        self._other.set_options(arms, value=arms[min(1, len(arms) - 1)])


def _key(has_key: bool) -> ui.input:
    label = "Key (empty: the one this console was started with)" if has_key else "Gateway key"
    return ui.input(label, password=True).props('outlined dense autocomplete="off"')


def _within(value: float | None, least: int, most: int) -> int:
    return max(least, min(most, int(value or 0)))
