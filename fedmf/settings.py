"""Declared settings: the type and range of every hyper-parameter, validated in one place.

A class that inherits from `Settings` declares a setting by its annotation::

    @dataclass(frozen=True, kw_only=True)
    class FedMF(Settings):
        k: Count = 20
        reg: NotNegative = 0.12
        update: Literal["paper", "ridge"] = "ridge"

Numbers with a range, ``bool``, ``Literal`` and objects with a required method (`Has`) are
validated. A class validates anything else, such as relations between settings, in the method
`_check`. The function `check` validates the arguments of functions by the same declarations.
"""

from __future__ import annotations

import copy
import math
import sys
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter, get_annotations, signature
from types import NoneType, SimpleNamespace
from typing import (
    Annotated,
    ClassVar,
    Literal,
    Self,
    TypeGuard,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from fedmf.errors import SettingError


@dataclass(frozen=True)
class Range:
    """Interval of the valid numbers of a setting; NaN, infinity and bool are never valid.

    Parameters
    ----------
    kind : type, int for whole numbers only, float for any real number
    low, high : float, ends of the interval
    ends : a bracket for each end, square if the interval includes the end, else round
    """

    kind: type[int] | type[float]
    low: float
    high: float = math.inf
    ends: Literal["[]", "[)", "(]", "()"] = "[]"

    def check(self, name: str, value: object) -> None:
        """Raise SettingError unless the setting `name` has a number in the interval."""
        if is_whole(value) or (self.kind is float and is_number(value)):
            above = value >= self.low if self.ends[0] == "[" else value > self.low
            below = value <= self.high if self.ends[1] == "]" else value < self.high
            if above and below and value != math.inf:
                return
        raise SettingError(f"{name} = {value!r} must be {self}")

    def __str__(self) -> str:
        if self.high == math.inf and self.kind is float and self.ends[0] == "(":
            return "finite and positive" if self.low == 0 else f"finite and above {self.low:g}"
        if self.high == math.inf:
            what = "an integer of" if self.kind is int else "finite and"
            return f"{what} at least {self.low:g}"
        what = "an integer" if self.kind is int else "a number"
        return f"{what} in {self.ends[0]}{self.low:g}, {self.high:g}{self.ends[1]}"


@dataclass(frozen=True)
class Has:
    """Declaration of a setting that must be an object with a certain method.

    Parameters
    ----------
    method : name of the method, such as "sum" for an aggregation
    such : example of a valid object, which the error message recommends
    """

    method: str
    such: str

    def check(self, name: str, value: object) -> None:
        """Raise SettingError unless `value` has the method and is not a class."""
        if isinstance(value, type) or not callable(getattr(value, self.method, None)):
            raise SettingError(f"{name} = {value!r} must be an object such as {self.such}")


Count = Annotated[int, Range(int, 1)]
"""Integer of at least 1, such as a number of rounds."""
Whole = Annotated[int, Range(int, 0)]
"""Integer of at least 0."""
Seed = Whole
"""Seed of a random generator."""
Positive = Annotated[float, Range(float, 0, ends="(]")]
"""Finite number x > 0."""
NotNegative = Annotated[float, Range(float, 0)]
"""Finite number x ≥ 0."""
BelowOne = Annotated[float, Range(float, 0, 1, "[)")]
"""Number 0 ≤ x < 1, such as the probability of a dropout, or a decay."""
UpToOne = Annotated[float, Range(float, 0, 1, "(]")]
"""Number 0 < x ≤ 1, such as a share of the users that may be all of them."""
ProperFraction = Annotated[float, Range(float, 0, 1, "()")]
"""Number 0 < x < 1, such as the share of the test part in a split."""


class Settings:
    """Base class of objects with declared settings: dataclasses, or classes with `__init__`.

    The settings are the parameters of the constructor; each is stored in the attribute of the
    same name. A dataclass validates them automatically. Any other class annotates the
    parameters and calls ``self.__post_init__()`` at the end of `__init__`. Numpy scalars become
    Python numbers, because an int8 overflows, a float32 computes in 32 bits, and neither can be
    written as JSON.

    A subclass inherits the declarations of the bases, also if the constructor takes
    ``**settings`` and passes them on. An annotation that cannot be resolved, such as a name
    that is imported for type checkers alone, validates nothing.

    `set_params` also changes frozen dataclasses, so do not use them as keys of a dictionary.
    Raises SettingError if a setting is out of range. The message has the name and value of the
    setting, and the range.
    """

    _declared: ClassVar[dict[str, object]]

    @classmethod
    def _names(cls) -> list[str]:
        """Return the constructor's parameter names, and the names behind ``**settings``."""
        names: dict[str, None] = {}
        for base in cls.__mro__:
            if "__init__" not in vars(base):
                continue
            own = list(signature(vars(base)["__init__"]).parameters.values())[1:]
            variadic = Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD
            names.update((one.name, None) for one in own if one.kind not in variadic)
            if all(one.kind is not Parameter.VAR_KEYWORD for one in own):
                break
        return list(names)

    @classmethod
    def _declarations(cls) -> dict[str, object]:
        """Return the declarations of class and bases, each read in the module of the base."""
        if "_declared" not in vars(cls):
            found: dict[str, object] = {}
            for base in reversed(cls.__mro__):
                found |= _own_declarations(base)
            cls._declared = dict.fromkeys(cls._names()) | found
        return cls._declared

    def __post_init__(self) -> None:
        held = vars(self)
        for name, declared in self._declarations().items():
            # otherwise the name is a property, and a part has checked the value
            if name in held:
                held[name] = _python_number(held[name])
                check(declared, **{name: held[name]})
        self._check()

    def _check(self) -> None:
        """Validate relations between settings; raises SettingError."""

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Return the settings by name, as scikit-learn does.

        With `deep`, the settings of a part, such as a trainer's model, are added under names
        of the form ``part__setting``.
        """
        found = {name: getattr(self, name) for name in self._names()}
        if deep:
            for name, part in list(found.items()):
                if isinstance(part, Settings):
                    found.update({f"{name}__{one}": v for one, v in part.get_params().items()})
        return found

    def set_params(self, **params: object) -> Self:
        """Change settings in place and return this object; after an error nothing is changed.

        The name ``part__setting`` changes a setting of a part, such as a trainer's model. The
        part is copied first, as other objects may share it. Fitted attributes stay. Raises
        SettingError if a setting is unknown or out of range.
        """
        wanted = self.get_params(deep=False)
        known = list(wanted)
        of_parts: dict[str, dict[str, object]] = {}
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in known:
                raise SettingError(
                    f"{name!r} is no setting of {type(self).__name__}: choose from "
                    f"{', '.join(known) or 'none'}"
                )
            if inner:
                of_parts.setdefault(name, {})[inner] = value
            else:
                wanted[name] = value
        for name, changes in of_parts.items():
            part = wanted[name]
            if not isinstance(part, Settings):
                raise SettingError(f"{name} = {part!r} has no settings: pass another {name}")
            wanted[name] = copy.copy(part).set_params(**changes)
        made = type(self)(**wanted)
        for name in list(vars(self)):
            if isinstance(getattr(type(self), name, None), cached_property):
                del vars(self)[name]  # computed from the old settings
        vars(self).update(vars(made))
        return self


def check(declared: object, **values: object) -> None:
    """Validate arguments by a declaration, such as ``check(Count, k=k)``; raises SettingError.

    The declaration is bool, a Literal, or an `Annotated` type with validators such as `Range`
    and `Has`. It may be the union of such a declaration with None. Any other declaration
    accepts every value.
    """
    for name, value in values.items():
        if NoneType in get_args(declared):
            options = [one for one in get_args(declared) if one is not NoneType]
            if value is not None and len(options) == 1:
                check(options[0], **{name: value})
        elif get_origin(declared) is Annotated:
            for one in get_args(declared)[1:]:
                one.check(name, value)
        elif get_origin(declared) is Literal and value not in get_args(declared):
            choices = ", ".join(map(repr, get_args(declared)))
            raise SettingError(f"{name} = {value!r} must be one of {choices}")
        elif declared is bool and not isinstance(value, bool):
            raise SettingError(f"{name} = {value!r} must be True or False")


def _own_declarations(cls: type) -> dict[str, object]:
    """Return the annotations of a class's own fields, or of the class's own constructor."""
    # the constructor of a dataclass has the fields of all bases, so it is not used there
    init = vars(cls).get("__init__", object.__init__)
    own = get_annotations(cls if "__dataclass_fields__" in vars(cls) else init)
    module = getattr(sys.modules.get(cls.__module__), "__dict__", {})
    return {name: _resolved(one, module) for name, one in own.items() if name != "return"}


def _resolved(annotation: object, module: dict[str, object]) -> object:
    """Return an annotation as an object; None for an annotation with an unknown name."""
    source = SimpleNamespace(__annotations__={"it": annotation})
    try:
        return get_type_hints(source, module, include_extras=True)["it"]
    except (AttributeError, NameError, SyntaxError, TypeError):
        return None


def _python_number(value: object) -> object:
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.floating):
        # .1 of 32 bits becomes the decimal .1, not the nearest number of 32 bits
        return float(str(value))
    return value


def is_whole(value: object) -> TypeGuard[int]:
    """Return True for an integer, also of numpy, but not for a bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[int | float]:
    """Return True for an integer or a float, also of numpy, but not for a bool."""
    return is_whole(value) or isinstance(value, float | np.floating)


def part_of(fraction: float, whole: int) -> int:
    """Return ⌈fraction · whole⌉, without the rounding errors of floating point.

    In floating point 0.07 · 100 is slightly more than 7, so the plain ceiling would be 8.
    """
    return math.ceil(round(fraction * whole, 6))
