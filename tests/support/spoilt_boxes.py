"""A dealer whose boxes do not open for some clients."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from secagg.protocol import sealing


def spoil_boxes(monkeypatch: pytest.MonkeyPatch, liar: int, receivers: Iterable[int]) -> None:
    """Let client `liar` seal noise for some clients, in the first round that it is in."""
    honest, spoilt = sealing.seal, list(receivers)

    def seal(keys: Any, session: bytes, sender: int, ids: Any, contents: Any) -> Any:
        sealed = honest(keys, session, sender, ids, contents)
        if sender == liar:
            sealed[np.isin(ids, np.array(spoilt, np.uint64))] ^= 1
            spoilt.clear()
        return sealed

    monkeypatch.setattr(sealing, "seal", seal)
