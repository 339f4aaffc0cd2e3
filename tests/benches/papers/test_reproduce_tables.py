"""Every table and each of its rows can be found, kept and judged."""

import importlib
import pkgutil

import pytest

import benches.papers
from benches.papers.table import MODULES, Row, Table, find_table, resolve


def test_tables_come_in_their_order_and_once():
    modules = {"one": "a", "two": "b", "three": "c"}
    assert list(resolve(["three", "one", "three"], modules)) == ["one", "three"]
    assert list(resolve(["two", "all"], modules)) == ["one", "two", "three"]


def test_find_table_of_unknown_key_raises():
    with pytest.raises(LookupError):
        find_table("reproduce_fakes", "other")


def test_table_with_equal_row_names_raises():
    row = Row("row", "simulated", lambda run: {})
    with pytest.raises(ValueError, match="one name"):
        Table(key="t", title="T", metrics=(), rows=(row, row))


@pytest.mark.parametrize("key", MODULES)
def test_tables_and_rows_are_found_by_key(key):
    """Targets are of columns, and of other rows."""
    table = find_table(MODULES[key], key)
    for row in table.rows:
        assert {*row.paper, *row.target, *row.below} <= {*table.metrics}
        assert row.name not in {below.row for below in row.below.values()}
    assert table.title
    assert table.rows


def test_listed_modules_cover_every_table():
    found = set()
    for module in pkgutil.iter_modules(benches.papers.__path__, "benches.papers."):
        content = importlib.import_module(module.name)
        tables_of_it = (*getattr(content, "TABLES", ()), getattr(content, "TABLE", None))
        found |= {(table.key, module.name) for table in tables_of_it if table is not None}
    assert found == set(MODULES.items())
