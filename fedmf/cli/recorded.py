"""Settings of a saved training, from history.json beside the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HISTORY = "history.json"


def recorded(model: Path) -> dict[str, Any]:
    """Return the settings in history.json beside a model file; empty without settings."""
    try:
        found = json.loads(model.with_name(HISTORY).read_bytes())["settings"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def recorded_text(model: Path, name: str) -> str | None:
    """Return a setting that is a text; None for a missing setting or another type."""
    found = recorded(model).get(name)
    return found if isinstance(found, str) else None
