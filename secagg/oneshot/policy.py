"""Policy of a client or helper for one-shot sums: demands that the aggregator cannot weaken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from secagg._check import as_bytes, check_flag, check_integer, check_kind
from secagg._printable import fingerprints, short_repr
from secagg.errors import ParameterError
from secagg.graph.graph import CORRUPT, check_fractions, count, to_float
from secagg.oneshot.params import MAX_HELPERS, OneShotParams
from secagg.protocol.bounds import Bounds
from secagg.protocol.identities import SIGNATURE_BYTES

_REMEDY = "endorsements=[Helper.endorse() of each, in order]"
_HONEST = 2
"""Honest vectors in every sum: a single one would be read."""


def endorsement(params: OneShotParams) -> bytes:
    """Return the bytes that a helper signs to endorse parameters."""
    return b"secagg/1 one-shot endorsed" + params.digest


def listed(endorsements: Iterable[bytes]) -> list[bytes]:
    """Return endorsements as a list; raise `ParameterError` unless they are bytes in order."""
    given: object = endorsements
    unordered = isinstance(given, str | bytes | bytearray | memoryview | Mapping | Set)
    if unordered or not isinstance(given, Iterable):
        raise ParameterError(
            f"endorsements must be a list, not {type(given).__name__}; pass "
            f"{_REMEDY}, or leave them out"
        )
    signatures = [as_bytes(one, f"endorsement {j}") for j, one in enumerate(given, 1)]
    for j, signature in enumerate(signatures, 1):
        if len(signature) != SIGNATURE_BYTES:
            raise ParameterError(
                f"endorsement {j} has {len(signature)} bytes, not {SIGNATURE_BYTES}; pass "
                f"{_REMEDY}"
            )
    return signatures


@dataclass(frozen=True, kw_only=True)
class OneShotPolicy:
    """Demands of a client or a helper on the parameters; other parameters are not served.

    Parameters
    ----------
    min_threshold : int
        The smallest threshold that a client accepts, 1 to 16. With 1, each helper alone could
        open.
    min_clients : int
        The smallest accepted ``params.min_clients``, 2 to 2^20; at a helper, the smallest list
        that the helper opens. A number is rejected that leaves a sum fewer than two honest
        clients.
    require_active : bool
        Reject parameters with another `security` than "active", where a lying aggregator goes
        unnoticed.
    helpers : collection of bytes, optional
        Ed25519 keys of all helpers that the client trusts not to collude. Each helper of the
        parameters must be among these helpers and must endorse the parameters. None: the
        parameters come from the application, not from the aggregator. A helper's policy has
        none.
    corrupt : float
        Largest expected fraction of the clients that collude with the aggregator, 0 ≤ corrupt
        < 1; their number c is rounded up. The fraction is of `n_clients`, or at a helper of the
        registry, if the registry has more clients: the aggregator chooses which registered
        clients report.
    colluders : int, optional
        c itself, 0 to 2^20, in place of `corrupt`.
    max_length : int
        The largest accepted number of elements of a vector, 1 to 2^31.
    max_clients : int
        The largest accepted `n_clients` at a helper without a registry, 2 to 2^20. There the
        aggregator can invent clients, and each invented client costs the helper a mask.
    bounds : Bounds, optional
        Bounds of the client's input, which all parameters must have. None: the doors of this
        package, such as `secagg.session.take_part`, fix the bounds of the first sum.
    require_hybrid : bool
        Reject parameters of suite "x25519", which a later quantum computer opens.

    Raises
    ------
    ParameterError
        A value is out of range.
    """

    min_threshold: int = 2
    min_clients: int = 3
    require_active: bool = False
    helpers: frozenset[bytes] | None = None
    corrupt: float = CORRUPT
    colluders: int | None = None
    max_length: int = 1 << 28
    max_clients: int = 1 << 17
    bounds: Bounds | None = None
    require_hybrid: bool = False

    def __post_init__(self) -> None:
        # numpy's numbers are accepted, and become Python's: sums of numpy's would wrap
        check_integer("min_threshold", self.min_threshold, 1, MAX_HELPERS)
        for name in ("require_active", "require_hybrid"):
            check_flag(name, getattr(self, name))
        check_integer("min_clients", self.min_clients, 2, 1 << 20)
        check_fractions(self.corrupt, 0.0)
        if self.colluders is not None:
            check_integer("colluders", self.colluders, 0, 1 << 20)
        check_integer("max_length", self.max_length, 1, 1 << 31)
        check_integer("max_clients", self.max_clients, 2, 1 << 20)
        for name in ("min_threshold", "min_clients", "colluders", "max_length", "max_clients"):
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else int(value))
        object.__setattr__(self, "corrupt", to_float(self.corrupt))
        if self.bounds is not None:
            check_kind("bounds", self.bounds, Bounds, "a secagg.Bounds")
        if self.helpers is None:
            return
        if not all(isinstance(key, bytes) and len(key) == 32 for key in self.helpers):
            raise ParameterError(
                "helpers must be a collection of Ed25519 keys, 32 bytes each; pass "
                "HelperJournal.public[1] of each helper"
            )
        object.__setattr__(self, "helpers", frozenset(self.helpers))

    def __repr__(self) -> str:
        if self.helpers is None:
            return short_repr(self)
        return short_repr(self, helpers=fingerprints(sorted(self.helpers)))

    def check(self, params: OneShotParams, endorsements: Iterable[bytes] = ()) -> None:
        """Raise `ParameterError` unless `params` satisfy this policy of a client.

        Parameters
        ----------
        params : OneShotParams
        endorsements : iterable of bytes
            ``Helper.endorse()`` of each helper, in their order in `params`, if the policy has
            `helpers`; else none.
        """
        signatures = listed(endorsements)
        if params.threshold < self.min_threshold:
            raise ParameterError(
                f"threshold {params.threshold} is below the policy's min_threshold "
                f"{self.min_threshold}; take that threshold or more, or lower min_threshold"
            )
        if params.min_clients < self.min_clients:
            raise ParameterError(
                f"min_clients {params.min_clients} is below the policy's min_clients "
                f"{self.min_clients}; "
                + (
                    "for two pass OneShotPolicy(min_clients=2, corrupt=0.0)"
                    if params.n_clients == 2
                    else f"pass min_clients={self.min_clients} or more for the sum (on Flower "
                    "to OneShot), or lower it in the policy"
                )
            )
        self._check_fields(params, params.n_clients, params.min_clients)
        if self.bounds is not None:
            self.bounds.check(params)
        if self.helpers is not None:
            self._check_helpers(params, signatures, self.helpers)
        elif signatures:
            # a report would be sent unverified, by a caller who thinks that it was checked
            raise ParameterError(
                f"{len(signatures)} endorsements, and the policy trusts no helpers, so they "
                "cannot be verified; pass OneShotPolicy(helpers={the Ed25519 key of each}), or "
                "leave them out"
            )

    def check_at_helper(self, params: OneShotParams, registered: int | None) -> None:
        """Raise `ParameterError` unless `params` satisfy this policy of a helper.

        Parameters
        ----------
        params : OneShotParams
        registered : int or None
            Number of clients in the helper's registry; None without a registry.
        """
        if registered is None and params.n_clients > self.max_clients:
            raise ParameterError(
                f"n_clients {params.n_clients} is above max_clients {self.max_clients} of this "
                "helper, which has no registry; take fewer clients, or security='active'"
            )
        # the aggregator picks which registered clients report: any of them may be colluders
        population = max(params.n_clients, registered or 0)
        self._check_fields(params, population, max(params.min_clients, self.min_clients))

    def _check_fields(self, params: OneShotParams, population: int, smallest: int) -> None:
        if self.require_active and not params.active:
            raise ParameterError(
                f"security is {params.security!r}, but this policy requires 'active'; take "
                "security='active', or require_active=False in the policy"
            )
        if self.require_hybrid and params.suite != "hybrid":
            raise ParameterError(
                f"suite is {params.suite!r}, but this policy requires 'hybrid'; take helpers "
                "of suite 'hybrid', or require_hybrid=False in the policy"
            )
        if params.length > self.max_length:
            raise ParameterError(
                f"length {params.length} is above the policy's max_length {self.max_length}; "
                "take shorter vectors, or raise max_length if the memory suffices"
            )
        # c colluders must leave two honest vectors in a sum of `smallest` clients
        if self.colluders is None:
            colluders, named = count(self.corrupt, population), "corrupt"
            shown = f"{self.corrupt:.3g} of {population}, that is {colluders},"
        else:
            colluders, named, shown = self.colluders, "colluders", f"{self.colluders}"
        least = colluders + _HONEST
        if smallest >= least:
            return
        remedy = (
            f"take min_clients of {least} or more"
            if least <= params.n_clients
            else f"take n_clients and min_clients of {least} or more"
        )
        raise ParameterError(
            f"min_clients {smallest} is too small if {shown} collude with the aggregator: a "
            f"sum could be of one honest vector; {remedy}, or lower {named}"
        )

    def _check_helpers(
        self, params: OneShotParams, endorsements: Sequence[bytes], accepted: frozenset[bytes]
    ) -> None:
        if len(endorsements) != len(params.helpers):
            raise ParameterError(
                f"{len(endorsements)} endorsements of {len(params.helpers)} helpers; pass "
                f"{_REMEDY}"
            )
        for j, signature in enumerate(endorsements, 1):
            key = params.identities[j]
            if key not in accepted:
                raise ParameterError(
                    f"helper {j} with Ed25519 key {key.hex()} is not one that this client "
                    "accepts; add its key to OneShotPolicy(helpers=…), or leave the session"
                )
            if not params.identities.verifies(j, endorsement(params), signature):
                raise ParameterError(
                    f"helper {j} has not endorsed these parameters: its signature is of "
                    "others, so somebody may have changed its key; leave the session"
                )
