"""A comparison as plain values, for programs."""

from __future__ import annotations

from secagg.bench.machine import machine
from secagg.bench.per_float import PerFloat
from secagg.bench.rows import Figure, Load, Row
from secagg.bench.run import Comparison

__all__ = ["Document", "comparison_document"]

Document = dict[str, object]

VERSION = 1


def comparison_document(comparison: Comparison) -> Document:
    """Return all of it; what was scaled from a sample says so, and from which."""
    systems = {row.system.name: row.system for row in comparison.rows}
    return {
        "version": VERSION,
        "machine": machine(),
        "budget_seconds": comparison.budget,
        "complete": comparison.complete,
        "systems": {
            name: {
                "label": system.label,
                "messages": system.messages,
                "dropouts": system.dropouts,
                "decrypts": system.decrypts,
            }
            for name, system in systems.items()
        },
        "per_float": [_per_float(one) for one in comparison.per_float],
        "rows": [_row(row) for row in comparison.rows],
        "absent": comparison.absent,
    }


def _row(row: Row) -> Document:
    return {
        "system": row.system.name,
        "clients": row.case.clients,
        "length": row.case.length,
        "setting": row.setting,
        "clients_run": row.clients_run,
        "client": _load(row.client),
        "server": _load(row.server),
        "holder": _load(row.holder),
        "bytes_up": _figure(row.bytes_up),
        "bytes_down": _figure(row.bytes_down),
        "holder_bytes_in": _figure(row.holder_bytes_in),
        "holder_bytes_out": _figure(row.holder_bytes_out),
        "setup_seconds": row.setup_seconds,
        "error": row.error,
    }


def _per_float(one: PerFloat) -> Document:
    return {
        "operation": one.operation,
        "bits": one.bits,
        "seconds": one.seconds,
        "phe": one.peer,
        "ratio": one.ratio,
        "speed_up": one.speed_up,
    }


def _load(load: Load | None) -> Document | None:
    if load is None:
        return None
    return {"seconds": _figure(load.seconds), "memory": load.memory}


def _figure(figure: Figure | None) -> Document | None:
    if figure is None:
        return None
    sample = None if figure.measured else {"done": figure.done, "of": figure.of}
    return {"value": figure.value, "measured": figure.measured, "sample": sample}
