"""Each number in the remedy of an error or a warning of an encoding works when followed."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from secagg import (
    ClippingWarning,
    FixedPoint,
    Integers,
    ParameterError,
    PrecisionWarning,
    RoundParams,
)
from secagg.encoding import Ring, from_canonical
from secagg.encoding.clipping import is_lost, warn_of_losses

Changes = dict[str, float | int]
NORMAL = np.random.default_rng(0).normal(size=1000)


def message(wrong: Callable[[], object]) -> str:
    """Return the text of a call's error or warning."""
    with (
        warnings.catch_warnings(action="error"),
        pytest.raises((ParameterError, PrecisionWarning)) as caught,
    ):
        wrong()
    return str(caught.value)


# ---- suggestions


def suggested(
    sample: np.ndarray, summands: int, bits: int, weight: int | None = None, factor: float = 1.0
) -> None:
    found = FixedPoint.suggest(sample * factor, summands, max_weight=weight, modulus_bits=bits)
    RoundParams.suggest(
        max(summands, 3), 3, found.encoding, max_weight=weight, modulus_bits=bits
    )


def divided(product: int) -> Changes:
    summands = min(product, 1 << 20)
    return {"summands": summands, "weight": min(product // summands, 1 << 53)}


REMEDIES: dict[str, Callable[[str], Changes]] = {
    r"take modulus_bits=(\d+)": lambda found: {"bits": int(found)},
    r"all vectors, up by (\S+) or more": lambda found: {"factor": float(found)},
    r"all vectors, down by (\S+) or more": lambda found: {"factor": 1 / float(found)},
    r"lower summands to (\d+)": lambda found: {"summands": int(found)},
    r"product of summands and max_weight to (\d+)": lambda found: divided(int(found)),
}

SUGGESTIONS: list[tuple[np.ndarray, int, int, int | None]] = [
    *((NORMAL, n, 8, None) for n in (40, 300, 1 << 20)),
    *(
        (NORMAL * 1e-2, n, bits, None)
        for n, bits in ((3, 8), (100, 8), (300, 12), (1 << 20, 24))
    ),
    *((NORMAL * size, 9, 9, None) for size in (1e-3, 1e-6, 1e-12, 1e-1)),
    (NORMAL * 1e-2, 3, 8, 5),
    (NORMAL, 30, 8, 500),
    (NORMAL * 1e-2, 300, 8, None),
    (NORMAL * 1e9, 3, 32, None),
    (NORMAL * 1e17, 100, 64, None),
    (NORMAL, 1 << 20, 64, 1 << 53),
    (NORMAL / 99, 1 << 20, 64, 1 << 53),
    (np.full(5, 2.0**58), 1 << 20, 64, 1 << 53),
    *((np.array([2.0**e]), 3, 32, None) for e in (-47, -52, -53, -1000)),
    (np.array([2.0**-50]), 9, 8, None),
    *((np.array([size]), 3, 64, None) for size in (1e30, 1.7e308)),
]


@pytest.mark.parametrize("case", SUGGESTIONS)
def test_remedy_of_a_suggestion_works_when_it_is_followed(case):
    """Warnings are errors in these tests, so that the remedy of a warning ends it."""
    given = dict(zip(("sample", "summands", "bits", "weight"), case, strict=True))
    text = message(partial(suggested, **given))  # type: ignore[arg-type]
    for alternative in text.split(", or "):
        changes: Changes = {}
        for pattern, change in REMEDIES.items():
            if found := re.search(pattern, alternative):
                changes |= change(found[1])
        assert changes, text
        suggested(**(given | changes))  # type: ignore[arg-type]


def test_warning_of_a_suggestion_is_at_the_caller() -> None:
    with pytest.warns(PrecisionWarning) as caught:
        FixedPoint.suggest(NORMAL * 1e-2, 3, modulus_bits=8)
    assert [one.filename for one in caught] == [__file__]


# ---- encodings

SMALL = [(1e-5, 16), (1e-3, 16), (1e-14, 52), (2.0**-52, 52), (0.3, 4), (0.5, 0), (1e-9, 30)]
SMALL += [(5e-324, 0), (0.99, 5), (0.1, 3)]
LARGE = [(2.0**61, 1), (2.0**20, 52), (1e18, 2), (3.0**20, 40), (1e3, 52)]


def followed(text: str, remedies: dict[str, Callable[[str], object]]) -> set[str]:
    """Follow the remedies in a message, and return their patterns."""
    found = {pattern: re.search(pattern, text) for pattern in remedies}
    for pattern, match in found.items():
        if match:
            remedies[pattern](match[1])
    return {pattern for pattern, match in found.items() if match}


@pytest.mark.parametrize(("clip", "bits"), SMALL)
def test_remedies_of_a_small_clip_work(clip: float, bits: int) -> None:
    text = message(lambda: FixedPoint(clip, bits))
    larger, finer = r"larger clip, (\S+) or more", r"raise fractional_bits to (\d+)"
    known = {
        larger: lambda found: FixedPoint(float(found), bits),
        finer: lambda found: FixedPoint(clip, int(found)),
    }
    assert followed(text, known) == ({*known} if clip >= 2.0**-45 else {larger})


@pytest.mark.parametrize(("clip", "bits"), LARGE)
def test_remedies_of_a_large_clip_work(clip: float, bits: int) -> None:
    known = {
        r"take (\d+) fractional bits": lambda found: FixedPoint(clip, int(found)),
        r"a clip of at most (\S+)$": lambda found: FixedPoint(float(found), bits),
    }
    assert followed(message(lambda: FixedPoint(clip, bits)), known) == {*known}


@pytest.mark.parametrize("bits", [0, 7, 16, 27])
def test_remedy_of_a_lost_vector_works(bits: int) -> None:
    encoding = FixedPoint(8.0, bits)

    def warn(size: float) -> None:
        warn_of_losses(encoding, 0, 1, is_lost(np.array([size]), encoding))

    with pytest.warns(ClippingWarning):
        warn_of_losses(encoding, 1, 2, is_lost(np.array([0, 1]), Integers(9)))
    known = {r"largest elements need (\S+) at least": lambda found: warn(float(found))}
    assert followed(message(lambda: warn(1e-9)), known)


def test_remedies_with_a_range_or_a_dtype_work() -> None:
    ring = Ring(1 << 64)
    rare = np.array([0.0] * 99 + [1.0])
    for wrong, pattern, right in (
        (
            lambda: Integers(9).decode(np.zeros(2, np.uint32), ring),
            "must be (.*) in 2",
            lambda m: Integers(9).decode(np.zeros(2, m), ring),
        ),
        (
            lambda: FixedPoint.suggest(rare, 3, quantile=0.5),
            r"a larger quantile, such as (\S+)$",
            lambda m: FixedPoint.suggest(rare, 3, quantile=float(m)),
        ),
    ):
        assert followed(message(wrong), {pattern: right})


RING = Ring(1 << 64)
BELOW = [(1.5e-5, 16), (math.nextafter(2.0**-16, 0.0), 16), (0.9, 0), (0.49, 1), (1e-15, 49)]
BELOW += [(1e-16, 52), (2.0**-1022, 52), (5e-324, 0)]
FEW = [(2.0**-16, 16), (1e-3, 16), (0.5, 1), (0.5, 7), (0.99, 6), (0.1, 9), (2.0**-52, 52)]
# whole numbers and halves are exact
ENOUGH = [(0.002, 16), (0.5, 8), (1e-8, 40), (1e-13, 52), (1.0, 0), (5.0, 1), (2.0, 2)]


@pytest.mark.parametrize(("clip", "bits"), BELOW)
def test_clip_below_the_step_is_rejected(clip: float, bits: int) -> None:
    with pytest.raises(ParameterError):
        FixedPoint(clip, bits)
    with pytest.raises(ParameterError):  # also one of the other side
        from_canonical(b"fixed point" + np.float64(clip).tobytes() + np.uint64(bits).tobytes())


@pytest.mark.parametrize(("clip", "bits"), FEW)
def test_clip_of_few_steps_warns(clip: float, bits: int) -> None:
    with pytest.warns(PrecisionWarning) as caught:
        FixedPoint(clip, bits)
    assert [one.filename for one in caught] == [__file__]


@pytest.mark.parametrize(("clip", "bits"), ENOUGH)
def test_clip_of_many_steps_or_of_whole_numbers_does_not_warn(clip: float, bits: int) -> None:
    assert FixedPoint(clip, bits).max_encoded >= 1


@given(st.floats(2.0**-1022, 2.0**20), st.integers(0, 40), st.floats(-1, 1))
@examples(300)
def test_rounding_without_a_word_keeps_a_percent_of_the_clip(clip, bits, part):
    try:
        with warnings.catch_warnings(category=PrecisionWarning, action="error"):
            encoding = FixedPoint(clip, bits)
    except (ParameterError, PrecisionWarning):
        return
    floats = np.array([part * clip])
    found = encoding.decode(encoding.encode(floats, RING)[0], RING)[0]
    assert abs(found - floats)[0] <= max(0.01 * clip, 2.0**-bits if clip >= 1 else 0.0)


@pytest.mark.parametrize("elements", [[-1], [-100, 100], [0, 0, -2], [127, -127]])
def test_remedy_for_negative_integers_helps(elements: list[int]) -> None:
    """An encoding of floats without fractional bits sums them exactly."""
    with pytest.raises(ParameterError):
        Integers(127).encode(np.array(elements), RING)
    encoding = FixedPoint(127.0, fractional_bits=0)
    lanes, _ = encoding.encode(np.array(elements, np.float64), RING)
    assert encoding.decode(3 * lanes, RING)[1].tolist() == [3 * x for x in elements]
