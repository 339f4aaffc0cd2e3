"""Collection runs of docs/scale.md, on a small collection: all faults, and the exact sum."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import postgres_server
from benches.collection import driver
from benches.collection.load import Load
from benches.collection.report import table
from benches.one_shot_parties import Sum
from secagg.errors import SecAggError
from secagg.kit.table import as_markdown

LOAD = Load(
    clients=3000,
    length=100,
    serves=2,
    works=2,
    connections=16,
    pace=200.0,
    duplicates=0.05,
    garbage=0.05,
    kills=1,
    lease=3.0,
)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder below which the user of the database has a folder."""
    if reason := postgres_server.missing():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o711)
        yield Path(made)


@pytest.mark.slow
def test_small_collection_survives_all_faults(folder: Path) -> None:
    row = driver.run(LOAD, folder)
    counted = row.kills.values()
    assert 2 * sum(inside for _, inside in counted) >= sum(count for count, _ in counted)
    kills = {kind: count for kind, (count, _) in row.kills.items()}
    assert kills.pop("close") >= LOAD.kills
    assert kills == dict.fromkeys(("serve", "work", "helper", "postgres"), LOAD.kills)
    garbage = sum(count for name, count in row.counts.items() if name.startswith("garbage 4"))
    assert garbage > 0
    assert row.counts["copy 204"] > 0
    assert "3,000" in as_markdown(table([row]))


@pytest.mark.slow
def test_wrong_sum_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # two generators have twice the error of the result
    monkeypatch.setattr(driver, "Sum", lambda integers, ids: Sum(integers + 1, ids))
    with pytest.raises(SecAggError):
        driver.run(replace(LOAD, clients=20, kills=0, pace=1e9), folder)
