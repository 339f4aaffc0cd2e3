"""An environment with some extras only: all other packages are hidden from the import."""

from __future__ import annotations

import io
import json
import sys
import tomllib
import traceback
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from importlib import import_module, metadata
from itertools import cycle
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
# halves of safe primes of 1536 bits, made by random_safe_prime(1536)
HALVES = (
    "7ce44ef8cd16d05d001e539dc16eb20cf423ce7065343c2f53123776d8153914d0aa3009f01f73c8"
    "a2c8b35b55aa846e4ea65a170514a36841da065db76cf082a56bfba353baf1bfadb85832e1e968a3"
    "a36412ac530f60dfe79b67a1b4e61cf2d1e42d64ec9c85c710605bfb3ea01189d9d554df6846d608"
    "727170bb65f1eb81d3435e81f78b0d5bcf42f3de0e29e09475d86e6810456d65e2ee60902787f195"
    "e8f4e35611369a7cb9c827fde53354e7a87f8ba4b3667909b5cff9f6d99ffad7",
    "7fca5ff245bb8729bb111d5f4828f366384221569c8e41a8e8ead00315dd7264128678709c6e489f"
    "efbebc8a3e05b6bdfcee9b6df552590e8a5f9a1a083c897208b8f343052c8aaa028d84a327856b15"
    "366840e473589e7f473621277feadc88e2c554f5494f08008153252c3f1d9aedca3cec5bd5cd92a9"
    "72687d4ad24655c4348bddc0ac54fd6e9b45b511d768e46816fb82d8a71ca737ef31746d3cf46540"
    "66b8f32a24097a1ccf2acff905c90a16e50644ceeb58fb248d274ecd03d83399",
)


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


def hasten() -> None:
    """Let the commands make their parsers once, deal keys of known primes, and load few users.

    The parsers take 30 ms; safe primes take seconds to find, and rounds of 300 users, too.
    """
    typer = import_module("typer.main")
    if not hasattr(typer.get_command, "cache_info"):
        typer.get_command = cache(typer.get_command)
    if dealing := sys.modules.get("secagg.threshold.dealing"):
        prime = import_module("secagg.paillier.primes").StructuredPrime
        known = cycle(HALVES)
        dealing.random_safe_prime = lambda bits, entropy: prime(1, int(next(known), 16))
    if loading := sys.modules.get("fedmf.data.loading"):
        few = {"SIMULATED_USERS": 30, "SIMULATED_ITEMS": 50, "SIMULATED_RATINGS": 600}
        vars(loading).update(few)


def run(words: list[str]) -> tuple[object, str, str]:
    """Run a command in this process; return its exit code, stdout and stderr.

    An error that the command does not catch takes the place of the code, as its traceback.
    """
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    sys.argv = words
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main = import_module(f"{words[0]}.cli").main
            hasten()
            main()
        except SystemExit as end:
            code = end.code
        except BaseException:
            code = traceback.format_exc()
    return code or 0, out.getvalue(), err.getvalue()


if __name__ == "__main__":
    hide(name for name in sys.argv[1].split(",") if name)
    print(json.dumps([run(words) for words in json.load(sys.stdin)]))
