"""What a client insists on, whatever the server proposes: no word of the server weakens it."""

from __future__ import annotations

from dataclasses import dataclass

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
        keys, and among the survivors of an unmask request. Below 3 only with
        `allow_two_clients`.
    min_threshold : int
        The smallest threshold it accepts.
    max_length : int
        The longest vector it sends.
    allow_two_clients : bool
        Accept that with two clients the other one learns this client's input.
    require_active : bool
        Refuse rounds in which a lying server would go unnoticed.

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

    def __post_init__(self) -> None:
        check_integer("min_threshold", self.min_threshold, 1, 1 << 20)
        check_integer("max_length", self.max_length, 1, 1 << 31)
        check_integer("min_clients", self.min_clients, 2, 1 << 20)
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
