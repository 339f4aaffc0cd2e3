"""Ledger of the cohorts of all requested sums, against differences between rounds.

If no input changes, the sums over cohorts A and B have the difference
Σ_{A∖B} x_u − Σ_{B∖A} x_u. The difference is a sum of |A Δ B| vectors with known signs. So
the difference hides a client among as many vectors as the two cohorts differ by, counted on
both sides together.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Collection
from io import BytesIO
from typing import NamedTuple

import numpy as np

from secagg._check import as_bytes, check_integer, check_kind
from secagg._secrets import Exclusive
from secagg.errors import ParameterError, TooFewSurvivors
from secagg.protocol.messages import pack_ids, unpack_ids

_MAGIC = b"secagg ledger 1\0"
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, odd: spreads close ids


class CohortLedger:
    """Cohorts of earlier sums. A sum over a cohort too close to an earlier cohort is rejected.

    Give the same ledger object to every `Client` or `Server` of a series of rounds. A cohort B
    is rejected if, for an earlier cohort A with the same kind of input,
    1 ≤ |A Δ B| < `min_difference`. With A = {1, …, 9} and B = {1, …, 8} the difference of the
    sums is the vector of client 9. With B = {1, …, 8, 10} the difference is the vector of
    client 9 minus the vector of client 10. An equal cohort is accepted: the sum is the same
    again, or shows the sum of the changes of all clients. SECURITY.md has the limits.

    Parameters
    ----------
    min_difference : int
        m, the smallest difference between two cohorts, in clients, 2 to 2^16. Colluding clients
        hide nobody, so take their number plus 3 or more.

    Raises
    ------
    ParameterError
        `min_difference` is out of range.
    """

    def __init__(self, *, min_difference: int) -> None:
        check_integer("min_difference", min_difference, 2, 1 << 16)
        self.min_difference = int(min_difference)
        self._pages: dict[str, dict[bytes, int]] = {}
        # rounds in several threads share a ledger; a signal handler may store the ledger
        self._lock = threading.RLock()
        self._recording = Exclusive()

    def __repr__(self) -> str:
        cohorts = sum(map(len, self._pages.values()))
        return f"<CohortLedger: {cohorts:,} cohorts, min_difference {self.min_difference:,}>"

    def record(self, cohort: Collection[int], kind: str = "") -> int:
        """Record a cohort, unless the cohort is too close to an earlier cohort.

        Clients and servers call this method. It takes time and memory in proportion to the
        number of different cohorts.

        Parameters
        ----------
        cohort : collection of int
            Different ids of the clients, from 0 to 2^64 − 1.
        kind : str
            Label of the kind of input, at most 255 bytes in UTF-8.

        Returns
        -------
        int
            0 if the cohort is recorded now or was recorded before. Otherwise nothing is
            recorded, and the result is the number of clients in which the cohort differs from
            an earlier cohort.

        Raises
        ------
        ParameterError
            An argument is invalid.
        LocalProtocolError
            A signal handler records a cohort while it interrupts another recording.
        """
        ids = list(cohort)  # an iterator would be empty the second time
        for u in ids:
            check_integer("id", u, 0, (1 << 64) - 1)
        packed = pack_ids(sorted(map(int, ids)))
        if unpack_ids(packed) is None:
            raise ParameterError("cohort names a client twice; take each id once")
        return self.page(kind).record(packed)

    def include(self, other: CohortLedger) -> None:
        """Record all cohorts of another ledger, such as a stored ledger, without comparing.

        Parameters
        ----------
        other : CohortLedger

        Raises
        ------
        ParameterError
            The other ledger has another `min_difference`.
        """
        check_kind("other", other, CohortLedger, "a secagg.CohortLedger")
        if other.min_difference != self.min_difference:
            raise ParameterError(
                f"the other ledger has min_difference {other.min_difference}, not "
                f"{self.min_difference}; take the same"
            )
        # one lock after the other: two ledgers that include each other must not deadlock
        with other._lock:
            pages = {kind: dict(page) for kind, page in other._pages.items()}
        with self._lock:
            for kind, page in pages.items():
                self._pages.setdefault(kind, {}).update(page)

    def page(self, kind: str) -> Page:
        """Return the part of the ledger for one kind of input."""
        check_kind("kind", kind, str, "a str")
        _encoded(kind)
        return Page(self, kind)

    def to_bytes(self) -> bytes:
        """Encode the ledger; ledgers with the same cohorts have the same bytes.

        All integers are little-endian. The bytes are 16 bytes of magic, m and the number of
        kinds as u32. For each kind, ascending: u8 and the label, u32 and the cohorts in
        ascending order. Each cohort is u32 and ascending ids as u64.
        """
        with self._lock:
            pages = {_encoded(kind): list(page) for kind, page in self._pages.items() if page}
        parts = [_MAGIC, struct.pack("<II", self.min_difference, len(pages))]
        for label, cohorts in sorted(pages.items()):
            parts += [struct.pack("<B", len(label)), label, struct.pack("<I", len(cohorts))]
            for packed in sorted(cohorts):
                parts += [struct.pack("<I", len(packed) // 8), packed]
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> CohortLedger:
        """Decode the output of `to_bytes`.

        Raises
        ------
        ParameterError
            The bytes are not a ledger's.
        """
        data = as_bytes(data, "a ledger")
        try:
            ledger = cls._decoded(BytesIO(data))
        except (struct.error, UnicodeDecodeError):
            ledger = None
        # short reads show here, as do bytes in another order
        if ledger is None or ledger.to_bytes() != data:
            raise ParameterError(
                f"these {len(data)} bytes are not a ledger; store all of to_bytes()"
            )
        return ledger

    @classmethod
    def _decoded(cls, data: BytesIO) -> CohortLedger | None:
        if data.read(len(_MAGIC)) != _MAGIC:
            return None
        difference, kinds = struct.unpack("<II", data.read(8))
        ledger = cls(min_difference=difference)
        for _ in range(kinds):
            kind = data.read(*struct.unpack("<B", data.read(1))).decode()
            page = ledger._pages.setdefault(kind, {})
            (cohorts,) = struct.unpack("<I", data.read(4))
            for _ in range(cohorts):
                (size,) = struct.unpack("<I", data.read(4))
                packed = data.read(8 * size)
                if unpack_ids(packed) is None:
                    return None
                page[packed] = ledger._sketch(packed)
        return ledger

    def _sketch(self, packed: bytes) -> int:
        """Return the parities of the numbers of clients in buckets, as the bits of an int.

        Sketches differ in at most as many bits as their cohorts differ in clients. So most
        cohorts need no closer look.
        """
        buckets = max(1024, 4 * self.min_difference)
        ids = np.frombuffer(packed, dtype="<u8").astype(np.uint64)
        places = (ids * _MIX >> np.uint64(32)) % np.uint64(buckets)
        odd = np.bincount(places.astype(np.intp), minlength=buckets) & 1
        return int.from_bytes(np.packbits(odd.astype(np.uint8)).tobytes(), "little")

    def _record(self, kind: str, packed: bytes) -> int:
        """Record packed ascending ids; see `record`."""
        sketch = self._sketch(packed)
        # a signal handler that records another cohort in between would not be compared
        with self._lock, self._recording:
            page = self._pages.get(kind, {})
            if packed in page:
                return 0
            for other, parities in list(page.items()):  # a handler may include a ledger
                # sketches can hide a difference, but never show one that is not there
                if (sketch ^ parities).bit_count() < self.min_difference:
                    one, two = (np.frombuffer(ids, "<u8") for ids in (packed, other))
                    difference = np.setxor1d(one, two, True).size
                    if difference < self.min_difference:
                        return difference
            self._pages.setdefault(kind, {})[packed] = sketch
        return 0


class Page(NamedTuple):
    """The part of a ledger for one kind of input, as a client or server uses it."""

    ledger: CohortLedger
    kind: str

    def record(self, packed: bytes) -> int:
        """Record a cohort, as packed ascending ids; see `CohortLedger.record`."""
        return self.ledger._record(self.kind, packed)

    def require(self, packed: bytes, phase: str) -> None:
        """Record a server's cohort; raise TooFewSurvivors if an earlier cohort is close."""
        difference = self.record(packed)
        if difference:
            least = self.ledger.min_difference
            raise TooFewSurvivors(
                f"the {len(packed) // 8} survivors differ from the cohort of an earlier sum by "
                f"{difference} clients, not {least}, and the difference of the sums would "
                "expose them; begin a new sum with the same cohort or a more different one",
                phase=phase,
                survivors=difference,
                needed=least,
            )


def open_page(ledger: CohortLedger | None, kind: str) -> Page | None:
    """Return the part of a ledger for `kind`, or None without a ledger.

    Raise `ParameterError` for a `kind` without a ledger, and for invalid arguments.
    """
    if ledger is None:
        if kind:
            raise ParameterError(f"kind is {kind!r}, but there is no ledger; pass ledger=")
        return None
    check_kind("ledger", ledger, CohortLedger, "a secagg.CohortLedger")
    return ledger.page(kind)


def _encoded(kind: str) -> bytes:
    try:
        label = kind.encode()
    except UnicodeEncodeError:
        raise ParameterError(
            "kind has a lone surrogate; take text that UTF-8 encodes"
        ) from None
    if len(label) > 255:
        raise ParameterError(f"kind has {len(label)} bytes in UTF-8; take at most 255")
    return label
