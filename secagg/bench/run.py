"""Measurement of every system in every case, one after the other, and Paillier per float."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product, starmap
from typing import NamedTuple

from secagg.bench import he, one_shot, ss
from secagg.bench.cases import Case, Row, System
from secagg.bench.keyed import Keyed, measure
from secagg.bench.per_float import PerFloat, Work, per_float
from secagg.bench.ss import Progress
from secagg.errors import ParameterError
from secagg.paillier import PrivateKey, generate_insecure_keypair, generate_keypair
from secagg.paillier.public_key import MIN_BITS

FAMILIES = ("ss", "he", "one-shot")
CLIENTS, LENGTHS, BUDGET = "10,50,100,500", "1000,10000,100000", 3.0  # the options' defaults
REMEDIES = {
    "phe": "phe is not installed: pip install phe",
    "tenseal": "TenSEAL's CKKS is not installed: pip install tenseal",
}


class Candidate(NamedTuple):
    """System, and a function that measures it in a case within a budget of seconds."""

    system: System
    measure: Callable[[Case, float, Progress], Row]


@dataclass(frozen=True)
class Comparison:
    """Results of `compare`: rows in the order of cases, and operations by key size."""

    rows: list[Row]
    per_float: list[PerFloat]
    absent: dict[str, str]  # packages that are not installed, each with the remedy
    budget: float  # seconds for each party of a case, beyond which a sample was measured
    complete: bool = True  # False after Ctrl-C; the rows are then of whole cases


def families(text: str) -> tuple[str, ...]:
    """Return the families in a list separated by commas; raise ParameterError if unknown."""
    named = [name.strip() for name in text.split(",")]
    for name in named:
        if name not in FAMILIES:
            raise ParameterError(f"--compare takes {', '.join(FAMILIES)}, not {name!r}")
    return tuple(name for name in FAMILIES if name in named)


def grid(clients: str, lengths: str) -> list[Case]:
    """Return the cases for all pairs of `clients` and `lengths`, numbers separated by commas.

    Raise ParameterError for text that is not such a list, or a number out of range.
    """
    numbers = []
    for option, text in (("--clients", clients), ("--length", lengths)):
        try:
            numbers.append([int(number) for number in text.split(",")])
        except ValueError:
            raise ParameterError(
                f"{option} takes whole numbers separated by commas, not {text!r}"
            ) from None
    # each case once, in the order of the options
    return list(dict.fromkeys(starmap(Case, product(*numbers))))


def compare(
    wanted: Sequence[str],
    cases: Sequence[Case],
    show: Progress,
    *,
    budget: float,
    per_float: bool = True,
    sizes: Sequence[int] = (2048, 3072),
) -> Comparison:
    """Measure every system in every case, then Paillier per float; Ctrl-C ends it early.

    `wanted` are some of `FAMILIES`. ``show(work, done, total)`` is called with the present work
    and the number of cases. Work beyond `budget` seconds for each party is measured on a
    sample. SS is never sampled, because parts of SS grow with the square of the clients.
    One-shot sums are not sampled, either. Without `per_float`, the system of phe with a
    ciphertext for each float is left out, too. `sizes` are the bits of keys for the figures per
    float; the last size is also used for the sums. Raise ParameterError for a budget or case
    out of range.
    """
    if not 0 < budget < 1e6:
        raise ParameterError(f"budget must be seconds above 0, not {budget}")
    if "ss" in wanted:
        for case in cases:
            ss.parameters(case)  # raises before minutes of measuring
    of, complete = len(cases), True
    absent: dict[str, str] = {}
    rows: list[Row] = []
    floats: list[PerFloat] = []
    try:
        show("keys", 0, of)
        systems, absent = candidates(wanted, sizes[-1], per_float=per_float)
        for done, case in enumerate(cases):
            measured = []
            for system, measure_in in systems:
                about = f"{system.label}, n = {case.clients:,}, d = {case.length:,}"
                show(about, done, of)
                measured.append(measure_in(case, budget, partial(_step, show, about, done, of)))
            # only now, so that Ctrl-C leaves whole cases, with all systems
            rows += measured
        for bits in sizes if per_float and "he" in wanted else ():
            show(f"per float, {bits} bits", of, of)
            floats += per_floats(bits)
    except KeyboardInterrupt:
        complete = False  # minutes of measuring are not thrown away
    return Comparison(rows, floats, absent, budget, complete)


def candidates(
    wanted: Iterable[str], bits: int, *, per_float: bool = True
) -> tuple[list[Candidate], dict[str, str]]:
    """Generate keys of `bits` bits; return the systems, and remedies for missing packages.

    Without `per_float` there is no system with a ciphertext for each float.
    """
    found: list[Candidate] = []
    absent: dict[str, str] = {}

    def add(system: System, make: Callable[[int], Keyed]) -> None:
        def run(case: Case, budget: float, _: Progress) -> Row:
            return measure(make(case.clients), case, budget)

        found.append(Candidate(system, run))

    if "ss" in wanted:
        found.append(Candidate(ss.SS, lambda case, _, show: ss.measure(case, show)))
    if "one-shot" in wanted:
        found.append(
            Candidate(one_shot.ONE_SHOT, lambda case, _, show: one_shot.measure(case, show))
        )
    if "he" in wanted:
        key, dealt = _generate(bits), he.deal_key(bits)
        add(he.PUBLIC, lambda clients: he.public(key, clients))
        add(he.SHARED, lambda clients: he.shared(key, clients))
        add(he.THRESHOLD, lambda clients: he.threshold(*dealt, clients))
        with _optional("phe", absent):
            from secagg.bench import peers

            pair = peers.generate(bits)
            add(peers.PACKED, lambda clients: peers.packed(*pair, clients))
            if per_float:
                add(peers.FLOATS, lambda _: peers.floats(*pair))
        with _optional("tenseal", absent):
            from secagg.bench import ckks

            context = ckks.keyed()
            add(ckks.SYSTEM, lambda _: context)
    return found, absent


def per_floats(bits: int) -> list[PerFloat]:
    """Measure Paillier per float with a new key of `bits` bits, and phe if installed."""
    works: Mapping[str, Work] = {}
    with _optional("phe", {}):
        from secagg.bench import peers

        works = peers.works(*peers.generate(bits))
    return list(per_float(_generate(bits), works))


def _generate(bits: int) -> PrivateKey:
    return generate_keypair(bits) if bits >= MIN_BITS else generate_insecure_keypair(bits)


def _step(
    show: Progress, about: str, done: int, of: int, step: str, part: int, whole: int
) -> None:
    show(f"{about} {step} {part}/{whole}", done, of)


@contextmanager
def _optional(package: str, absent: dict[str, str]) -> Iterator[None]:
    """Skip the rest of the block and note the remedy if the package is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        # another missing module is a fault, not an option
        if str(error.name).partition(".")[0] != package:
            raise
        absent[package] = REMEDIES[package]
