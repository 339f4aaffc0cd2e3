"""Policy of a client: demands on every round that the server cannot weaken."""

from __future__ import annotations

from dataclasses import dataclass

from secagg._check import check_flag, check_integer, check_kind
from secagg.errors import ParameterError
from secagg.graph import finder, smallest_cohort
from secagg.graph.graph import (
    CORRUPT,
    DROPOUT,
    check_fractions,
    count,
    least_threshold,
    to_float,
)
from secagg.protocol.bounds import Bounds
from secagg.protocol.params import RoundParams

_RANGES = {
    "min_threshold": (1, 1 << 20),
    "max_length": (1, 1 << 31),
    "min_clients": (2, 1 << 20),
    "sigma": (1, 128),
    "min_cohort": (2, 1 << 20),
    "colluders": (0, 1 << 20),
}


@dataclass(frozen=True, kw_only=True)
class ClientPolicy:
    """Demands of a client on a round. A client takes no part in a round that fails a demand.

    Parameters
    ----------
    min_clients : int
        The smallest number of clients, this client included, that the client accepts in each
        list of the server: roster, clients that shared keys, survivors, and signers. On a graph
        these lists have this client's neighbours only. At least 3, or 2 with
        `allow_two_clients`; at most 2^20. Any t other clients can open a smaller sum without
        this client, see docs/sessions.md, 4; `min_threshold` excludes that.
    min_cohort : int, optional
        The smallest cohort U1 that the client accepts, 2 to 2^20: all clients that advertised
        keys, also those that a client on a graph does not see. None: no such minimum. In any
        case a cohort is rejected that is too small for its k, t and `colluders`.
    min_threshold : int
        The smallest accepted threshold, 1 to 2^20.
    max_length : int
        The largest accepted number of elements of a vector, 1 to 2^31.
    allow_two_clients : bool
        Accept that with two clients the other client learns this client's input.
    require_active : bool
        Reject rounds whose `security` is not "active": a lying server would go unnoticed.
    corrupt : float
        Largest expected fraction of `n_clients` that collude with the server, 0 ≤ corrupt
        < 1; their number c is rounded up. The number c stays the same if fewer clients turn up.
        In an active round the fraction is of the registry, if that has more than `n_clients`.
    colluders : int, optional
        c itself, 0 to 2^20, in place of `corrupt`. On the complete graph a threshold t is
        rejected unless c < t, and in an active round unless n + c < 2t. Two vectors or more
        of each sum must be of honest clients, except with `allow_two_clients`. Noise for fewer
        colluders than c is rejected.
    dropout : float
        Largest expected fraction of the cohort that drops out, 0 ≤ dropout < 1. Used only in
        rounds with `neighbours`.
    sigma : int
        In rounds with `neighbours`, the probability that some client is exposed must be at most
        2^−sigma by `secagg.graph.privacy_bits`; 1 to 128.
    bounds : Bounds, optional
        Bounds of this client's input, which every round must have. None: the doors of this
        package, such as `secagg.session.take_part`, fix the bounds of the first round.
    require_hybrid : bool
        Reject rounds of suite "x25519", which a later quantum computer opens.

    Raises
    ------
    ParameterError
        A value is out of range.
    """

    min_clients: int = 3
    min_cohort: int | None = None
    min_threshold: int = 2
    max_length: int = 1 << 28
    allow_two_clients: bool = False
    require_active: bool = False
    corrupt: float = CORRUPT
    colluders: int | None = None
    dropout: float = DROPOUT
    sigma: int = 40
    bounds: Bounds | None = None
    require_hybrid: bool = False

    def __post_init__(self) -> None:
        # numpy's numbers are accepted, and become Python's: sums of numpy's would wrap
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if value is not None or name not in ("min_cohort", "colluders"):
                check_integer(name, value, low, high)
                object.__setattr__(self, name, int(value))
        check_fractions(self.corrupt, self.dropout)
        for name in ("allow_two_clients", "require_active", "require_hybrid"):
            check_flag(name, getattr(self, name))
        if self.bounds is not None:
            check_kind("bounds", self.bounds, Bounds, "a secagg.Bounds")
        for name in ("corrupt", "dropout"):
            object.__setattr__(self, name, to_float(getattr(self, name)))
        if self.min_clients == 2 and not self.allow_two_clients:
            raise ParameterError(
                "min_clients is 2: the other client would learn this one's input; pass "
                "allow_two_clients=True to accept that"
            )

    def check(self, params: RoundParams, registered: int = 0) -> None:
        """Raise `ParameterError` unless `params` satisfy this policy.

        `registered` is the number of clients in the registry of an active round. A lying server
        chooses the participants from the registry, so the fraction `corrupt` is of all of them.
        """
        if self.require_active and not params.active:
            raise ParameterError(
                f"security is {params.security!r}, but this client requires 'active'; take "
                "security='active' at the server, or require_active=False in the policy"
            )
        if self.require_hybrid and params.suite != "hybrid":
            raise ParameterError(
                f"suite is {params.suite!r}, but this client requires 'hybrid'; take "
                "suite='hybrid' at the server, or require_hybrid=False in the policy"
            )
        if params.threshold < self.min_threshold:
            raise ParameterError(
                f"threshold {params.threshold} is below this client's min_threshold "
                f"{self.min_threshold}; take that threshold or more, or lower min_threshold"
            )
        if params.holders < self.min_clients:
            raise ParameterError(
                f"a cohort of {params.holders} is below this client's min_clients "
                f"{self.min_clients}; "
                + (
                    "for two pass ClientPolicy(min_clients=2, allow_two_clients=True)"
                    if params.holders == 2
                    else "take so many clients or more, or lower min_clients"
                )
            )
        if params.length > self.max_length:
            raise ParameterError(
                f"length {params.length} is above this client's max_length {self.max_length}; "
                "take shorter vectors, or raise max_length if the memory suffices"
            )
        if self.bounds is not None:
            self.bounds.check(params)
        why = self.objection(params, params.n_clients, registered)
        if why is not None:
            raise ParameterError(why)

    def objection(self, params: RoundParams, size: int, registered: int = 0) -> str | None:
        """Return the reason to reject a cohort of `size` clients, or None if it is accepted.

        `check` has accepted `params`. The number of colluders depends on ``n_clients``, or on
        `registered` if that is larger. The number does not depend on `size`, 2 to
        ``n_clients``: colluders do not stay away because other clients do.
        """
        if self.min_cohort is not None and size < self.min_cohort:
            return (
                f"a cohort of {size} is below this client's min_cohort {self.min_cohort}; take "
                "so many clients or more, or lower min_cohort"
            )
        colluders, shown = self._colluders(params, registered)
        if params.noise is not None and params.noise.colluders < colluders:
            return (
                f"the noise is enough if {params.noise.colluders} clients collude, and this "
                f"client expects {shown} to collude with the server; take "
                f"Noise(sigma, colluders={colluders}) or more, or lower {self._named()}"
            )
        if params.neighbours is None:
            return self._objection_to_complete(params, size, registered)
        return self._objection_to_graph(params, params.neighbours, size)

    def smallest_cohort(self, params: RoundParams) -> int:
        """Return the smallest size such that no cohort of this size or more is rejected.

        The result is `params.min_survivors` if even ``n_clients`` have an objection, and on the
        complete graph. There an objection concerns all sizes, or all sizes above some size.
        """
        least, n, k = params.min_survivors, params.n_clients, params.neighbours
        if k is None or self.objection(params, n) is not None:
            return least
        colluders, _ = self._colluders(params)
        question = (n, k, params.threshold, colluders, self.dropout)
        return max(least, self.min_cohort or 0, smallest_cohort(*question, sigma=self.sigma))

    def colluders_of(self, params: RoundParams, registered: int) -> int:
        """Return c, the most clients that this policy expects to collude with the server.

        c decides how many complaints convict a dealer (docs/protocol.md, §14). c is at most
        2t − n − 1, which the active variant withstands. `registered` is as in `check`.
        """
        colluders, _ = self._colluders(params, registered)
        return min(colluders, params.most_liars)

    def _colluders(self, params: RoundParams, registered: int = 0) -> tuple[int, str]:
        """Return the number of colluders and, for a message, the origin of the number."""
        if self.colluders is not None:
            return self.colluders, f"{self.colluders}"
        population = max(params.n_clients, registered)
        colluders = count(self.corrupt, population)
        return colluders, f"{self.corrupt:.3g} of {population}, that is {colluders},"

    def _objection_to_complete(
        self, params: RoundParams, size: int, registered: int
    ) -> str | None:
        """Return an objection if colluders could reach the threshold, or a single vector."""
        colluders, shown = self._colluders(params, registered)
        if params.active:
            # a lying server asks t clients for shares of b and t for shares of s; an honest
            # client answers one of the two requests, a corrupt client answers both
            reach, what = (size + colluders) // 2 + 1, "could have both secrets of one rebuilt"
        else:
            reach, what = colluders + 1, "could rebuild every secret"
        # of max(t, min_clients) vectors in a sum two must be of honest clients
        hiding = 0 if self.allow_two_clients else least_threshold(colluders, self.min_clients)
        least = max(reach, hiding)
        if params.threshold >= least:
            return None
        if params.threshold >= reach:
            what = "could know all vectors of a sum but a single one"
        remedy = (
            f"take a threshold of {least} or more, or"
            if least <= size
            else "no threshold is safe from so many;"
        )
        return (
            f"threshold {params.threshold} is too small for {size} clients if {shown} collude "
            f"with the server: they {what}; {remedy} lower {self._named()}"
        )

    def _objection_to_graph(
        self, params: RoundParams, neighbours: int, size: int
    ) -> str | None:
        """Return an objection if the graph is too likely to expose some client."""
        colluders, shown = self._colluders(params)
        question = (size, neighbours, params.threshold, 0.0, self.dropout)
        if finder.is_private(*question, self.sigma, colluders=colluders):
            return None
        bits = finder.privacy_bits(*question, colluders=colluders)
        demands = {"holders": self.min_clients, "threshold": self.min_threshold}
        remedy = finder.remedy(size, colluders, self.dropout, self.sigma, **demands)
        return (
            f"{neighbours} neighbours and threshold {params.threshold} among {size} clients "
            f"give {bits:.1f} bits of privacy, not {self.sigma}, if {shown} collude and "
            f"{self.dropout:.3g} drop out; {remedy}, or lower {self._named()}, dropout or sigma"
        )

    def _named(self) -> str:
        return "corrupt" if self.colluders is None else "colluders"
