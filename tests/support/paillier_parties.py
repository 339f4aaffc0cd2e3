"""Sums under small keys, and tables for them: what tests of PaillierSum work with."""

from __future__ import annotations

import numpy as np

from fedmf.aggregate import PaillierSum
from fedmf.aggregate.vectors import Rows, Vectors
from paillier_keys import keypair
from threshold_keys import dealing

K = 3


def paillier(trust, **more):
    """Return a sum under a small key that is the same in every run."""
    key = dealing(4, 3)[1] if trust == "threshold" else keypair()
    return PaillierSum(trust=trust, key=key, **more)


def tables(users, m, *, counted=False):
    """Return a table of some rows for each user, drawn from the user's id."""

    def table(user):
        rng = np.random.default_rng((user, m))
        rows = np.flatnonzero(rng.random(m) < 0.6).astype(np.int32)
        if counted:
            return Rows(rows, np.ones((rows.size, 1), dtype=np.int64), m)
        return Rows(rows, rng.normal(scale=6, size=(rows.size, K)), m)

    return Vectors(users, table, (m, 1 if counted else K))
