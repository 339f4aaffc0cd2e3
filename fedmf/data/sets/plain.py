"""FilmTrust and Douban: files with lines "user item rating" and nothing else.

FilmTrust is from Guo, Zhang and Yorke-Smith, "A novel Bayesian similarity measure for
recommender systems", IJCAI 2013, without duplicates. Douban is the part of Ma et al. (WSDM
2011) that Monti et al. (NIPS 2017) and later recommenders on graphs use.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedmf.data.columns import from_triples
from fedmf.data.ratings import Ratings, check_size
from fedmf.data.sets.lines import NUMBER, Field, check_distinct, damaged, read_numbers

RATINGS = "ratings.txt"
FIELDS: tuple[Field, ...] = (
    ("user id", NUMBER),
    ("item id", NUMBER),
    ("rating", rb"[0-9](?:\.[0-9])?"),
)


@dataclass(frozen=True)
class Format:
    """Published numbers of users, items and ratings, the scale, and the step of the scale."""

    counts: tuple[int, int, int]
    scale: tuple[float, float]
    step: float


FORMATS = {
    "filmtrust": Format(counts=(1508, 2071, 35_494), scale=(0.5, 4.0), step=0.5),
    "douban": Format(counts=(2999, 3000, 136_891), scale=(1.0, 5.0), step=1.0),
}


def read(name: str, folder: Path, size: tuple[int, int, int] | None = None) -> Ratings:
    """Read FilmTrust or Douban from a folder; titles are the ids, times are all 0.

    Raises DataError if the file is missing or damaged, or the size differs. The message names
    file and line.

    Parameters
    ----------
    name : "filmtrust" or "douban"
    folder : folder with the file ratings.txt
    size : expected numbers of users, items and ratings; by default the published numbers
    """
    form, path = FORMATS[name], folder / RATINGS
    first, numbers = read_numbers(path, FIELDS, separator=" ", header="")
    users, items = numbers[:, :2].astype(np.int64).T
    values = numbers[:, 2].copy()
    low, high = form.scale
    off = (values < low) | (values > high) | (values % form.step != 0)
    if off.any():
        worst = int(np.argmax(off))
        what = f"rating {values[worst]:g} is not in {low:g} to {high:g} by {form.step:g}"
        raise damaged(path, first + worst, what)
    check_distinct(path, first, users, items, "rates item")
    ratings = from_triples(users, items, values, scale=form.scale, name=name)
    check_size(ratings, size or form.counts, f"{RATINGS} in {folder}")
    return ratings
