"""Wrong values for flags, for counts and for amounts, in Python and in TOML."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np

FLAGS: list[object] = [
    "yes", "true", "True", "no", "", b"\1", 1, 0, 1.0, 0.0, None, float("nan"),
    np.True_, np.False_, np.int64(1), [], [True], {}, Decimal(1), np.array(True),
]  # fmt: skip
COUNTS: list[object] = [
    True, False, np.True_, "3", "", "three", b"3", 3.0, 2.5, float("nan"), float("inf"),
    np.float64(3), np.timedelta64(3, "s"), Decimal(3), Fraction(3), 3j, [3], {}, np.array(3),
    np.array([3]), int,
]  # fmt: skip
AMOUNTS: list[object] = [
    True, False, np.True_, "0.5", "", b"0.5", None, float("nan"), -1.0, [0.5], {}, 0.5j,
    np.timedelta64(1, "s"), np.array(0.5), np.array([0.5]), float,
]  # fmt: skip
IN_TOML = {
    "flags": ['"yes"', '"true"', "1", "0", "1.0", "[]", "{}", "nan", "[true]", "07:32:00"],
    "counts": ["true", '"3"', "3.0", "2.5", "nan", "inf", "[3]", "{}", "1979-05-27", "false"],
    "amounts": ["true", '"0.1"', "nan", "-inf", "[0.1]", "{}", '""', "-1", "07:32:00", "false"],
}
