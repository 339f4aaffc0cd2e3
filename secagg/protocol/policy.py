"""Policy of a client: demands on every round that the server cannot weaken."""

from __future__ import annotations

from dataclasses import dataclass

from secagg._check import check_integer
from secagg.errors import ParameterError
from secagg.graph import finder
from secagg.graph.assumptions import check_fractions, count, to_float
from secagg.protocol.params import RoundParams

__all__ = ["ClientPolicy"]


@dataclass(frozen=True, kw_only=True)
class ClientPolicy:
    """Demands of a client, checked before it computes anything secret.

    Parameters
    ----------
    min_clients : int
        The fewest clients (itself included) in the roster it sees, among those that shared
        keys, among the survivors of an unmask request, and among their signers. Below 3 only
        with `allow_two_clients`.
    min_threshold : int
        The smallest threshold.
    max_length : int
        The longest vector.
    allow_two_clients : bool
        Accept that with two clients the other one learns this client's input.
    require_active : bool
        Reject rounds in which a lying server would go unnoticed.
    corrupt : float
        The largest expected fraction c of the n clients, rounded up, that collude with the
        server. On the complete graph the threshold t must exceed it: c < t, and n + c < 2t
        where the server may lie.
    dropout : float
        With `neighbours`: the largest expected fraction of dropouts.
    sigma : int
        With `neighbours`: the chance that some client is exposed must be 2^−sigma or less, by
        `secagg.graph.privacy_bits` (1 to 128).

    Raises
    ------
    ParameterError
        A value is out of range.
    """

    min_clients: int = 3
    min_threshold: int = 2
    max_length: int = 1 << 28
    allow_two_clients: bool = False
    require_active: bool = False
    corrupt: float = 0.05
    dropout: float = 0.05
    sigma: int = 40

    def __post_init__(self) -> None:
        # numpy's numbers are accepted, and become Python's: sums of numpy's would wrap
        check_integer("min_threshold", self.min_threshold, 1, 1 << 20)
        check_integer("max_length", self.max_length, 1, 1 << 31)
        check_integer("min_clients", self.min_clients, 2, 1 << 20)
        check_integer("sigma", self.sigma, 1, 128)
        check_fractions(self.corrupt, self.dropout)
        for name in ("min_threshold", "max_length", "min_clients", "sigma"):
            object.__setattr__(self, name, int(getattr(self, name)))
        for name in ("corrupt", "dropout"):
            object.__setattr__(self, name, to_float(getattr(self, name)))
        if self.min_clients == 2 and not self.allow_two_clients:
            raise ParameterError(
                "min_clients is 2: the other client would learn this one's input; pass "
                "allow_two_clients=True to accept that"
            )

    def check(self, params: RoundParams) -> None:
        """Raise `ParameterError` for parameters that fall short of this policy."""
        if self.require_active and not params.active:
            raise ParameterError(
                f"security is {params.security!r}, but this client requires 'active'"
            )
        if params.threshold < self.min_threshold:
            raise ParameterError(
                f"threshold {params.threshold} is below this client's min_threshold "
                f"{self.min_threshold}"
            )
        if params.holders < self.min_clients:
            raise ParameterError(
                f"a cohort of {params.holders} is below this client's min_clients "
                f"{self.min_clients}"
                + (
                    "; for two pass ClientPolicy(min_clients=2, allow_two_clients=True)"
                    if params.holders == 2
                    else ""
                )
            )
        if params.length > self.max_length:
            raise ParameterError(
                f"length {params.length} is above this client's max_length {self.max_length}"
            )
        if params.neighbours is None:
            self._check_complete(params)
        else:
            self._check_graph(params, params.neighbours)

    def _check_complete(self, params: RoundParams) -> None:
        """Raise for a threshold that the expected colluders reach; see docs/parameters.md."""
        n, corrupt = params.n_clients, count(self.corrupt, params.n_clients)
        if params.active:
            # of two sets of t that a server asks for one kind of share each, the n − c honest
            # are in one only, and the c corrupt in both
            least, what = (n + corrupt) // 2 + 1, "could have both secrets of a client rebuilt"
        else:
            least, what = corrupt + 1, "could rebuild every secret"
        if params.threshold >= least:
            return
        remedy = (
            f"take a threshold of {least} or more"
            if least <= n
            else "no threshold is safe from so many"
        )
        raise ParameterError(
            f"threshold {params.threshold} is too small for {n} clients if {self.corrupt:.3g} "
            f"of them, that is {corrupt}, collude with the server: they {what}; {remedy}, "
            "or lower corrupt"
        )

    def _check_graph(self, params: RoundParams, neighbours: int) -> None:
        n, expected = params.n_clients, (self.corrupt, self.dropout)
        if finder.is_private(n, neighbours, params.threshold, *expected, self.sigma):
            return
        bits = finder.privacy_bits(n, neighbours, params.threshold, *expected)
        raise ParameterError(
            f"{neighbours} neighbours and threshold {params.threshold} among {n} clients give "
            f"{bits:.1f} bits of privacy, not {self.sigma}, if {self.corrupt:.3g} collude and "
            f"{self.dropout:.3g} drop out; {finder.remedy(n, *expected, self.sigma)}, or "
            "lower corrupt, dropout or sigma"
        )
