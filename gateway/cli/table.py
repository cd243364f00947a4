"""Tables as the commands print them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Column, Table


def plain_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Rows under bold headings, without lines.

    A name or an address that is cut off helps nobody: in a narrow terminal it goes on below.
    """
    columns = [Column(heading, overflow="fold") for heading in headings]
    table = Table(*columns, box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*row)
    return table
