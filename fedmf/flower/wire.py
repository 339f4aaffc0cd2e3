"""Names in the messages between `FedSum` and a node."""

from __future__ import annotations

from enum import StrEnum

TABLE = "table"
"""Array of the sum of the users' tables; zeros in a message to a node."""
COUNTS = "counts"
"""Array of three: the number of users in the table, and the number of clipped elements.

The second is at most the first. The third is `Training.excess` per element of a table.
"""
RATERS = "raters"
"""Array with the number of raters of each item, int64; empty if they are not counted."""
MEAN = "mean"
"""Array of one, the mean rating on the internal scale; empty if it is not summed."""
USERS = "n-users"
"""Key of the number of users of all nodes in the ConfigRecord: no item has more raters."""
STEP = "step"
"""Key of the step in the ConfigRecord."""
WEIGHT = "num-examples"
"""Key of the weight, 1: a table is a sum already."""


class Step(StrEnum):
    """Kind of sum that a message asks for."""

    MEAN = "mean"
    COUNT = "count"
    SUM = "sum"
