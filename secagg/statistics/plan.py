"""Plan of a study: columns, statistics and least counts, agreed on before any data is seen."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from secagg._check import check_integer, check_kind, is_integer
from secagg._printable import in_short
from secagg.errors import ParameterError
from secagg.statistics.columns import Category, Column, Number, check_name
from secagg.statistics.counts import Counts, Histogram, Indicators
from secagg.statistics.disclosure import check_cells
from secagg.statistics.glm import Logistic, Poisson
from secagg.statistics.layout import Field, Step, Sums
from secagg.statistics.linear import Covariance, Linear
from secagg.statistics.moments import Moments
from secagg.statistics.noise import NoisedStep, Privacy, scale
from secagg.statistics.quantiles import Quantiles
from secagg.statistics.statistic import Frame, Statistic
from secagg.statistics.survival import Survival

_ALL = (Moments, Counts, Histogram, Quantiles, Covariance, Linear, Logistic, Poisson, Survival)
KINDS: dict[str, type[Any]] = {kind.kind: kind for kind in _ALL}
_EXTREMES = "a minimum or maximum is the number of a single person; plan quantiles instead"
_TOTALS = (Field("records", (1,)), Field("sites", (1,)))
_LEAST = ("min_count", "min_sites", "records_per_parameter")
_json = partial(json.dumps, ensure_ascii=False)
_Made = TypeVar("_Made")
_LARGEST = 1 << 24  # elements of a step's vector


@dataclass(frozen=True)
class Plan:
    """Statistics of a study, the columns, and the least counts behind a published number.

    Parameters
    ----------
    name : str
        Name of the study.
    columns : mapping of str to Number or Category
    statistics : sequence
        `Moments`, `Counts`, `Histogram`, `Quantiles`, `Covariance`, `Linear`, `Logistic`,
        `Poisson` and `Survival`, each different.
    min_count : int
        Least number of records behind a published number, 1 to 10^6.
    min_sites : int
        Least number of sites with such records, 1 to 10^6. With 2 sites, each site learns the
        other site's numbers by a subtraction.
    records_per_parameter : int
        Least number of records for each parameter of a regression, 1 to 10^6.
    privacy : Privacy, optional
        Noise on every sum, by one-shot sums. None: the sums are exact.

    Raises
    ------
    ParameterError
        A part is invalid; the message has the part and the remedy.
    """

    name: str
    columns: Mapping[str, Column] = field(hash=False)
    statistics: Sequence[Statistic]
    min_count: int = 5
    min_sites: int = 3
    records_per_parameter: int = 10
    privacy: Privacy | None = None

    def __post_init__(self) -> None:
        check_name("name", self.name)
        for name in _LEAST:
            check_integer(name, getattr(self, name), 1, 10**6)
        check_kind("columns", self.columns, Mapping, "a mapping of name to column")
        for name, column in self.columns.items():
            check_name("the name of a column", name)
            check_kind(f"column {name!r}", column, (Number, Category), "a Number or a Category")
        object.__setattr__(self, "columns", dict(sorted(self.columns.items())))
        object.__setattr__(self, "statistics", tuple(self.statistics))
        for place, one in enumerate(self.statistics, start=1):
            check_kind(f"statistic {place}", one, Statistic, f"one of {list(KINDS)}")
            try:
                one.check(self.frame)
            except ParameterError as error:
                raise ParameterError(f"statistic {place}: {error}") from None
        names = [one.name for one in self.statistics]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if not names or repeated:
            raise ParameterError(
                f"the plan has {len(names)} statistics, {repeated} more than once; list "
                "different statistics"
            )
        unused = set(self.columns) - set(_mentioned(self.statistics))
        if unused:
            raise ParameterError(
                f"no statistic uses the columns {sorted(unused)}; leave them out, since a site "
                "counts the missing values of each"
            )
        if self.privacy is None:
            check_cells([one.wheres(self.frame) for one in self.statistics])
        first = self.step([]).length
        if first > _LARGEST:
            raise ParameterError(
                f"the first step has {first:,} numbers; plan at most {_LARGEST:,}, with fewer "
                "cells or groups"
            )

    @property
    def frame(self) -> Frame:
        """Columns and least counts."""
        least = {name: getattr(self, name) for name in _LEAST}
        return Frame(self.columns, **least, noised=self.privacy is not None)

    @property
    def parts(self) -> tuple[Statistic, ...]:
        """All that is summed: missing and clipped values, then the statistics."""
        return (Indicators(tuple(self.columns)), *self.statistics)

    def step(self, past: Sequence[Sequence[Sums]]) -> Step:
        """Return the next step, with fields that are named by place; without any at the end.

        Parameters
        ----------
        past : sequence
            Sums of the steps before, for each part; [] before the first step.
        """
        found, names = list[Field](), [part.name for part in self.parts]
        for place, part in enumerate(self.parts):
            fields = part.fields(self.frame, past[place] if past else ())
            if self.privacy is not None:
                norms = part.norms(self.frame)
                fields = [one for one in fields if one.name in norms]
                steps = getattr(part, "steps", 1) * len(fields)
                rho = self.privacy.rho * self.privacy.part(part.name, names)
                fields = [
                    scale(self.privacy, one, rho / steps, *norms[one.name]) for one in fields
                ]
            found += [replace(one, name=f"{place}.{one.name}") for one in fields]
        if self.privacy is not None:
            return NoisedStep(found)
        # records and sites in every step: a site that leaves during a study is noticed
        return Step([*_TOTALS, *found] if found else [])

    def to_bytes(self) -> bytes:
        """Return canonical bytes: JSON with sorted keys and no spaces."""
        return _json(self._described(), sort_keys=True, separators=(",", ":")).encode()

    @property
    def digest(self) -> bytes:
        """SHA-256 of the canonical bytes."""
        return hashlib.sha256(b"secagg/1 statistics plan" + self.to_bytes()).digest()

    def to_json(self) -> str:
        """Return the plan as JSON to read."""
        return _json(self._described(), indent=2) + "\n"

    def to_toml(self) -> str:
        """Return the plan as TOML."""
        described = self._described()
        columns, statistics = described.pop("columns"), described.pop("statistics")
        tables = list[tuple[str, dict[str, Any]]]()
        if self.privacy is not None:
            privacy = described.pop("privacy")
            weights = privacy.pop("weights")
            tables += [("[privacy]", privacy), ("[privacy.weights]", weights)]
        tables += [(f"[columns.{_key(name)}]", column) for name, column in columns.items()]
        tables += [("[[statistics]]", one) for one in statistics]
        lines = _toml(described)
        for head, table in tables:
            lines += ["", head, *_toml(table)]
        return "\n".join(lines) + "\n"

    def _described(self) -> dict[str, Any]:
        return {
            "name": self.name,
            **{name: int(getattr(self, name)) for name in _LEAST},
            **({} if self.privacy is None else {"privacy": _values(self.privacy)}),
            "columns": {name: _values(column) for name, column in self.columns.items()},
            "statistics": [{"kind": one.kind, **_values(one)} for one in self.statistics],
        }

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the plan of canonical bytes.

        Raises
        ------
        ParameterError
            The bytes are no plan, or not the plan's canonical bytes.
        """
        try:
            plan = cls.from_json(data.decode())
        except UnicodeDecodeError:
            raise ParameterError("the plan is no UTF-8 text; take Plan.to_bytes()") from None
        if plan.to_bytes() != data:
            raise ParameterError("the plan's bytes are not canonical; take Plan.to_bytes()")
        return plan

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the plan of a JSON text; see `from_toml`."""
        return cls._of("JSON", lambda given: json.loads(given, object_pairs_hook=_once), text)

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Return the plan of a TOML text.

        Raises
        ------
        ParameterError
            The text is no TOML, or a field is unknown, missing or invalid.
        """
        return cls._of("TOML", tomllib.loads, text)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Return the plan of a file: JSON if the name ends in .json, else TOML."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ParameterError(
                f"the plan {path} cannot be read: {error}; write it anew"
            ) from None
        return cls.from_json(text) if path.suffix.lower() == ".json" else cls.from_toml(text)

    @classmethod
    def _of(cls, language: str, parse: Callable[[str], object], text: str) -> Self:
        try:
            described = parse(text)
        except (ValueError, RecursionError) as error:
            raise ParameterError(f"the plan is no {language}: {error}; correct it") from None
        given = _fields("the plan", described, cls)
        check_kind("columns of the plan", given["columns"], dict, "a table of columns")
        check_kind("statistics of the plan", given["statistics"], list, "a list")
        given["columns"] = {name: _column(name, one) for name, one in given["columns"].items()}
        if "privacy" in given:
            given["privacy"] = _made("privacy", Privacy, given["privacy"])
        given["statistics"] = [_statistic(*one) for one in enumerate(given["statistics"], 1)]
        return cls(**given)

    def __str__(self) -> str:
        """Return what everybody learns, in words."""
        several = max(getattr(one, "steps", 1) for one in self.statistics) > 1
        sees = "as it is, also sums over few records."
        if self.privacy is not None:
            sees = f"with noise. {self.privacy.words()}"
        hidden = (
            f"In the result, numbers that stand for fewer than {self.min_count} records or "
            f"{self.min_sites} sites are left out, but for the numbers of missing values, also "
            "in a group. The server sees all these numbers."
        )
        if self.privacy is not None:
            hidden = f"In the result, noised numbers below {self.min_count} are left out."
        lines = [
            f"Study {self.name!r}, plan {self.digest.hex()[:16]}",
            "",
            f"The server learns each sum over all sites, {sees} A site's own numbers leave the "
            "site only under masks.",
            *(["The sites learn the sums of all steps but the last."] if several else []),
            hidden,
            "",
            "Readers of the result learn:",
            *(f"- {one.words(self.frame)}" for one in self.parts),
            "",
            "From the columns:",
        ]
        for name, column in self.columns.items():
            if isinstance(column, Number):
                values = f"{column.low} to {column.high} in steps of {column.resolution}"
            else:
                values = ", ".join(column.values[:20]) + " …" * (len(column.values) > 20)
            lines.append(f"- {name}: {values}")
        return "\n".join(lines)


def _mentioned(statistics: Sequence[Statistic]) -> list[str]:
    """Return all names that the fields of statistics have."""
    values = [value for one in statistics for value in vars(one).values()]
    several = [name for value in values if isinstance(value, tuple) for name in value]
    return several + [value for value in values if isinstance(value, str)]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of a JSON object, unless a field is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ParameterError(f"the plan has the fields {twice} twice; write each field once")
    return found


def _values(part: Any) -> dict[str, Any]:
    """Return the fields of a part for JSON, without fields that are None."""
    named = {one.name: getattr(part, one.name) for one in fields(part)}
    # numpy's integers are no JSON
    plain = {k: int(v) if is_integer(v) else v for k, v in named.items()}
    return {name: value for name, value in plain.items() if value is not None}


def _fields(what: str, described: object, kind: type[Any]) -> dict[str, Any]:
    """Return the described fields of a part, if all are known and none is missing."""
    if not isinstance(described, dict):
        raise ParameterError(f"{what} is {in_short(described)}; write a table of fields")
    known = [one.name for one in fields(kind)]
    unknown = sorted(set(described) - set(known))
    needed = {one.name for one in fields(kind) if one.default is one.default_factory is MISSING}
    missing = sorted(needed - set(described))
    if unknown or missing:
        raise ParameterError(
            f"{what} has the unknown fields {unknown} and lacks {missing}; the fields are "
            f"{known}"
        )
    return dict(described)


def _column(name: str, described: object) -> Column:
    what = f"column {name!r}"
    kind: type[Column] = (
        Number if isinstance(described, dict) and "low" in described else Category
    )
    return _made(what, kind, described)


def _statistic(place: int, described: object) -> Statistic:
    what = f"statistic {place}"
    if not isinstance(described, dict):
        raise ParameterError(f"{what} is {in_short(described)}; write a table of fields")
    kind = described.get("kind")
    if kind in ("min", "max", "minimum", "maximum", "range", "extremes"):
        raise ParameterError(f"{what}: {_EXTREMES}")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ParameterError(f"{what} has kind {in_short(kind)}; the kinds are {list(KINDS)}")
    rest = {name: value for name, value in described.items() if name != "kind"}
    made: Statistic = _made(what, KINDS[kind], rest)
    return made


def _made(what: str, kind: type[_Made], described: object) -> _Made:
    given = _fields(what, described, kind)
    try:
        return kind(**given)
    except ParameterError as error:
        raise ParameterError(f"{what}: {error}") from None
    except TypeError:
        raise ParameterError(
            f"{what} has a field of a wrong type; see {kind.__name__}"
        ) from None


def _toml(table: Mapping[str, Any]) -> list[str]:
    # strings, integers and lists of both look the same in JSON
    return [f"{_key(key)} = {_json(value)}" for key, value in table.items()]


def _key(key: str) -> str:
    return key if re.fullmatch(r"[\w-]+", key, re.ASCII) else _json(key)
