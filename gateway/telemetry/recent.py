"""The last requests, kept so that a person can ask why one went where it did."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from gateway.records import Record


class Recent:
    """Records by request id, the oldest forgotten first.

    Gaps are not kept: a long answer has tens of thousands.
    """

    def __init__(self, size: int = 10_000) -> None:
        self._size = size
        self._records: OrderedDict[str, Record] = OrderedDict()

    def add(self, record: Record) -> None:
        """Of two requests with one id the later counts."""
        if record.gaps:
            record = msgspec.structs.replace(record, gaps=())
        self._records[record.id] = record
        self._records.move_to_end(record.id)
        if len(self._records) > self._size:
            self._records.popitem(last=False)

    def get(self, request_id: str) -> Record | None:
        return self._records.get(request_id)
