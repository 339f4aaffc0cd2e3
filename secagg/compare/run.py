"""Which systems are measured in which cases, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from secagg.compare import keyed, ss
from secagg.compare.rows import Case, Row, System
from secagg.errors import ParameterError

__all__ = ["FAMILIES", "Candidate", "Comparison", "Step", "candidates", "compare", "families"]

FAMILIES = ("ss", "he")
CLIENTS, LENGTHS = "10,50,100,500", "1000,10000,100000"
"""What is measured if nothing is said."""
BITS = 3072
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Step:
    """Shows what of a measurement is under way, which is one of many."""

    show: Progress
    system: System
    case: Case
    done: int
    of: int

    def __call__(self, what: str) -> None:
        """Show it."""
        about = f"{self.system.label}, n = {self.case.clients:,}, d = {self.case.length:,}"
        self.show(f"{about} {what}", self.done, self.of)


@dataclass(frozen=True)
class Candidate:
    """A system, and what measures it in a case, in so many seconds for each party."""

    system: System
    measure: Callable[[Case, float, Step], Row]


@dataclass(frozen=True)
class Comparison:
    """What was measured.

    Attributes
    ----------
    rows : list of Row
        Case by case.
    absent : dict of str to str
        What is not installed, and how to have it measured.
    budget : float
        Seconds for each party of a case, beyond which a sample is measured.
    bits : int
        Of the Paillier keys.
    """

    rows: list[Row]
    absent: dict[str, str]
    budget: float
    bits: int


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


def _numbers(option: str, text: str) -> list[int]:
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise ParameterError(
            f"{option} takes whole numbers separated by commas, not {text!r}"
        ) from None


def candidates(wanted: Iterable[str], bits: int) -> tuple[list[Candidate], dict[str, str]]:
    """Return the systems of the families, and which of them are not installed.

    Parameters
    ----------
    wanted : iterable of "ss" or "he"
    bits : int
        Of the Paillier keys, which are made here.
    """
    found: list[Candidate] = []
    absent: dict[str, str] = {}
    if "ss" in wanted:
        found.append(Candidate(ss.SS, _measure_ss))
    if "he" in wanted:
        try:
            from secagg.compare import peers
        except ModuleNotFoundError as error:
            _check_missing(error, "phe")
            absent["phe"] = "phe is not installed: pip install 'secagg[bench]'"
        else:
            each = peers.floats(*peers.generate(bits))
            found.append(Candidate(each.system, _always(each)))
        try:
            from secagg.compare import ckks
        except ModuleNotFoundError as error:
            _check_missing(error, "tenseal")
            absent["ckks"] = "TenSEAL is not installed: pip install tenseal"
        else:
            approximate = ckks.keyed()
            found.append(Candidate(approximate.system, _always(approximate)))
    return found, absent


def compare(
    wanted: Sequence[str],
    cases: Sequence[Case],
    show: Progress,
    *,
    budget: float,
    bits: int = BITS,
) -> Comparison:
    """Measure every system in every case.

    Parameters
    ----------
    wanted : sequence of "ss" or "he"
    cases : sequence of Case
    show : callable
        Called with what is under way, and how many measurements of how many are done.
    budget : float
        Seconds for each party of a case, beyond which a sample is measured; SS is measured
        whole, because parts of it grow with the square of the clients.
    bits : int
        Of the Paillier keys.

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
    show("keys", 0, len(cases))
    systems, absent = candidates(wanted, bits)
    rows: list[Row] = []
    for case in cases:
        for one in systems:
            step = Step(show, one.system, case, len(rows), len(cases) * len(systems))
            step("")
            rows.append(one.measure(case, budget, step))
    return Comparison(rows, absent, budget, bits)


def _measure_ss(case: Case, budget: float, step: Step) -> Row:
    def progress(phase: str, done: int, of: int) -> None:
        step(f"{phase.replace('_', ' ')} {done}/{of}")

    return ss.measure(case, progress)


def _always(system: keyed.Keyed) -> Callable[[Case, float, Step], Row]:
    """Return what measures a system that is the same in every case."""
    return lambda case, budget, _: keyed.measure(system, case, budget)


def _check_missing(error: ModuleNotFoundError, package: str) -> None:
    """Let an error through that is about something else than the package."""
    if str(error.name).partition(".")[0] != package:
        raise error
