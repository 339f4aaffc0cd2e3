"""An environment with some extras only: all other packages are hidden from the import."""

from __future__ import annotations

import io
import json
import sys
import tomllib
import traceback
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module, metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def hide(extras: Iterable[str]) -> None:
    """Let the import of every package fail that is not installed with these extras."""
    allowed = set(installed(extras))
    hidden = {
        module
        for module, owners in metadata.packages_distributions().items()
        if not allowed.intersection(map(canonicalize_name, owners)) and "secagg" not in owners
    }

    class Hidden:
        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            top = name.partition(".")[0]
            if top in hidden:
                raise ModuleNotFoundError(f"No module named {top!r}", name=top)

    sys.meta_path.insert(0, Hidden())


def installed(extras: Iterable[str]) -> Iterator[str]:
    """Yield the packages that pip installs with these extras, from the metadata of each."""
    wanted = [*PROJECT["dependencies"], *(line for name in extras for line in EXTRAS[name])]
    left, known = [Requirement(line) for line in wanted], set[tuple[str, frozenset[str]]]()
    while left:
        one = left.pop()
        key = canonicalize_name(one.name), frozenset(one.extras)
        if key in known:
            continue
        known.add(key)
        yield key[0]
        try:
            needs = metadata.requires(key[0]) or ()
        except metadata.PackageNotFoundError:  # of another platform
            continue
        for need in map(Requirement, needs):
            given = [{"extra": name} for name in ("", *key[1])]
            if need.marker is None or any(map(need.marker.evaluate, given)):
                left.append(need)


def run(words: list[str]) -> tuple[object, str, str]:
    """Run a command in this process; return its exit code, stdout and stderr.

    An error that the command does not catch takes the place of the code, as its traceback.
    """
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    sys.argv = words
    with redirect_stdout(out), redirect_stderr(err):
        try:
            import_module(f"{words[0]}.cli").main()
        except SystemExit as end:
            code = end.code
        except BaseException:
            code = traceback.format_exc()
    return code or 0, out.getvalue(), err.getvalue()


if __name__ == "__main__":
    hide(name for name in sys.argv[1].split(",") if name)
    print(json.dumps([run(words) for words in json.load(sys.stdin)]))
