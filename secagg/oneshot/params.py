"""Parameters for one-shot sums, which clients, aggregator and helpers have in common."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING, Self, get_args
from warnings import warn

from secagg._check import as_bytes, check_integer, check_kind
from secagg._printable import fingerprints, short_repr
from secagg.encoding import Bounded, Encoding
from secagg.errors import ParameterError
from secagg.graph.graph import CORRUPT, DROPOUT
from secagg.oneshot import params_bytes, suites
from secagg.oneshot.layout import Layout
from secagg.oneshot.seeds import held
from secagg.protocol import Registry, RoundParams
from secagg.protocol.noise import Noise
from secagg.protocol.params_bytes import malformed
from secagg.protocol.shape import Security, Shape, read_encoding, smallest_bits
from secagg.protocol.suggestion import suggest_fewest
from secagg.protocol.suites import SuiteName, as_suite

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_HELPERS = 16
MAX_SEEDS = 256


@dataclass(frozen=True, kw_only=True)
class OneShotParams(Shape):
    """Parameters of a session with one-shot sums. All batches are of different clients.

    `suggest` chooses safe parameters. Parameters come from the application. **An aggregator
    that chooses the helpers' keys reads every vector.** If the aggregator relays the
    parameters, clients need ``OneShotPolicy(helpers=…)``.

    Parameters
    ----------
    n_clients : int
        n, the largest number of clients of a batch, 2 ≤ n ≤ 2^20.
    length : int
        d, the number of elements of a vector, 1 ≤ d ≤ 2^31.
    encoding : FixedPoint or Integers
        Conversion of elements to integers.
    modulus_bits, modulus : int, optional
        b for R = 2^b, or R itself, as in `secagg.RoundParams`. If neither is given, b is 32, or
        as many bits as the sum and the noise need.
    helpers : sequence of (bytes, bytes)
        HPKE key and Ed25519 key of each of 1 to 16 helpers, ``HelperJournal.public``, in order.
    threshold : int
        t, 1 ≤ t ≤ ℓ: any t helpers open a batch, and any t − 1 together learn nothing of a
        vector. At most 256 subsets of t − 1 helpers.
    min_clients : int
        Smallest number of clients in an opened sum, 2 to n; colluding clients hide nobody.
    max_weight : int, optional
        The largest weight of a vector, 1 to 2^53. None: an unweighted sum.
    security : "active" or "semi-honest"
        "active": clients sign their reports, and the aggregator may lie. "semi-honest": the
        aggregator follows the protocol but remembers everything.
    suite : "hybrid" or "x25519"
        Suite of HPKE. "hybrid" adds ML-KEM-768, against recorded traffic and later quantum
        computers; "x25519" saves 1.1 kB for each helper.
    session : bytes
        Name of the session, at most 64 bytes, different for every session. If `security` is
        "active", the name must not be empty.
    noise : Noise, optional
        Noise for differential privacy, which every helper adds to each mask of the helper's
        answer. Weights get noise, too. None: exact sums.

    Raises
    ------
    ParameterError
        A value is out of range, R is too small for the sum of n vectors and the noise, or a
        helper's key is not canonical, of low order or also another helper's.
    MissingExtra
        The installed cryptography lacks the suite.
    """

    n_clients: int
    length: int
    encoding: Encoding
    modulus_bits: int | None = None
    modulus: int | None = None
    helpers: tuple[tuple[bytes, bytes], ...]
    threshold: int
    min_clients: int
    max_weight: int | None = None
    security: Security = "active"
    suite: SuiteName = "hybrid"
    session: bytes = b""
    noise: Noise | None = None

    def __post_init__(self) -> None:
        self._take_integers()
        self._check_helpers()
        check_integer("threshold", self.threshold, 1, MAX_HELPERS)
        if self.threshold > len(self.helpers):
            raise ParameterError(
                f"threshold is {self.threshold}, and there are {len(self.helpers)} helpers; "
                f"take {self.threshold} or more, or a threshold of at most {len(self.helpers)}"
            )
        if self.seeds > MAX_SEEDS:
            raise ParameterError(
                f"threshold {self.threshold} of {len(self.helpers)} helpers needs {self.seeds} "
                f"seeds for each client, more than {MAX_SEEDS}; take fewer helpers"
            )
        check_integer("n_clients", self.n_clients, 2, 1 << 20)
        check_integer("min_clients", self.min_clients, 2, self.n_clients)
        if self.security not in get_args(Security):
            raise ParameterError(
                f"security must be 'semi-honest' or 'active', not {self.security!r}"
            )
        if self.noise is not None:
            check_kind("noise", self.noise, Noise, "a secagg.Noise")
            if self.noise.colluders:
                raise ParameterError(
                    f"the noise names {self.noise.colluders} colluders, but helpers add the "
                    "noise of a one-shot sum, not clients; leave colluders out"
                )
        if isinstance(self.encoding, Bounded):
            raise ParameterError(
                "one-shot sums do not know Bounded vectors; take FixedPoint or Integers, or "
                "a round of RoundParams"
            )
        self._check_shape()

    def __repr__(self) -> str:
        # a hybrid HPKE key has 1,216 bytes
        return short_repr(self, helpers=fingerprints(signing for _, signing in self.helpers))

    @classmethod
    def suggest(
        cls,
        n: int,
        length: int,
        encoding: Encoding,
        *,
        helpers: Iterable[tuple[bytes, bytes]],
        security: Security = "active",
        max_weight: int | None = None,
        corrupt: float = CORRUPT,
        dropout: float = DROPOUT,
        threshold: int | None = None,
        min_clients: int | None = None,
        session: bytes = b"",
        modulus_bits: int | None = None,
        noise: Noise | None = None,
    ) -> Self:
        """Return complete and safe parameters of sums of n clients.

        The suite follows from the keys. Two helpers open a sum of ⌈0.7 n⌉ ≥ 3 clients or more.

        Parameters
        ----------
        n : int
            Largest number of clients of a batch, 2 to 2^20.
        length, encoding, helpers, security, max_weight, session, noise
            See `OneShotParams`.
        corrupt, dropout : float
            Largest fractions of the clients that collude, and that never report. If more than
            30 % may be missing, fewer clients are enough, with two honest clients at least.
        threshold, min_clients : int, optional
            Numbers in place of the suggestion.
        modulus_bits : int, optional
            b for R = 2^b. None: the smallest that fits the sum and the noise.

        Raises
        ------
        ParameterError
            A value is out of range, or no sum is safe under such assumptions.
        MissingExtra
            The installed cryptography lacks the suite.
        """
        check_integer("n", n, 2, 1 << 20)
        found = _pairs(helpers)
        made = cls(
            n_clients=n,
            length=length,
            encoding=encoding,
            modulus_bits=modulus_bits,
            helpers=found,
            threshold=min(2, len(found)) if threshold is None else threshold,
            min_clients=(
                suggest_fewest(int(n), corrupt, dropout) if min_clients is None else min_clients
            ),
            max_weight=max_weight,
            security=security,
            suite=suites.suite_of(found[0][0] if found else b""),
            session=session,
            noise=noise,
        )
        if modulus_bits is not None:
            return made
        return replace(made, modulus_bits=smallest_bits(made))

    def _check_helpers(self) -> None:
        as_suite(self.suite)
        pairs = _pairs(self.helpers)
        object.__setattr__(self, "helpers", pairs)
        check_integer("the number of helpers", len(pairs), 1, MAX_HELPERS)
        for number, pair in enumerate(pairs, 1):
            if not all(isinstance(key, bytes) for key in pair):
                raise ParameterError(f"a key of helper {number} is not bytes")
        suites.check_keys(self.suite, [box for box, _ in pairs])
        _ = self.identities  # raises for a weak key, and for a key at two places

    @cached_property
    def identities(self) -> Registry:
        """The helpers' Ed25519 keys, by their numbers from 1 on."""
        try:
            return Registry({j: key for j, (_, key) in enumerate(self.helpers, 1)})
        except ParameterError as error:
            raise ParameterError(f"among the helpers' Ed25519 keys {error}") from None

    @property
    def sums(self) -> RoundParams:
        """Deprecated: the parameters have ring and bounds themselves. Removed in 1.1."""
        warn(
            "OneShotParams.sums is deprecated and goes with secagg 1.1; use the parameters",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.shared(self.n_clients)

    def shared(self, n: int) -> RoundParams:
        """Return parameters of a sum of n such vectors by secret sharing, without noise."""
        return RoundParams(
            n_clients=n,
            threshold=n,
            length=self.length,
            encoding=self.encoding,
            modulus=self.ring.modulus,
            max_weight=self.max_weight,
            session=self.session,
            allow_two_clients=True,
            security=self.security,
        )

    @property
    def seeds(self) -> int:
        """Number of seeds of a client: C(ℓ, t − 1)."""
        return comb(len(self.helpers), self.threshold - 1)

    @property
    def noise_bound(self) -> int:
        """Bound on the noise of an element of the sum, 0 without `noise`; see `Noise.bound`."""
        return 0 if self.noise is None else self.noise.bound(self.seeds)

    @property
    def quorum(self) -> int:
        """Number of helpers that must reserve a list before any helper opens; 0 if none must.

        q = ⌊(ℓ + t − 1) / 2⌋ + 1. Two lists with a client in common would need 2q signatures.
        Honest helpers sign one list and t − 1 liars both, which gives at most ℓ + t − 1 < 2q
        signatures. If t = ℓ, every seed has a single holder, and that holder's journal is
        enough.
        """
        if not self.active or self.threshold == len(self.helpers):
            return 0
        return (len(self.helpers) + self.threshold - 1) // 2 + 1

    def held_by(self, helper: int) -> tuple[int, ...]:
        """Return the ascending indices, from 1 on, of the seeds that a helper gets."""
        return held(helper, len(self.helpers), self.threshold)

    @cached_property
    def layout(self) -> Layout:
        """Sizes and offsets of the messages."""
        held_by = [len(self.held_by(j)) for j in range(1, len(self.helpers) + 1)]
        packed = self.ring.packed_bytes(self.elements)
        return Layout.of(self.suite, self.seeds, held_by, packed, signed=self.active)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the label "secagg/1 one-shot parameters" and `to_bytes`."""
        return hashlib.sha256(b"secagg/1 one-shot parameters" + self.to_bytes()).digest()

    def to_bytes(self) -> bytes:
        """Return the parameters as bytes, equal for equal parameters.

        The bytes lack `rounding` and `beyond_clip` of the encoding, each client's own choice.
        """
        return params_bytes.pack(
            self, self.suite, self.threshold, self.min_clients, self.helpers, self.noise
        )

    @classmethod
    def from_bytes(cls, data: bytes, encoding: Encoding | None = None) -> Self:
        """Return the parameters that `to_bytes` encoded.

        The parameters are valid, but need not be acceptable: a client's policy judges them.

        Parameters
        ----------
        data : bytes
        encoding : Encoding, optional
            This client's encoding, with the client's choice of `rounding` and `beyond_clip`. It
            must match the bytes. Required if the bytes are of neither FixedPoint nor Integers.

        Raises
        ------
        ParameterError
            The data are not bytes, or `encoding` is not an encoding.
        RemoteProtocolError
            "version", "length" or "parameters": the data are not exactly the bytes of valid
            parameters with this encoding.
        MissingExtra
            The installed cryptography lacks the suite.
        """
        fields = params_bytes.unpack(as_bytes(data, "the parameters"))
        known = read_encoding(fields.encoding, encoding)
        try:
            return cls(**(fields._asdict() | {"encoding": known}))
        except ParameterError as error:
            raise malformed("parameters", str(error)) from None


def _pairs(helpers: Iterable[tuple[bytes, bytes]]) -> tuple[tuple[bytes, bytes], ...]:
    try:
        return tuple((box, identity) for box, identity in helpers)
    except (TypeError, ValueError):
        raise ParameterError(
            "helpers must be pairs of an HPKE key and an Ed25519 key; pass "
            "HelperJournal.public of each helper"
        ) from None
