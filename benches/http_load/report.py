"""Figures of a run as data for JSON, and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from benches.http_load.driver import Figures
from benches.http_load.load import Load
from secagg.kit.table import Column, Table, as_markdown, duration, volume
from secagg.kit.timing import machine

_EARLY = 10
"""Number of rounds after which memory is compared with its end."""


def document(load: Load, figures: Figures) -> dict[str, Any]:
    """Return the figures of a run as data."""
    rounds = len(figures.survivors)
    return {
        "machine": machine(),
        "load": msgspec.to_builtins(replace(load, helpers=())),
        "graph": [load.params.neighbours, load.params.threshold],
        "rounds": rounds,
        "seconds": figures.ended - figures.began,
        "rounds_per_minute": 60 * rounds / (figures.ended - figures.began),
        "survivors": [min(figures.survivors), max(figures.survivors)],
        "phases": {
            phase: {"closed": quantiles(taken), "answers": quantiles(figures.answers[phase])}
            for phase, taken in figures.phases.items()
        },
        "memory": figures.memory,
        "growth": growth(load, figures.memory),
        "cpu": {
            "server": sum(figures.cpu.values()),
            "members": figures.members.pop("cpu"),
        },
        "kills": figures.kills,
        "client_bytes": {
            way: figures.events[f"bytes {way}"] / max(1, rounds) / load.clients
            for way in ("up", "down")
        },
        "events": dict(sorted(figures.events.items())),
        "members": dict(sorted(figures.members.items())),
        "load_average": quantiles(figures.load_average),
    }


def quantiles(values: Sequence[float]) -> dict[str, float | None]:
    """Return count, median, 99th percentile and maximum, or None where nothing counts."""
    if not values:
        return {"n": 0, "p50": None, "p99": None, "max": None}
    p50, p99 = np.quantile(values, (0.5, 0.99))
    return {"n": len(values), "p50": float(p50), "p99": float(p99), "max": max(values)}


def growth(load: Load, memory: Sequence[dict[str, float]]) -> float | None:
    """Return the growth of memory from round 10 to the last one, if one life has both."""
    last = memory[-1]
    for early in memory:
        if early["number"] == _EARLY - 1 and early["life"] == last["life"]:
            return last["rss"] / early["rss"] - 1
    return None


def text(figures: dict[str, Any]) -> str:
    """Return the figures as text."""
    columns = [Column("phase", left=True)]
    for what in ("closed", "answers"):
        columns += [Column(f"{what}, n"), Column(f"{what}, p50", duration)]
        columns += [Column(f"{what}, p99", duration), Column(f"{what}, max", duration)]
    rows = [
        [phase, *(taken[what][q] for what in taken for q in ("n", "p50", "p99", "max"))]
        for phase, taken in figures["phases"].items()
    ]
    early = [one for one in figures["memory"] if one["number"] == _EARLY - 1]
    memory = [
        f"round {one['number'] + 1}, life {one['life'] + 1}: {volume(one['rss'])} resident, "
        f"peak {volume(one['peak'])}"
        for one in (*early, figures["memory"][-1])
    ]
    lines = [
        as_markdown(Table(columns=columns, rows=rows)),
        f"{figures['rounds']} rounds in {duration(figures['seconds'])}, "
        f"{figures['rounds_per_minute']:.2f} a minute, every sum exact; "
        f"{figures['survivors'][0]} to {figures['survivors'][1]} survivors",
        "a client in a round, in the mean: {} up, {} down".format(
            *(volume(figures["client_bytes"][way]) for way in ("up", "down"))
        ),
        *memory,
        f"growth: {figures['growth']}",
        f"processor time in seconds: {figures['cpu']}",
        f"kills (life, round, step, answers): {figures['kills']}",
        f"server: {figures['events']}",
        f"members: {figures['members']}",
        f"load average: {figures['load_average']}",
    ]
    return "\n".join(lines)
