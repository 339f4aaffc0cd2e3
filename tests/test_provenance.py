"""The statement on release files has the digests of their bytes, and no other files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from provenance import NAME, statement


def test_statement_has_every_release_file(tmp_path: Path) -> None:
    files = {"a.whl": b"1", "a.tar.gz": b"2", "sbom.json": b"3", "wheels/b.whl": b"4"}
    for name, data in (files | {NAME: b"5", f"{NAME}.sig": b"6", ".gitignore": b"7"}).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    found = statement(tmp_path, "1", "abc")
    digests = {one["name"]: one["digest"]["sha256"] for one in found["subject"]}
    assert digests == {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    assert list(digests) == sorted(digests)
    sources = found["predicate"]["buildDefinition"]["resolvedDependencies"][0]
    assert sources["digest"] == {"gitCommit": "abc"}


def test_nothing_built_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        statement(tmp_path, "1", "abc")
