"""Attacks on a collection: by the collector, by writers of the database, and by strangers."""

from __future__ import annotations

import json
import sqlite3
import stat
from base64 import b64encode
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from test_collect_client import VECTOR, policy_of, send, served

from cli_processes import invoke
from collect_faults import BEGIN, Interposed
from collect_parts import Absent, Collected, Databases, Rejecting
from oneshot_parties import Parties, parties
from secagg import (
    DatabaseError,
    LinkError,
    ParameterError,
    RemoteProtocolError,
    TooFewSurvivors,
)
from secagg.collect import State, batches, close, slices
from secagg.collect.close import result
from secagg.collect.reports import Verdict, place_of
from secagg.http import Offer, asgi, get_offer
from secagg.http.server import listening
from secagg.session import bind
from secagg.testing import make_identity


async def test_check53_client_with_an_identity_reports_in_active_sums_only(
    databases: Databases,
) -> None:
    with parties(security="semi-honest") as made:
        collected = Collected(databases.open(), made, endorsed=True)
        async with served(collected) as url:
            with pytest.raises(ParameterError):
                await send(made, url, 1, identity=make_identity(1))
        with collected.database.transaction() as tx:
            assert batches.get(tx, 0).reports == 0


async def test_client_that_tries_again_keeps_its_parameters(databases: Databases) -> None:
    """Under others, its vector would be in the difference of two sums."""
    with parties(session=bind(b"one", b"")) as made:
        collected = Collected(databases.open(), made, endorsed=True)
        other = made.make_params(session=bind(b"two", b""))
        digest = made.params.digest
        with collected.database.transaction() as tx:
            batches.begin(tx, other, [helper.endorse() for helper in made.helpers])
        async with served(collected) as url:
            offer = await get_offer(url, policy=policy_of(made), digest=digest)
            assert offer.params.digest == digest
        app = asgi.build([asgi.document(f"/v1/parameters/{other.digest.hex()}", told(offer))])
        async with listening(app, "127.0.0.1", 0, None) as url:
            with pytest.raises(RemoteProtocolError) as caught:
                await get_offer(url, policy=policy_of(made), digest=other.digest)
        assert caught.value.check == "parameters"


def told(offer: Offer) -> dict[str, object]:
    texts = [b64encode(one).decode() for one in (offer.params.to_bytes(), *offer.endorsements)]
    return {"parameters": texts[0], "endorsements": texts[1:]}


def test_command_that_fails_names_its_parameters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with parties() as made:

        async def offered(*_: object, digest: bytes | None, **__: object) -> Offer:
            assert digest in (None, made.params.digest)
            return Offer(made.params, (), b"")

        async def lost(*_: object, **__: object) -> None:
            raise LinkError("it does not answer", check="patience")

        monkeypatch.setattr("secagg.http.get_offer", offered)
        monkeypatch.setattr("secagg.http.send_report", lost)
        np.save(tmp_path / "v.npy", VECTOR)
        entry = {"url": "https://h", "suite": "x25519", "hpke": "00" * 32, "ed25519": "00" * 32}
        (tmp_path / "helpers.json").write_text(json.dumps([entry]))
        files = "--vector", tmp_path / "v.npy", "--helpers", tmp_path / "helpers.json"
        command = "report", "http://localhost", "--client", "a", "--integers", "--clip", 100
        again = f"--parameters {made.params.digest.hex()}"
        for more in ((), again.split()):
            done = invoke(*command, *files, *more)
            assert done.exit_code == 2
            assert again in " ".join(done.stderr.split())
        assert invoke(*command, *files, "--parameters", "x").exit_code == 2


@pytest.mark.parametrize("vector", [VECTOR * 101, np.full(4, np.nan), VECTOR[1:]], ids=str)
async def test_check52_client_reports_whatever_its_numbers_are(
    databases: Databases, vector: np.ndarray
) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made, endorsed=True)
        async with served(collected) as url:
            with pytest.raises(ParameterError):
                await send(made, url, 1, vector=vector)
        assert collected.send([(1, b"another")]) == [Verdict.OTHER]


def test_full_batch_costs_a_transaction_for_all_reports_together(databases: Databases) -> None:
    with parties(n_clients=3) as made:
        collected = Collected(databases.open(), made)
        assert collected.report(0, 1, 2) == [Verdict.STORED] * 3
        told: list[str] = []
        database = Interposed(collected.database, told.append)
        found = collected.report(2, *range(3, 20), database=database)
        assert found == [Verdict.STORED] + [Verdict.FULL] * 17
        assert told.count(BEGIN) == 1


def test_file_is_its_owners(ram_path: Path) -> None:
    databases = Databases(str(ram_path / "reports"))
    with databases.open().transaction():
        files = list(ram_path.glob("reports*"))
        assert len(files) == 3, "the file, its log, and an index of the log"
        assert {stat.S_IMODE(one.stat().st_mode) for one in files} == {0o600}
    databases.close()


class _Text(NamedTuple):
    text: str


def test_settings_of_a_role_weaken_nothing(postgres: str) -> None:
    weak = "synchronous_commit=off", "default_transaction_isolation=serializable"
    options = "%20".join(f"-c{one.replace('=', '%3D')}" for one in weak)
    databases = Databases(f"{postgres}&options={options}&keepalives_idle=7")
    with databases.connect().transaction() as tx:
        for name, value in (
            ("synchronous_commit", "on"),
            ("transaction_isolation", "read committed"),
        ):
            assert tx.one(_Text, f"SHOW {name}") == (value,)
        # a server that is gone without a word is noticed, within the operator's own time
        network = tx._connection.info.get_parameters()  # type: ignore[attr-defined]
        assert (network["keepalives_idle"], network["keepalives_count"]) == ("7", "3")
    databases.close()


def test_error_quotes_no_password() -> None:
    module = pytest.importorskip("secagg.collect.postgres")
    with pytest.raises(DatabaseError) as caught:
        module.PostgreSQL("postgresql://collector:secret@[::1/sums")
    assert "secret" not in str(caught.value)


def test_process_that_hangs_keeps_others_no_longer_than_clients_wait(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds a client; others would wait as long as the network does not fail."""
    from secagg.collect import postgres as module

    settings = module._SETTINGS.replace("lock_timeout = '20s'", "lock_timeout = '100ms'")
    monkeypatch.setattr(module, "_SETTINGS", settings)
    databases = Databases.in_schema(postgres, 1_000)
    with parties() as made:
        collected, other = Collected(databases.open(), made), databases.connect()
        with other.transaction() as tx:
            rows = [(0, 1, 0, b"")]
            tx.insert_new("secagg_clients", ("session", "id", "batch", "digest"), rows, "id")
            with pytest.raises(DatabaseError):
                collected.report(0, 1)
        assert collected.report(0, 1) == [Verdict.STORED, Verdict.OTHER]
    databases.close()


@pytest.mark.parametrize(
    "alteration",
    [
        "UPDATE secagg_sessions SET params = ?",
        "UPDATE secagg_sessions SET digest = ?",
        "DELETE FROM secagg_sessions WHERE digest <> ?",
        "UPDATE secagg_slices SET slice = 7 WHERE slice = 1 AND NOT part = ?",
    ],
)
async def test_altered_rows_are_an_error_that_names_the_database(
    databases: Databases, alteration: str
) -> None:
    """Other classes of errors would end `serve`, `work` and `close` for all batches."""
    with parties() as made:
        collected = Collected(databases.open(), made)
        other = made.make_params(session=b"other")
        collected.report(0, 1, 2)
        collected.close()
        await collected.work()
        with collected.database.transaction() as tx:
            assert tx.run(alteration, other.to_bytes()) == 1
        with pytest.raises(DatabaseError):
            await collected.closer().step(0)


@pytest.mark.parametrize("token", [(1 << 63) - 1, -1])
async def test_altered_slice_keeps_no_worker_from_the_others(
    databases: Databases, token: int
) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made, slices=2)
        collected.report(0, 1, 2)
        collected.close()
        with collected.database.transaction() as tx:
            tx.run("UPDATE secagg_slices SET token = ? WHERE slice = 0", token)
        assert await collected.worker().step()
        with pytest.raises(DatabaseError):
            await collected.worker().step()
        with collected.database.transaction() as tx:
            assert slices.unfinished(tx, 0)


async def two_batches(databases: Databases, made: Parties, state: State) -> Collected:
    """Return a collection with two batches in a state, both of three clients."""
    collected = Collected(databases.open(), made)
    collected.report(0, 1, 2)
    collected.close(reopen=True)
    collected.report(3, 4, 5)
    collected.close(1)
    await collected.work()
    for number in (0, 1):
        while await collected.closer().step(number) != state:
            pass
    return collected


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("state", [State.FIXED, State.RESERVED])
async def test_list_of_another_batch_is_not_summed_again(
    databases: Databases, state: State, count: int
) -> None:
    with parties(count) as made:
        collected = await two_batches(databases, made, state)
        with collected.database.transaction() as tx:
            listed = batches.stored(tx, 0).list
            tx.run("UPDATE secagg_batches SET list = ? WHERE number = 1", listed)
        if state == State.FIXED and not made.params.quorum:
            assert await collected.closer().step(1) == State.RESERVED  # nobody reads the list
        with pytest.raises(DatabaseError, match="list of batch 1"):
            await collected.closer().step(1)
        await collected.finish_from(State.RESERVED if state == State.FIXED else State.OPENED)


@pytest.mark.parametrize("outcome", ["another batch's", "another session's", "altered", None])
async def test_sum_of_another_batch_is_no_sum(
    databases: Databases, outcome: str | None
) -> None:
    with parties() as made, parties(session=b"next model") as other:
        collected = await two_batches(databases, made, State.OPENED)
        second = Collected(collected.database, other)
        second.report(0, 1, 2)  # the clients and the place of batch 0
        second.close()
        await second.work()
        while await second.closer().step(second.batch) != State.OPENED:
            pass
        with collected.database.transaction() as tx:
            put: bytes | None = None
            match outcome:
                case "another batch's":
                    put = batches.outcome(tx, 1)
                case "another session's":
                    put = batches.outcome(tx, second.batch)
                case "altered":
                    put = (batches.outcome(tx, 0) or b"")[:-1] + b"?"
            tx.run("UPDATE secagg_batches SET outcome = ? WHERE number = 0", put)
        for _ in range(2):
            with pytest.raises(DatabaseError, match="sum of batch 0"):
                close.result(collected.database, 0)
            await collected.closer().step(0)  # also when the batch is done
        found = close.result(collected.database, second.batch)
        assert found is not None
        assert found.sum.tolist() == other.expected([0, 1, 2])


@pytest.mark.parametrize(
    ("helpers", "threshold", "security"),
    [
        (2, 2, "semi-honest"),
        (3, 2, "semi-honest"),
        (4, 2, "semi-honest"),
        (5, 3, "semi-honest"),
        (2, 1, "semi-honest"),
        (2, 2, "active"),
        (4, 2, "active"),
    ],
)
async def test_restored_copy_opens_no_second_list_whichever_helpers_are_away(
    ram_path: Path, helpers: int, threshold: int, security: str
) -> None:
    """The helpers of the first sum were too few to tell all of its list."""
    databases, copy = (Databases(str(ram_path / name)) for name in ("reports", "copy"))
    with parties(helpers, threshold, security=security) as made:
        try:
            collected = Collected(databases.open(), made)
        except ParameterError:
            assert (helpers, threshold) in {(4, 2), (2, 1)}
            assert security == "semi-honest"
            return
        collected.report(*range(3))
        with (
            closing(sqlite3.connect(databases.where)) as source,
            closing(sqlite3.connect(copy.where)) as target,
        ):
            source.backup(target)
        collected.report(3)  # and the difference of two sums would be this vector
        collected.close()
        enough = made.params.quorum or threshold
        await collected.finish(made.helpers[:enough])
        assert result(collected.database, 0) is not None
        collected.database = copy.open()
        collected.close()
        with pytest.raises(RemoteProtocolError) as caught:
            await collected.finish(made.helpers[::-1])
        assert caught.value.check == "refused"
        assert result(collected.database, 0) is None
    for one in (databases, copy):
        one.close()


@pytest.mark.parametrize(
    ("helpers", "security"), [(3, "semi-honest"), (4, "active")], ids=lambda one: str(one)
)
@pytest.mark.parametrize("chunk", [1, 1000])
async def test_bad_boxes_and_short_outages_cost_no_other_report(
    databases: Databases,
    monkeypatch: pytest.MonkeyPatch,
    helpers: int,
    security: str,
    chunk: int,
) -> None:
    """Each of two helpers was away while a box for it was checked that does not open."""
    monkeypatch.setattr("secagg.collect.work.chunk_of", lambda _: chunk)
    with parties(helpers, security=security) as made:
        collected = Collected(databases.open(), made)
        # the last of each slice: an outage of a helper can begin in the middle of the slice
        liars = [max(found, key=place_of) for found in halves(range(10))]
        honest = [u for u in range(10) if u not in liars]
        collected.report(*honest)
        collected.send((u, made.spoilt(u, j)) for j, u in enumerate(liars, 1))
        collected.close()
        for number, half in enumerate(halves(range(10)), 1):
            at = (len(half) - 1) // chunk  # the check of the liar's box
            links = [Absent(one, [at] * (one.number == number)) for one in made.helpers]
            assert await collected.worker(links).step()
        closer = collected.closer()
        with pytest.raises(RemoteProtocolError) as caught:
            await closer.step(0)
        assert (caught.value.check, caught.value.helpers) == ("helpers", (1, 2))
        assert collected.state() == State.CLOSING
        await collected.finish()
        found = result(collected.database, 0)
        assert found is not None
        assert found.survivors == tuple(honest)
        assert found.integers.tolist() == made.expected(honest)


def halves(clients: Iterable[int]) -> tuple[list[int], list[int]]:
    """Return the clients of each of two slices."""
    found: tuple[list[int], list[int]] = [], []
    for u in clients:
        found[place_of(u) >= 0].append(u)
    return found


async def test_helper_that_is_gone_for_good_keeps_no_list_from_the_others(
    databases: Databases,
) -> None:
    """A helper that was away for a slice rejects a client of another: it can come back."""
    with parties(4) as made:
        collected = Collected(databases.open(), made)
        liar = halves(range(6))[1][0]
        honest = [u for u in range(6) if u != liar]
        collected.report(*honest)
        collected.send([(liar, made.spoilt(liar, 1))])
        collected.close()
        three = made.helpers[:3]
        assert await collected.worker(
            [Absent(one, [0] * (one.number == 1)) for one in made.helpers]
        ).step()
        assert await collected.worker(made.helpers).step()
        assert await collected.closer(three).step(0) == State.FIXED
        await collected.finish_from(State.RESERVED, three)
        found = result(collected.database, 0)
        assert found is not None
        assert found.survivors == tuple(honest)


async def test_list_that_another_closer_fixed_is_not_checked_again(
    databases: Databases,
) -> None:
    with parties(4) as made:
        collected = Collected(databases.open(), made)
        collected.report(*range(4))
        collected.close()
        late = collected.closer(database=databases.open())
        for number in (1, 2):
            links = [Absent(one, [0] * (one.number == number)) for one in made.helpers]
            assert await collected.worker(links).step()
        read = late._read(0)
        forget = late._forget

        def after_another(number: int) -> bool:
            with collected.database.transaction() as tx:
                batches.advance(tx, number, State.FIXED, list=b"")
            return forget(number)

        late.__dict__["_forget"] = after_another
        late._fix(*read)
        assert collected.state() == State.FIXED


@pytest.mark.parametrize("away", [(), (4,)], ids=str)
async def test_list_that_helpers_would_refuse_is_not_fixed(
    databases: Databases, away: tuple[int, ...]
) -> None:
    """Two helpers reject so many clients that three are never left to reserve a list."""
    with parties(4) as made:
        collected = Collected(databases.open(), made)
        collected.report(*range(5))
        collected.close()
        lies = {2: range(4), 3: range(1, 5)}
        links = [Rejecting(one, frozenset(lies.get(one.number, ()))) for one in made.helpers]
        links = [link for link in links if link.number not in away]
        await collected.work(links)
        with pytest.raises(TooFewSurvivors) as caught:
            await collected.closer(links).step(0)
        assert (caught.value.survivors, caught.value.needed) == (1, 3)
        assert collected.state() == State.CLOSING


def test_begin_refuses_lists_that_other_helpers_open_again(ram_path: Path) -> None:
    with parties(4, security="semi-honest") as made:
        entries = [
            {
                "url": "http://127.0.0.1:9",
                "suite": "x25519",
                "hpke": box.hex(),
                "ed25519": key.hex(),
            }
            for box, key in made.params.helpers
        ]
    helpers, key = ram_path / "helpers.json", ram_path / "a.pem"
    helpers.write_text(json.dumps(entries))
    assert invoke("identity", "keygen", key).exit_code == 0
    people = ram_path / "clients.json"
    people.write_text(json.dumps({str(u): make_identity(u).public.hex() for u in range(9)}))
    files = "--helpers", helpers, "--identity", key
    size = "--length", 3, "--clip", 8, "--security", "semi-honest"
    done = invoke("collect", "begin", ram_path / "reports", people, *size, *files)
    assert done.exit_code == 2
    assert "take a threshold of 3" in " ".join(done.stderr.split())
