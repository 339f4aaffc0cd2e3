"""Names in the messages between `FedSum` and a node."""

from __future__ import annotations

from enum import StrEnum

TABLE = "table"
"""Array with the sum of the users' tables; zeros in a message to a node."""
COUNTS = "counts"
"""Array of three numbers: users in the table, clipped elements, and excess.

The number of clipped elements is at most the number of users. The excess is `Training.excess`
per element of a table.
"""
RATERS = "raters"
"""Array with the number of raters of each item, int64; empty without a count of raters."""
MEAN = "mean"
"""Array with the mean rating on the internal scale; empty if there is no sum of ratings."""
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
