"""Rows of a CSV file that a stray quote made of several lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fedmf.data.table import is_number

LINE_END = re.compile(r"\r\n|\r|\n")
NO_LETTERS = re.compile(r"[\W_]*")
OTHER_RATINGS = ("", "true", "false", "yes", "no", "na", "n/a", "nan", "none", "null")
MANY = 3  # lines of a row that are ratings whatever their fields, if all have the right number


def joins_ratings(fields: Sequence[str], mark: str, numbers: Sequence[int], width: int) -> bool:
    """Return True if most lines of a row look like ratings. Blank lines do not count.

    Parameters
    ----------
    fields : fields of the row
    mark : delimiter
    numbers : positions of user, item and rating, and perhaps of the time
    width : int, number of fields of a row
    """
    texts = filter(str.strip, LINE_END.split(mark.join(fields)))
    lines = [line.split(mark) for line in texts]
    right = [
        [line[number].strip() for number in numbers] for line in lines if len(line) == width
    ]
    if len(right) == len(lines) >= MANY:
        return True
    alike = sum(bool(user and item) and _is_rating(value) for user, item, value, *_ in right)
    return 2 * alike > len(lines)


def _is_rating(value: str) -> bool:
    """Return True for texts such as 3, 4,5, ~4/5, "3 stars", ★★★ and n/a, but not for names."""
    word = NO_LETTERS.sub("", value, count=1)
    return is_number(value) or word[:1].isdigit() or word.casefold() in OTHER_RATINGS
