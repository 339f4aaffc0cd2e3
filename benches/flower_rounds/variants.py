"""Variants of the application: how the server gets the mean of the nodes' updates."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

_SOURCE = Path(__file__).parent / "app"
_PROJECT = """\
[project]
name = "rounds-{name}"
version = "1.0.0"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "secagg"

[tool.flwr.app.components]
serverapp = "rounds.{name}_server:app"
clientapp = "rounds.{name}_client:app"

[tool.flwr.app.config]
folder = ""
nodes = 0
length = 0
rounds = 0
poll = 0.0
timeout = 0.0
"""


@dataclass(frozen=True)
class Variant:
    """Variant with a client and a server in `app`, named after it.

    Attributes
    ----------
    label : str
    error : float
        Bound on the error of an element of the model after one round, that of float32 included.
    """

    label: str
    error: float


VARIANTS = {
    "plain": Variant("plain FedAvg", 1e-6),
    "secaggplus": Variant("Flower's SecAgg+", 1e-2),  # it rounds after it has scaled by weights
    "secagg": Variant("SecAgg", 2**-16 + 1e-6),
    "oneshot": Variant("OneShot", 2**-16 + 1e-6),
}
"""Variants by name; the first is the one that others are compared with."""


def write_app(name: str, folder: Path) -> Path:
    """Write the application of a variant, as `flwr run` takes it, and return its folder."""
    target = folder / name
    shutil.copytree(_SOURCE, target / "rounds", ignore=shutil.ignore_patterns("__pycache__"))
    (target / "pyproject.toml").write_text(_PROJECT.format(name=name), encoding="utf-8")
    return target
