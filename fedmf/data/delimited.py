"""Ratings from CSV files, in one pass that keeps no text but the different ids."""

from __future__ import annotations

import csv
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedmf.data.coded import Coded, Codes, coded_texts
from fedmf.data.packed import unpacked
from fedmf.data.table import Named, Table, is_number, positions, short
from fedmf.data.times import Times
from fedmf.errors import DataError

DELIMITERS = (",", ";", "\t", "|")
OTHER_MARK = re.compile(r"::|[\s:/~^#]+")  # not in numbers and names of columns
BYTES_LINE_END = re.compile(rb"\r\n|\r|\n")
# line that Excel reads, above the header
SEP = re.compile(r'"?sep=[,;\t|]"?\s*', re.IGNORECASE)
JSON = re.compile(r"\s*[\[{]\s*([\[{\]}\"0-9-]|$)")
LINE_END = re.compile(r"\r\n|\r|\n")
NO_LETTERS = re.compile(r"[\W_]*")
OTHER_RATINGS = ("", "true", "false", "yes", "no", "na", "n/a", "nan", "none", "null")
MANY = 3  # lines of a row that are ratings whatever their fields, if all have the right number
BOM = "\ufeff"
BATCH = 4096  # rows whose fields exist at once
ABOVE = 20  # lines below the first in which a header is sought for a message
NO_HEADER = "if that is a rating, add a first line such as user,item,rating"


def read_delimited(path: Path, columns: Sequence[object]) -> Table:
    """Return columns of a CSV file with a header; see `fedmf.data.read_ratings`.

    Raises DataError if the file cannot be read, or an entry is wrong.
    """
    with unpacked(path) as file:
        reading = _Reading(path, columns)
        try:
            with TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
                reading.read(text)
        except UnicodeDecodeError as error:
            before = BYTES_LINE_END.findall(error.object[: error.start])
            raise DataError(
                f"{path.name}, line {reading.n_lines + len(before) + 1}: byte "
                f"{error.object[error.start]:#04x} is not UTF-8 text: save the file in UTF-8"
            ) from None
    return reading.table()


class _Reading:
    """One pass over a file: the header, then the rows in batches.

    A row starts in the line after the row before, except after blank lines and fields that span
    lines. `rows` has the rows, numbered from 0, at such exceptions; `lines` has their lines.
    """

    def __init__(self, path: Path, columns: Sequence[object]) -> None:
        self.path, self.name, self.columns = path, path.name, columns
        self.head: list[str] = []  # lines up to the first that is not blank
        self.reader: Any = None
        self.mark = ","
        self.width = 0
        self.numbers: list[int] = []  # positions of `columns` in a row
        self.rows, self.lines = array("q"), array("q")
        self.ids = Codes(), Codes()
        self.codes = array("i"), array("i")
        self.values = array("d")
        self.times = Times()

    @property
    def named(self) -> Named:
        """Names of the columns and places of the rows, for errors."""
        return Named(self.name, self.columns, self.place)

    @property
    def n_lines(self) -> int:
        """Number of the lines that were taken from the file."""
        return self.reader.line_num if self.reader else len(self.head)

    def read(self, text: Iterator[str]) -> None:
        """Read the header and all rows; raises DataError and UnicodeDecodeError."""
        for line in text:
            # a mark may stand below blank lines
            self.head.append(line.lstrip(BOM))
            if SEP.fullmatch(self.head[-1]):
                self.head[-1] = "\n"
            if self.head[-1].strip():
                break
        else:
            raise DataError(f"{self.path} is empty: give a CSV file with a header and ratings")
        heads = {mark: _fields(self.head[-1], mark) for mark in DELIMITERS}
        wanted = set(map(str, self.columns))
        self.mark = max(
            DELIMITERS, key=lambda one: (wanted <= set(heads[one]), len(heads[one]))
        )
        if JSON.match(self.head[-1]) and not wanted <= set(heads[self.mark]):
            raise DataError(
                f"{self.name}, line {len(self.head)} begins like JSON, and is no header with "
                f"{short(self.columns[0])}: read the file into a frame, as with "
                "pandas.read_json, and pass that"
            )
        self.reader = csv.reader(
            chain(self.head, text), delimiter=self.mark, skipinitialspace=True, strict=True
        )
        end = len(self.head) - 1  # last line of the row before
        try:
            header = next(fields for fields in self.reader if "".join(fields).strip())
            self._find(header, end + 1, text)
            end = self.reader.line_num
            batch: list[list[str]] = []
            row, shift = 0, -1  # the line of a row is the row + shift
            for fields in self.reader:
                last = self.reader.line_num
                if len(fields) != self.width:
                    if "".join(fields).strip():
                        raise self._wrong_width(fields, end + 1, last)
                    end = last  # a blank line
                    continue
                if last != end + 1:
                    self._check_lines(fields, end + 1, last)
                if end + 1 - row != shift:
                    shift = end + 1 - row
                    self.rows.append(row)
                    self.lines.append(end + 1)
                end = last
                row += 1
                batch.append(fields)
                if len(batch) == BATCH:
                    self._add(batch)
                    batch = []
        except csv.Error as error:
            raise self._wrong_quote(str(error), end + 1) from None
        if batch:
            self._add(batch)
        if not row:
            raise DataError(f"{self.path} has a header and no rating: add a line per rating")

    def _find(self, header: list[str], line: int, text: Iterator[str]) -> None:
        """Find the columns in the header; raises DataError with the remedy that fits."""
        names = [name.strip() for name in header]
        self.width = len(header)
        try:
            self.numbers = positions(self.name, names, self.columns, NO_HEADER)
        except DataError as error:
            if "\0" in "".join(header):
                raise DataError(
                    f"{self.name}, line {line}: the header has NUL characters, as UTF-16 or "
                    "a binary file has: save it as CSV in UTF-8"
                ) from None
            if self.reader.line_num > line:
                raise self._wrong_quote("a name of the header spans lines", line) from None
            raise DataError(f"{error}{self._hint(names, text, str(error))}") from None

    def _hint(self, names: list[str], text: Iterator[str], said: str) -> str:
        """Return a hint for a header that lacks a column, beyond the text `said`, or ""."""
        for below, line in enumerate(islice(text, ABOVE), self.n_lines + 1):
            for mark in DELIMITERS:
                if set(map(str, self.columns)) <= set(_fields(line, mark)):
                    return f"; line {below} has them: remove the lines above it"
        if len(names) > 1 and "::" not in names[0]:
            return ""
        remedy = "; separate the fields by comma, semicolon, tab or bar"
        if "::" in names[0]:
            remedy = "; fields are separated by '::': replace each '::' by a tab"
        fields = OTHER_MARK.split(names[0])
        if sum(map(is_number, fields)) > 1 and "add a first line" not in said:
            remedy += f", and {NO_HEADER}"
        return remedy

    def _add(self, rows: list[list[str]]) -> None:
        """Append a batch of rows; raises DataError for a wrong entry."""
        columns = list(zip(*rows, strict=True))
        users, items, values, *times = (columns[number] for number in self.numbers)
        before = len(self.codes[0])
        for number, texts in enumerate((users, items)):
            ids = self.ids[number]
            self.codes[number].extend(map(ids.__getitem__, texts))
            if "" in ids:
                row = next(row for row, text in enumerate(texts) if not text.strip())
                raise self.named.empty(before + row, number)
        try:
            self.values.extend(map(float, values))
        except ValueError:
            row = next(row for row, text in enumerate(values) if not is_number(text))
            raise self.named.no_number(before + row, values[row]) from None
        if times and (wrong := self.times.add(times[0])) is not None:
            raise self.named.no_time(before + wrong, times[0][wrong])

    def _check_lines(self, fields: list[str], first: int, last: int) -> None:
        """Raise DataError if a stray quote joined ratings to a row of several lines."""
        if joins_ratings(fields, self.mark, self.numbers, self.width):
            raise DataError(
                f"{self.name}, line {first}: a quote joins the lines {first} to {last}, which "
                "look like ratings: remove the quote, or close it in its line"
            )

    def _wrong_width(self, fields: list[str], first: int, last: int) -> DataError:
        comma = ", and write decimal points" if self.mark == "," else ""
        joined = f"; a quote joins the lines {first} to {last}" if last > first else ""
        return DataError(
            f"{self.name}, line {first}: {len(fields)} fields, but the header has "
            f"{self.width}: add the missing fields, or quote fields that contain "
            f"{self.mark!r}{comma}{joined}"
        )

    def _wrong_quote(self, message: str, first: int) -> DataError:
        last = self.reader.line_num
        if "limit" in message:
            return DataError(
                f"{self.name}, line {first}: a field has more than {csv.field_size_limit()} "
                "characters: close its quote, or shorten it"
            )
        reached = f", and its field reaches line {last}" if last > first else ""
        return DataError(
            f"{self.name}, line {first}: a quote is not closed as it must be{reached} "
            f"({message}): remove the quote, or write it twice inside quotes"
        )

    def place(self, row: int) -> str:
        """Return the line of a row."""
        change = bisect_right(self.rows, row) - 1
        return f"line {self.lines[change] + row - self.rows[change]}"

    def table(self) -> Table:
        """Return the table of all rows."""
        values = np.frombuffer(self.values, dtype=np.float64)
        users, items = (self._coded(side) for side in (0, 1))
        times, nanos = self.times.arrays() if len(self.numbers) > 3 else (None, None)
        return Table(self.name, self.columns, self.place, users, items, values, times, nanos)

    def _coded(self, side: int) -> Coded:
        """Return ids; raises DataError for a text that ends with NUL."""
        texts = self.ids[side].texts
        codes: NDArray[np.int32] = np.frombuffer(self.codes[side], dtype=np.int32)
        for number, text in enumerate(texts):
            if text.endswith("\0"):
                row = int(np.argmax(codes == number))
                raise self.named.wrong(
                    row, side, f"{text!r} ends with a NUL character: remove it"
                )
        return coded_texts(texts, codes, wholes=True)


def _fields(line: str, mark: str) -> list[str]:
    """Return the names in the line of a header, none if the line is no CSV with this mark."""
    found: Iterable[list[str]] = csv.reader([line], delimiter=mark, skipinitialspace=True)
    try:
        return [name.strip() for name in next(iter(found), [])]
    except csv.Error:
        # with a wrong mark a long line is a single field, beyond the limit of the module csv
        return []


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
