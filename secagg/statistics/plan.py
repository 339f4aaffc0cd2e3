"""Plan of a study: columns, statistics and least counts, agreed on before any data is seen."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, Self, TypeVar

from secagg._check import check_integer, check_kind, is_integer, repeated
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
KINDS: dict[str, type[Statistic]] = {kind.kind: kind for kind in _ALL}
_EXTREMES = "a minimum or maximum is the number of a single person; plan quantiles instead"
_TOTALS = (Field("records", (1,)), Field("sites", (1,)))
_LEAST = ("min_count", "min_sites", "records_per_parameter")
_TEXTS = {"operator": "Operator of the server", "deletion": "Deletion of tables and sums"}
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
        Noise on every sum, of helpers or of the sites. None: the sums are exact.
    operator, deletion : str, optional
        Who runs the server, and when tables and sums are deleted, for the text of the plan:
        1 to 200 printable characters each.

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
    operator: str | None = None
    deletion: str | None = None

    def __post_init__(self) -> None:
        for name in ("name", *(text for text in _TEXTS if getattr(self, text) is not None)):
            check_name(name, getattr(self, name))
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
        if not names or repeated(names):
            raise ParameterError(f"statistics are {names}; list 1 or more, all different")
        if unused := set(self.columns) - set(mentioned(self.statistics)):
            # a site would count the missing values of each
            raise ParameterError(f"no statistic uses {sorted(unused)}; leave these columns out")
        if self.privacy is None:
            check_cells([one.wheres(self.frame) for one in self.statistics])
        if (first := self.step([]).length) > _LARGEST:
            raise ParameterError(f"step 1 has {first:,} numbers, over {_LARGEST:,}; plan fewer")

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
                fields = [f for f in fields if f.name in norms]
                steps = getattr(part, "steps", 1) * len(fields)
                rho = self.privacy.rho * self.privacy.part(part.name, names)
                fields = [scale(self.privacy, f, rho / steps, *norms[f.name]) for f in fields]
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
        privacy = described.pop("privacy", {})
        tables = [("[privacy]", privacy), ("[privacy.weights]", privacy.pop("weights", {}))]
        tables += [(f"[columns.{_key(name)}]", column) for name, column in columns.items()]
        tables += [("[[statistics]]", one) for one in statistics]
        lines = _toml(described)
        for head, table in tables:
            lines += ["", head, *_toml(table)] if table else []
        return "\n".join(lines) + "\n"

    def _described(self) -> dict[str, Any]:
        described = asdict(self, dict_factory=_plain)
        columns, parts = described.pop("columns"), described.pop("statistics")
        pairs = zip(self.statistics, parts, strict=True)
        statistics = [{"kind": one.kind, **part} for one, part in pairs]
        return described | {"columns": columns, "statistics": statistics}

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the plan of canonical bytes.

        Raises
        ------
        ParameterError
            The bytes are no plan, or not the plan's canonical bytes.
        """
        plan = cls.from_json(data.decode(errors="replace"))
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
            raise ParameterError(f"plan {path} cannot be read: {error}; correct it") from None
        return cls.from_json(text) if path.suffix.lower() == ".json" else cls.from_toml(text)

    @classmethod
    def _of(cls, language: str, parse: Callable[[str], object], text: str) -> Self:
        try:
            described = parse(text)
        except (ValueError, RecursionError) as error:
            raise ParameterError(f"the plan is no {language}: {error}; correct it") from None
        given = {"columns": {}, "statistics": [], **_table("the plan", described)}
        check_kind("columns of the plan", given["columns"], dict, "a table of columns")
        check_kind("statistics of the plan", given["statistics"], list, "a list")
        given["columns"] = {name: _column(name, one) for name, one in given["columns"].items()}
        if "privacy" in given:
            given["privacy"] = _made("privacy", Privacy, given["privacy"])
        given["statistics"] = [_statistic(*one) for one in enumerate(given["statistics"], 1)]
        return _made("the plan", cls, given)

    def __str__(self) -> str:
        """Return what everybody learns, in words."""
        several = max(getattr(one, "steps", 1) for one in self.statistics) > 1
        if self.privacy is not None:
            sees = f"with noise. {self.privacy.words()}"
            hidden = f"In the result, noised numbers below {self.min_count} are left out."
        else:
            sees = "as it is, also sums over few records."
            hidden = (
                f"In the result, numbers that stand for fewer than {self.min_count} records or "
                f"{self.min_sites} sites are left out, but for the numbers of missing values, "
                "also in a group. The server sees all these numbers."
            )
        told = [(words, getattr(self, name)) for name, words in _TEXTS.items()]
        lines = [
            f"Study {self.name!r}, plan {self.digest.hex()[:16]}",
            *(f"{words}: {text}" for words, text in told if text is not None),
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
            *(f"- {name}: {column.words()}" for name, column in self.columns.items()),
        ]
        return "\n".join(lines)


def mentioned(statistics: Sequence[Statistic]) -> list[str]:
    """Return all names that the fields of statistics have."""
    values = [value for one in statistics for value in vars(one).values()]
    several = [name for value in values if isinstance(value, tuple) for name in value]
    return several + [value for value in values if isinstance(value, str)]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of a JSON object, unless a field is there twice."""
    if twice := repeated(name for name, _ in pairs):
        raise ParameterError(f"the plan has the fields {twice} twice; write each field once")
    return dict(pairs)


def _plain(named: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of a part for JSON, without fields that are None."""
    # numpy's integers are no JSON
    plain = ((name, int(value) if is_integer(value) else value) for name, value in named)
    return {name: value for name, value in plain if value is not None}


def _column(name: str, described: object) -> Column:
    number = isinstance(described, dict) and {"low", "high"} & described.keys()
    kind: type[Column] = Number if number else Category
    return _made(f"column {name!r}", kind, described)


def _statistic(place: int, described: object) -> Statistic:
    what, given = f"statistic {place}", _table(f"statistic {place}", described)
    kind = given.pop("kind", None)
    if kind in ("min", "max", "minimum", "maximum", "range", "extremes"):
        raise ParameterError(f"{what}: {_EXTREMES}")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ParameterError(f"{what} has kind {in_short(kind)}; the kinds are {list(KINDS)}")
    return _made(what, KINDS[kind], given)


def _table(what: str, described: object) -> dict[str, Any]:
    if not isinstance(described, dict):
        raise ParameterError(f"{what} is {in_short(described)}; write a table of fields")
    return dict(described)


def _made(what: str, kind: type[_Made], described: object) -> _Made:
    """Return a part of the described fields."""
    given, known = _table(what, described), signature(kind).parameters
    unknown = sorted(set(given) - set(known))
    lacking = [k for k, one in known.items() if one.default is one.empty and k not in given]
    if unknown or lacking:
        raise ParameterError(
            f"{what} has the unknown fields {unknown} and lacks {lacking}; the fields are "
            f"{list(known)}"
        )
    try:
        return kind(**given)
    except (ParameterError, TypeError) as error:
        raise ParameterError(f"{what}: {error}") from None


def _toml(table: Mapping[str, Any]) -> list[str]:
    # strings, integers and lists of both look the same in JSON
    return [f"{_key(key)} = {_json(value)}" for key, value in table.items()]


def _key(key: str) -> str:
    return key if re.fullmatch(r"[\w-]+", key, re.ASCII) else _json(key)
