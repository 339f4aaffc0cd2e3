"""A lying aggregator in z3 and linear algebra: no input opens, and each rule is needed."""

from __future__ import annotations

from fractions import Fraction

import pytest

from oneshot_model import RULES, Model
from oneshot_parties import parties
from oneshot_view import Run, opened

pytestmark = pytest.mark.large  # neither kernels nor the interpreter decide what is here

INPUT = [1, 0, 0, 0, 0]
"""Coefficients of x_0 alone."""
TWICE = [1, 0, 0, 0, -1]
"""The difference of client 0's two reports, which no sum over other clients hides."""
DOUBLE = [2, 1, 1, 0, 0]
"""Client 0 counts twice in a sum: once under its own id, once under the corrupt client's."""
ID = {"id in the info", "id in the commitment", "id in the mask's key"}
SESSION = {"session in the info", "session in the commitment", "session in the mask's key"}
SIZES = [(1, 2), (2, 2), (2, 3), (2, 4), (3, 3), (3, 4), (3, 5)]

ATTACKS: list[tuple[set[str], tuple[int, int], bool, list[int]]] = [
    ({"count"}, (2, 3), True, INPUT),
    ({"ids"}, (2, 3), True, INPUT),
    ({"unchecked"}, (2, 3), True, INPUT),
    ({"registry"}, (2, 3), True, INPUT),
    ({"commitments"}, (2, 3), True, INPUT),
    (ID, (2, 3), True, DOUBLE),
    (SESSION, (2, 3), True, INPUT),
    ({"head in D"}, (2, 2), True, TWICE),
    ({"spent"}, (2, 2), True, INPUT),
    ({"spent"}, (2, 3), True, INPUT),
    ({"durable"}, (2, 2), True, INPUT),
    ({"durable"}, (2, 3), True, INPUT),
    ({"reserve first"}, (2, 3), True, INPUT),
    ({"quorum"}, (2, 3), True, INPUT),
    ({"quorum"}, (2, 4), True, INPUT),
    ({"quorum"}, (3, 5), True, INPUT),
    ({"signers"}, (2, 3), True, INPUT),
    ({"signed"}, (2, 3), True, INPUT),
    ({"distinct keys"}, (2, 3), True, INPUT),
    ({"endorsed"}, (2, 3), True, INPUT),
    ({"fixed list"}, (2, 3), False, INPUT),
]


def verified(run: Run | None, model: Model) -> Run:
    """Return a run whose sum is in the row space of what the adversary sees."""
    assert run is not None
    assert opened(run, len(model.subsets), run.sum)
    return run


@pytest.mark.parametrize("active", [True, False])
@pytest.mark.parametrize("size", SIZES[:6], ids=str)  # (3, 5) takes as long as all others
def test_no_input_opens_with_all_rules(size: tuple[int, int], active: bool) -> None:
    model = Model(*size, active=active)
    assert model.attack() is None
    assert model.opening(INPUT) is None


@pytest.mark.parametrize("size", SIZES[:4], ids=str)
def test_sums_of_batches_open_with_all_rules(size: tuple[int, int]) -> None:
    """The model is not empty: the sums that the protocol releases are there, and no others."""
    model = Model(*size, lists=2)
    for sum_ in ([1, 1, 1, 1, 0], [1, 1, 0, 0, 0], [0, 1, 1, 0, 1]):
        run = verified(model.opening(sum_), model)
        assert not opened(run, len(model.subsets), [Fraction(c) for c in INPUT])
    assert model.opening([1, 2, 0, 0, 0]) is None


@pytest.mark.parametrize(
    ("without", "size", "active", "wanted"),
    ATTACKS,
    ids=[f"{' + '.join(sorted(a[0]))} {a[1]}" for a in ATTACKS],
)
def test_without_a_rule_an_input_opens(
    without: set[str], size: tuple[int, int], active: bool, wanted: list[int]
) -> None:
    model = Model(*size, active=active, without=without, lists=2)
    run = verified(model.opening(wanted), model)
    print(run)  # the trace of the attack
    assert any("open" in event for event in run.trace) or "has the key" in run.trace[0]
    for rule in without if len(without) > 1 else ():  # any one of them is enough
        assert Model(*size, active=active, without=without - {rule}).attack() is None


def test_every_rule_has_an_attack() -> None:
    assert set().union(*(attack[0] for attack in ATTACKS)) == RULES.keys()


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_quorum_is_that_of_the_code(size: tuple[int, int]) -> None:
    threshold, helpers = size
    for active in (True, False):
        with parties(
            helpers, threshold, security="active" if active else "semi-honest"
        ) as made:
            model = Model(threshold, helpers, active=active)
            assert model.quorum == made.params.quorum
            assert len(model.subsets) == made.params.seeds
            for j in model.helpers:
                held = [i for i, s in enumerate(model.subsets, 1) if j not in s]
                assert tuple(held) == made.params.held_by(j)
