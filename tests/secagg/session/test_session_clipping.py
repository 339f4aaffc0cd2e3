"""Clipped elements: a member warns its own application, and nobody else."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import numpy as np
import pytest

from oneshot_parties import Parties
from secagg import FixedPoint, RoundParams
from secagg.errors import ClippingWarning, PrecisionWarning
from secagg.oneshot import OneShotPolicy
from secagg.session import Completed, LocalHelper, LocalLink, Session, bind, take_part

CLIP = FixedPoint(clip=2.0)
VECTORS = np.array([[1, 1, 1, 1], [1, 3, -9, 1], [2, 2, -2, 2], [0, 0, 0, 0]], np.float64)


def warned(action: Any, **options: Any) -> list[str]:
    """Return the warnings of a sum of all vectors, which has no other survivors."""

    async def run() -> None:
        async with Session(range(4), deadlines=60) as session:
            members = [
                asyncio.create_task(
                    take_part(LocalLink(session, u), u, lambda *_, u=u: VECTORS[u], **options)
                )
                for u in range(4)
            ]
            result = await action(session)
            assert result.sum.tolist() == np.clip(VECTORS, -2, 2).sum(axis=0).tolist()
        assert await asyncio.gather(*members) == [1] * 4

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        asyncio.run(run())
    assert {one.category for one in found} == {ClippingWarning}
    return [str(one.message) for one in found]


def test_member_of_a_round_warns_of_its_clipped_elements():
    params = RoundParams(n_clients=4, threshold=3, length=4, encoding=CLIP)
    (text,) = warned(lambda session: session.round(params))
    assert text.startswith("2 of 4 elements")


def test_member_of_a_one_shot_sum_warns_of_its_clipped_elements(tmp_path):
    parties = Parties(
        tmp_path, security="semi-honest", encoding=CLIP, n_clients=5, session=bind(b"s", b"")
    )
    policy = OneShotPolicy(helpers=frozenset(one.public[1] for one in parties.journals))
    helpers = [LocalHelper(one) for one in parties.helpers]
    signed = [one.endorse() for one in parties.helpers]

    def one_shot(session: Session) -> Any:
        return session.one_shot(parties.params, helpers, endorsements=signed)

    (text,) = warned(one_shot, one_shot_policy=policy)
    parties.close()
    assert text.startswith("2 of 4 elements")


async def test_warning_as_an_error_is_raised_after_the_session_and_changes_no_answer():
    params = RoundParams(n_clients=4, threshold=3, length=4, encoding=CLIP)
    async with Session(range(4), deadlines=60) as session:
        members = [
            asyncio.create_task(take_part(LocalLink(session, u), u, lambda *_, u=u: VECTORS[u]))
            for u in range(4)
        ]
        assert (await session.round(params)).survivors == (0, 1, 2, 3)
    with pytest.raises(ClippingWarning):
        await members[1]


def test_members_whose_vectors_are_below_the_step_are_warned_and_answer_alike():
    params = RoundParams(n_clients=4, threshold=3, length=4, encoding=CLIP)
    tiny = np.array([[1e-9] * 4, [0, -1e-6, 0, 0], [1, 1e-9, 0, 0], [0, 0, 0, 0]])

    async def run() -> list[object]:
        async with Session(range(4), deadlines=60) as session:
            members = [
                asyncio.create_task(
                    take_part(LocalLink(session, u), u, lambda *_, u=u: tiny[u])
                )
                for u in range(4)
            ]
            assert (await session.round(params)).survivors == (0, 1, 2, 3)
        return await asyncio.gather(*members, return_exceptions=True)

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert asyncio.run(run()) == [1] * 4
    assert [one.category for one in found] == [PrecisionWarning] * 2
    lost = asyncio.run(run())  # under the filter of this test run: errors
    assert [type(one) for one in lost] == [PrecisionWarning] * 2 + [Completed] * 2
