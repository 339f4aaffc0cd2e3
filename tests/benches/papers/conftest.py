from __future__ import annotations

import sys

import pytest


@pytest.fixture
def put(monkeypatch):
    """Return a function that puts ratings in the place of every data set."""

    def replace(ratings):
        for name, module in sys.modules.items():
            if name.startswith("benches.papers.") and hasattr(module, "load"):
                monkeypatch.setattr(module, "load", lambda name: ratings)

    return replace
