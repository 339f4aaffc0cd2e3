"""Policy of a client of a one-shot sum: demands that the aggregator cannot weaken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from secagg._check import as_bytes, check_integer, check_kind
from secagg.errors import ParameterError
from secagg.oneshot.params import MAX_HELPERS, OneShotParams
from secagg.protocol.bounds import Bounds

_ENDORSED = b"secagg/1 one-shot endorsed"


def endorsement(params: OneShotParams) -> bytes:
    """Return the bytes that a helper signs to endorse parameters."""
    return _ENDORSED + params.digest


@dataclass(frozen=True, kw_only=True)
class OneShotPolicy:
    """Demands of a client on the parameters. It reports nothing under others.

    Parameters
    ----------
    min_threshold : int
        The smallest accepted threshold, 1 to 16. With 1, each helper alone could open.
    min_clients : int
        The smallest accepted ``params.min_clients``, 2 to 2^20.
    require_active : bool
        Reject parameters whose `security` is not "active", where a lying aggregator goes
        unnoticed.
    helpers : collection of bytes, optional
        Ed25519 keys of all helpers that the client trusts not to collude. Each helper of the
        parameters must be one of them and must endorse the parameters. None: the parameters
        come from the application, not from the aggregator.
    bounds : Bounds, optional
        Bounds of the client's input, which all parameters must have. None: the doors of this
        package, such as `secagg.session.take_part`, fix those of the first sum.

    Raises
    ------
    ParameterError
        A value is out of range.
    """

    min_threshold: int = 2
    min_clients: int = 3
    require_active: bool = False
    helpers: frozenset[bytes] | None = None
    bounds: Bounds | None = None

    def __post_init__(self) -> None:
        check_integer("min_threshold", self.min_threshold, 1, MAX_HELPERS)
        check_integer("min_clients", self.min_clients, 2, 1 << 20)
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

    def check(self, params: OneShotParams, endorsements: Sequence[bytes] = ()) -> None:
        """Raise `ParameterError` unless `params` satisfy this policy.

        Parameters
        ----------
        params : OneShotParams
        endorsements : sequence of bytes
            ``Helper.endorse()`` of each helper, in their order in `params`. They are validated
            if the policy has `helpers`.
        """
        if self.require_active and not params.active:
            raise ParameterError(
                f"security is {params.security!r}, but this client requires 'active'"
            )
        if params.threshold < self.min_threshold:
            raise ParameterError(
                f"threshold {params.threshold} is below this client's min_threshold "
                f"{self.min_threshold}"
            )
        if params.min_clients < self.min_clients:
            raise ParameterError(
                f"min_clients {params.min_clients} is below this client's min_clients "
                f"{self.min_clients}"
            )
        if self.bounds is not None:
            self.bounds.check(params)
        if self.helpers is not None:
            self._check_helpers(params, endorsements, self.helpers)

    def _check_helpers(
        self, params: OneShotParams, endorsements: Sequence[bytes], accepted: frozenset[bytes]
    ) -> None:
        if len(endorsements) != len(params.helpers):
            raise ParameterError(
                f"{len(endorsements)} endorsements of {len(params.helpers)} helpers; pass "
                "endorsements=[Helper.endorse() of each, in order]"
            )
        for j, given in enumerate(endorsements, 1):
            key = params.identities[j]
            if key not in accepted:
                raise ParameterError(
                    f"helper {j} with Ed25519 key {key.hex()} is not one that this client "
                    "accepts; add its key to OneShotPolicy(helpers=…), or leave the session"
                )
            signature = as_bytes(given, f"the endorsement of helper {j}")
            if not params.identities.verifies(j, endorsement(params), signature):
                raise ParameterError(
                    f"helper {j} has not endorsed these parameters: its signature is of "
                    "others, so somebody may have changed its key; leave the session"
                )
