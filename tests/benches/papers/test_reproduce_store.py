"""Finished runs are kept at once, whole, and for their own task only."""

from dataclasses import replace

import pytest

from benches.papers import store as stores
from benches.papers.store import Record, Store, Task
from fedmf.errors import SettingError

TASK = Task(
    table="t", row="A row: λ 1", data="simulated", settings={"k": (1, 2)}, seed=0, quick=False,
    version="1",
)  # fmt: skip
RECORD = Record(
    task=TASK, figures={"RMSE": 1.0}, seconds=1.0, date="2026", state="0", machine={}
)


@pytest.mark.parametrize(
    "change",
    [
        {"table": "u"},
        {"row": "A row: λ 2"},
        {"data": "ml-100k"},
        {"settings": {"k": (1, 3)}},
        {"seed": 1},
        {"quick": True},
        {"version": "2"},
    ],
)
def test_a_record_serves_its_own_task_only(tmp_path, change):
    store = Store(tmp_path)
    store.put(RECORD)
    found = store.get(TASK)
    assert found is not None
    assert (found.figures, found.task.settings) == ({"RMSE": 1.0}, {"k": [1, 2]})
    assert store.get(replace(TASK, **change)) is None


def test_a_damaged_record_is_measured_anew(tmp_path):
    store = Store(tmp_path)
    store.put(
        Record(
            task=TASK, figures={"RMSE": 1.0}, seconds=1.0, date="2026", state="0", machine={}
        )
    )
    (path,) = (tmp_path / "t").iterdir()
    whole = path.read_bytes()
    for damaged in (b"", whole[:-9], b"[]", b"{}", whole.replace(b'"seed": 0', b'"seed": 1')):
        path.write_bytes(damaged)
        assert store.get(TASK) is None


def test_a_file_is_written_at_once_or_not_at_all(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stores.os, "fsync", full)
    with pytest.raises(SettingError, match="cannot be written: No space left on device"):
        stores.write_at_once(tmp_path / "file", b"new")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]
