"""What can be measured here: this library's two ways, and what others are installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from secagg.bench import he, ss, trustees
from secagg.bench.keyed import Keyed, measure
from secagg.bench.per_float import PerFloat, Work, per_float
from secagg.bench.rows import Case, Row, System
from secagg.paillier import PrivateKey, generate_insecure_keypair, generate_keypair
from secagg.paillier.public_key import MIN_BITS

__all__ = ["Candidate", "Tell", "candidates", "per_floats"]

Tell = Callable[[str], None]

REMEDIES = {
    "phe": "phe is not installed: pip install 'secagg[bench]'",
    "tenseal": "TenSEAL's CKKS is not installed: pip install tenseal",
}


@dataclass(frozen=True)
class Candidate:
    """A system, and what measures it in a case, in so many seconds for each party."""

    system: System
    measure: Callable[[Case, float, Tell], Row]


def candidates(wanted: Iterable[str], bits: int) -> tuple[list[Candidate], dict[str, str]]:
    """Return the systems of the families, and for each that is not installed a remedy.

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
    if "he" not in wanted:
        return found, absent
    key = _generate(bits)
    found.append(_with_key(he.PUBLIC, lambda clients: he.public(key, clients)))
    found.append(_with_key(he.SHARED, lambda clients: he.shared(key, clients)))
    dealt = trustees.generate(bits)
    found.append(_with_key(trustees.SYSTEM, lambda clients: trustees.keyed(*dealt, clients)))
    with _optional("phe", absent):
        from secagg.bench import peers

        pair = peers.generate(bits)
        found.append(_with_key(peers.PACKED, lambda clients: peers.packed(*pair, clients)))
        found.append(_with_key(peers.FLOATS, lambda _: peers.floats(*pair)))
    with _optional("tenseal", absent):
        from secagg.bench import ckks

        context = ckks.keyed()
        found.append(_with_key(ckks.SYSTEM, lambda _: context))
    return found, absent


def per_floats(bits: int) -> list[PerFloat]:
    """Measure Paillier per float with a key of so many bits, against phe if it is installed."""
    works: Mapping[str, Work] = {}
    with _optional("phe", {}):
        from secagg.bench import peers

        works = peers.works(*peers.generate(bits))
    return list(per_float(_generate(bits), works))


def _generate(bits: int) -> PrivateKey:
    return generate_keypair(bits) if bits >= MIN_BITS else generate_insecure_keypair(bits)


def _measure_ss(case: Case, budget: float, tell: Tell) -> Row:
    def progress(phase: str, done: int, of: int) -> None:
        tell(f"{phase.replace('_', ' ')} {done}/{of}")

    return ss.measure(case, progress)


def _with_key(system: System, make: Callable[[int], Keyed]) -> Candidate:
    """Return what measures a system that is made for so many clients."""
    return Candidate(system, lambda case, budget, _: measure(make(case.clients), case, budget))


@contextmanager
def _optional(package: str, absent: dict[str, str]) -> Iterator[None]:
    """Go on without what needs a package that is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != package:
            raise
        absent[package] = REMEDIES[package]
