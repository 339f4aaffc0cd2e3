"""Interface of a client's account of the privacy that its sums spend."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from secagg.errors import BudgetSpent
from secagg.protocol import RoundParams


@runtime_checkable
class Spending(Protocol):
    """Account of a client's privacy; `secagg.privacy.PrivacyLedger` keeps it in a file.

    An account depends on the parameters of sums alone, never on a vector: a client that
    declines a sum for lack of privacy tells nothing of its data.
    """

    def check(self, params: RoundParams) -> None:
        """Raise `BudgetSpent` unless the account has room for a sum; nothing is spent."""
        ...

    def spend(self, params: RoundParams) -> None:
        """Spend the privacy of a sum, durably when the call returns.

        Raises
        ------
        BudgetSpent
            The account has no room for this sum. Nothing was spent.
        """
        ...


def check_noise(params: RoundParams) -> None:
    """Raise `BudgetSpent` for a sum without noise, which no account has room for."""
    if params.noise is None:
        raise BudgetSpent(
            "the sum has no noise, and this client accounts for its privacy; take parameters "
            "with noise=secagg.Noise(sigma), or a client without spending"
        )


def check_allowed(spending: Spending, params: RoundParams) -> None:
    """Raise `BudgetSpent` unless an account has room for a sum."""
    check_noise(params)
    spending.check(params)


def spend(spending: Spending, params: RoundParams) -> None:
    """Spend the privacy of a sum, or raise `BudgetSpent`."""
    check_noise(params)
    spending.spend(params)
