"""The comparison: every system in every case, one after the other, and Paillier per float."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from secagg.compare import ss
from secagg.compare.candidates import candidates, per_floats
from secagg.compare.per_float import PerFloat
from secagg.compare.rows import Case, Row
from secagg.errors import ParameterError

__all__ = ["CLIENTS", "FAMILIES", "LENGTHS", "Comparison", "compare", "families", "grid"]

FAMILIES = ("ss", "he")
CLIENTS, LENGTHS = "10,50,100,500", "1000,10000,100000"
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
    """

    rows: list[Row]
    per_float: list[PerFloat]
    absent: dict[str, str]
    budget: float


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

    Raises
    ------
    ParameterError
        One is not a whole number, or out of range.
    """
    ns, ds = _numbers("--clients", clients), _numbers("--length", lengths)
    return [Case(n, d) for n in ns for d in ds]


def compare(
    wanted: Sequence[str],
    cases: Sequence[Case],
    show: Progress,
    *,
    budget: float,
    sizes: Sequence[int] = (2048, 3072),
) -> Comparison:
    """Measure every system in every case, and Paillier per float.

    Parameters
    ----------
    wanted : sequence of "ss" or "he"
    cases : sequence of Case
    show : callable
        Called with what is under way, and how many measurements of how many are done.
    budget : float
        Seconds for each party of a case, beyond which a sample is measured; SS is measured
        whole, because parts of it grow with the square of the clients.
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
    show("keys", 0, 1)
    systems, absent = candidates(wanted, sizes[-1])
    sizes = sizes if "he" in wanted else ()
    of = len(sizes) + len(cases) * len(systems)
    floats: list[PerFloat] = []
    for done, bits in enumerate(sizes):
        show(f"per float, {bits} bits", done, of)
        floats += per_floats(bits)
    rows: list[Row] = []
    for case in cases:
        for one in systems:
            about = f"{one.system.label}, n = {case.clients:,}, d = {case.length:,}"
            tell = partial(_tell, show, about, len(sizes) + len(rows), of)
            tell("")
            rows.append(one.measure(case, budget, tell))
    return Comparison(rows, floats, absent, budget)


def _tell(show: Progress, about: str, done: int, of: int, step: str) -> None:
    show(f"{about} {step}", done, of)


def _numbers(option: str, text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise ParameterError(
            f"{option} takes whole numbers separated by commas, not {text!r}"
        ) from None
