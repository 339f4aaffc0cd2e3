"""Clients that report over HTTP and leave: what they send, repeat and reject."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from collect_faults import COMMITTED, Interposed
from collect_parts import Collected, Databases
from oneshot_parties import LENIENT, Parties, parties, registry_for
from secagg import (
    Bounds,
    DatabaseError,
    Integers,
    LinkError,
    ParameterError,
    RemoteProtocolError,
)
from secagg.collect import batches
from secagg.collect.close import result
from secagg.collect.service import serve_collection
from secagg.http import asgi, get_offer, send_report
from secagg.http.server import listening
from secagg.oneshot import OneShotParams
from secagg.session import bind
from secagg.testing import make_identity

VECTOR = np.array([1, 2, 3, 4])


def policy_of(made: Parties) -> Any:
    helpers = frozenset(key for _, key in made.params.helpers)
    return replace(LENIENT, helpers=helpers, bounds=Bounds(Integers(100)))


async def send(
    made: Parties, url: str, u: int, vector: Any = None, **changes: Any
) -> OneShotParams:
    identity = make_identity(u) if made.params.active else None
    given = {"policy": policy_of(made), "identity": identity, "patience": 0.5} | changes
    return await send_report(url, VECTOR * u if vector is None else vector, u, **given)


@asynccontextmanager
async def served(collected: Collected, before: Any = lambda _: None) -> AsyncIterator[str]:
    registry = registry_for(collected.made.params)
    database = Interposed(collected.database, before)
    async with serve_collection(database, registry=registry, port=0) as at:
        yield at.url


@pytest.mark.parametrize("security", ["active", "semi-honest"])
async def test_sum_of_clients_that_left(databases: Databases, security: str) -> None:
    with parties(security=security) as made:
        collected = Collected(databases.open(), made, endorsed=True)
        async with served(collected) as url:
            for u in range(4):
                assert (await send(made, url, u)).digest == made.params.digest
            with pytest.raises(LinkError) as caught:
                await send(made, url, 1)
            assert caught.value.check == "id"
        collected.close()
        await collected.finish()
        found = result(collected.database, 0)
        assert found is not None
        assert found.sum.tolist() == (VECTOR * 6).tolist()


async def test_list_in_place_of_an_array_costs_no_report(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made, endorsed=True)
        async with served(collected) as url:
            with pytest.raises(ParameterError):
                await send(made, url, 1, [1, 2, 3, 4])
            await send(made, url, 1)


async def test_report_without_an_acknowledgement_is_sent_again(
    databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit was done, but the client does not know; the same bytes count once."""
    monkeypatch.setattr("secagg.collect.offers.RETRY", 1)
    failures = iter(range(2))

    def before(statement: str) -> None:
        if statement == COMMITTED and next(failures, None) == 1:
            raise DatabaseError("the connection was lost")

    with parties() as made:
        collected = Collected(databases.open(), made, endorsed=True)
        async with served(collected, before) as url:
            await send(made, url, 1, patience=30.0)
        with collected.database.transaction() as tx:
            assert batches.get(tx, 0).reports == 1


async def test_parameters_of_a_liar_get_no_report(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made, endorsed=True)
        honest = collected.made.params
        async with served(collected) as url:
            for params in (
                replace(honest, encoding=Integers(50), session=b"2"),
                replace(honest, min_clients=2, session=b"3"),
            ):
                with collected.database.transaction() as tx:
                    batches.begin(tx, params, [one.endorse() for one in made.helpers])
                with pytest.raises(ParameterError):
                    await send(made, url, 1)
            with pytest.raises(ParameterError):  # bounds of another client
                await send(made, url, 1, policy=replace(policy_of(made), bounds=None))
            with pytest.raises(ParameterError):
                await send(made, url, 1, policy=replace(policy_of(made), helpers=None))


async def test_closed_collection_says_so(databases: Databases) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made, endorsed=True)
        collected.report(0, 1, 2)

        def before(statement: str) -> None:
            if statement == COMMITTED:  # the client has the parameters
                collected.close()

        async with served(collected, before) as url:
            with pytest.raises(LinkError) as caught:
                await send(made, url, 3)
            assert caught.value.check == "closed"
            with pytest.raises(LinkError) as caught:
                await send(made, url, 3)
            assert caught.value.check == "parameters"


@pytest.mark.parametrize("offer", [[], {}, {"parameters": "x", "endorsements": []}, 3], ids=str)
async def test_other_servers_are_found_out(offer: object) -> None:
    app = asgi.build([asgi.document("/v1/parameters", offer)])
    with parties() as made:
        async with listening(app, "127.0.0.1", 0, None) as url:
            with pytest.raises(LinkError) as caught:
                await send(made, url, 1)
            assert caught.value.check == "parameters"


async def test_report_under_parameters_that_were_taken_before(
    databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the message of then, while the newest session has another."""
    changes = {"session": bind(b"model 0", b"weights")}
    with parties(**changes) as made, parties(session=b"model 1") as other:
        collected = Collected(databases.open(), made, endorsed=True, message=b"weights")
        async with served(collected) as url:
            offer = await get_offer(url, policy=policy_of(made), patience=0.5)
            assert offer.message == b"weights"
            newer = Collected(collected.database, other, endorsed=True)
            # a lying collector: an honest collector does not offer an altered message
            monkeypatch.setattr("secagg.collect.sessions.is_bound", lambda *_: True)
            with collected.database.transaction() as tx:
                tx.run("UPDATE secagg_sessions SET message = ? WHERE number = 1", b"another's")
            sent = await send(made, url, 1, offer=offer)
            assert sent.digest == made.params.digest
            with pytest.raises(RemoteProtocolError) as caught:
                await send(other, url, 1)
            assert caught.value.check == "message"
            # a policy of other helpers holds for parameters of before, too
            with pytest.raises(ParameterError):
                await send(other, url, 2, offer=offer)
        with collected.database.transaction() as tx:
            assert [batches.get(tx, one.batch).reports for one in (collected, newer)] == [1, 0]
