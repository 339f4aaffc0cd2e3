"""Memory of a node: the count of raters that the node took part in, the basis of later sums.

The server states the number of raters of each item, and a node cannot count the raters of other
nodes. But a node is in no sum before the node was in the run's count, nor with counts that
cannot result from that count. Each check reads the messages alone, never ratings. If nodes left
a sum because of their own counts, a server could choose by lies which single node is left.
"""

from __future__ import annotations

import hashlib

import numpy as np
from flwr.app import ConfigRecord, Context
from numpy.typing import NDArray

from secagg.errors import RemoteProtocolError

_USERS, _SAID = "n-users", "said"


def record_of(run_id: int) -> str:
    """Return the name of the record in the Context of a node."""
    return f"fedmf {run_id} raters"


class Counted:
    """Count of a run in the Context of a node.

    Parameters
    ----------
    context : Context
    n_items : int
    """

    def __init__(self, context: Context, n_items: int) -> None:
        self._state, self._name = context.state, record_of(context.run_id)
        self._n_items = n_items

    def note(self, n_users: int) -> None:
        """Note that the node takes part in a count of `n_users` users, as the server states."""
        self._state[self._name] = ConfigRecord({_USERS: n_users})

    def check(self, counts: NDArray[np.int64] | None, n_users: int) -> None:
        """Raise `RemoteProtocolError` ("raters") unless counts can be of the node's last count.

        The counts must be of all items and at most the number of users. All sums until the next
        count must have the same counts.
        """
        noted = self._state.get(self._name)
        if not isinstance(noted, ConfigRecord):
            raise _violation("this node was in no count of raters of the run")
        if counts is None or counts.dtype != np.int64 or counts.shape != (self._n_items,):
            raise _violation("the message has no number of raters of each item")
        said = hashlib.sha256(counts.astype("<i8").tobytes()).digest()
        if noted[_USERS] != n_users or noted.get(_SAID, said) != said:
            raise _violation("numbers of users or raters are not those of the last sum")
        if np.any(counts < 0) or np.any(counts > n_users):
            raise _violation("an item has more raters than there are users")
        noted[_SAID] = said


def _violation(why: str) -> RemoteProtocolError:
    return RemoteProtocolError(
        f"{why}; the node is in the sums after the next count",
        sender=None,
        phase="training",
        check="raters",
    )
