"""A single user's part of a round of a factor model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedmf.aggregate.vectors import Rows
from fedmf.data.blocks import Block
from fedmf.models import FederatedModel
from fedmf.models.federated import Floats


def own_step(
    model: FederatedModel,
    q: Floats,
    p_u: Floats,
    items: NDArray[np.int32],
    values: Floats,
    trained: NDArray[np.bool_],
) -> tuple[Floats, Rows]:
    """Return the user's new factors, shape (k,), and message; see `FederatedModel`."""
    p, rows = model.local_steps(q, p_u[None], Block.of_one(items, values), trained)
    return p[0], rows
