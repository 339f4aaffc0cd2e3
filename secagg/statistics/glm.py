"""Logistic and Poisson regression by Newton's method, which is IRLS for both (Nelder, 1972)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from secagg._check import check_integer
from secagg.errors import ParameterError
from secagg.statistics.design import Design, Regression, Term, binary, numeric
from secagg.statistics.layout import Exact, Field
from secagg.statistics.linear import inverse_of
from secagg.statistics.records import Records
from secagg.statistics.statistic import Frame, Hidden, NoTable, Past, Table

Floats = NDArray[np.float64]
_Numbers: TypeAlias = tuple[tuple[int, ...], ...]
"""Numbers of each field of a step."""
_POINT = 40
"""Binary places of sums of real numbers, and of coefficients."""
_OFFSET = 1 << 70
"""Added to the gradient and to the loss of each record: no sum is negative."""
_BITS = 128
_CONDITION = 1 << 30  # of a Hessian whose sums have 40 binary places
_SEPARATED = "as if they separated the outcomes; leave one of them out, or merge values"
_TOLERANCE = 1e-9  # of the last move, which Newton's method squares


class _State(NamedTuple):
    """Next coefficients, which all sites compute from the sums so far by the plan's rule."""

    beta: tuple[int, ...]
    """Coefficients with 40 binary places, for terms of size 1; see `_scales`."""
    move: tuple[int, ...] = ()
    """Move to `beta` from the last accepted coefficients."""
    loss: int | None = None
    hessian: tuple[int, ...] = ()
    done: bool = False


@dataclass(frozen=True)
class _Iterated(Regression):
    """Common part of the two regressions."""

    steps: int = 12

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("steps", self.steps, 1, 15)

    def _start(self, mean: float) -> float:
        """Return the intercept that fits a mean without other terms."""
        raise NotImplementedError

    def _family(self, eta: Floats) -> tuple[Floats, Floats, Floats]:
        """Return cumulant function, mean and variance for linear predictors."""
        raise NotImplementedError

    def words(self, frame: Frame) -> str:
        """Return what everybody learns."""
        y, x = self.design(frame).y.name, ", ".join(self.x)
        return (
            f"{self.kind} regression of {y} on {x}, with standard errors; for these the server "
            f"learns sums over all sites in at most {self.steps + 1} steps, at coefficients "
            "that every site computes from the sums before"
        )

    def fields(self, frame: Frame, past: Past) -> list[Field]:
        """Return products of the terms, then gradient, Hessian and loss until convergence."""
        if not past:
            return super().fields(frame, past)
        design = self.design(frame)
        size = len(design.terms)
        sizes = {"gradient": size, "hessian": size * (size + 1) // 2, "loss": 1}
        with suppress(NoTable):
            design.judge(past[0], frame)
            if not self._state(design, past).done and len(past) <= self.steps:
                return [Field(name, (n,), _BITS) for name, n in sizes.items()]
        return []

    def sums(self, frame: Frame, records: Records, past: Past) -> dict[str, Any]:
        """Return a site's sums at the coefficients that follow from the past."""
        if not past:
            return super().sums(frame, records, past)
        design = self.design(frame)
        points, outcome = design.points(records)
        beta = np.array([b / 2**_POINT for b in self._state(design, past).beta])
        x, y = points / np.array(_scales(design, past)), outcome.astype(float)
        # no mean of a record exceeds the offset: 12 above the logarithm of the largest outcome
        most = max(40.0, 12 + math.log(design.y.grid.units + 1))
        eta = np.clip(x @ beta, -most, most)
        cumulant, mean, variance = self._family(eta)
        hessian = x.T @ (x * variance[:, None])
        offset = (len(y) * _OFFSET) << _POINT
        return {
            "gradient": [_whole(g) + offset for g in x.T @ (y - mean)],
            "hessian": [_whole(h) for h in hessian[np.triu_indices(len(beta))]],
            "loss": [_whole((cumulant - y * eta).sum()) + offset],
        }

    def tables(self, frame: Frame, past: Past, hidden: Hidden) -> dict[str, Table]:
        """Return the coefficients, and a summary."""
        from scipy.special import ndtr

        design = self.design(frame)
        n, sites = design.judge(past[0], frame)
        state = self._state(design, past)
        if not state.done:
            large = max(map(abs, state.move), default=0)
            moving = [j for j, d in enumerate(state.move) if 4 * abs(d) >= large]
            raise NoTable(
                f"no convergence in {self.steps} steps: the coefficients of "
                f"{design.names(moving)} grow on, {_SEPARATED}"
            )
        inverse = _inverse(design, _square(state.hessian, len(state.beta)))
        scales = np.array(_scales(design, past), object)
        beta = np.array([Fraction(b, 1 << _POINT) for b in state.beta], object) / scales
        covariance = inverse * (1 << _POINT) / np.outer(scales, scales)
        return {
            "": design.table(beta, covariance, "z", ndtr),
            "summary": Table(("records", "sites", "steps"), ((n, sites, len(past) - 1),)),
        }

    def _state(self, design: Design, past: Past) -> _State:
        """Return the state after the sums of all steps; the same at every site and the server.

        Raises
        ------
        NoTable
            Columns are collinear, or outcomes are separated.
        """
        numbers = (tuple(tuple(sums.flat) for sums in step.values()) for step in past)
        return _after(self, design, tuple(numbers))


def _scales(design: Design, past: Past) -> list[int]:
    """Return the root mean square of each term's points, or more: no point is above 2^10."""
    pairs = zip(design.terms, np.diag(past[0]["xx"]) // past[0]["n"][0], strict=False)
    return [max(math.isqrt(square), term.grid.units >> 10, 1) for term, square in pairs]


def _inverse(design: Design, matrix: Exact) -> Exact:
    """Return an inverse; raise `NoTable` if no step with nearly collinear terms is exact."""
    found = inverse_of(design, matrix)
    conditions = np.diag(matrix) * np.diag(found)
    weak = [j for j, k in enumerate(conditions) if not 0 < k < _CONDITION]
    if weak:
        raise NoTable(f"{design.names(weak)} are nearly collinear; leave a column out")
    return found


@lru_cache(maxsize=64)
def _after(model: _Iterated, design: Design, past: tuple[_Numbers, ...]) -> _State:
    """Return the state after steps, from the numbers of each field."""
    size, ((n, _), _, _, products) = len(design.terms), past[0]
    if len(past) == 1:
        xx = np.array(products, object).reshape(size + 1, size + 1)
        _inverse(design, xx[:size, :size])
        start = model._start(int(xx[0, size]) / n)
        return _State((round(start * 2**_POINT), *([0] * (size - 1))))
    state, (gradient, hessian, (loss,)) = _after(model, design, past[:-1]), past[-1]
    offset = (n * _OFFSET) << _POINT
    loss -= offset
    slack = (abs(loss) >> 36) + n  # a sum of floats is not exact to the last bit
    if state.loss is not None and loss > state.loss + slack:
        half = tuple(d // 2 for d in state.move)
        pairs = zip(state.beta, state.move, half, strict=True)
        return state._replace(beta=tuple(b - d + h for b, d, h in pairs), move=half)
    right = np.array([[(g - offset) << _POINT] for g in gradient], object)
    why = f"the coefficients of {{}} have no finite value, {_SEPARATED}"
    found = design.solve(_square(hessian, size), right, why)
    move = tuple(round(d) for (d,) in found)
    beta = tuple(b + d for b, d in zip(state.beta, move, strict=True))
    done = max(map(abs, move)) <= _TOLERANCE * max(2**_POINT, *map(abs, beta))
    if not done and max(map(abs, beta)) > 2 ** (_POINT + 40):
        raise NoTable(f"the coefficients of {model.name} grow without end; plan other columns")
    return _State(beta, move, loss, hessian, done)


def _square(upper: Sequence[int], size: int) -> Exact:
    """Return the symmetric matrix of an upper triangle."""
    matrix = np.zeros((size, size), object)
    matrix[np.triu_indices(size)] = upper
    return matrix + np.triu(matrix, 1).T


def _whole(number: float) -> int:
    return round(Fraction(float(number)) * (1 << _POINT))


@dataclass(frozen=True)
class Logistic(_Iterated):
    """Logistic regression with standard errors.

    Every site computes the coefficients of the next step from the sums of the steps before.

    Parameters
    ----------
    y : str
        A Category with two values, of which the second is 1, or a Number from 0 to 1.
    x : sequence of str
        Columns of the plan. The first value of a Category is the reference.
    steps : int
        Most steps of Newton's method, 1 to 15. Each step shows the server another sum.
    """

    def outcome(self, frame: Frame) -> Term:
        """Return the outcome, 0 or 1."""
        return binary(frame, self.y)

    def _start(self, mean: float) -> float:
        return math.log(mean / (1 - mean))

    def _family(self, eta: Floats) -> tuple[Floats, Floats, Floats]:
        mean = 1 / (1 + np.exp(-eta))
        return np.logaddexp(0, eta), mean, mean * (1 - mean)


@dataclass(frozen=True)
class Poisson(_Iterated):
    """Poisson regression with a logarithmic link and standard errors.

    Every site computes the coefficients of the next step from the sums of the steps before.

    Parameters
    ----------
    y : str
        A Number of the plan with low 0 and resolution 1: a count.
    x : sequence of str
        Columns of the plan. The first value of a Category is the reference.
    steps : int
        Most steps of Newton's method, 1 to 15. Each step shows the server another sum.
    """

    def outcome(self, frame: Frame) -> Term:
        """Return the outcome, a count."""
        term = numeric(frame, self.y)
        if term.grid.start != 0 or term.grid.step != 1:
            raise ParameterError(f"{self.y!r} must have low 0 and resolution 1: a count")
        return term

    def _start(self, mean: float) -> float:
        return math.log(mean)

    def _family(self, eta: Floats) -> tuple[Floats, Floats, Floats]:
        mean = np.exp(eta)
        return mean, mean, mean
