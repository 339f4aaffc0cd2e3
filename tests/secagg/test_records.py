"""Compact records beside a dict."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from secagg import _records
from secagg._records import Records

IDS = st.sampled_from([*range(9), 1 << 63, (1 << 64) - 1])
GROUPS = st.dictionaries(IDS, st.binary(min_size=3, max_size=3), max_size=12)
STEPS = st.lists(
    st.tuples(st.sampled_from(["set", "delete", "discard", "merge", "sort"]), GROUPS),
    max_size=12,
)


@pytest.fixture(autouse=True, scope="module")
def small_dict() -> Iterator[None]:
    """Let a few records fill the dict, so that both places have some."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_records, "_RECENT", 3)
        yield


def made(group: dict[int, bytes]) -> Records:
    records = Records(3)
    records.update(group)
    return records


@examples(300)
@given(STEPS)
def test_records_are_those_of_a_dict(steps: list[tuple[str, dict[int, bytes]]]) -> None:
    records, plain = Records(3), dict[int, bytes]()
    for step, group in steps:
        match step:
            case "set":
                records.update(group)
                plain |= group
            case "delete":
                for u in group.keys() & plain.keys():
                    del records[u], plain[u]
            case "discard":
                records.discard(group)
                plain = {u: plain[u] for u in plain.keys() - group.keys()}
            case "merge":
                other = made(group)
                common = min(group.keys() & plain.keys(), default=None)
                assert records.common(other) == other.common(records) == common
                if common is None:
                    records.merge(other)
                    plain |= group
                    assert dict(other) == group
            case "sort":
                assert records.ids.tolist() == sorted(plain)
        assert len(records) == len(plain)
        for u in (*plain, *group):
            assert records.get(u) == plain.get(u)
    assert list(records) == sorted(plain)
    assert dict(records) == plain
    assert records.rows.tobytes() == b"".join(plain[u] for u in sorted(plain))
    chosen = sorted(plain)[::-2]
    rows = records.rows_of(np.array(chosen, np.uint64))
    assert rows.tobytes() == b"".join(plain[u] for u in chosen)


@examples(300)
@given(GROUPS, st.lists(IDS, min_size=1))
def test_rows_of_an_unknown_id_raise_with_the_first(
    group: dict[int, bytes], wanted: list[int]
) -> None:
    missing = [u for u in wanted if u not in group]
    if missing:
        with pytest.raises(KeyError) as caught:
            made(group).rows_of(np.array(wanted, np.uint64))
        assert caught.value.args == (missing[0],)


@pytest.mark.parametrize("key", [-1, 1 << 64, "1", None])
def test_key_that_is_no_id_is_unknown(key: object) -> None:
    assert key not in made({1: b"abc"})


def test_rows_of_is_a_copy() -> None:
    records = made(dict.fromkeys(range(8), b"old"))
    rows = records.rows_of(records.ids)
    records[3] = b"new"
    assert rows[3].tobytes() == b"old"
    assert records[3] == b"new"
