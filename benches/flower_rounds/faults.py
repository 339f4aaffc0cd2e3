"""Faults under Flower's SecAgg+ and under `SecAgg`, side by side, on the same application.

Nodes and server are in one process, on a `LocalGrid`. What a protocol does about a fault is
decided in its mod and in its server's code, which are the ones of a network.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benches.flower_rounds.app.work import CLIP, EXAMPLES, MAX_WEIGHT, SCALE, drawn
from benches.flower_rounds.liars import SecAggLiar, SecAggPlusLiar
from benches.flower_rounds.local import LENGTH, NODES, client_app, configurations, run
from benches.flower_rounds.variants import VARIANTS
from secagg.errors import TooFewSurvivors
from secagg.flower.grid import CLIPPED
from secagg.flower.testing import LocalGrid
from secagg.kit.table import Column, Table

SYSTEMS = ("secaggplus", "secagg")
_VICTIM = NODES[0]
_FACTOR = 40
"""Factor of the victim's update of up to 0.5, so that it has values beyond the clip."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a fault, in words and in figures."""

    fault: str
    system: str
    text: str
    figures: Mapping[str, float]


def outcomes() -> list[Outcome]:
    """Return the outcomes of all faults under both systems."""
    found = []
    with _quiet():
        for fault in FAULTS:
            for system in SYSTEMS:
                with tempfile.TemporaryDirectory(prefix="secagg-faults-") as folder:
                    text, figures = FAULTS[fault](system, Path(folder))
                found.append(Outcome(fault, system, text, figures))
    return found


def gone(system: str, folder: Path) -> tuple[str, dict[str, float]]:
    """Let a node drop out after it has advertised its keys, before it shares them."""
    configs = configurations(folder)
    grid = LocalGrid(client_app(system), configs)
    grid.drop(_VICTIM, after=1)
    done = run(system, grid, folder)
    if not done.model.any():
        return "halts: no new model, and the run ends without an error", {"halted": True}
    error = done.error(NODES[1:], configs)
    return f"mean of the other {len(NODES) - 1}, error {error:.1g}", {"error": error}


def both_shares(system: str, folder: Path) -> tuple[str, dict[str, float]]:
    """Let the server ask for both shares of a node."""
    return (_both_plus if system == "secaggplus" else _both)(folder)


def _both_plus(folder: Path) -> tuple[str, dict[str, float]]:
    configs = configurations(folder)
    liar = SecAggPlusLiar(client_app("secaggplus"), configs, _VICTIM)
    total = run("secaggplus", liar, folder).error(NODES, configs)
    error = float(np.abs(liar.vector() - drawn(0, 1, LENGTH)).max())
    text = (
        f"{liar.gave_both} of {len(NODES)} nodes send both: the server reads the node's model, "
        f"error {error:.1g}, and the mean, error {total:.1g}"
    )
    return text, {"gave both": liar.gave_both, "error of the node": error, "error": total}


def _both(folder: Path) -> tuple[str, dict[str, float]]:
    found: dict[str, float] = {}
    for request in ("one request", "a second request"):
        own = folder / request
        own.mkdir()
        second = request == "a second request"
        liar = SecAggLiar(client_app("secagg"), configurations(own), _VICTIM, second=second)
        try:
            run("secagg", liar, own)
        except TooFewSurvivors:
            found["failed sums"] = found.get("failed sums", 0) + 1
        found[f"gave both for {request}"] = liar.gave_both
        found[f"refused {request}"] = liar.refused
    most = max(found[name] for name in found if name.startswith("gave"))
    return f"{most} of {len(NODES)} nodes send both, for one request or a second one", found


def beyond_clip(system: str, folder: Path) -> tuple[str, dict[str, float]]:
    """Let a node's update have values beyond the clip."""
    configs = configurations(folder)
    for config in configs.values():  # SecAgg+ clips after it has scaled by weight ÷ largest
        config[EXAMPLES] = MAX_WEIGHT
    configs[_VICTIM][SCALE] = _FACTOR
    done = run(system, LocalGrid(client_app(system), configs), folder)
    error = done.error(NODES, configs)
    if CLIPPED not in done.reported:
        return f"error {error:.2g}, and nothing is reported", {"error": error}
    clipped = done.reported[CLIPPED]
    text = f"error {error:.2g}, and {clipped:.0f} clipped elements are reported"
    return text, {"error": error, "reported": clipped}


FAULTS: dict[str, Callable[[str, Path], tuple[str, dict[str, float]]]] = {
    "a node is gone before it shares its keys": gone,
    "the server asks for both shares of a node": both_shares,
    f"a node has values of up to {_FACTOR / 2:g}, beyond the clip {CLIP:g}": beyond_clip,
}


def table(found: Sequence[Outcome]) -> Table:
    """Return a line per fault, with a column per system."""
    texts = {(one.fault, one.system): one.text for one in found}
    systems = [Column(VARIANTS[system].label, left=True) for system in SYSTEMS]
    return Table(
        columns=[Column("fault"), *systems],
        rows=[[fault, *(texts[fault, system] for system in SYSTEMS)] for fault in FAULTS],
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Let Flower log nothing: nodes log each fault with its frames."""
    logger = logging.getLogger("flwr")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)
