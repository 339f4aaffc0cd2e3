"""What a client insists on, whatever the server proposes: no word of the server weakens it."""

from __future__ import annotations

from dataclasses import dataclass

from secagg import finder
from secagg.errors import ParameterError
from secagg.params import RoundParams, check_integer

__all__ = ["ClientPolicy"]


@dataclass(frozen=True, kw_only=True)
class ClientPolicy:
    """What a client insists on before it computes anything secret.

    Parameters
    ----------
    min_clients : int
        The fewest clients (itself included) in the roster it sees, among those that shared
        keys, among the survivors of an unmask request, and among those that signed them.
        Below 3 only with `allow_two_clients`.
    min_threshold : int
        The smallest threshold it accepts.
    max_length : int
        The longest vector it sends.
    allow_two_clients : bool
        Accept that with two clients the other one learns this client's input.
    require_active : bool
        Refuse rounds in which a lying server would go unnoticed.
    corrupt, dropout : float
        On a graph: the largest fractions of the clients that this one expects to collude with
        the server, and to vanish. Zero says that nobody does.
    sigma : int
        On a graph: the chance that some client is exposed must be 2^−sigma or less, by
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
        check_integer("min_threshold", self.min_threshold, 1, 1 << 20)
        check_integer("max_length", self.max_length, 1, 1 << 31)
        check_integer("min_clients", self.min_clients, 2, 1 << 20)
        check_integer("sigma", self.sigma, 1, 128)
        finder.check_fractions(self.corrupt, self.dropout)
        if self.min_clients == 2 and not self.allow_two_clients:
            raise ParameterError(
                "min_clients is 2: the other client would learn this one's input; pass "
                "allow_two_clients=True to accept that"
            )

    def check(self, params: RoundParams) -> None:
        """Refuse parameters that fall short of this policy.

        Raises
        ------
        ParameterError
            Names the parameter, its value and what the policy asks for.
        """
        if self.require_active and not params.active:
            raise ParameterError(
                f"security is {params.security!r} and this client insists on 'active'"
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
        if params.neighbours is not None:
            self._check_graph(params, params.neighbours)

    def _check_graph(self, params: RoundParams, neighbours: int) -> None:
        n, expected = params.n_clients, (self.corrupt, self.dropout)
        if finder.is_private(n, neighbours, params.threshold, *expected, self.sigma):
            return
        bits = finder.privacy_bits(n, neighbours, params.threshold, *expected)
        raise ParameterError(
            f"{neighbours} neighbours and threshold {params.threshold} among {n} clients give "
            f"{bits:.1f} bits of privacy where up to {self.corrupt:.3g} of them collude and "
            f"{self.dropout:.3g} vanish; this client insists on {self.sigma}: "
            f"{self._remedy(n)}, or say what else is expected with "
            "ClientPolicy(corrupt=…, dropout=…, sigma=…)"
        )

    def _remedy(self, n: int) -> str:
        try:
            k, t = finder.recommend(n, self.corrupt, self.dropout, sigma=self.sigma)
        except ParameterError:
            return "no graph among so few gives that, nor does the complete one"
        return f"take neighbours={k} and threshold={t}"
