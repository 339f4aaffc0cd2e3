"""Losses as bytes: in the file of a ledger, and in the rows of a session's folder."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Self

import msgspec

from secagg.errors import JournalError, ParameterError
from secagg.privacy.distance import Distance
from secagg.privacy.loss import GRAIN, Loss


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers of a `Loss`; `squares` and `rho` count 1 / 2^40."""

    squares: int = 0
    rho: int = 0
    law: tuple[float, float] = (0.0, 0.0)
    sampler: tuple[float, float] = (0.0, 0.0)
    failure: float = 0.0
    exposure: float = 0.0

    @classmethod
    def of(cls, loss: Loss) -> Self:
        """Return the record of a loss; `squares` and `rho` are rounded up."""
        squares, rho = (math.ceil(each * GRAIN) for each in (loss.squares, loss.rho))
        law, sampler = ((each.total, each.squares) for each in (loss.law, loss.sampler))
        return cls(squares, rho, law, sampler, loss.failure, loss.exposure)

    @property
    def loss(self) -> Loss:
        """Loss that was recorded."""
        squares, rho = (Fraction(each, GRAIN) for each in (self.squares, self.rho))
        law, sampler = Distance(*self.law), Distance(*self.sampler)
        return Loss(squares, rho, law, sampler, self.failure, self.exposure)


def to_bytes(loss: Loss) -> bytes:
    """Return a loss as bytes."""
    return msgspec.json.encode(Record.of(loss))


def from_bytes(data: bytes) -> Loss:
    """Return the loss that `to_bytes` wrote; no bytes are the loss of no sum.

    `JournalError` is raised for any other bytes.
    """
    if not data:
        return Loss()
    try:
        found = msgspec.json.decode(data, type=Record)
        if msgspec.json.encode(found) == data:
            return found.loss
    except (msgspec.MsgspecError, UnicodeDecodeError, ParameterError):
        pass
    raise JournalError("a stored loss of privacy was altered; restore the file of before")
