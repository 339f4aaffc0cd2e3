"""Inner loops of the recommenders: compiled kernels, or the same functions in numpy.

The compiled kernels are chosen at import if the kernels were built. ``SECAGG_PURE=1`` forces
numpy, as in secagg. Kernels and numpy give the same results, bit for bit.
"""

from __future__ import annotations

from fedmf._fast import reference
from secagg import _fast as secagg_fast

__all__ = ["COMPILED"]
__all__ += reference.__all__

COMPILED = False

if secagg_fast.COMPILED:
    try:
        from fedmf._fast import _kernels
    except ImportError:  # built without a compiler
        pass
    else:
        COMPILED = True

predict = _kernels.predict if COMPILED else reference.predict
descend = _kernels.descend if COMPILED else reference.descend
solve = _kernels.solve if COMPILED else reference.solve
draw = _kernels.draw if COMPILED else reference.draw
draw_users = _kernels.draw_users if COMPILED else reference.draw_users
gradients = _kernels.gradients if COMPILED else reference.gradients
add_rows = _kernels.add_rows if COMPILED else reference.add_rows
