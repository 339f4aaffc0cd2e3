"""Policy of a client: demands on every round that the server cannot weaken."""

from __future__ import annotations

from dataclasses import dataclass

from secagg._check import check_integer
from secagg.errors import ParameterError
from secagg.graph import finder
from secagg.graph.assumptions import check_fractions, count, to_float
from secagg.protocol.params import RoundParams


@dataclass(frozen=True, kw_only=True)
class ClientPolicy:
    """Demands of a client on a round. A client takes no part in a round that fails them.

    Parameters
    ----------
    min_clients : int
        The smallest number of clients, this one included, that the client accepts in the
        roster, among those that shared keys, among the survivors and among their signers. At
        least 3, or 2 with `allow_two_clients`; at most 2^20.
    min_threshold : int
        The smallest accepted threshold, 1 to 2^20.
    max_length : int
        The largest accepted number of elements of a vector, 1 to 2^31.
    allow_two_clients : bool
        Accept that with two clients the other one learns this client's input.
    require_active : bool
        Reject rounds whose `security` is not "active", where a lying server goes unnoticed.
    corrupt : float
        Largest expected fraction of the n clients that collude with the server, 0 ≤ corrupt
        < 1; their number c is rounded up. On the complete graph a threshold t is rejected
        unless c < t, and in an active round unless n + c < 2t.
    dropout : float
        Largest expected fraction of clients that drop out, 0 ≤ dropout < 1. It matters only
        in rounds with `neighbours`.
    sigma : int
        In rounds with `neighbours`, the probability that some client is exposed must be at most
        2^−sigma by `secagg.graph.privacy_bits`; 1 to 128.

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
        """Raise `ParameterError` unless `params` satisfy this policy."""
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
        """Raise if the expected colluders could reach the threshold; see docs/parameters.md."""
        n, corrupt = params.n_clients, count(self.corrupt, params.n_clients)
        if params.active:
            # a lying server asks t clients for shares of b and t for shares of s; an honest
            # client answers one of the two requests, a corrupt client answers both
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
