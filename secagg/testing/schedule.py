"""What a network does to packets: which are lost, late, repeated, overtaken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from secagg._check import check_integer
from secagg.errors import ParameterError

__all__ = ["FAULTS", "Schedule"]

FAULTS = {
    "twice": "arrives, and arrives again",
    "held": "arrives after everything else of its phase",
    "late": "arrives when the server has closed the phase",
    "repeated": "arrives, and again when the server has closed the phase",
    "lost": "never arrives",
}
"""What can happen to a packet."""


@dataclass(frozen=True)
class Schedule:
    """The faults of one run; packets that it does not name arrive once, in the order sent.

    Parameters
    ----------
    faults : mapping of int to str
        Packets are counted from 0 in the order in which they are sent; the faults are those
        of ``FAULTS``. Numbers beyond the last packet have no effect.

    Raises
    ------
    ParameterError
        A number is negative or a fault is none of ``FAULTS``.
    """

    faults: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, fault in self.faults.items():
            check_integer("the number of a packet", number, 0, 1 << 62)
            if fault not in FAULTS:
                raise ParameterError(
                    f"packet {number} has the fault {fault!r}; the faults are "
                    f"{', '.join(FAULTS)}"
                )
