from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.page import Step, steps


def test_what_a_page_says_to_do(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\nSome text.\n\n```bash\none\ntwo\n```\n\n"
        "1. In a list:\n\n   ```console varies\n   $ three \\\n   > more\n   3 of 4\n\n   end\n"
        "   $ four\n   ```\n\n"
        "## Sub\n\n```yaml file=a.yaml\nb: 1\n```\n\n```yaml\nc: 1\n```\n\n"
        "Not run by the tests: there is no `GPU`.\n\n```bash\nfive\n```\n\n```bash\nsix\n```\n"
    )
    assert steps(page) == [
        Step(5, "A page", "one\ntwo\n"),
        Step(13, "A page", "three \\\nmore", shown=["3 of 4", "", "end"], varies=True),
        Step(18, "A page", "four", varies=True),
        Step(23, "Sub", "b: 1\n", file="a.yaml"),
        Step(33, "Sub", "five\n", left_out="there is no `GPU`."),
        Step(37, "Sub", "six\n"),
    ]


def test_output_has_a_command(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\noutput\n```\n")
    with pytest.raises(ValueError, match="line 2"):
        steps(page)
