"""The large one-shot sums of docs/scale.md, on a thousand clients, and their checks."""

from __future__ import annotations

import multiprocessing
import os
import signal
from multiprocessing.process import BaseProcess

import numpy as np
import pytest

from benches import one_shot_scale
from benches.one_shot_parties import Sum
from effort import pure_repeats
from secagg.errors import SecAggError
from secagg.kit.table import as_markdown
from secagg.protocol.shape import Security

pytestmark = [pytest.mark.large, pure_repeats]


@pytest.mark.parametrize("security", ["semi-honest", "active"])
def test_thousand_clients_are_summed_and_measured(security: Security) -> None:
    shown: list[int] = []
    case = one_shot_scale.Case(1000, security)
    row = one_shot_scale.run(case, lambda work, done, of: shown.append(done))
    assert row.survivors == 999  # the other one's box is broken
    assert shown[-1] == 1000
    times = row.client_seconds, row.generator_seconds, row.server_seconds, row.helper_seconds
    assert min(times) > 0
    (line,) = as_markdown(one_shot_scale.table([row])).splitlines()[2:]
    assert line.startswith(f"| {security} | 1,000 | 999 |")


@pytest.mark.parametrize("part", ["integers", "ids"])
def test_other_sum_raises(part: str) -> None:
    sums = [
        Sum(np.arange(5), np.array([1, 4], np.uint64)),
        Sum(np.arange(5), np.array([2], np.uint64)),
    ]
    right = Sum(2 * np.arange(5), np.array([1, 2, 4], np.uint64))
    one_shot_scale.check(right, sums)
    wrong = getattr(right, part).copy()
    wrong[1] += 1
    with pytest.raises(SecAggError):
        one_shot_scale.check(right._replace(**{part: wrong}), sums)


@pytest.mark.parametrize("stop", ["Ctrl-C", "helper", "aggregator", "generator"])
def test_no_process_is_left_after_ctrl_c_or_a_killed_party(stop: str) -> None:
    parties = ["helper", "helper", "aggregator", "generator", "generator"]  # as they start

    def show(work: str, done: int, of: int) -> None:
        if stop == "Ctrl-C":
            os.kill(os.getpid(), signal.SIGINT)
        else:
            children = sorted(multiprocessing.active_children(), key=_order)
            children[parties.index(stop)].kill()

    with pytest.raises(KeyboardInterrupt if stop == "Ctrl-C" else SecAggError):
        one_shot_scale.run(one_shot_scale.Case(6000, "semi-honest", 10), show)
    assert multiprocessing.active_children() == []


def _order(process: BaseProcess) -> tuple[int, str]:
    """Return a key that sorts processes as they started."""
    return len(process.name), process.name
