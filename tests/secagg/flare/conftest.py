from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sites ask for tasks more often, since no network is between."""
    pytest.importorskip("nvflare")
    monkeypatch.setattr("secagg.flare.link._INTERVAL", 0.01)
