"""Types of the compiled kernels; meaning and ranges are documented in ``reference``."""

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

def predict(p: F64, q: F64, users: I64, items: I64, out: F64) -> None: ...
def descend(
    indptr: I64, items: I32, values: F64, q: F64, p: F64, fixed: int, rate: float, reg: float
) -> None: ...
def solve(
    indptr: I64, items: I32, values: F64, q: F64, p: F64, fixed: int, reg: float, centre: F64
) -> Bools: ...
def draw(tables: F64, noise: F64, out: F64) -> Bools: ...
def draw_users(
    indptr: I64,
    items: I32,
    values: F64,
    q: F64,
    p: F64,
    fixed: int,
    scale: F64,
    precision: F64,
    shifts: F64,
    noise: F64,
) -> Bools: ...
def gradients(
    indptr: I64, items: I32, values: F64, q: F64, p: F64, out: F64, reg: float, centre: F64
) -> None: ...
def add_rows(table: I64 | F64, rows: I32, values: I64 | F64) -> None: ...
