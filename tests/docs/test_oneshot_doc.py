"""docs/oneshot.md and the code say the same: checks by phase, labels, sizes, quorums."""

from __future__ import annotations

from math import comb
from pathlib import Path

import numpy as np
import pytest

from secagg import Integers, _fast
from secagg.oneshot import OneShotParams
from vectors_reader import b, load

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "oneshot.md").read_text()


def rows(text: str) -> list[list[str]]:
    """Return the cells of the rows of a table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize("row", rows(TEXT.split("### 2.4")[1].split("### ")[0]), ids=str)
def test_table_of_helpers_is_right(row: list[str]) -> None:
    threshold, helpers = map(int, row[0].split(" of "))
    known = {
        pair[1]: tuple(map(b, pair))
        for session in load("oneshot")["sessions"]
        if session["parameters"]["suite"] == "x25519"
        for pair in session["parameters"]["helpers"]
    }
    params = OneShotParams(
        n_clients=3,
        length=1,
        encoding=Integers(1),
        helpers=tuple(known.values())[:helpers],  # type: ignore[arg-type]
        threshold=threshold,
        min_clients=3,
        suite="x25519",
        session=b"session",
    )
    assert row[1] == f"{params.seeds}, {len(params.held_by(1))}"
    assert params.seeds == comb(helpers, threshold - 1)
    assert row[2] == (str(params.quorum) if params.quorum else "–")
    assert row[3:] == [str(helpers - threshold), str(helpers - (params.quorum or helpers))]


def test_known_answers_of_the_sampler_are_those_of_the_code() -> None:
    table = rows(TEXT.split("For the key 000102")[1].split("### 8.3")[0])
    words = np.zeros(1000, np.uint64)
    _fast.mask_words(words, bytes(range(16)), b"\x00")
    assert len(table) == 3
    for row in table:
        base, _, exponent = row[0].partition("^")
        out = np.zeros(8, np.int64)
        drawn, used = _fast.discrete_gaussian(words, out, int(base) ** int(exponent or 1))
        assert (drawn, str(used)) == (8, row[1])
        assert out.tolist() == [int(y.replace("−", "-")) for y in row[2].split(", ")]
