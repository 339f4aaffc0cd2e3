"""Exponents of growth: exact for powers, and a hidden factor n is found."""

from __future__ import annotations

import pytest

from benches.speed.fits import fit

SIZES = (100, 200, 400, 800)


@pytest.mark.parametrize("power", [-1.0, 2.0])
def test_power_has_its_exponent(power: float) -> None:
    found = fit(SIZES, [3e-5 * x**power for x in SIZES])
    assert found is not None
    assert found.overall == pytest.approx(power, abs=1e-12)
    assert found.end == pytest.approx(power, abs=1e-12)


def test_work_that_does_not_grow_lowers_the_overall_exponent() -> None:
    found = fit(SIZES, [0.05 + 1e-4 * x for x in SIZES])
    assert found is not None
    assert found.overall < found.end < 1
    assert not found.hides(1)


def test_hidden_square_is_found_at_the_end() -> None:
    found = fit(SIZES, [0.02 + 3e-7 * x**2 for x in SIZES])
    assert found is not None
    assert found.overall < 1.25
    assert found.hides(1)
    assert not found.hides(2)


def test_threads_without_gain_exceed_their_order() -> None:
    same, halved = fit((1, 2), (1.0, 1.0)), fit((1, 2), (1.0, 0.53))
    assert same is not None
    assert same.hides(-1)
    assert halved is not None
    assert not halved.hides(-1)
    assert fit((5,), (1.0,)) is None
