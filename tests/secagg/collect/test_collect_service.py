"""Reports over HTTP: acknowledged after the commit, checked before, and none lost."""

from __future__ import annotations

import asyncio
import threading
from base64 import b64decode
from contextlib import AbstractContextManager
from dataclasses import replace

import pytest
from psycopg import Connection
from psycopg_pool import ConnectionPool

from collect_faults import COMMIT, COMMITTED, Interposed
from collect_parts import Collected, Databases
from collect_site import NEWEST, Site, served
from oneshot_parties import parties
from postgres_server import Server
from secagg import DatabaseError, ParameterError
from secagg.collect import batches
from secagg.collect.close import result
from secagg.collect.intake import Intake
from secagg.collect.reports import Report, Verdict
from secagg.collect.sessions import StoredSession
from secagg.http import Limits
from secagg.oneshot import OneShotParams
from secagg.session.exchange import Thread


@pytest.mark.parametrize("security", ["active", "semi-honest"])
async def test_reports_over_http_are_summed(databases: Databases, security: str) -> None:
    with parties(3, security=security) as made:
        collected = Collected(databases.open(), made)
        async with served(collected) as site:
            assert await site.report(0, 1, 2, 3, 1) == [""] * 5
            assert await site.post(made.report(2, seed=1)) == "409 id"
            made.report(2)
            collected.close()
            assert await site.report(2, 4) == ["", "410 closed"]
            closed = await site.http.post(f"{site.path}/reports", content=collected.sent[4])
            assert closed.url.join(closed.links["latest-version"]["url"]).path == NEWEST
        await collected.finish()
        found = result(collected.database, 0)
        assert found is not None
        assert found.integers.tolist() == made.expected(range(4))


async def test_parameters_are_of_the_newest_open_session(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        newer = made.make_params(session=b"newer")
        async with served(collected) as site:
            assert await parameters(site, NEWEST) == (made.params.digest, [])
            with collected.database.transaction() as tx:
                batches.begin(tx, newer, [bytes([j]) * 64 for j in (1, 2)])
            digest, endorsements = await parameters(site, NEWEST)
            assert digest == newer.digest
            assert endorsements == [bytes([j]) * 64 for j in (1, 2)]
            assert await parameters(site, site.path) == (made.params.digest, [])


async def parameters(site: Site, path: str) -> tuple[bytes, list[bytes]]:
    found = (await site.http.get(path)).json()
    params = OneShotParams.from_bytes(b64decode(found["parameters"]))
    assert params.digest.hex() == found["digest"]
    return params.digest, [b64decode(one) for one in found["endorsements"]]


async def test_invalid_reports_are_not_stored(databases: Databases) -> None:
    with parties(n_clients=3, modulus=10_007) as made:
        collected = Collected(databases.open(), made)
        good = made.report(1)
        other = made.report(1, params=replace(made.params, session=b"other"))
        beyond = bytearray(good)
        beyond[-1] = 255
        unsigned = bytearray(good)
        unsigned[made.params.layout.values - 1] ^= 1
        unknown = f"/v1/parameters/{'0' * 64}/reports"
        async with served(collected) as site:
            for content, path, problem in [
                (b"", "", "422 length"),
                (good[:-1], "", "422 length"),
                (good + b"x", "", "413 length"),
                (other, "", "422 parameters"),
                (bytes(beyond), "", "422 range"),
                (bytes(unsigned), "", "422 signature"),
                (made.report(77, params=made.params), "", "422 signature"),
                (good, unknown, "404 parameters"),
                (good, "/v1/parameters/x/reports", "404 parameters"),
            ]:
                assert await site.post(content, path) == problem
            assert await site.report(0, 1, 2, 3) == ["", "", "", "503 full"]


@pytest.mark.parametrize("moment", ["INSERT INTO secagg_reports", COMMIT, COMMITTED])
async def test_no_report_is_acknowledged_without_its_commit(
    databases: Databases, moment: str
) -> None:
    """A client without an acknowledgement sends the same bytes again."""
    failing = True

    def before(statement: str) -> None:
        if failing and statement.startswith(moment):
            raise DatabaseError("gone")

    with parties() as made:
        collected = Collected(databases.open(), made)
        async with served(collected, before) as site:
            assert await site.report(0, 1) == ["503 database"] * 2
            failing = False
            assert await site.report(0, 1) == [""] * 2
        with collected.database.transaction() as tx:
            assert batches.get(tx, 0).reports == 2


async def test_database_that_was_away_comes_back(
    own_postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that was acknowledged is lost, and the same process goes on."""
    monkeypatch.setattr("secagg.collect.postgres._WAIT", 0.2)
    monkeypatch.setattr("secagg.collect.postgres._REST", 0.0)
    databases = Databases.in_schema(own_postgres.url, 0)
    with parties() as made:
        collected = Collected(databases.open(), made)
        async with served(collected, operator_port=0) as site:
            assert await site.report(0, 1, 2) == [""] * 3
            assert await site.look("ready") == {"status": "ready"}
            own_postgres.crash()
            assert await site.report(2, 3) == ["503 database"] * 2
            assert (await site.look("ready"))["check"] == "database"
            assert (await site.metrics())["secagg_collect_ready"] == 0
            own_postgres.start()
            monkeypatch.setattr("secagg.collect.postgres._WAIT", 60.0)
            assert await site.report(2, 3) == [""] * 2
            assert await site.look("ready") == {"status": "ready"}
        collected.close()
        await collected.finish()
        found = result(collected.database, 0)
        assert found is not None
        assert found.integers.tolist() == made.expected(range(4))
    databases.close()


def test_calls_in_line_wait_once_for_a_database_that_is_away(
    own_postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("secagg.collect.postgres._WAIT", 0.2)
    waits, connection = list[float](), ConnectionPool.connection

    def recorded(pool: ConnectionPool, wait: float) -> AbstractContextManager[Connection]:
        waits.append(wait)
        return connection(pool, wait)

    monkeypatch.setattr(ConnectionPool, "connection", recorded)
    databases = Databases.in_schema(own_postgres.url, 0)
    database = databases.open()
    own_postgres.crash()
    waits.clear()
    for rest in (0.0, 60.0, 60.0, 60.0):
        monkeypatch.setattr("secagg.collect.postgres._REST", rest)
        with pytest.raises(DatabaseError), database.transaction():
            pass
    assert waits == [0.2, 0.2]
    own_postgres.start()
    databases.close()


@pytest.mark.parametrize("begun", [False, True])
async def test_service_that_goes_on_over_an_older_copy_stores_nothing_under_other_parameters(
    databases: Databases, begun: bool
) -> None:
    """Its sessions are in memory, and the copy gives their numbers again."""
    with parties() as made:
        collected = Collected(databases.open(), made)
        async with served(collected) as site:
            assert await site.report(0) == [""]
            other = made.make_params(session=b"other")
            with collected.database.transaction() as tx:
                values = other.digest, other.to_bytes()
                tx.run("UPDATE secagg_sessions SET digest = ?, params = ?", *values)
            if not begun:
                assert await site.report(0, 1, 2) == ["404 parameters"] * 3
            with collected.database.transaction() as tx:
                assert batches.get(tx, 0).reports == 1
                again = batches.begin(tx, made.params)
            assert again.number == 1
            assert await site.report(0, 1, 2) == [""] * 3
            with collected.database.transaction() as tx:
                assert [batches.get(tx, number).reports for number in (0, 1)] == [1, 3]


async def test_reports_that_wait_share_a_transaction(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        all_wait, begun = threading.Event(), threading.Event()
        insertions: list[str] = []

        def before(statement: str) -> None:
            if statement == "INSERT INTO secagg_clients":
                insertions.append(statement)
                begun.set()
                all_wait.wait()

        thread = Thread()
        intake = Intake(Interposed(collected.database, before), thread)

        with collected.database.transaction() as tx:
            other = batches.begin(tx, made.make_params(session=b"other"))

        def add(u: int, session: StoredSession = collected.session) -> asyncio.Task[Verdict]:
            return asyncio.ensure_future(intake.add(session, Report.of(u, b"a report")))

        added = [add(0)]
        await asyncio.to_thread(begun.wait)
        added += [*map(add, range(1, 9)), add(5, other), add(9)]
        await asyncio.sleep(0)
        added.pop(3).cancel()  # a client that hung up keeps nobody else waiting
        await asyncio.sleep(0)
        all_wait.set()
        assert await asyncio.gather(*added) == [Verdict.STORED] * 10
        thread.close()
        assert len(insertions) == 4, "the first, those of each session, and the last"
        with collected.database.transaction() as tx:
            assert [batches.get(tx, number).reports for number in (0, 1)] == [10, 1]


async def test_requests_beyond_the_limits_are_turned_away(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        go, begun = threading.Event(), threading.Event()

        def before(statement: str) -> None:
            if statement == "INSERT INTO secagg_clients":
                begun.set()
                go.wait()

        async with served(collected, before, limits=Limits(polls=1)) as site:
            first = asyncio.ensure_future(site.report(0))
            await asyncio.to_thread(begun.wait)
            assert await site.report(1) == ["503 busy"]
            stranger = f"/v1/parameters/{'0' * 64}"  # before the database is asked for it
            assert (await site.http.get(stranger)).status_code == 503
            go.set()
            assert await first == [""]
            assert await site.report(1) == [""]


async def test_active_session_needs_the_keys_of_clients(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        async with served(collected, registry=None) as site:
            assert await site.report(0) == ["503 server"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"registry": 3},
        {"limits": 3},
        {"host": "192.0.2.1"},
        {"origins": "https://app.example"},
        {"origins": [3]},
        {"origins": ["*"]},
        {"origins": ["null"]},
        {"origins": ["https://*.example"]},
        {"origins": ["https://App.example"]},
        {"origins": ["https://app.example/"]},
        {"origins": ["https://app.example:443"]},
        {"origins": ["https://user@app.example"]},
        {"origins": ["http://app.example"]},
    ],
    ids=str,
)
async def test_arguments_of_serve_are_validated(
    databases: Databases, wrong: dict[str, object]
) -> None:
    with parties() as made, pytest.raises(ParameterError):
        async with served(Collected(databases.open(), made), **wrong):
            pass
