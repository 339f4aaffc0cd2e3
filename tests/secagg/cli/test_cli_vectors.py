"""Vectors of `secagg join`, by the numbers of sums, also for clients that start again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from secagg import Integers, LocalProtocolError, RoundParams
from secagg.cli.vectors import Vectors, number_of
from secagg.oneshot import OneShotParams
from secagg.session import LocalLink, Session, bind, take_part
from support.oneshot_parties import Parties

PARAMS = RoundParams(n_clients=4, threshold=3, length=2, encoding=Integers(9), session=b"s")


def vectors(folder: Path, count: int) -> Vectors:
    """Return the vectors of a client, of which number i is (i + 1, i + 1)."""
    paths = [folder / f"{i}.npy" for i in range(count)]
    for i, path in enumerate(paths):
        np.save(path, np.full(2, i + 1))
    return Vectors(paths)


@pytest.fixture
def one_shot(tmp_path: Path) -> OneShotParams:
    parties = Parties(tmp_path, security="semi-honest", session=bind(b"s", number_of(1)))
    parties.close()
    return parties.params


def test_client_that_starts_again_sends_the_vector_of_the_sum_under_way(tmp_path):
    async def run() -> list[list[int]]:
        session, sums = Session(range(4), deadlines=60), []
        members = {}

        def start(u: int) -> None:
            train = vectors(tmp_path, 3)
            members[u] = asyncio.create_task(take_part(LocalLink(session, u), u, train))

        for u in range(4):
            start(u)
        for number in range(3):
            sums.append((await session.round(PARAMS)).sum.tolist())
            if number == 0:
                members[2].cancel()
                start(2)
        await session.close()
        assert [await members[u] for u in (0, 1, 2, 3)] == [3, 3, 2, 3]
        return sums

    assert asyncio.run(run()) == [[4, 4], [8, 8], [12, 12]]


def test_round_without_a_vector_is_declined(tmp_path):
    async def run() -> None:
        session = Session(range(4), deadlines=60)
        given = [3, 3, 3, 1]
        async with session:
            members = [
                asyncio.create_task(
                    take_part(LocalLink(session, u), u, vectors(tmp_path, given[u]))
                )
                for u in range(4)
            ]
            sums = [(await session.round(PARAMS)).sum.tolist() for _ in range(2)]
        assert sums == [[4, 4], [6, 6]]
        assert [await one for one in members[:3]] == [2, 2, 2]
        with pytest.raises(LocalProtocolError, match=r"sum 1, .* sum 0 only"):
            await members[3]

    asyncio.run(run())


def test_one_shot_sums_are_numbered_by_their_message(tmp_path, one_shot):
    train = vectors(tmp_path, 3)
    assert [train(number_of(i), one_shot).tolist() for i in (1, 2)] == [[2, 2], [3, 3]]
    with pytest.raises(LocalProtocolError, match=r"sum 3, .* sums 0 to 2"):
        train(number_of(3), one_shot)
    with pytest.raises(LocalProtocolError, match="sum 1 again"):
        train(number_of(1), one_shot)


def test_message_of_another_application_has_no_number(tmp_path, one_shot):
    alone, several = vectors(tmp_path, 1), vectors(tmp_path, 2)
    assert alone(b"a model", one_shot).tolist() == [1, 1]
    with pytest.raises(LocalProtocolError, match="does not number"):
        several(b"a model", one_shot)
    with pytest.raises(LocalProtocolError, match="sum 0 again"):
        alone(b"a model", one_shot)
