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
    return "\n".join(lines) + "\n"


def _cell(requests: Requests | None) -> str:
    if requests is None:
        return ""
    if isinstance(requests, range):
        return f"{requests.start} to {requests.stop - 1}"
    return str(requests)
