"""What `docs/clients.md` says of a run: which version of which agent was driven through what."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.real_clients.agents import Agent
from tests.real_clients.driving import BOTH, Case, Requests

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"
BEGIN, END = "<!-- driven: begin -->\n", "<!-- driven: end -->\n"


def page(requests: Mapping[Case, Requests], versions: Mapping[str, str]) -> str:
    """The page as it is, with its tables made from these cases.

    Args:
        requests: what the agents made in each case, all of which have passed.
        versions: of the agents' packages.
    """
    before, _, rest = PAGE.read_text().partition(BEGIN)
    agents = sorted({case.agent for case in requests}, key=lambda agent: agent.profile.title)
    tables = "\n".join(_table(agent, requests, versions[agent.package]) for agent in agents)
    return f"{before}{BEGIN}{tables}{END}{rest.partition(END)[2]}"


def heading(agent: Agent, version: str) -> str:
    return f"### {agent.profile.title} {version}\n"


def _table(agent: Agent, requests: Mapping[Case, Requests], version: str) -> str:
    made = {(case.scenario, case.kind): n for case, n in requests.items() if case.agent is agent}
    lines = [heading(agent, version), f"| driven through | {' | '.join(BOTH)} |", "|---|---|---|"]
    for scenario in dict.fromkeys(scenario for scenario, _ in made):
        cells = (_cell(made.get((scenario, kind))) for kind in BOTH)
        lines.append(f"| {scenario} | {' | '.join(cells)} |")
    if lacks := _not_driven(agent, requests):
        lines += ["", f"Not driven: {'; '.join(lacks)}."]
    return "\n".join(lines) + "\n"


def _not_driven(agent: Agent, requests: Mapping[Case, Requests]) -> list[str]:
    """What at least two other agents were driven through.

    What only one was driven through is of its own API, or a command of its own.
    """
    agents: dict[str, set[Agent]] = {}
    for case in requests:
        agents.setdefault(_common(case.scenario), set()).add(case.agent)
    return [name for name, driven in agents.items() if len(driven) > 1 and agent not in driven]


def _common(scenario: str) -> str:
    """A scenario without what was special about it for an agent, which stands after a colon."""
    return scenario.partition(": ")[0]


def _cell(requests: Requests | None) -> str:
    if requests is None:
        return ""
    if isinstance(requests, range):
        return f"{requests.start} to {requests.stop - 1}"
    return str(requests)
