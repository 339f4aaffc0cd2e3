"""Errors and warnings survive pickle, copy and a pool of processes, with all that they have."""

from __future__ import annotations

import copy
import importlib
import inspect
import multiprocessing
import pickle
import pkgutil
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

import fedmf
import secagg
from secagg.errors import (
    Dispute,
    LinkError,
    RemoteProtocolError,
    TooFewSurvivors,
    VaultError,
    Verdict,
)

VALUES: dict[str, object] = {
    "sender": 3,
    "survivors": 2,
    "needed": 4,
    "status": 403,
    "retry_after": 7,
    "disputes": (Dispute(1, 2),),
    "helpers": (1, 3),
    "verdicts": (Verdict(3, "answer", bytes(9)),),
}
"""Arguments that are no text, by the names of the parameters."""


def exceptions() -> dict[str, type[Exception]]:
    """Return the exceptions of all modules of both packages that can be imported here."""
    for package in (secagg, fedmf):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.rpartition(".")[2] != "__main__":
                try:
                    importlib.import_module(module.name)
                except (ImportError, secagg.MissingExtra):
                    continue  # an optional dependency
    found = [one for one in below(Exception) if one.__module__.split(".")[0] in PACKAGES]
    return {f"{one.__module__}.{one.__qualname__}": one for one in found}


def below(kind: type[Exception]) -> Iterator[type[Exception]]:
    for one in kind.__subclasses__():
        yield one
        yield from below(one)


PACKAGES = ("secagg", "fedmf")
BUILT_IN = [one.__init__ for one in (Exception, ValueError, RuntimeError, UserWarning)]
BUILT_IN.append(ModuleNotFoundError.__init__)
KINDS = exceptions()


def made(name: str) -> Exception:
    """Return an error with a note, and with a value for each parameter of its constructor."""
    kind = KINDS[name]
    plain = kind.__init__ in BUILT_IN
    own = [] if plain else inspect.signature(kind.__init__).parameters.values()
    named = [p for p in own if p.name != "self"]
    values = {p.name: VALUES.get(p.name, f"the {p.name}") for p in named}
    keywords = {p.name: values.pop(p.name) for p in named if p.kind == p.KEYWORD_ONLY}
    error = kind(*(values.values() or ["the message"]), **keywords)
    error.add_note("a note")
    return error


def raise_one(name: str) -> None:
    raise made(name)


def parts(error: BaseException) -> tuple[object, ...]:
    own = {k: v for k, v in vars(error).items() if k != "__cause__"}
    return type(error), str(error), error.args, own, getattr(error, "msg", None)


WAYS: dict[str, Callable[[Exception], Exception]] = {
    **{
        f"pickle {protocol}": lambda error, protocol=protocol: pickle.loads(  # noqa: S301
            pickle.dumps(error, protocol)
        )
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    },
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def test_exceptions_of_both_packages_are_found() -> None:
    assert {TooFewSurvivors, RemoteProtocolError, VaultError, LinkError} <= {*KINDS.values()}
    assert len(KINDS) >= 15


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", KINDS)
def test_exception_survives_with_message_and_attributes(name: str, way: str) -> None:
    error = made(name)
    again = WAYS[way](error)
    assert again is not error
    assert parts(again) == parts(error)
    assert parts(WAYS[way](again)) == parts(error)


def test_exceptions_survive_a_pool_of_spawned_processes() -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        for name, future in {n: pool.submit(raise_one, n) for n in KINDS}.items():
            error = future.exception()
            assert error is not None
            assert parts(error) == parts(made(name))


def test_missing_extra_keeps_the_name_of_the_module() -> None:
    error = secagg.MissingExtra("pip install secagg[http]", name="starlette", path="here")
    for way in WAYS.values():
        again = way(error)
        assert isinstance(again, secagg.MissingExtra)
        assert (again.name, again.path, again.msg) == ("starlette", "here", error.args[0])
