"""The comparison: every system in every case, one after the other, and Paillier per float."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from secagg.bench import ss
from secagg.bench.candidates import candidates, per_floats
from secagg.bench.per_float import PerFloat
from secagg.bench.rows import Case, Row
from secagg.errors import ParameterError

__all__ = [
    "BUDGET",
    "CLIENTS",
    "FAMILIES",
    "LENGTHS",
    "Comparison",
    "compare",
    "families",
    "grid",
]

FAMILIES = ("ss", "he")
CLIENTS, LENGTHS = "10,50,100,500", "1000,10000,100000"
BUDGET = 3.0
"""What is measured if nothing is said."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Comparison:
    """What was measured.

    Attributes
    ----------
    rows : list of Row
        Case by case.
    per_float : list of PerFloat
        Key size by key size.
    absent : dict of str to str
        What is not installed, and how to have it measured.
    budget : float
        Seconds for each party of a case, beyond which a sample was measured.
    complete : bool
        Whether it was all measured; if it was interrupted, whole cases are there.
    """

    rows: list[Row]
    per_float: list[PerFloat]
    absent: dict[str, str]
    budget: float
    complete: bool = True


def families(text: str) -> tuple[str, ...]:
    """Read which halves are compared, separated by commas.

    Raises
    ------
    ParameterError
        One is not known, or none is named.
    """
    named = [name.strip() for name in text.split(",")]
    for name in named:
        if name not in FAMILIES:
            raise ParameterError(f"--compare takes {' and '.join(FAMILIES)}, not {name!r}")
    return tuple(name for name in FAMILIES if name in named)


def grid(clients: str, lengths: str) -> list[Case]:
    """Return every number of clients with every length, of numbers separated by commas.

    What is named twice is there once.

    Raises
    ------
    ParameterError
        One is not a whole number, or out of range.
    """
    ns, ds = _numbers("--clients", clients), _numbers("--length", lengths)
    return list(dict.fromkeys(Case(n, d) for n in ns for d in ds))


def compare(
    wanted: Sequence[str],
    cases: Sequence[Case],
    show: Progress,
    *,
    budget: float,
    per_float: bool = True,
    sizes: Sequence[int] = (2048, 3072),
) -> Comparison:
    """Measure every system in every case, then Paillier per float, until Ctrl-C.

    Parameters
    ----------
    wanted : sequence of "ss" or "he"
    cases : sequence of Case
    show : callable
        Called with what is under way, and how many cases of how many are done.
    budget : float
        Seconds for each party of a case, beyond which a sample is measured; SS is measured
        whole, because parts of it grow with the square of the clients.
    per_float : bool
        Whether Paillier is measured per float, if it is compared at all.
    sizes : sequence of int
        Bits of the keys that are measured per float; the last of them are those of the sums.

    Raises
    ------
    ParameterError
        The budget is no time, or secret sharing refuses a case.
    """
    if not 0 < budget < 1e6:
        raise ParameterError(f"budget must be seconds above 0, not {budget}")
    if "ss" in wanted:
        for case in cases:
            ss.parameters(case)  # refuses now what it would refuse after minutes
    of, complete = len(cases), True
    absent: dict[str, str] = {}
    rows: list[Row] = []
    floats: list[PerFloat] = []
    try:
        show("keys", 0, of)
        systems, absent = candidates(wanted, sizes[-1])
        for done, case in enumerate(cases):
            measured = []
            for one in systems:
                about = f"{one.system.label}, n = {case.clients:,}, d = {case.length:,}"
                tell = partial(_tell, show, about, done, of)
                tell("")
                measured.append(one.measure(case, budget, tell))
            rows += measured
        for bits in sizes if per_float and "he" in wanted else ():
            show(f"per float, {bits} bits", of, of)
            floats += per_floats(bits)
    except KeyboardInterrupt:
        complete = False  # what took minutes is not thrown away
    return Comparison(rows, floats, absent, budget, complete)


def _tell(show: Progress, about: str, done: int, of: int, step: str) -> None:
    show(f"{about} {step}", done, of)


def _numbers(option: str, text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise ParameterError(
            f"{option} takes whole numbers separated by commas, not {text!r}"
        ) from None
