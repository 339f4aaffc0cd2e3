"""Last stage of the server: the session is over."""

from __future__ import annotations

from collections.abc import Mapping

from secagg.protocol import Phase
from secagg.server.result import RoundResult


class Over:
    """Last stage: the session has finished with a result, or failed without one.

    `resumable` is True if the server's journal can continue the round.
    """

    expected: None = None
    asks: Mapping[int, bytes] = {}

    def __init__(self, result: RoundResult | None, *, resumable: bool = False) -> None:
        self.phase = Phase.FAILED if result is None else Phase.FINISHED
        self.result = result
        self.resumable = resumable
