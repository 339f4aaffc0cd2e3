"""Parameters of a round, validated before it starts.

The server and every client must have equal ``RoundParams``. Each message of rounds 0 and 1 has
their digest or depends on it, so different parameters raise an error there.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from secagg._check import check_integer, check_session
from secagg.encoding import Encoding, Ring
from secagg.errors import ParameterError

Security = Literal["semi-honest", "active"]


@dataclass(frozen=True, kw_only=True)
class RoundParams:
    """Parameters of one round of secure aggregation.

    Parameters
    ----------
    n_clients : int
        n, the largest number of clients that may take part, 3 ≤ n ≤ 2^20; 2 is possible with
        `allow_two_clients`.
    threshold : int
        t, the number of shares that reconstruct a secret. On the complete graph more than half
        of the n clients, and more than two thirds if `security` is "active". With `neighbours`
        2 ≤ t ≤ k: take the threshold that `secagg.graph.recommend` returns.
    length : int
        d, the number of elements of a vector, 1 ≤ d ≤ 2^31.
    encoding : FixedPoint or Integers
        Conversion of elements to integers.
    modulus_bits : int, optional
        b, for R = 2^b, 1 ≤ b ≤ 64. 32 if neither `modulus_bits` nor `modulus` is given.
    modulus : int, optional
        R, in place of `modulus_bits`: 2 ≤ R ≤ 2^62, or a power of two up to 2^64.
    neighbours : int, optional
        k, the even number of clients with whom each client shares secrets and masks, on a
        random Harary graph (Bell et al. 2020). None: all clients (Bonawitz et al. 2017). A
        client is exposed if all its neighbours collude or drop out; `secagg.graph.recommend`
        finds a k that makes this unlikely.
    max_weight : int, optional
        The largest weight of a vector, 1 to 2^53. None: an unweighted sum.
    session : bytes, optional
        Name of the round, at most 64 bytes, which all keys depend on. Give each round a
        different name. If `security` is "active", the name must not be empty.
    allow_two_clients : bool
        Accept that with two clients each learns the other's input from the sum.
    security : "semi-honest" or "active"
        Adversary to protect against. "semi-honest": the server and clients follow the protocol
        but remember everything. "active": they may also lie, which takes signatures, a fifth
        round (Bonawitz 2017, §6.2) and the complete graph.

    Raises
    ------
    ParameterError
        A value is out of range, or R is too small for the sum of n vectors.
    """

    n_clients: int
    threshold: int
    length: int
    encoding: Encoding
    modulus_bits: int | None = None
    modulus: int | None = None
    neighbours: int | None = None
    max_weight: int | None = None
    session: bytes = b""
    allow_two_clients: bool = False
    security: Security = "semi-honest"

    def __post_init__(self) -> None:
        for name in ("n_clients", "threshold", "length", "neighbours", "max_weight"):
            value = getattr(self, name)
            if isinstance(value, np.integer):  # products of numpy's would wrap
                object.__setattr__(self, name, int(value))
        self._check_security()
        self._check_cohort()
        check_integer("length", self.length, 1, 1 << 31)
        if isinstance(self.encoding, type) or not isinstance(self.encoding, Encoding):
            raise ParameterError(
                f"encoding must be a FixedPoint or Integers, not {self.encoding!r}"
            )
        if self.max_weight is not None:
            check_integer("max_weight", self.max_weight, 1, 1 << 53)
        check_session(self.session)
        if self.active:
            self._check_active()
        if self.modulus is not None and self.modulus_bits is not None:
            raise ParameterError("give modulus_bits or modulus, not both")
        if self.modulus_bits is not None:
            check_integer("modulus_bits", self.modulus_bits, 1, 64)
        self._check_headroom()

    def _check_cohort(self) -> None:
        check_integer("n_clients", self.n_clients, 2, 1 << 20)
        if self.n_clients == 2 and not self.allow_two_clients:
            raise ParameterError(
                "n_clients is 2: each client would learn the other's input; take 3 or more, "
                "or pass allow_two_clients=True to accept that"
            )
        if self.neighbours is not None:
            if self.n_clients == 2:
                raise ParameterError("neighbours must be None for two clients")
            check_integer("neighbours", self.neighbours, 2, self.n_clients - 1)
            if self.neighbours % 2:
                raise ParameterError(
                    f"neighbours is {self.neighbours} and must be even, for a regular graph: "
                    f"take {self.neighbours - 1} or, among more than {self.neighbours + 1} "
                    f"clients, {self.neighbours + 1}"
                )
        check_integer("threshold", self.threshold, 1, 1 << 20)
        self._check_threshold()

    def _check_threshold(self) -> None:
        if self.neighbours is None:
            low, high = self.n_clients // 2 + 1, self.n_clients
            rule = f"{high} clients on the complete graph: take more than half, {low} to {high}"
        else:
            low, high = 2, self.neighbours
            rule = f"{high} neighbours: take {low} to {high}; `secagg params` finds a safe one"
        if not low <= self.threshold <= high:
            wrong = "large" if self.threshold > high else "small"
            raise ParameterError(f"threshold is {self.threshold}, too {wrong} for {rule}")

    def _check_security(self) -> None:
        security: str = self.security  # of a type that is not checked when it is passed
        if security not in ("semi-honest", "active"):
            hint = (
                "; 'semi-malicious' is for secagg.graph.recommend, whose graphs are for "
                "'semi-honest' rounds"
            )
            raise ParameterError(
                f"security must be 'semi-honest' or 'active', not {security!r}"
                f"{hint if security == 'semi-malicious' else ''}"
            )
        # before the threshold, whose rules differ where there are neighbours
        if self.active and self.neighbours is not None:
            raise ParameterError(
                f"neighbours is {self.neighbours}, but a lying server would draw the graph: "
                "security 'active' needs the complete one, neighbours=None"
            )

    def _check_active(self) -> None:
        if 3 * self.threshold <= 2 * self.n_clients:
            raise ParameterError(
                f"threshold is {self.threshold}, too small for {self.n_clients} clients if "
                "the server may lie; take more than two thirds, "
                f"{2 * self.n_clients // 3 + 1} to {self.n_clients}"
            )
        if not self.session:
            raise ParameterError(
                "session is empty, but the signatures of an active round name it; pass "
                "session=b'…', a new one for every round"
            )

    def _check_headroom(self) -> None:
        weight = self.max_weight or 1
        largest = self.n_clients * max(self.encoding.max_encoded * weight, weight)
        needed = 2 * largest + 1 if self.encoding.signed else largest + 1
        if self.ring.modulus < needed:
            raise ParameterError(
                f"modulus {self.ring} has no headroom: the sum of {self.n_clients} vectors "
                f"with elements up to {self.encoding.max_encoded}"
                f"{f' and weights up to {weight}' if self.max_weight else ''} needs R ≥ "
                f"{needed}; {_remedy((needed - 1).bit_length())}"
            )
        packed = -(-self.elements * self.ring.bits // 8)
        if packed >= 1 << 32:
            raise ParameterError(
                f"length {self.length} at {self.ring.bits} bits makes a message of {packed} "
                "bytes, above 2^32 - 1; split the vector over several rounds"
            )
        if largest >= 1 << 63:
            raise ParameterError(
                f"sums up to {largest} do not fit an int64; encode smaller values"
            )

    @cached_property
    def ring(self) -> Ring:
        """Ring Z_R, in which masked vectors are added."""
        if self.modulus is not None:
            return Ring(self.modulus)
        return Ring(1 << (32 if self.modulus_bits is None else self.modulus_bits))

    @property
    def active(self) -> bool:
        """True if `security` is "active", with signatures and the consistency check."""
        return self.security == "active"

    @property
    def holders(self) -> int:
        """Number of holders of a secret's shares, its owner included, if all n clients come."""
        return self.n_clients if self.neighbours is None else self.neighbours + 1

    @property
    def elements(self) -> int:
        """Number of elements of a masked vector: `length`, plus 1 in a weighted sum."""
        return self.length + (self.max_weight is not None)

    @property
    def min_survivors(self) -> int:
        """Smallest number of inputs of a sum: t, at least 3 (2 with `allow_two_clients`)."""
        return max(self.threshold, 2 if self.allow_two_clients else 3)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the parameters, without the encoding's `rounding` and `beyond_clip`."""
        numbers = struct.pack(
            "<QQQQQ?",
            self.n_clients,
            self.threshold,
            self.length,
            self.neighbours or 0,
            self.max_weight or 0,
            self.allow_two_clients,
        )
        parts = (
            b"secagg/1 parameters",
            numbers,
            self.ring.modulus.to_bytes(9, "little"),
            self.encoding.canonical(),
            self.security.encode(),
            self.session,
        )
        return hashlib.sha256(b"".join(struct.pack("<Q", len(p)) + p for p in parts)).digest()


def _remedy(bits: int) -> str:
    if bits > 64:
        return "no modulus is that large: lower the clip, the fractional bits or the weights"
    return f"take modulus_bits={bits} or more, or a smaller range of values (a lower clip)"
