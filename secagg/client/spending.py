"""Interface of a client's account of the privacy that its sums spend."""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable

from secagg._check import check_kind
from secagg.errors import BudgetSpent
from secagg.protocol.shape import Shape

P_contra = TypeVar("P_contra", bound=Shape, contravariant=True)
"""Parameters of the sums: `RoundParams`, or `OneShotParams`."""


@runtime_checkable
class Spending(Protocol[P_contra]):
    """Account of a client's privacy; `secagg.privacy.PrivacyLedger` keeps it in a file.

    An account depends on the parameters of sums alone, never on a vector: a client that
    declines a sum for lack of privacy tells nothing of its data.
    """

    def check(self, params: P_contra) -> None:
        """Raise `BudgetSpent` unless the account has room for a sum; nothing is spent."""
        ...

    def spend(self, params: P_contra) -> None:
        """Spend the privacy of a sum, durably when the call returns.

        Raises
        ------
        BudgetSpent
            The account has no room for this sum. Nothing was spent.
        """
        ...


def check_spending(spending: object) -> None:
    """Raise `ParameterError` unless `spending` is an account, or None for no account."""
    what = "an object with check and spend, such as a secagg.privacy.PrivacyLedger"
    check_kind("spending", spending, (Spending, type(None)), what)


def check_noise(params: Shape) -> None:
    """Raise `BudgetSpent` for a sum without noise, which no account has room for."""
    if params.noise is None:
        raise BudgetSpent(
            "the sum has no noise, and this client accounts for its privacy; take parameters "
            "with noise=secagg.Noise(sigma), or a client without spending"
        )


def check_allowed(spending: Spending[P_contra], params: P_contra) -> None:
    """Raise `BudgetSpent` unless an account has room for a sum."""
    check_noise(params)
    spending.check(params)


def spend(spending: Spending[P_contra], params: P_contra) -> None:
    """Spend the privacy of a sum, or raise `BudgetSpent`."""
    check_noise(params)
    spending.spend(params)
