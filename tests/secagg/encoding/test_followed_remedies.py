"""Each remedy in an error or a warning of an encoding works when it is followed."""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

import secagg.encoding
from secagg import FixedPoint, Integers, ParameterError, PrecisionWarning, RoundParams, flatten
from secagg.encoding import Ring, Suggestion
from secagg.encoding.clipping import is_lost, warn_of_losses
from secagg.encoding.encoding import take
from secagg.encoding.pieces import check_encoded

RING, ODD = Ring(1 << 64), Ring(1009)
FLOATS = FixedPoint(8.0)
CODE = Path(secagg.encoding.__file__).parent
NORMAL = np.random.default_rng(0).normal(size=1000)
MASKED = np.ma.masked_array([1.0, 2.0], [False, True])

Follow = Callable[[re.Match[str]], object]


@dataclass(frozen=True)
class Case:
    """Call with a wrong argument, the remedy in its message, and calls that follow it."""

    wrong: Callable[[], object]
    remedy: str
    follow: Follow


def encoded(vector: object, encoding: FixedPoint | Integers = FLOATS) -> object:
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


class Torch:
    """Tensor of a dtype that numpy lacks."""

    def detach(self) -> Torch:
        return self

    cpu = detach

    def numpy(self) -> object:
        raise TypeError("Got unsupported ScalarType BFloat16")

    def new_tensor(self, data: object) -> object:
        return data

    def float(self) -> np.ndarray:
        return np.ones(2)


FLAT, SCHEMA = flatten({"a": np.ones(2), "b": np.arange(3)})
UNSIGNED = flatten([np.zeros(2, np.uint8)])[1]

SUGGESTIONS: dict[str, Case] = {
    **{
        f"8 bits for {n} vectors": with_bits(suggested(NORMAL, n, 8))
        for n in (40, 64, 100, 300, 1000, 1 << 20)
    },
    **{f"8 bits for {n}, down": with_divisor(suggested(NORMAL, n, 8)) for n in (40, 64, 100)},
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

FLOATS_8 = FixedPoint(8.0, 16, beyond_clip="refuse")
OTHERS: dict[str, Case] = {
    "clip": Case(
        lambda: FixedPoint("8"),  # type: ignore[arg-type]
        r"above 0, up to 2\^61",
        lambda _: FixedPoint(2.0**61, 0),
    ),
    "rounding": Case(
        lambda: FixedPoint(8.0, rounding="up"),  # type: ignore[arg-type]
        "rounding must be '(stochastic)' or '(nearest)'",
        lambda m: [FixedPoint(8.0, rounding=m[i]) for i in (1, 2)],  # type: ignore[arg-type]
    ),
    "beyond_clip": Case(
        lambda: FixedPoint(8.0, beyond_clip="no"),  # type: ignore[arg-type]
        "beyond_clip must be '(clip)' or '(refuse)'",
        lambda m: [FixedPoint(8.0, beyond_clip=m[i]) for i in (1, 2)],  # type: ignore[arg-type]
    ),
    "fractional_bits": Case(
        lambda: FixedPoint(8.0, 53),
        r"fractional_bits is 53; it must lie between (\d+) and (\d+)",
        lambda m: [FixedPoint(8.0, whole(m[1])), FixedPoint(8.0, whole(m[2]))],
    ),
    "not finite": Case(
        lambda: encoded(np.array([1.0, np.nan])), "replace it", lambda _: encoded(np.ones(2))
    ),
    "beyond the clip": Case(
        lambda: encoded(np.array([9.0]), FLOATS_8),
        r"scale the vector, raise the clip, or pass beyond_clip='(clip)'",
        lambda m: (
            encoded(np.array([9.0]) / 2, FLOATS_8),
            encoded(np.array([9.0]), FixedPoint(16.0, beyond_clip="refuse")),
            FixedPoint(8.0, beyond_clip=m[1]).encode(np.array([9.0]), RING),  # type: ignore[arg-type]
        ),
    ),
    "clipped": Case(
        lambda: encoded(np.array([9.0, 1.0])),
        "raise the clip, which FixedPoint.suggest proposes, or scale the vectors",
        lambda _: (
            encoded(np.array([9.0]), FixedPoint.suggest(np.array([9.0]), 3).encoding),
            encoded(np.array([9.0, 1.0]) / 2),
        ),
    ),
    **{
        f"lost in {bits} bits": Case(
            lambda bits=bits: encoded(np.array([1e-9]), FixedPoint(8.0, bits)),
            "raise fractional_bits, or .* largest elements need (.*) at least",
            lambda m, bits=bits: (
                encoded(np.array([1e-9]), FixedPoint(8.0, 40)),
                encoded(np.array([number(m[1])]), FixedPoint(8.0, bits)),
            ),
        )
        for bits in (0, 3, 7, 10, 13, 16, 20, 24, 27)
    },
    "masked array": Case(
        lambda: encoded(MASKED), r"\.filled\(value\)", lambda _: encoded(MASKED.filled(0.0))
    ),
    "list": Case(
        lambda: encoded([1.0]), r"numpy\.ravel\(vector\)", lambda _: encoded(np.ravel([1.0]))
    ),
    "two dimensions": Case(
                lambda: encoded(np.ones((2, 2))),
        r"numpy\.ravel\(vector\)",
        lambda _: encoded(np.ravel(np.ones((2, 2)))),
    ),
    "integers": Case(
        lambda: encoded(np.arange(3)),
        r"astype\(float\), or sum whole numbers with Integers",
        lambda _: (encoded(np.arange(3).astype(float)), encoded(np.arange(3), Integers(9))),
    ),
    "floats": Case(
        lambda: encoded(np.array([1.9]), Integers(9)),
        r"FixedPoint, or round them first, .*: np.rint\(vector\).astype\(np.int64\)",
        lambda _: (
            encoded(np.array([1.9])),
            encoded(np.rint(np.array([1.9])).astype(np.int64), Integers(9)),
        ),
    ),
    "float16": Case(
        lambda: encoded(np.ones(2, np.float16)),
        "float64 or float32, .*convert it with astype",
        lambda _: encoded(np.ones(2, np.float16).astype(np.float32)),
    ),
    "weight of another type": Case(
        lambda: Integers(9).encode(np.arange(3), RING, 2.0),  # type: ignore[arg-type]
        "must be an int",
        lambda _: Integers(9).encode(np.arange(3), RING, 2),
    ),
    "weight": Case(
        lambda: Integers(9).encode(np.arange(3), ODD, 200),
        "smaller weight, or an encoding with a smaller clip or max",
        lambda _: (
            Integers(9).encode(np.arange(3), ODD, 100),
            Integers(5).encode(np.arange(3), ODD, 200),
        ),
    ),
    "element outside": Case(
        lambda: encoded(np.array([10]), Integers(9)),
        r"raise max, or .* with FixedPoint\(clip, fractional_bits=0\)",
        lambda _: (
            encoded(np.array([10]), Integers(10)),
            encoded(np.array([-10.0]), FixedPoint(16.0, fractional_bits=0)),
        ),
    ),
    "max": Case(
        lambda: Integers(0),
        r"lie between (\d+) and (\d+)",
        lambda m: [Integers(whole(m[1])), Integers(whole(m[2]))],
    ),
    "elements of a wrong dtype": Case(
        lambda: check_encoded(np.zeros(2, np.int64), RING),  # type: ignore[arg-type]
        "its encode must return a vector of (.*)$",
        lambda m: check_encoded(np.zeros(2, m[1]), RING),
    ),
    "elements of R": Case(
        lambda: check_encoded(np.array([1009], np.uint64), ODD),
        "reduce its elements modulo R",
        lambda _: check_encoded(np.array([1009 % 1009], np.uint64), ODD),
    ),
    "sum of a wrong dtype": Case(
        lambda: Integers(9).decode(np.zeros(2, np.uint32), RING),
        "must be (.*) in 2",
        lambda m: Integers(9).decode(np.zeros(2, m[1]), RING),
    ),
    "short entropy": Case(
        lambda: take(lambda size: b"", 16),
        "pass one that returns as many as asked, such as os.urandom",
        lambda _: take(os.urandom, 16),
    ),
    "modulus of another type": Case(lambda: Ring(5.0), "must be an int", lambda _: Ring(5)),  # type: ignore[arg-type]
    "modulus 1": Case(lambda: Ring(1), r"needs at least (\d)", lambda m: Ring(whole(m[1]))),
    "large modulus": Case(
        lambda: Ring((1 << 63) + 1),
        r"a power of two up to 2\^64 or any other modulus up to 2\^62",
        lambda _: [Ring(1 << 64), Ring((1 << 62) - 1)],
    ),
    "sample of text": Case(
        lambda: FixedPoint.suggest(np.array(["a"]), 3),
        "typical elements",
        lambda _: FixedPoint.suggest(NORMAL, 3),
    ),
    "quantile": Case(
        lambda: FixedPoint.suggest(NORMAL, 3, quantile=1.5),
        "above 0 and up to 1",
        lambda _: FixedPoint.suggest(NORMAL, 3, quantile=1),
    ),
    "sample that is not finite": Case(
        lambda: FixedPoint.suggest(np.array([1.0, np.inf]), 3),
        "element (1) of the sample .* leave it out",
        lambda m: FixedPoint.suggest(np.delete([1.0, np.inf], whole(m[1])), 3),
    ),
    "zeros": Case(
        lambda: FixedPoint.suggest(np.zeros(3), 3),
        "not all 0",
        lambda _: FixedPoint.suggest(NORMAL, 3),
    ),
    "nearly all zeros": Case(
        lambda: FixedPoint.suggest(np.array([0.0] * 99 + [1.0]), 3, quantile=0.5),
        r"a larger quantile, such as (\S+)$",
        lambda m: FixedPoint.suggest(np.array([0.0] * 99 + [1.0]), 3, quantile=number(m[1])),
    ),
    "no arrays": Case(lambda: flatten([]), "at least one", lambda _: flatten([1.0])),
    "one array": Case(
        lambda: flatten("ab"),
        "arrays by name, or a list of them",
        lambda _: (flatten({"a": np.ones(2)}), flatten([np.ones(2)])),
    ),
    "names": Case(
        lambda: flatten({5: np.ones(2)}),  # type: ignore[dict-item]
        "convert (5)",
        lambda m: flatten({str(whole(m[1])): np.ones(2)}),
    ),
    "bfloat16": Case(
        lambda: flatten({"a": Torch()}),
        r"\.float\(\)",
        lambda _: flatten({"a": Torch().float()}),
    ),
    "masked array of a model": Case(
        lambda: flatten({"a": MASKED}),
        r"\.filled\(value\)",
        lambda _: flatten({"a": MASKED.filled(0.0)}),
    ),
    "nested arrays": Case(
        lambda: flatten({"a": [np.ones(2)]}),
        "under a name of its own",
        lambda _: flatten({"a0": np.ones(2)}),
    ),
    "complex": Case(
        lambda: flatten({"a": np.ones(2, complex), "b": np.ones(1)}),
        "convert it, or leave it out",
        lambda _: (flatten({"a": np.ones(2, complex).real}), flatten({"b": np.ones(1)})),
    ),
    "large integers": Case(
        lambda: flatten({"a": np.array([1 << 60]), "b": np.ones(1)}),
        "leave it out",
        lambda _: flatten({"b": np.ones(1)}),
    ),
    "other arrays": Case(
        lambda: SCHEMA.unflatten(FLAT, {"a": np.ones(3), "b": np.arange(3)}),
        "the arrays that were flattened",
        lambda _: SCHEMA.unflatten(FLAT, {"a": np.ones(2), "b": np.arange(3)}),
    ),
    "other vector": Case(
        lambda: SCHEMA.unflatten(FLAT[:3]),
        "the sum or mean of such vectors",
        lambda _: (SCHEMA.unflatten(FLAT + FLAT), SCHEMA.unflatten((FLAT + FLAT) / 2)),
    ),
    "sum beyond a dtype": Case(
        lambda: UNSIGNED.unflatten(np.array([300.0, 0.0])),
        "the mean instead of the sum, or flatten a wider dtype",
        lambda _: (
            UNSIGNED.unflatten(np.array([300.0, 0.0]) / 2),
            flatten([np.zeros(2, np.uint16)])[1].unflatten(np.array([300.0, 0.0])),
        ),
    ),
}  # fmt: skip
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


def literals(call: ast.AST) -> Iterator[str]:
    """Yield the texts in the message of a raise or a warning."""
    for node in ast.walk(call):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def messages() -> Iterator[tuple[str, str]]:
    """Yield the longest text, and the place, of every error and warning in this package."""
    for path in sorted(CODE.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Raise(exc=ast.Call(func=ast.Name(id="ParameterError")) as call):
                    pass
                case ast.Call(func=ast.Attribute(attr="warn")) as call:
                    pass
                case _:
                    continue
            yield max(literals(call.args[0]), key=len), f"{path.name}:{node.lineno}"


@pytest.mark.parametrize(("text", "place"), [*messages()])
def test_every_message_has_a_case(text: str, place: str) -> None:
    assert any(text in message(name) for name in CASES), f"{place} has no case here"


@pytest.mark.parametrize("name", [name for name in SUGGESTIONS if "few steps" in name])
def test_warning_of_a_suggestion_is_at_the_caller(name: str) -> None:
    with pytest.warns(PrecisionWarning) as caught:
        CASES[name].wrong()
    assert [one.filename for one in caught] == [__file__]


@pytest.mark.parametrize("name", CASES)
def test_numbers_of_a_remedy_have_no_thousands_separator(name: str) -> None:
    assert re.search(r"\d,\d{3}\b", message(name)) is None
