"""Sites of a study as processes: registry, keys, commands, and the operator's view."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from secagg.cli.files import create_identity, read_keys, write_keys


def register(folder: Path, *names: str) -> None:
    """Make the keys of sites, and add the sites to the registry of a folder."""
    path = folder / "sites.json"
    keys = read_keys(path) if path.exists() else {}
    made = {name: create_identity(folder / f"{name}.pem").public for name in names}
    write_keys(path, keys | made)


def join(folder: Path, name: str, url: str, *more: object) -> tuple[object, ...]:
    """Return the command of a site."""
    key = ("--identity", folder / f"{name}.pem", "--ledger", folder / f"{name}.ledger")
    table = folder / f"{name}.csv"
    return ("stats", "join", url, "plan.toml", table, "--client", name, *key, "--json", *more)


def status(operator: str) -> dict[str, Any]:
    """Return the document of the operator's page."""
    with urlopen(f"{operator}/status.json") as answer:  # noqa: S310
        found: dict[str, Any] = json.load(answer)
    return found


def when(operator: str, reached: Callable[[dict[str, Any]], bool]) -> None:
    """Wait until the operator's page shows a state."""
    while not reached(status(operator)):
        time.sleep(0.05)  # between two looks
