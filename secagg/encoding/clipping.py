"""The warning that elements of vectors were clipped."""

from __future__ import annotations

import warnings

from secagg.encoding.encoding import Encoding
from secagg.errors import ClippingWarning


def warn_of_clipping(
    clipped: int, elements: int, encoding: Encoding, *, stacklevel: int = 4
) -> None:
    """Warn the caller if some of all elements were clipped; by default of `without_frames`."""
    if clipped:
        warnings.warn(
            f"{clipped:,} of {elements:,} elements ({100 * clipped / elements:.3g} %) were "
            f"beyond the clip of {encoding} and were clipped; raise the clip, which "
            "FixedPoint.suggest proposes, or scale the vectors",
            ClippingWarning,
            stacklevel=stacklevel,
        )
