"""The smallest cohort for which k and t keep their promise, against a scan of every cohort."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secagg import ParameterError
from secagg.graph import finder, privacy_bits, recommend, smallest_cohort
from secagg.graph.graph import count

FRACTIONS = st.sampled_from([0.0, 0.05, 0.1, 0.2, 0.33, 0.45])
SECURITY = st.sampled_from(["semi-honest", "semi-malicious"])


@given(st.integers(4, 200), FRACTIONS, FRACTIONS, SECURITY, st.integers(1, 40))
@settings(deadline=None)
def test_check43_smallest_cohort_is_that_of_a_scan(
    n: int, corrupt: float, dropout: float, security: str, sigma: int
) -> None:
    try:
        k, t = recommend(n, corrupt, dropout, security, sigma, 10)
    except ParameterError:
        return
    colluders = count(corrupt, n)

    def holds(m: int) -> bool:
        question = (m, k, t, 0.0, dropout, sigma, security)
        return finder.is_private(*question, colluders=colluders)

    least = n
    while least > max(3, t) and holds(least - 1):
        least -= 1
    assert smallest_cohort(n, k, t, colluders, dropout, security, sigma) == least


def test_check43_cohorts_of_the_documents() -> None:
    assert smallest_cohort(1000, 34, 18, 50, 0.05) == 908
    assert smallest_cohort(10**6, 44, 23, 50_000, 0.05) == 996_924
    assert smallest_cohort(10**6, 50, 2, 0, 0.33) == 3
    assert privacy_bits(907, 34, 18, 0, 0.05, colluders=50) < 40
    assert privacy_bits(1000, 34, 18, 0, 0.05, colluders=50) == privacy_bits(
        1000, 34, 18, 0.05, 0.05
    )


def test_parameters_that_do_not_hold_at_all_raise() -> None:
    for colluders in (60, -1):
        with pytest.raises(ParameterError):
            smallest_cohort(1000, 34, 18, colluders, 0.05)
