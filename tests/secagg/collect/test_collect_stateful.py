"""Reports, workers, closers, deaths and late leases in any order agree with a model."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from collect_model import AnyCollection
from collect_parts import Databases
from effort import scaled


def test_any_order_agrees_with_the_model(new_database: Callable[[], Databases]) -> None:
    class Machine(AnyCollection):
        make = staticmethod(new_database)

    steps = settings(max_examples=scaled(100, 10), stateful_step_count=50)
    run_state_machine_as_test(Machine, settings=steps)
