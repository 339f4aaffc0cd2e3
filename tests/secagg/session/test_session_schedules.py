"""Random schedules: whatever is lost, repeated or garbage, a sum is that of its survivors."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from secagg import FixedPoint, RoundParams, TooFewSurvivors
from secagg.protocol import NEXT
from secagg.session.wire import Answer, encode
from session_party import Party, registry_of, vector_of

N, LENGTH, ROUNDS = 6, 3, 3
SEMI = RoundParams(n_clients=N, threshold=4, length=LENGTH, encoding=FixedPoint(clip=8.0))
ACTIVE = replace(SEMI, threshold=5, security="active", session=b"app")
FAULTS = ("task", "answer", "garbage", "empty", "twice", "stale")


@st.composite
def schedules(draw: st.DrawFn) -> tuple[RoundParams, dict[int, dict[Any, str]]]:
    params = draw(st.sampled_from([SEMI, ACTIVE]))
    places = st.tuples(
        st.integers(0, ROUNDS - 1),
        st.integers(0, 2),
        st.sampled_from([phase.value for phase in NEXT[params.security]]),
    )
    faults = st.dictionaries(places, st.sampled_from(FAULTS), max_size=3)
    return params, {u: draw(faults) for u in range(N)}


class Faulty(Party):
    """Party whose members also send garbage, stale answers, and answers twice."""

    def __init__(self, faults: dict[int, dict[Any, str]], **options: Any) -> None:
        super().__init__(range(N), **options)
        self.faults = faults

    async def deliver(self, link: Any, task: Any, answer: bytes) -> None:
        u = link._client
        fault = self.faults[u].get((task.number, task.attempt, task.step))
        if fault == "garbage":
            answer = encode(Answer(task.id, b"\x03\x93garbage"))
        elif fault == "empty":
            answer = b""
        elif fault == "stale":
            answer = encode(self.links[u].answers[0])
        if fault == "twice":
            await asyncio.gather(link.send(answer), link.send(answer))
        await link.send(answer)


@examples(40)
@given(schedules())
def test_every_sum_is_the_plain_sum_of_its_survivors(schedule):
    params, faults = schedule

    async def run() -> None:
        party = Faulty(faults, registry=registry_of(params))
        party.come(params, lost=faults)
        for number in range(ROUNDS):
            try:
                result = await party.session.round(params)
            except TooFewSurvivors:
                continue
            assert len(result.survivors) >= params.min_survivors
            exact = sum(vector_of(u, LENGTH) for u in result.survivors)
            assert (result.sum == exact).all()
            for u in party.silent & set(result.survivors):
                # it was silent only after its masked input
                step = party.links[u].tasks[-1].step
                assert party.links[u].tasks[-1].number == number
                assert step in ("masked_input", "consistency_check", "unmasking")
        await party.session.close()
        for one in party.running.values():
            one.cancel()
        await asyncio.gather(*party.running.values(), return_exceptions=True)

    asyncio.run(run())
