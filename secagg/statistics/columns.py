"""Columns of a plan: numbers on a grid, and categories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

from secagg._check import is_real
from secagg._printable import in_short
from secagg.errors import ParameterError

MAX_UNITS = (1 << 31) - 1
"""Largest number of steps of a grid, so that cubes and products stay exact."""
MAX_PLACES = 1 << 51
"""Largest ratio of a value to a step of the grid, so that a float64 has a single point."""
_MAX_VALUES = 10_000

Real: TypeAlias = int | float | str | Decimal


def exact(what: str, value: object) -> Fraction:
    """Return a decimal number exactly: 0.1 is one tenth.

    Raises
    ------
    ParameterError
        The value is no finite number with at most 30 digits.
    """
    try:
        number = Decimal(str(value)) if is_real(value) else Decimal(value)  # type: ignore[arg-type]
    except (InvalidOperation, TypeError, ValueError):
        number = Decimal("NaN")
    large = len(number.as_tuple().digits) > 30 or not -30 <= number.adjusted() <= 30
    if isinstance(value, bool) or not number.is_finite() or large:
        raise ParameterError(
            f"{what} is {in_short(value)}; write a number of at most 30 digits"
        )
    return Fraction(number)


def decimal_text(number: Fraction) -> str:
    """Return the shortest decimal text of a number that `exact` made."""
    # at most 60 places: digits and exponent of `exact` are at most 30 each
    scaled = number * 10**60
    if scaled.denominator != 1:
        raise ParameterError(f"{number} is no decimal number")
    text = f"{Decimal(f'{scaled.numerator}e-60'):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def listed(what: str, values: object) -> tuple[Any, ...]:
    """Return a list in order; raise `ParameterError` for a text, a set or a single value."""
    if isinstance(values, str | bytes | Mapping | Set) or not isinstance(values, Iterable):
        raise ParameterError(f"{what} is {in_short(values)}; give a list")
    return tuple(values)


def decimals(what: str, values: object) -> list[Fraction]:
    """Return a list of decimal numbers exactly; see `exact`."""
    return [exact(f"a value of {what}", value) for value in listed(what, values)]


def label(value: object) -> str:
    """Return the text of a category's value; 1, 1.0 and "1" are the same, and so is a flag."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value).strip()
    # pandas writes integers with gaps as 1.0
    return text.partition(".")[0] if re.fullmatch(r"-?\d+\.0+", text, re.ASCII) else text


def check_name(what: str, name: object) -> None:
    """Raise `ParameterError` unless `name` is a text of 1 to 200 printable characters."""
    if not isinstance(name, str) or not 0 < len(name) <= 200 or not name.isprintable():
        raise ParameterError(f"{what} is {in_short(name)}; take 1 to 200 printable characters")


@dataclass(frozen=True)
class Number:
    """Column of numbers on a grid from `low` to `high`.

    A site rounds each value to the grid. A value outside of the range counts as `low` or
    `high`, and the number of such values is a part of the result.

    Parameters
    ----------
    low, high : int, float, str or Decimal
        Smallest and largest value, low < high, decimal.
    resolution : int, float, str or Decimal
        Distance of two points of the grid, > 0. At most 2^31 − 1 distances fit in the range,
        and the range is a multiple of the distance.

    Raises
    ------
    ParameterError
        A number is invalid, or the grid does not fit.
    """

    low: Real
    high: Real
    resolution: Real = 1

    def __post_init__(self) -> None:
        for name in ("low", "high", "resolution"):
            text = decimal_text(exact(name, getattr(self, name)))
            object.__setattr__(self, name, text)  # equal columns have equal texts
        if self.range <= 0 or self.step <= 0:
            raise ParameterError(f"{self.words()}: take low < high, and a resolution above 0")
        steps = self.range / self.step
        if steps.denominator != 1 or steps > MAX_UNITS:
            raise ParameterError(
                f"{self.words()} has {float(steps):.6g} steps; choose a range of at most "
                f"{MAX_UNITS:,} whole steps"
            )
        if max(abs(self.start), abs(self.start + self.range)) > self.step * MAX_PLACES:
            raise ParameterError(
                f"{self.words()}: floats cannot tell these apart; choose a coarser resolution"
            )

    @cached_property
    def start(self) -> Fraction:
        """`low`, exactly."""
        return exact("low", self.low)

    @cached_property
    def step(self) -> Fraction:
        """`resolution`, exactly."""
        return exact("resolution", self.resolution)

    @cached_property
    def range(self) -> Fraction:
        """High − low, exactly."""
        return exact("high", self.high) - self.start

    @cached_property
    def units(self) -> int:
        """The grid's point `high`; the point `low` is 0."""
        return int(self.range / self.step)

    def words(self) -> str:
        """Return the values for the text of a plan."""
        return f"{self.low} to {self.high} in steps of {self.resolution}"

    def value(self, unit: Fraction | int) -> float:
        """Return the value at a point of the grid."""
        return float(self.start + self.step * unit)

    def point(self, what: str, value: object) -> int:
        """Return the point of the grid for a value of a plan, such as the edge of a bin.

        Raises
        ------
        ParameterError
            The value is no point of the grid.
        """
        unit = (exact(what, value) - self.start) / self.step
        if unit.denominator != 1 or not 0 <= unit <= self.units:
            raise ParameterError(f"{what} is {in_short(value)}; take a value of {self.words()}")
        return int(unit)


@dataclass(frozen=True)
class Category:
    """Column of values from a list.

    Parameters
    ----------
    values : sequence of str, int or bool
        The possible values, 1 to 10,000. Values are compared as texts, so 1 and "1" are the
        same. Any other value of a table counts as missing; the number of such values is a part
        of the result.

    Raises
    ------
    ParameterError
        The list is empty, too long, or has a value twice.
    """

    values: tuple[str, ...]

    def __init__(self, values: object) -> None:
        texts = tuple(label(value) for value in listed("values", values))
        for text in texts:
            check_name("a value of a category", text)
        if not 0 < len(texts) <= _MAX_VALUES or len(set(texts)) < len(texts):
            raise ParameterError(
                f"a category has {len(texts):,} values, {len(set(texts)):,} of them different; "
                f"list 1 to {_MAX_VALUES:,} values once each"
            )
        object.__setattr__(self, "values", texts)

    def words(self) -> str:
        """Return the first values for the text of a plan."""
        return ", ".join(self.values[:20]) + " …" * (len(self.values) > 20)


Column: TypeAlias = Number | Category
