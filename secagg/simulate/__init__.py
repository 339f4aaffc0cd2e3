"""Simulations of rounds and one-shot sums in one process, with a report of the costs."""

from __future__ import annotations

from secagg.simulate.one_shot import SimulatedOneShot, simulate_one_shot, temporary_journals
from secagg.simulate.rounds import DROPOUT_PHASES, SimulatedRound, simulate_round
from secagg.simulate.session import SimulatedSession

__all__ = [
    "DROPOUT_PHASES",
    "SimulatedOneShot",
    "SimulatedRound",
    "SimulatedSession",
    "simulate_one_shot",
    "simulate_round",
    "temporary_journals",
]
