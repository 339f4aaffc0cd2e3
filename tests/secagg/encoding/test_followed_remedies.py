"""Each number in the remedy of an error or a warning of an encoding works when followed."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pytest

from secagg import FixedPoint, Integers, ParameterError, PrecisionWarning, RoundParams
from secagg.encoding import Ring, Suggestion
from secagg.encoding.clipping import is_lost, warn_of_losses

RING = Ring(1 << 64)
NORMAL = np.random.default_rng(0).normal(size=1000)

Follow = Callable[[re.Match[str]], object]


@dataclass(frozen=True)
class Case:
    """Call with a wrong argument, the remedy in its message, and calls that follow it."""

    wrong: Callable[[], object]
    remedy: str
    follow: Follow


def encoded(vector: object, encoding: FixedPoint) -> object:
    lanes, clipped = encoding.encode(vector, RING)  # type: ignore[arg-type]
    lost = is_lost(vector, encoding)  # type: ignore[arg-type]
    warn_of_losses(encoding, clipped, 3, lost)
    return encoding.decode(lanes, RING)


def number(text: str) -> float:
    """Return a number of a message as Python reads it."""
    return float(ast.literal_eval(text))


def whole(text: str) -> int:
    return int(ast.literal_eval(text))


def suggested(
    sample: np.ndarray, n: int, bits: int, weight: int | None = None
) -> Callable[..., Suggestion]:
    """Return a call of `suggest` whose arguments a remedy replaces."""

    def call(**changed: object) -> Suggestion:
        factor = changed.pop("factor", 1.0)
        given = {"modulus_bits": bits, "max_weight": weight, "summands": n, **changed}
        found = FixedPoint.suggest(sample * factor, **given)  # type: ignore[arg-type, operator]
        RoundParams.suggest(
            max(given["summands"], 3),  # type: ignore[type-var]
            3,
            found.encoding,
            max_weight=given["max_weight"],  # type: ignore[arg-type]
            modulus_bits=given["modulus_bits"],  # type: ignore[arg-type]
        )
        return found

    return call


BITS, UP = r"take modulus_bits=(\d+)", r"all vectors, up by (\S+) or more"
DOWN = r"all vectors, down by (\S+) or more"


def with_bits(call: Callable[..., Suggestion]) -> Case:
    return Case(call, BITS, lambda m: call(modulus_bits=whole(m[1])))


def with_factor(call: Callable[..., Suggestion]) -> Case:
    def follow(m: re.Match[str]) -> object:
        found = re.search(BITS, m.string)
        bits = {} if found is None else {"modulus_bits": whole(found[1])}
        return call(factor=number(m[1]), **bits)

    return Case(call, UP, follow)


def with_divisor(call: Callable[..., Suggestion]) -> Case:
    return Case(call, DOWN, lambda m: call(factor=1 / number(m[1])))


def with_fewer(call: Callable[..., Suggestion]) -> Case:
    pattern = r"lower summands to (\d+), and take modulus_bits=64"
    return Case(call, pattern, lambda m: call(summands=whole(m[1]), modulus_bits=64))


def with_lighter(call: Callable[..., Suggestion]) -> Case:
    def follow(m: re.Match[str]) -> object:
        most = whole(m[1])
        summands = min(most, 1 << 20)
        weight = min(most // summands, 1 << 53)
        return call(summands=summands, max_weight=weight, modulus_bits=64)

    pattern = r"product of summands and max_weight to (\d+), and take modulus_bits=64"
    return Case(call, pattern, follow)


def larger_clip(clip: float, bits: int) -> Case:
    return Case(
        lambda: FixedPoint(clip, bits),
        r"larger clip, (\S+) or more",
        lambda m: FixedPoint(number(m[1]), bits),
    )


def finer(clip: float, bits: int) -> Case:
    return Case(
        lambda: FixedPoint(clip, bits),
        r"raise fractional_bits to (\d+)",
        lambda m: FixedPoint(clip, whole(m[1])),
    )


def beyond(clip: float, bits: int) -> dict[str, Case]:
    wrong = partial(FixedPoint, clip, bits)
    bits_pattern, clip_pattern = r"take (\d+) fractional bits", r"a clip of at most (\S+)$"
    return {
        f"{clip} with {bits} bits, fewer": Case(
            wrong, bits_pattern, lambda m: FixedPoint(clip, whole(m[1]))
        ),
        f"{clip} with {bits} bits, clip": Case(
            wrong, clip_pattern, lambda m: FixedPoint(number(m[1]), bits)
        ),
    }


SUGGESTIONS: dict[str, Case] = {
    **{
        f"8 bits for {n} vectors": with_bits(suggested(NORMAL, n, 8))
        for n in (40, 300, 1 << 20)
    },
    **{f"8 bits for {n}, down": with_divisor(suggested(NORMAL, n, 8)) for n in (40, 100)},
    **{
        f"few steps, {n} of {size} in {bits} bits": with_bits(suggested(NORMAL * size, n, bits))
        for n, size, bits in (
            (3, 1e-2, 8), (100, 1e-2, 8), (3, 1e-3, 7), (9, 1e-6, 9), (300, 1e-2, 12),
            (1 << 20, 1e-2, 24), (100, 1e-9, 12), (5, 0.05, 8), (40, 1e-1, 11), (3, 1e-12, 4),
        )
    },
    "few steps, weights": with_bits(suggested(NORMAL * 1e-2, 3, 8, 5)),
    "weights": with_bits(suggested(NORMAL, 30, 8, 500)),
    "no room for a small sample": with_bits(suggested(NORMAL * 1e-2, 300, 8)),
    "large elements": with_bits(suggested(NORMAL * 1e9, 3, 32)),
    "large elements, divided": with_divisor(suggested(NORMAL * 1e9, 3, 32)),
    "larger elements": with_fewer(suggested(NORMAL * 1e17, 100, 64)),
    "larger elements, divided": with_divisor(suggested(NORMAL * 1e17, 100, 64)),
    "large weights": with_lighter(suggested(NORMAL, 1 << 20, 64, 1 << 53)),
    "large weights of small ones": with_lighter(suggested(NORMAL / 99, 1 << 20, 64, 1 << 53)),
    "large weights and elements": with_lighter(
        suggested(np.full(5, 2.0**58), 1 << 20, 64, 1 << 53)
    ),
    "elements of the smallest step": with_factor(suggested(np.array([2.0**-52]), 3, 32)),
    "elements of some steps": with_factor(suggested(np.array([2.0**-47]), 3, 32)),
    "elements of some steps in 8 bits": with_factor(suggested(np.array([2.0**-50]), 9, 8)),
    "elements below all steps": with_factor(suggested(np.array([2.0**-53]), 3, 32)),
    "tiny elements": with_factor(suggested(np.array([1e-300]), 3, 32)),
    "elements next to 0": with_factor(suggested(np.array([2.0**-1000]), 3, 32)),
    "elements beyond 2^61": with_divisor(suggested(np.array([1e30]), 3, 64)),
    "elements of the largest size": with_divisor(suggested(np.array([1.7e308]), 3, 64)),
}  # fmt: skip

CLIPS: dict[str, Case] = {
    f"{clip} with {bits} bits, {what}": make(clip, bits)
    for clip, bits, what, make in (
        *((clip, bits, "larger", larger_clip) for clip, bits in (
            (1e-5, 16), (1e-300, 16), (1e-3, 16), (1e-14, 52), (2.0**-52, 52), (0.3, 4),
            (0.5, 0), (0.01, 9), (1e-9, 30), (1e-12, 45), (5e-324, 0),
        )),
        *((clip, bits, "finer", finer) for clip, bits in (
            (1e-5, 16), (1e-3, 16), (0.3, 4), (0.5, 0), (0.01, 9), (1e-9, 16), (1e-12, 16),
            (0.99, 5), (3e-14, 50), (0.1, 3),
        )),
    )
}  # fmt: skip
for clip, bits in ((2.0**61, 1), (2.0**20, 52), (1e18, 2), (3.0**20, 40), (1e3, 52)):
    CLIPS |= beyond(clip, bits)

OTHERS: dict[str, Case] = {
    "fractional_bits": Case(
        lambda: FixedPoint(8.0, 53),
        r"fractional_bits is 53; it must lie between (\d+) and (\d+)",
        lambda m: [FixedPoint(8.0, whole(m[1])), FixedPoint(8.0, whole(m[2]))],
    ),
    **{
        f"lost in {bits} bits": Case(
            lambda bits=bits: encoded(np.array([1e-9]), FixedPoint(8.0, bits)),
            "largest elements need (.*) at least",
            lambda m, bits=bits: encoded(np.array([number(m[1])]), FixedPoint(8.0, bits)),
        )
        for bits in (0, 7, 16, 27)
    },
    "max": Case(
        lambda: Integers(0),
        r"lie between (\d+) and (\d+)",
        lambda m: [Integers(whole(m[1])), Integers(whole(m[2]))],
    ),
    "sum of a wrong dtype": Case(
        lambda: Integers(9).decode(np.zeros(2, np.uint32), RING),
        "must be (.*) in 2",
        lambda m: Integers(9).decode(np.zeros(2, m[1]), RING),
    ),
    "nearly all zeros": Case(
        lambda: FixedPoint.suggest(np.array([0.0] * 99 + [1.0]), 3, quantile=0.5),
        r"a larger quantile, such as (\S+)$",
        lambda m: FixedPoint.suggest(np.array([0.0] * 99 + [1.0]), 3, quantile=number(m[1])),
    ),
}
CASES = SUGGESTIONS | CLIPS | OTHERS


@cache
def message(name: str) -> str:
    """Return the text of a case's error or warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((ParameterError, UserWarning)) as caught:
            CASES[name].wrong()
    return str(caught.value)


@pytest.mark.parametrize("name", CASES)
def test_remedy_works_when_it_is_followed(name: str) -> None:
    """Warnings are errors in these tests, so that the remedy of a warning ends it."""
    found = re.search(CASES[name].remedy, message(name))
    assert found is not None, message(name)
    CASES[name].follow(found)


@pytest.mark.parametrize("name", [name for name in SUGGESTIONS if "few steps" in name])
def test_warning_of_a_suggestion_is_at_the_caller(name: str) -> None:
    with pytest.warns(PrecisionWarning) as caught:
        CASES[name].wrong()
    assert [one.filename for one in caught] == [__file__]
