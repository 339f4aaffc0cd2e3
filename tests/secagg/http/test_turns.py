"""Turns of bodies: a bound on bytes, no deadlock, and no turn that a slow client keeps."""

from __future__ import annotations

import asyncio
import math
import random

import pytest

from secagg.http import turns
from secagg.http.budget import SMALL, Body, Budget
from secagg.http.problems import Problem
from secagg.http.turns import Turn

LARGE = 2 * SMALL
LIMIT = 8 * LARGE  # seven large bodies, and room for small ones


def assert_busy(error: Problem) -> None:
    assert (error.status, error.check, error.retry_after) == (503, "busy", 1)
    assert str(error) == error.detail


async def hang() -> None:
    await asyncio.get_running_loop().create_future()


async def stall(body: Body, moved: int) -> None:
    """Move a part of a body, and no more."""
    async with body, body.in_time():
        body.move(moved)
        await hang()


async def test_a_turn_can_be_dropped_after_the_block_of_its_deadline():
    turn = Turn(0, 2)
    turn.timer = asyncio.timeout(60)
    async with turn.timer:
        turn.move(1)
    turn.drop()  # as when a body ended early, and waits for the database
    assert turn.due(60) == math.inf


async def test_a_body_beyond_the_limit_is_alone_among_large_bodies():
    budget = Budget(LIMIT)
    async with budget.whole(3 * LIMIT, 0), budget.whole(SMALL, 1), budget.announced(LIMIT, 2):
        assert not budget.whole(LARGE, 3).enter_now()
    async with budget.whole(LARGE, 3):
        assert not budget.whole(3 * LIMIT, 0).enter_now()


async def test_announced_bytes_are_not_reserved_before_they_come():
    budget = Budget(LIMIT)
    async with budget.announced(LIMIT, 0) as body:
        assert budget.held == body.reserved == SMALL
        await body.grow()
        assert budget.held == body.reserved == LIMIT
    assert budget.held == 0


async def test_check55_one_client_has_one_large_body_and_four_in_all():
    budget = Budget(LIMIT, wait=0.01)
    mine = [budget.whole(LARGE, 0), *(budget.whole(5, 0) for _ in range(3))]
    for body in mine:
        assert body.enter_now()
    with pytest.raises(Problem) as caught:
        budget.whole(5, 0).enter_now()
    assert_busy(caught.value)
    mine[1].leave()
    assert not budget.whole(LARGE, 0).enter_now()
    assert budget.whole(LARGE, 1).enter_now()


async def test_check55_next_is_the_client_whose_last_turn_is_longest_ago():
    budget, order = Budget(LARGE), list[int]()

    async def come(u: int, again: int) -> None:
        for _ in range(again):
            async with budget.whole(LARGE, u):
                order.append(u)
                await asyncio.sleep(0)

    greedy = [come(u, 3) for u in (1, 1, 2)]
    await asyncio.gather(*greedy, *(come(u, 1) for u in (3, 4, 5)))
    assert order[:5] == [1, 2, 3, 4, 5]
    assert sorted(order) == [1] * 6 + [2] * 3 + [3, 4, 5]


async def test_bodies_that_wait_do_not_let_larger_bodies_starve():
    budget, came = Budget(LIMIT), list[str]()

    async def come(u: int, size: int, name: str) -> None:
        async with budget.whole(size, u):
            came.append(name)

    async with budget.whole(LARGE, 0):
        all_of_it = asyncio.create_task(come(1, LIMIT, "all"))
        await asyncio.sleep(0)
        rest = asyncio.create_task(come(2, LARGE, "part"))
        await asyncio.sleep(0)
        assert not came
    await asyncio.gather(all_of_it, rest)
    assert came == ["all", "part"]


async def test_a_smaller_body_passes_when_the_larger_body_before_it_gives_up():
    budget = Budget(LIMIT)
    async with budget.whole(LARGE, 0):
        first = asyncio.create_task(budget.whole(LIMIT, 1).enter())
        second = asyncio.create_task(budget.whole(LARGE, 2).enter())
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert budget.held == 2 * LARGE
    assert budget.bodies == {2: 1}


@pytest.mark.parametrize("size", [5, LARGE])
async def test_check55_slow_bodies_end_when_others_wait(size, monkeypatch):
    """Also if the other body is of the same client, which lost its connection."""
    budget = Budget(8 * size, seconds=3.0, wait=2.0)  # a pause of 50 ms
    limit = budget.large if size > SMALL else budget.small
    count = 7 if limit is budget.large else 1
    tasks = [asyncio.create_task(stall(budget.whole(size, u), 1)) for u in range(count)]
    await asyncio.sleep(0)
    loop, early = asyncio.get_running_loop(), iter([0.0])
    # the first alarm finds no slow body, as after a move
    monkeypatch.setattr(turns, "_now", lambda: next(early, loop.time()))
    async with budget.whole(size, 9):
        assert limit.held <= 8 * size
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(end) for end in ends} == {TimeoutError}


async def test_bodies_that_are_in_memory_end_only_by_themselves():
    budget = Budget(LARGE, seconds=0.6, wait=0.05)
    async with budget.whole(LARGE, 0) as body, body.in_time():
        body.move(LARGE)
        with pytest.raises(Problem):
            await budget.whole(LARGE, 1).enter()


async def test_slow_body_that_keeps_its_own_client_waiting_is_the_only_one_that_ends():
    budget = Budget(LIMIT, seconds=0.6)
    async with budget.whole(LARGE, 0) as other, other.in_time():
        old = asyncio.create_task(stall(budget.whole(LARGE, 1), 1))
        await asyncio.sleep(0)
        await budget.whole(LARGE, 1).enter()
        with pytest.raises(TimeoutError):
            await old


@pytest.mark.parametrize(
    ("moves", "due"),
    [
        ([], 5),
        ([(3, 1)], 5 + 0.06),  # a byte at a time
        ([(4, 500)], 9),  # a pause
        ([(40, 500)], 35),  # half of all, after half of a minute and a pause
        ([(4, 1000)], math.inf),
    ],
)
def test_pace_that_a_body_keeps_while_others_wait(monkeypatch, moves, due):
    now = 0.0
    monkeypatch.setattr(turns, "_now", lambda: now)
    turn = Turn(1, 1000)
    turn.begin()
    for time, size in moves:
        now = time
        turn.move(size)
    assert turn.due(300.0) == pytest.approx(due)


@pytest.mark.parametrize("seed", range(3))
async def test_check55_honest_bodies_of_any_size_end_within_the_limit(seed):
    draw = random.Random(seed)
    budget, done = Budget(LIMIT), 0

    async def upload(u: int, size: int) -> None:
        nonlocal done
        await asyncio.sleep(0)
        async with budget.announced(size, u) as body, body.in_time():
            left = size
            while left:
                piece = min(left, draw.randrange(1, LARGE))
                if size - left + piece > body.reserved:
                    await body.grow()
                body.move(piece)
                left -= piece
                assert budget.small.held <= LIMIT // 8
                assert budget.large.held <= max(LIMIT, size)
                await asyncio.sleep(0)
        done += 1

    async def download(u: int, size: int) -> None:
        nonlocal done
        async with budget.whole(size, u) as body, body.in_time():
            await asyncio.sleep(0)
            body.move(size)
        done += 1

    sizes = [draw.choice([1, 500, SMALL, LARGE, LIMIT // 2]) for _ in range(200)]
    kinds = [draw.choice([upload, download]) for _ in sizes]
    await asyncio.gather(
        *(kind(u // 2, n) for u, (kind, n) in enumerate(zip(kinds, sizes, strict=True)))
    )
    assert (done, budget.held, +budget.bodies) == (200, 0, {})


async def test_a_cancelled_body_leaves_nothing():
    budget = Budget(LARGE)
    async with budget.whole(LARGE, 0):
        waits = asyncio.create_task(budget.whole(LARGE, 1).enter())
        await asyncio.sleep(0)
    waits.cancel()  # its turn has come, and it does not know yet
    with pytest.raises(asyncio.CancelledError):
        await waits
    assert (budget.held, +budget.bodies) == (0, {})


async def test_check55_bodies_that_have_grown_have_to_go_on():
    """And while a body waits to grow, its client is not the slow one."""
    budget = Budget(LARGE, seconds=0.6)

    async def grow(u: int, moved: int) -> None:
        async with budget.announced(LARGE, u) as body, body.in_time():
            await body.grow()
            body.move(moved)
            if moved < LARGE:
                await hang()

    slow = asyncio.create_task(grow(0, LARGE - 1))
    await asyncio.sleep(0)
    await asyncio.gather(*(grow(u, LARGE) for u in (1, 2, 3)))
    with pytest.raises(TimeoutError):
        await slow
