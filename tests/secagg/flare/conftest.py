from __future__ import annotations

from pathlib import Path

import pytest

from secagg import _fast

# without kernels these tests show the same, and what they call is tested
collect_ignore_glob = [] if _fast.COMPILED else ["test_*.py"]


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let sites without a folder of their own have one here."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sites ask for tasks more often, since no network is between."""
    pytest.importorskip("nvflare")
    monkeypatch.setattr("secagg.flare.link._INTERVAL", 0.01)
