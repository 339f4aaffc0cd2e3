"""Overview of a database's batches, for operators: counts and times, nothing of a client."""

from __future__ import annotations

from typing import NamedTuple

from secagg.collect.database import Transaction
from secagg.collect.states import State


class Group(NamedTuple):
    """Batches in a state.

    Attributes
    ----------
    state : State
    batches : int
    reports : int
        Reports of all these batches.
    changed : float
        Time at which the batch came into the state that has been there for longest.
    """

    state: State
    batches: int
    reports: int
    changed: float


class Overview(NamedTuple):
    """Batches of a database.

    Attributes
    ----------
    now : float
        Time of the overview.
    groups : dict of State to Group
        Batches by state, without states of no batch.
    slices : int
        Slices without a result, which workers are to add.
    """

    now: float
    groups: dict[State, Group]
    slices: int


def look(tx: Transaction) -> Overview:
    """Return the overview of a database."""
    groups = tx.query(
        Group,
        "SELECT state, count(*), CAST(sum(reports) AS BIGINT), min(changed) "
        "FROM secagg_batches GROUP BY state",
    )
    # not by the column of the parts, which a process that takes reports need not read
    slices = tx.number("SELECT count(*) FROM secagg_slices WHERE rejected IS NULL")
    return Overview(tx.now(), {one.state: one for one in groups}, slices)
