"""FilmTrust and Douban: files with lines "user item rating" and nothing else.

FilmTrust is from Guo, Zhang and Yorke-Smith, "A novel Bayesian similarity measure for
recommender systems", IJCAI 2013, without duplicates. Douban is the part of Ma et al. (WSDM
2011) that Monti et al. (NIPS 2017) and later recommenders on graphs use.
"""

from __future__ import annotations

from pathlib import Path

from fedmf.data.columns import from_triples
from fedmf.data.ratings import Ratings, check_size
from fedmf.data.sets.lines import FIELDS, read_rating_table

RATINGS = "ratings.txt"
# Published numbers of users, items and ratings.
SIZES = {"filmtrust": (1508, 2071, 35_494), "douban": (2999, 3000, 136_891)}
SCALES = {"filmtrust": (0.5, 4.0), "douban": (1.0, 5.0)}


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
    path, scale = folder / RATINGS, SCALES[name]
    table = read_rating_table(path, separator=" ", header="", scale=scale, fields=FIELDS[:3])
    ratings = from_triples(table.users, table.items, table.values, scale=scale, name=name)
    check_size(ratings, size or SIZES[name], f"{RATINGS} in {folder}")
    return ratings
