"""Playground: one prompt to two arms at once, with the same key, side by side."""

from __future__ import annotations

import asyncio
import random
import secrets

from nicegui import background_tasks, ui

from gateway.admin.views import ModelView
from gateway.console import charts
from gateway.console.asking import Question, Run, ask, filler
from gateway.console.pages.answer import Answer
from gateway.console.pages.frame import Site, frame
from gateway.console.pages.parts import Heading, draw
from gateway.console.pages.question import Form
from gateway.console.sessions import Role, Session
from gateway.errors import GatewayError

REDRAW = 0.15


async def playground(site: Site, session: Session) -> None:
    with frame(site, session, "Playground"):
        try:
            models = await site.remote.models(session)
        except GatewayError as error:
            ui.label(error.message).classes("notice")
            return
        if not models:
            ui.label("The configuration has no model.").classes("notice")
            return
        _Playground(site, session, models)


class _Playground:
    def __init__(self, site: Site, session: Session, models: list[ModelView]) -> None:
        self._site = site
        self._session = session
        # Who may only read brings a key of their own.
        self._key = site.client_key if session.role is Role.ADMIN else ""
        self._work: asyncio.Task[None] | None = None
        self._answers: dict[str, Answer] = {}
        with ui.element("section").classes("card"):
            self._form = Form(models, has_key=bool(self._key))
            with ui.element("div").classes("toolbar"):
                self._run = ui.button("Run", icon="play_arrow", on_click=self._start)
                self._stop = ui.button("Stop", icon="stop", on_click=self._cancel)
                self._state = ui.label().props('role="status"')
            self._run.props("no-caps unelevated")
            self._stop.props("no-caps flat").set_enabled(False)
        with ui.element("section").classes("card") as self._card:
            Heading(2, "As they arrive")
            ui.label("Events with something generated, counted as they come.").classes("help")
            self._chart = ui.echart({}, renderer="svg").classes("chart")
        self._card.set_visibility(False)
        self._pair = ui.element("div").classes("cards")
        self._timer = ui.timer(REDRAW, self._draw, active=False)
        ui.context.client.on_delete(self._cancel)

    def _start(self) -> None:
        if self._work is not None and not self._work.done():
            return
        key = self._form.key or self._key
        fault = self._form.fault(key)
        if fault:
            ui.notify(fault, type="negative")
            return
        self._prepare()
        self._work = background_tasks.create(self._rounds(key))

    def _prepare(self) -> None:
        """Room for the answers of both arms."""
        self._pair.clear()
        arms = self._form.arms
        known = self._form.all_arms
        with self._pair:
            self._answers = {arm: Answer(arm, charts.colour(known.index(arm))) for arm in arms}
        self._card.set_visibility(True)
        self._run.set_enabled(False)
        self._stop.set_enabled(True)
        self._timer.activate()

    async def _rounds(self, key: str) -> None:
        form, rounds = self._form, self._form.rounds
        constant = filler(form.filler, random.Random(0))
        try:
            for number in range(1, rounds + 1):
                if not self._site.sessions.holds(self._session):
                    return
                self._state.text = f"Round {number} of {rounds}"
                fresh = filler(form.filler, random.Random()) if form.fresh else constant
                prompt = f"{fresh}\n\n{form.prompt}" if fresh else form.prompt
                await self._round(
                    Question(self._site.remote.url, key, form.api, form.model, prompt, form.longest)
                )
            self._state.text = f"Done: {rounds} of {rounds}"
        finally:
            if not self._pair.is_deleted:
                self._end()

    async def _round(self, question: Question) -> None:
        """Both at once: one after the other would meet two different moments."""
        session = f"console-{secrets.token_hex(8)}"
        async with asyncio.TaskGroup() as group:
            for arm, answer in self._answers.items():
                run = Run()
                answer.begin(run)
                group.create_task(
                    ask(self._site.remote.client, question, arm, session, run, self._site.now)
                )

    def _cancel(self) -> None:
        if self._work is not None and not self._work.done():
            self._work.cancel()
            self._state.text = "Stopped"

    def _end(self) -> None:
        self._timer.deactivate()
        self._draw()
        self._run.set_enabled(True)
        self._stop.set_enabled(False)

    def _draw(self) -> None:
        points = {}
        for arm, answer in self._answers.items():
            answer.show()
            points[arm] = [(mark, float(n)) for n, mark in enumerate(answer.run.marks, 1)]
        draw(self._chart, charts.arrivals(points, self._form.all_arms))
