"""Databases for tests, and coroutine functions as tests, each in an event loop of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

import postgres_server
from collect_parts import Databases
from coroutine_tests import pytest_pyfunc_call as pytest_pyfunc_call

_NUMBERS = count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a running server."""
    need_postgres()
    with postgres_server.server() as made:
        yield made.url


def need_postgres() -> None:
    """Skip a test where no server of PostgreSQL can start; fail in CI."""
    if reason := postgres_server.missing():
        assert not os.environ.get("SECAGG_REQUIRE_POSTGRES"), reason
        pytest.skip(reason)


@pytest.fixture
def own_postgres() -> Iterator[postgres_server.Server]:
    """A server that the test may crash."""
    need_postgres()
    with postgres_server.server() as made:
        yield made


@pytest.fixture
def wheel_postgres(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a server of the wheel, as where the system has none."""
    monkeypatch.setattr(postgres_server, "_installed", lambda: None)
    need_postgres()
    with postgres_server.server() as made:
        yield made.url


@pytest.fixture(params=["sqlite", "postgres"])
def new_database(request: pytest.FixtureRequest, ram_path: Path) -> Callable[[], Databases]:
    """A function that makes a new database."""
    if request.param == "sqlite":
        return lambda: Databases(str(ram_path / f"reports {next(_NUMBERS)}"))
    url = request.getfixturevalue("postgres")
    return lambda: Databases.in_schema(url, next(_NUMBERS))


@pytest.fixture
def databases(new_database: Callable[[], Databases]) -> Iterator[Databases]:
    """A new database, which any number of processes open."""
    made = new_database()
    yield made
    made.close()
