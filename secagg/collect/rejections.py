"""Rejections of clients by helpers, slice after slice, and the clients that a list lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from secagg.collect.work import WORKER
from secagg.errors import RemoteProtocolError, TooFewSurvivors
from secagg.oneshot import OneShotParams
from secagg.session.opening import believed


@dataclass
class Rejections:
    """Rejections of a batch, slice after slice.

    Attributes
    ----------
    params : OneShotParams
    """

    params: OneShotParams
    _by_helper: dict[int, set[int]] = field(default_factory=dict)
    _everyone: set[int] = field(init=False)
    _checked: set[int] = field(init=False)

    def __post_init__(self) -> None:
        self._everyone = self._checked = set(range(1, len(self.params.helpers) + 1))

    def add(self, rejected: Mapping[int, set[int]]) -> None:
        """Add the rejections of a slice; see `secagg.collect.slices.Rejected`."""
        if rejected:  # else the slice has no reports
            self._checked = self._checked.intersection(rejected)
        for j, ids in rejected.items():
            if j != WORKER:
                self._by_helper.setdefault(abs(j), set()).update(ids)

    @property
    def clients(self) -> set[int]:
        """Return the clients that any helper rejects."""
        return set[int]().union(*self._by_helper.values())

    def dropped(self, total: int) -> set[int]:
        """Return the clients to drop from a list of `total` clients.

        Raises
        ------
        TooFewSurvivors
            So many helpers reject so many clients that too few are left for a sum.
        RemoteProtocolError
            "helpers": too few helpers checked all slices. A helper that was away may reject a
            client of the list, and a list that is fixed stays.
        """
        params, found = self.params, self._by_helper
        most = max(0, total - params.min_clients)
        dropped, kept = believed({j: found.get(j, set()) for j in self._checked}, most)
        needed, refusing = params.quorum or params.threshold, self._checked - kept
        if len(self._everyone - refusing) < needed:
            left = total - min(len(dropped | found[j]) for j in refusing)
            raise TooFewSurvivors(
                f"helpers {_named(refusing)} reject so many of {total} reports that {left} or "
                f"fewer are left, and a sum needs {params.min_clients}; ask the operators of "
                "these helpers for the reason",
                phase="report",
                survivors=left,
                needed=params.min_clients,
            )
        if len(kept) < needed:
            away = self._everyone - self._checked
            raise RemoteProtocolError(
                f"{len(kept)} helpers can reserve a list, and this step takes {needed}, since "
                f"helpers {_named(away)} were away for a part of the reports; all reports are "
                "checked again, so keep the helpers reachable",
                sender=None,
                phase="check",
                check="helpers",
                helpers=tuple(sorted(away)),
            )
        # a helper that was away gets all boxes again, and can reserve a list without these
        others = {j: ids | dropped for j, ids in found.items() if j not in self._checked}
        return dropped | believed(others, most)[0]


def _named(helpers: set[int]) -> str:
    return ", ".join(map(str, sorted(helpers)))
