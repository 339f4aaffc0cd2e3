"""Steps of a study: messages, and sums that are computed from plan and past alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Self, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from secagg._check import as_bytes
from secagg.errors import ParameterError
from secagg.statistics.layout import BASE_BITS, Step, Sums, own
from secagg.statistics.plan import Plan
from secagg.statistics.records import Records

LABEL = b"secagg/1 statistics"
_MOST_STEPS = 100


@dataclass(frozen=True)
class Study:
    """Plan and the sums of all steps so far; all sites and the server compute the same.

    Parameters
    ----------
    plan : Plan
    past : tuple of int64 arrays
        Sums of the vectors of each step, as opened.

    Raises
    ------
    ParameterError
        The sums cannot be the sums of these steps, or a site left between two steps.
    """

    plan: Plan
    past: tuple[NDArray[np.int64], ...] = ()

    def __post_init__(self) -> None:
        if len(self.past) > _MOST_STEPS:
            raise ParameterError(f"a study has at most {_MOST_STEPS} steps; take the sums")
        _ = self.sums  # judges the past

    @cached_property
    def sums(self) -> tuple[tuple[Sums, ...], ...]:
        """Sums of the steps so far, for each part of the plan."""
        return _replayed(self.plan, tuple(self._past))[0]

    @property
    def _past(self) -> list[bytes]:
        return [digits.astype("<i8").tobytes() for digits in self.past]

    @cached_property
    def step(self) -> Step:
        """Next step; without elements if the study has ended."""
        return self.plan.step(self.sums)

    @property
    def number(self) -> int:
        """Number of the next step, from 1."""
        return len(self.past) + 1

    @property
    def ended(self) -> bool:
        """True after the last step."""
        return not self.step.length

    def vector(self, records: Records) -> NDArray[np.int64]:
        """Return the vector of a site for the next step."""
        plan, sums = self.plan, dict[str, object](records=[records.size], sites=[1])
        for place, (part, past) in enumerate(zip(plan.parts, self.sums, strict=True)):
            if part.fields(plan.frame, past):
                own = part.sums(plan.frame, records, past)
                sums |= {f"{place}.{name}": value for name, value in own.items()}
        return self.step.pack(sums)

    def then(self, values: NDArray[np.int64]) -> Self:
        """Return the study after the sum of the next step."""
        return type(self)(self.plan, (*self.past, values))

    def message(self) -> bytes:
        """Return the message of the next step: the plan, and all sums before."""
        return LABEL + msgspec.msgpack.encode((self.plan.to_bytes(), self._past))

    @classmethod
    def of(cls, message: bytes) -> Self:
        """Return the study of a message.

        Raises
        ------
        ParameterError
            The bytes are no message of a study, or not the shortest form of a message.
        """
        message = as_bytes(message)
        try:
            body = message.removeprefix(LABEL)
            plan, past = msgspec.msgpack.decode(body, type=tuple[bytes, list[bytes]])
            study = cls(Plan.from_bytes(plan), tuple(np.frombuffer(p, "<i8") for p in past))
            _ = study.step  # forged sums have no logarithm or quotient
        except (msgspec.MsgspecError, ArithmeticError, ValueError) as error:
            if isinstance(error, ParameterError):
                raise
            raise ParameterError("the message is of no study; take Study.message()") from None
        if study.message() != message:
            raise ParameterError("the message is not in shortest form; take Study.message()")
        return study


Parts: TypeAlias = tuple[tuple[Sums, ...], ...]


@lru_cache(maxsize=4)
def _replayed(plan: Plan, past: tuple[bytes, ...]) -> tuple[Parts, tuple[int, int] | None]:
    """Return the sums of some steps by part, and records and sites; former steps are kept."""
    if not past:
        return tuple(() for _ in plan.parts), None
    (before, first), number = _replayed(plan, past[:-1]), len(past)
    step, values = plan.step(before), np.frombuffer(past[-1], "<i8")
    exact = plan.privacy is None
    least = 0 if exact else -(1 << 62)
    if not step.length or values.shape != (step.length,) or values.min() < least:
        raise ParameterError(f"step {number} has no such sums; take the sums of this plan")
    sums = step.unpack(values)
    if exact:
        totals = int(sums.pop("records")[0]), int(sums.pop("sites")[0])
        first = first or totals
        if int(values.max()) >= (first[1] << BASE_BITS):
            raise ParameterError(f"a sum of step {number} is larger than its sites can make")
        if totals != first:
            raise ParameterError(
                f"step {number} is over {totals[1]} sites and {totals[0]:,} records, and step "
                f"1 over {first[1]} and {first[0]:,}; run another plan with all sites"
            )
    new = [own(place, sums) for place in range(len(before))]
    pairs = zip(before, new, strict=True)
    return tuple((*old, one) if one else old for old, one in pairs), first
