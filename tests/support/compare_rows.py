"""A row of a comparison that no party was run for."""

from __future__ import annotations

from dataclasses import replace

from secagg.bench import ss
from secagg.bench.cases import Case, Figure, Load, Row


def widest(
    clients: int = 100, length: int = 1000, *, label: str = "HE, 2 of 3 trustees"
) -> Row:
    """Return one with the widest figures that the default cases give, all scaled."""
    load, sent = Load(Figure(1770.0, 1, 2), 114_000_000), Figure(38.6e6, 1, 2)
    return Row(
        system=replace(ss.SS, label=label),
        case=Case(clients, length),
        setting="",
        clients_run=clients,
        client=load,
        server=replace(load, memory=53_000_000),
        holder=replace(load, memory=10_000_000),
        bytes_up=sent,
        bytes_down=sent,
        holder_bytes_in=sent,
    )
