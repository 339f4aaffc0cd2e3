"""Distinguisher of two worlds, by all that a server sees of one sum."""

from __future__ import annotations

import math
import random
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from lying.door import CLIENTS, Door, Outcome, Settings, plain_world
from lying.liar import Liar
from lying.worlds import PAIRS, Pair

Features = dict[str, str | float]
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")
_WORLDS = (0, 1)
BINS = 8
"""Intervals into which a number is cut, with as many training samples in each."""


def features(outcome: Outcome) -> Features:
    """Return all that a server sees of a sum.

    These are each client's answers with their sizes, errors and steps, the order of the
    answers, and the opened sum. The bytes of masked vectors are random; they are there as
    means, bits and single bytes.
    """
    found: Features = {"failed": outcome.failed, "order": repr(list(outcome.answers))}
    for u, answers in outcome.answers.items():
        found[f"{u}: answers"] = repr(answers)
        found[f"{u}: kinds"] = repr([what[:2] for what in answers])
    for u, data in outcome.masked.items():
        last = np.frombuffer(data[-24:], np.uint8)  # the packed vector is at the end
        found[f"{u}: mean"] = float(last.mean())
        found[f"{u}: bits"] = float(np.unpackbits(last).sum())
        found[f"{u}: first"], found[f"{u}: last"] = float(last[0]), float(last[-1])
    if outcome.opened is not None:
        for place, value in enumerate(outcome.opened):
            found[f"sum {place}"] = float(np.round(value, 4))
    for name, value in outcome.shown.items():
        found[f"shown {name}"] = float(np.round(value, 4))
    known = {
        name: value
        for name, value in found.items()
        if isinstance(value, str) and name != "order"  # Flower's is random
    }
    found["all"] = repr(sorted(known.items()))
    return found


class Distinguisher:
    """Sum of the log odds of all features, as they were in the training samples.

    A feature has the weight of the fourth power of its total variation distance, so that the
    noise of many features does not hide a feature that shows the world.
    """

    def __init__(self, samples: Sequence[Features], worlds: list[int]) -> None:
        values = defaultdict(list)
        for sample in samples:
            for name, value in sample.items():
                if isinstance(value, float):
                    values[name].append(value)
        parts = np.linspace(0, 1, BINS + 1)[1:-1]
        self._cuts = {name: np.quantile(found, parts) for name, found in values.items()}
        counts: tuple[Counter[tuple[str, str]], ...] = (Counter(), Counter())
        for sample, world in zip(samples, worlds, strict=True):
            counts[world].update(self._cut(sample).items())
        totals = [max(1, worlds.count(0)), max(1, worlds.count(1))]
        rates = {
            key: tuple(counts[world][key] / totals[world] for world in _WORLDS)
            for key in counts[0] | counts[1]
        }
        distances: Counter[str] = Counter()
        for (name, _), (one, other) in rates.items():
            distances[name] += abs(one - other) / 2  # type: ignore[assignment]
        self._odds = {
            (name, value): distances[name] ** 4
            * math.log((other + 1 / totals[1]) / (one + 1 / totals[0]))
            for (name, value), (one, other) in rates.items()
        }

    def guess(self, sample: Features) -> int:
        """Return 1 or −1 for the second or the first world, or 0."""
        odds = sum(self._odds.get(key, 0.0) for key in self._cut(sample).items())
        return (odds > 1e-9) - (odds < -1e-9)

    def _cut(self, sample: Features) -> dict[str, str]:
        """Return features with the places of numbers among the cuts, and on a cut."""
        return {
            name: str(value)
            if isinstance(value, str) or name not in self._cuts
            else str([int(np.searchsorted(self._cuts[name], value, side)) for side in _SIDES])
            for name, value in sample.items()
        }


def advantages(samples: Sequence[Features], worlds: list[int]) -> list[int]:
    """Return 1 for each world that is guessed, −1 for each that is not, and 0.

    A distinguisher is trained on half of the samples and judged on the other half, both ways.
    """
    half = len(samples) // 2
    first, second = slice(0, half), slice(half, None)
    found: list[int] = []
    for trained, judged in ((second, first), (first, second)):
        made = Distinguisher(samples[trained], worlds[trained])
        found += [
            made.guess(sample) * (2 * world - 1)
            for sample, world in zip(samples[judged], worlds[judged], strict=True)
        ]
    return found


@dataclass
class Trial:
    """Samples of a door, by the names of the pairs of worlds.

    Attributes
    ----------
    samples : dict of str to list of (features, number of the world)
    seconds : float
    """

    samples: dict[str, list[tuple[Features, int]]] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def rounds(self) -> int:
        return sum(map(len, self.samples.values()))

    def by_pair(self) -> Mapping[str, float]:
        """Return the advantage for each pair of worlds."""
        return {name: float(np.mean(found)) for name, found in self._guesses().items()}

    def advantage(self) -> float:
        """Return 2p − 1 over all pairs, for the part p of the worlds that are guessed."""
        return float(np.mean(np.concatenate(list(self._guesses().values()))))

    def _guesses(self) -> dict[str, list[int]]:
        return {
            name: advantages([one for one, _ in found], [world for _, world in found])
            for name, found in self.samples.items()
        }


def trial(
    door: Door,
    rounds: int,
    *,
    pairs: Sequence[Pair] = PAIRS,
    seed: int = 32,
    found: Trial | None = None,
) -> Trial:
    """Run sums in worlds that are drawn at random, after a first one that is honest.

    The samples are added to `found`, which an interrupt leaves with all until then.
    The server chooses the settings of a pair of worlds, so it knows the pair, not the world.
    """
    draw, found = random.Random(seed), found or Trial()
    own = [pair for pair in pairs if pair.name in door.pairs]
    door.training.world, door.training.scales = plain_world(), False
    assert door.sum(Settings(), Liar()).opened is not None
    began = time.perf_counter()
    try:
        for _ in range(rounds):
            pair, world = draw.choice(own), draw.randrange(2)
            door.training.world = pair.worlds[world]
            outcome = door.sum(pair.settings, Liar(to=CLIENTS))
            found.samples.setdefault(pair.name, []).append((features(outcome), world))
            found.seconds = time.perf_counter() - began
    finally:
        door.training.scales = True
    return found
