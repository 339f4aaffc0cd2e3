"""Privacy that the sums of a session have spent, as the server counts it.

An attempt counts as soon as its list of survivors is fixed, also if no sum follows: the server
then asks for the shares that open the sum. A member counts a masked input that leaves, since
the member does not see how the attempt ends, so a member's ledger has as much or more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from secagg.privacy import Budget, Loss
from secagg.session.events import Place
from secagg.session.outcomes import Params
from secagg.session.store import Store


@dataclass(eq=False)
class Expenses:
    """Privacy that the attempts of a session have spent, within a budget if there is a budget.

    With a folder the attempts are in the folder, and each counts once, also after a restart.

    Attributes
    ----------
    budget : Budget or None
    loss : Loss
        Loss of all attempts.
    """

    budget: Budget | None
    loss: Loss = field(default_factory=Loss)
    _sums: int = 0
    _store: Store | None = None

    def keep_in(self, store: Store) -> None:
        """Take the attempts of a folder, and keep the next attempts there."""
        stored = store.spent()
        self.loss, self._sums, self._store = sum(stored, Loss()), len(stored), store

    @property
    def epsilon(self) -> float | None:
        """ε of all attempts, for the δ of the budget; None without a budget."""
        return None if self.budget is None else self.loss.epsilon(self.budget.delta)

    def check(self, params: Params) -> None:
        """Raise `BudgetSpent` if the budget has no room for an attempt."""
        if self.budget is not None:
            self.budget.check(self.loss, self._sums, Loss.of(params))

    def spend(self, place: Place, params: Params) -> None:
        """Count an attempt, which is in the folder at the return."""
        if self.budget is None and params.noise is None:
            return
        loss = Loss.of(params)
        if self._store is None or self._store.keep_spent(place.number, place.attempt, loss):
            self.loss, self._sums = self.loss + loss, self._sums + 1
