"""Ratings: `load` a named data set, or read your own with `read_ratings`.

`from_triples` builds ratings from three columns.

`fetch` downloads the files of a data set, `sets` reads them, and `splits` splits `Ratings` into
training and test ratings.
"""

from __future__ import annotations

from fedmf.data.columns import from_triples
from fedmf.data.features import Features
from fedmf.data.loading import NAMES, SIZES, load, read, source_of
from fedmf.data.own import read_ratings
from fedmf.data.ratings import Catalogue, Ratings, Split

__all__ = [
    "NAMES",
    "SIZES",
    "Catalogue",
    "Features",
    "Ratings",
    "Split",
    "from_triples",
    "load",
    "read",
    "read_ratings",
    "source_of",
]
