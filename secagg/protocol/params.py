"""Parameters of a round, validated before the round starts.

The server and every client must have equal ``RoundParams``. The messages of rounds 0 and 1 have
the bytes of the parameters or depend on them, so different parameters raise an error there.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import Literal, Self, overload

from secagg._check import as_bytes, check_flag, check_integer, check_kind
from secagg.encoding import Encoding
from secagg.errors import ParameterError
from secagg.graph.graph import CORRUPT, DROPOUT
from secagg.protocol.noise import Noise, Share, tail
from secagg.protocol.params_bytes import Fields, malformed, pack, unpack
from secagg.protocol.shape import Security, Shape, read_encoding, smallest_bits
from secagg.protocol.suggestion import suggest_pair, suggest_suite
from secagg.protocol.suites import SuiteName, as_suite


class _Implied(int):
    """Smallest number of survivors that follows from the threshold, and was not given.

    A copy of the parameters with another threshold gets its own number.
    """


class _Survivors:
    """Type of `RoundParams.min_survivors`: an int that may be given as None."""

    @overload
    def __get__(self, params: None, owner: type[RoundParams]) -> None: ...

    @overload
    def __get__(self, params: RoundParams, owner: type[RoundParams]) -> int: ...

    def __get__(self, params: RoundParams | None, owner: type[RoundParams]) -> int | None:
        found: int | None = None if params is None else vars(params)["min_survivors"]
        return found

    def __set__(self, params: RoundParams, value: int | None) -> None:
        vars(params)["min_survivors"] = None if isinstance(value, _Implied) else value


class _Suite:
    """Type of `RoundParams.suite`: a name that may be given as None."""

    @overload
    def __get__(self, params: None, owner: type[RoundParams]) -> None: ...

    @overload
    def __get__(self, params: RoundParams, owner: type[RoundParams]) -> SuiteName: ...

    def __get__(self, params: RoundParams | None, owner: type[RoundParams]) -> SuiteName | None:
        found: SuiteName | None = None if params is None else vars(params)["suite"]
        return found

    def __set__(self, params: RoundParams, value: SuiteName | None) -> None:
        vars(params)["suite"] = value


@dataclass(frozen=True, kw_only=True)
class RoundParams(Shape):
    """Parameters of a round of secure aggregation. `suggest` chooses safe parameters.

    Parameters
    ----------
    n_clients : int
        n, the largest number of clients that may take part, 3 ≤ n ≤ 2^20; 2 is possible with
        `allow_two_clients`.
    threshold : int
        t, the number of shares that reconstruct a secret. On the complete graph more than half
        of the n clients, and more than two thirds if `security` is "active". With `neighbours`
        2 ≤ t ≤ k: take the threshold of `suggest` or `secagg.graph.recommend`.
    length : int
        d, the number of elements of a vector, 1 ≤ d ≤ 2^31.
    encoding : FixedPoint, Integers or Bounded
        Conversion of elements to integers.
    modulus_bits : int, optional
        b, for R = 2^b, 1 ≤ b ≤ 64. If neither `modulus_bits` nor `modulus` is given, 32, or as
        many as the sum of n vectors needs.
    modulus : int, optional
        R, in place of `modulus_bits`: 2 ≤ R ≤ 2^62, or a power of two up to 2^64.
    neighbours : int, optional
        k, the even number of clients that each client shares secrets and masks with, on a
        random Harary graph (Bell et al. 2020). None: all clients (Bonawitz et al. 2017). A
        client is exposed if all its neighbours collude or drop out; `secagg.graph.recommend`
        finds a k that makes exposure unlikely.
    max_weight : int, optional
        The largest weight of a vector, 1 to 2^53. None: an unweighted sum.
    session : bytes, optional
        Name of the round, at most 64 bytes, which all keys depend on. Give each round a
        different name. If `security` is "active", the name must not be empty.
    allow_two_clients : bool
        Accept that with two clients each learns the other's input from the sum.
    count_clipped : bool
        Sum the number of clipped elements of each vector, too, as one more masked element. The
        result has the total as ``RoundResult.clipped``. Weights have no influence on the total.
        With `Bounded`, ``RoundResult.clipped_vectors`` is the number of clipped vectors.
    security : "semi-honest" or "active"
        Adversary to protect against. "semi-honest": the server and clients follow the protocol
        but remember everything. "active": they may also lie, which takes signatures, a fifth
        round (Bonawitz 2017, §6.2) and the complete graph.
    suite : "hybrid" or "x25519", optional
        With "hybrid" who records the round, and later breaks X25519 with a quantum computer,
        learns nothing more than the server. For each holder a client sends 1.2 kB more and
        receives 2.4 kB more. None: "hybrid" for up to 300 clients, where a client sends fewer
        bytes more than its vector has; see `suggestion.suggest_suite`.
    noise : Noise, optional
        Noise of the sum for differential privacy, which the clients add in shares. Weights and
        counts get noise, too. None: exact sums.
    min_survivors : int, optional
        m, the smallest number of inputs of a sum, up to n. None, or a smaller number than the
        threshold permits: the threshold, at least 3 (2 with `allow_two_clients`). Any m
        survivors without the noise's colluders have noise of variance σ². On a graph no client
        sees all survivors, and only the server counts them.

    Raises
    ------
    ParameterError
        A value is out of range, R is too small for the sum of n vectors, or a client's share of
        the noise has a deviation below 4 or above 2^28 steps.
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
    count_clipped: bool = False
    security: Security = "semi-honest"
    suite: _Suite = _Suite()
    noise: Noise | None = None
    min_survivors: _Survivors = _Survivors()

    def __post_init__(self) -> None:
        self._take_integers()
        check_flag("allow_two_clients", self.allow_two_clients)
        # any str at run time: only type checkers see the type of the field
        security: str = self.security
        if security not in ("semi-honest", "active"):
            hint = (
                "; 'semi-malicious' is for secagg.graph.recommend, whose graphs are for "
                "'semi-honest' rounds"
            )
            raise ParameterError(
                f"security must be 'semi-honest' or 'active', not {security!r}"
                f"{hint if security == 'semi-malicious' else ''}"
            )
        # before the threshold, which has other rules with neighbours
        if self.active and self.neighbours is not None:
            raise ParameterError(
                f"neighbours is {self.neighbours}, but a lying server would draw the graph: "
                "security 'active' needs the complete one, neighbours=None"
            )
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
        if isinstance(self.threshold, float) and 0 < self.threshold < 1:
            share = self.threshold * self.n_clients
            raise ParameterError(
                f"threshold must be an int, not {self.threshold!r}; {100 * self.threshold:.3g} "
                f"% of {self.n_clients} is {ceil(round(share, 9))}"
            )
        check_integer("threshold", self.threshold, 1, 1 << 20)
        if self.neighbours is None:
            most, part = (2, "two thirds") if self.active else (1, "half")
            low, high = most * self.n_clients // (most + 1) + 1, self.n_clients
            when = " if the server may lie" if self.active else ""
            rule = f"{high} clients on the complete graph{when}: take more than {part}"
            rule = f"{rule}, {low} to {high}"
        else:
            low, high = 2, self.neighbours
            rule = f"{high} neighbours: take {low} to {high}; `secagg params` finds a safe one"
        if not low <= self.threshold <= high:
            wrong = "large" if self.threshold > high else "small"
            raise ParameterError(f"threshold is {self.threshold}, too {wrong} for {rule}")
        given: int | None = vars(self)["min_survivors"]
        if given is not None:
            check_integer("min_survivors", given, 0, self.n_clients)
        implied = given is None or given <= self.least
        vars(self)["min_survivors"] = _Implied(self.least) if implied else given
        if self.noise is not None:
            check_kind("noise", self.noise, Noise, "a secagg.Noise")
            if self.noise.colluders > self.min_survivors - 2:
                raise ParameterError(
                    f"the noise has {self.noise.colluders} colluders, and sums of "
                    f"{self.min_survivors} inputs need two shares of others; take "
                    f"min_survivors={self.noise.colluders + 2} or more, or fewer colluders"
                )
        self._check_shape()  # which computes the share
        suite: SuiteName | None = vars(self)["suite"]
        packed = self.ring.packed_bytes(self.elements)
        vars(self)["suite"] = (
            suggest_suite(self.n_clients, self.holders, packed)
            if suite is None
            else as_suite(suite)
        )

    @classmethod
    def suggest(
        cls,
        n: int,
        length: int,
        encoding: Encoding,
        *,
        security: Security = "semi-honest",
        max_weight: int | None = None,
        corrupt: float = CORRUPT,
        dropout: float = DROPOUT,
        neighbours: int | Literal["auto"] | None = "auto",
        threshold: int | None = None,
        session: bytes = b"",
        modulus_bits: int | None = None,
        count_clipped: bool = False,
        suite: SuiteName | None = None,
        noise: Noise | None = None,
        min_survivors: int | None = None,
    ) -> Self:
        """Return complete and safe parameters of a round of n clients.

        Up to 100 clients, and if `security` is "active", the graph is complete. t is ⌈0.7 n⌉,
        or the smallest above two thirds of n in the active variant. Above 100 clients
        `secagg.graph.recommend` finds k and t. The default `ClientPolicy` accepts the result.

        Take for n the clients that turn up, not all that you invite. `dropout` is the fraction
        of clients that leave after their first message. Above 100 clients nearly all n must
        turn up, or the clients end the round: see ``ClientPolicy().smallest_cohort(params)``.

        Parameters
        ----------
        n : int
            Largest number of clients that may take part, 3 to 2^20.
        length, encoding, security, max_weight, session, count_clipped, suite, noise
            See `RoundParams`.
        min_survivors : int, optional
            See `RoundParams`.
        corrupt, dropout : float
            Largest fractions of the clients that collude with the server, and that drop out
            after they advertised keys.
        neighbours : int, "auto" or None
            k in place of the suggestion; None for the complete graph.
        threshold : int, optional
            t in place of the suggestion. For a given k, the default is 70 % of the k + 1
            holders, and at most k.
        modulus_bits : int, optional
            b for R = 2^b. None: the smallest that fits the sum.

        Raises
        ------
        ParameterError
            A value is out of range, or no graph is safe under such assumptions.
        """
        k, t = suggest_pair(n, corrupt, dropout, security, neighbours, threshold)
        made = cls(
            n_clients=n,
            threshold=t,
            length=length,
            encoding=encoding,
            modulus_bits=modulus_bits,
            neighbours=k,
            max_weight=max_weight,
            session=session,
            count_clipped=count_clipped,
            security=security,
            suite=suite,
            noise=noise,
            min_survivors=min_survivors,
        )
        if modulus_bits is not None:
            return made
        # in a second step, because b depends on fields that the first step has validated
        return replace(made, modulus_bits=smallest_bits(made), suite=suite)

    def __eq__(self, other: object) -> bool:
        # the bytes leave out an encoding's local choices, such as its rounding
        # a modulus has up to three spellings: modulus, modulus_bits and the default
        if not isinstance(other, RoundParams):
            return NotImplemented
        return self.encoding == other.encoding and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    @property
    def holders(self) -> int:
        """Number of holders of a secret's shares, the owner included, if all n clients come."""
        return self.n_clients if self.neighbours is None else self.neighbours + 1

    @property
    def most_liars(self) -> int:
        """Largest number of clients that may lie in the active variant, 2t − n − 1."""
        return 2 * self.threshold - self.n_clients - 1

    @property
    def least(self) -> int:
        """Smallest list of a client on a graph: t, at least 3 (2 with `allow_two_clients`)."""
        return max(self.threshold, 2 if self.allow_two_clients else 3)

    @property
    def noised_survivors(self) -> int | None:
        """The number `min_survivors` if the sum has noise, else None."""
        return None if self.noise is None else int(self.min_survivors)

    @cached_property
    def share(self) -> Share | None:
        """Noise that each client adds to each element; None without `noise`."""
        if self.noise is None:
            return None
        return Share.of(self.noise.scaled, self.min_survivors, self.noise.colluders)

    @property
    def noise_bound(self) -> int:
        """Bound on the noise of an element of the sum, 0 without `noise`; see `noise.tail`."""
        return 0 if self.share is None else tail(self.share.scaled, self.n_clients)

    def to_bytes(self) -> bytes:
        """Return the parameters as bytes, of at most 379; see docs/protocol.md, §3.3.

        The encoding's `rounding` and `beyond_clip` are each client's own, and not in the bytes.
        """
        return self._packed

    @cached_property
    def _packed(self) -> bytes:
        # all fields but four have the names and values of the parameters
        values = {name: getattr(self, name) for name in Fields._fields}
        values |= {"modulus": self.ring.modulus, "encoding": self.encoding.canonical()}
        values["noise"] = b"" if self.noise is None else self.noise.canonical()
        if isinstance(self.min_survivors, _Implied):
            values["min_survivors"] = None
        return pack(Fields(**values))

    @classmethod
    def from_bytes(cls, data: bytes, encoding: Encoding | None = None) -> RoundParams:
        """Return the parameters that `to_bytes` encoded, as a server sent them, for example.

        The parameters are valid, but need not be acceptable. A `Client` judges them by its
        policy, which knows no earlier round. In the active variant, reject a `session` that was
        used before.

        Parameters
        ----------
        data : bytes
        encoding : Encoding, optional
            This client's encoding, with the client's choice of `rounding` and `beyond_clip`. It
            must be the encoding of the bytes. Required if the bytes have an encoding of none of
            this package's classes.

        Raises
        ------
        ParameterError
            The data are not bytes, or `encoding` is not an encoding.
        RemoteProtocolError
            "version", "length" or "parameters": the data are not exactly the bytes of valid
            parameters with this encoding.
        """
        data = as_bytes(data, "the parameters")
        fields = unpack(data)
        rest = fields._asdict() | {"encoding": read_encoding(fields.encoding, encoding)}
        if fields.modulus & (fields.modulus - 1) == 0:  # as bits, easy to replace
            rest |= {"modulus": None, "modulus_bits": fields.modulus.bit_length() - 1}
        try:
            rest["noise"] = Noise.from_canonical(fields.noise) if fields.noise else None
            made = cls(**rest)
        except ParameterError as error:
            raise malformed("parameters", str(error)) from None
        if fields.min_survivors is not None and fields.min_survivors <= made.least:
            raise malformed(
                "parameters",
                f"min_survivors {fields.min_survivors} is not above {made.least}, which the "
                "threshold implies",
            )
        return made

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the label "secagg/4 parameters" and `to_bytes`."""
        return hashlib.sha256(b"secagg/4 parameters" + self.to_bytes()).digest()
