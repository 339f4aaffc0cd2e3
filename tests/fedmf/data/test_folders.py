"""Folders of data sets: FEDMF_DATA, then the cache, else a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedmf.data.sets.folders import cache_folder, folder_of, found_folder
from fedmf.data.sets.sources import SOURCES
from fedmf.errors import DataError

TEN = SOURCES["ml-10m"]


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    """Start with no data and an empty cache."""
    monkeypatch.delenv("FEDMF_DATA", raising=False)
    monkeypatch.setenv("FEDMF_CACHE", str(tmp_path / "cache"))


def test_cache_folder_follows_the_variables(monkeypatch, tmp_path):
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("FEDMF_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "fedmf"
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert cache_folder() == tmp_path / "home" / ".cache" / "fedmf"


def test_root_precedes_variable_precedes_cache(monkeypatch, tmp_path):
    """The variable comes before the cache and a root before both."""
    assert found_folder(TEN) is None
    places = [tmp_path / root / TEN.folder for root in ("cache", "data", "root")]
    for place in places:
        place.mkdir(parents=True)
    cached, named, given = places
    assert folder_of(TEN) == cached
    monkeypatch.setenv("FEDMF_DATA", str(named.parent))
    assert folder_of(TEN) == named
    assert folder_of(TEN, given.parent) == given
    named.rmdir()
    assert folder_of(TEN) == cached
    given.rmdir()
    with pytest.raises(DataError, match=f"'ml-10M100K' in {given.parent}"):
        folder_of(TEN, given.parent)


def test_missing_folder_raises_with_remedy(monkeypatch):
    with pytest.raises(DataError, match=r"FEDMF_DATA.*'fedmf data fetch ml-1m'"):
        folder_of(SOURCES["ml-1m"])
    monkeypatch.setenv("FEDMF_DATA", str(Path("elsewhere")))
    with pytest.raises(DataError, match="'ml-1m' in elsewhere"):
        folder_of(SOURCES["ml-1m"])
