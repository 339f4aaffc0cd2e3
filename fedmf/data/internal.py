"""Internal scale of every rating model: 1 to 5, whatever the public scale of the data.

Penalties, learning rates, starting values, priors and the clip of the fixed-point encoding are
all in units of the ratings. So a model trained on 0 to 100 would need other settings than on 1
to 5. Trainers map the public scale linearly to the internal one, and predictions back.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedmf.data.ratings import Ratings

Floats = NDArray[np.float64]

INTERNAL = (1.0, 5.0)


def internal(ratings: Ratings) -> Ratings:
    """Return the same ratings on the scale `INTERNAL`; on that scale they stay as they are."""
    if ratings.scale == INTERNAL:
        return ratings
    # rounding must not move the highest rating off the scale
    values = np.clip(to_internal(ratings.values, ratings.scale), *INTERNAL)
    return ratings.with_values(values, INTERNAL)


def to_internal(values: Floats, scale: tuple[float, float]) -> Floats:
    """Map numbers of a public scale (low, high) to the internal scale; they are not clipped."""
    return _mapped(values, scale, INTERNAL)


def to_public(values: Floats, scale: tuple[float, float]) -> Floats:
    """Map numbers of the internal scale to a public scale (low, high), without clipping."""
    return _mapped(values, INTERNAL, scale)


def _mapped(values: Floats, of: tuple[float, float], to: tuple[float, float]) -> Floats:
    if of == to:
        return values
    (low, high), (bottom, top) = of, to
    return np.asarray(bottom + (values - low) * ((top - bottom) / (high - low)))
