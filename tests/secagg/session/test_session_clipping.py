"""Clipped elements: a member warns its own application, and nobody else."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import numpy as np

from oneshot_parties import Parties
from secagg import FixedPoint, RoundParams
from secagg.errors import ClippingWarning, PrecisionWarning
from secagg.oneshot import OneShotPolicy
from secagg.session import Completed, LocalHelper, LocalLink, Session, bind, take_part

CLIP = FixedPoint(clip=2.0)
VECTORS = np.array([[1, 1, 1, 1], [1, 3, -9, 1], [2, 2, -2, 2], [0, 0, 0, 0]], np.float64)


def taken(action: Any, vectors: np.ndarray = VECTORS, **options: Any) -> tuple[Any, list[Any]]:
    """Return the result of a sum of all vectors, and what each member's session ends with."""

    async def run() -> tuple[Any, list[Any]]:
        async with Session(range(4), deadlines=60) as session:
            members = [
                asyncio.create_task(
                    take_part(LocalLink(session, u), u, lambda *_, u=u: vectors[u], **options)
                )
                for u in range(4)
            ]
            result = await action(session)
        return result, await asyncio.gather(*members, return_exceptions=True)

    return asyncio.run(run())


def warned(action: Any, kind: type[Warning], **options: Any) -> int:
    """Return the number of warnings of a sum, all of one kind; its members complete it."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result, ends = taken(action, **options)
    vectors = options.get("vectors", VECTORS)
    assert np.allclose(result.sum, np.clip(vectors, -2, 2).sum(axis=0), atol=1e-3)
    assert ends == [1] * 4
    assert {one.category for one in found} == {kind}
    return len(found)


def a_round(session: Session) -> Any:
    return session.round(RoundParams(n_clients=4, threshold=3, length=4, encoding=CLIP))


def test_member_of_a_round_warns_of_its_clipped_elements():
    assert warned(a_round, ClippingWarning) == 1
    _, ends = taken(a_round)  # under the filter of this test run: errors, after the session
    assert [type(one) for one in ends] == [Completed, ClippingWarning, Completed, Completed]


def test_member_of_a_one_shot_sum_warns_of_its_clipped_elements(tmp_path):
    parties = Parties(
        tmp_path, security="semi-honest", encoding=CLIP, n_clients=5, session=bind(b"s", b"")
    )
    policy = OneShotPolicy(helpers=frozenset(one.public[1] for one in parties.journals))
    helpers = [LocalHelper(one) for one in parties.helpers]
    signed = [one.endorse() for one in parties.helpers]

    def one_shot(session: Session) -> Any:
        return session.one_shot(parties.params, helpers, endorsements=signed)

    assert warned(one_shot, ClippingWarning, one_shot_policy=policy) == 1
    parties.close()


def test_members_whose_vectors_are_below_the_step_are_warned_and_answer_alike():
    tiny = np.array([[1e-9] * 4, [0, -1e-6, 0, 0], [1, 1e-9, 0, 0], [0, 0, 0, 0]])
    assert warned(a_round, PrecisionWarning, vectors=tiny) == 2
    _, ends = taken(a_round, vectors=tiny)
    assert [type(one) for one in ends] == [PrecisionWarning] * 2 + [Completed] * 2
