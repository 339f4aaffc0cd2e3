"""Operator's side: metrics and the status page, in a browser, while a round runs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from browser import BROWSER, browser
from http_party import MEMBERS, PARAMS, REGISTRY, Party, party_of
from secagg import Registry, TooFewSurvivors
from secagg.http.status import Status
from secagg.privacy import Budget, Loss
from secagg.session import (
    Attendance,
    ClientConvicted,
    Gathering,
    HelperFailed,
    MemberDeclined,
    MessageRejected,
    PhaseClosed,
    PhaseOpened,
    Place,
    RoundBegun,
    RoundFailed,
    RoundFinished,
    Session,
)
from secagg.testing import make_identity

NAME = "<b>wards</b> & 'clinics'"


def after_rounds(see: Callable[[Party], Any]) -> None:
    """Run two rounds, then look."""

    async def test() -> None:
        async with party_of(Session(REGISTRY, name=NAME)) as party:
            members = party.join_all()
            for _ in range(2):
                await party.session.round(PARAMS)
            await see(party)
            await party.session.close()
            await asyncio.gather(*members)

    asyncio.run(test())


def test_metrics_and_status_count_rounds_answers_and_bytes():
    async def see(party: Party) -> None:
        response = await party.operator("/metrics")
        assert response.headers["content-type"].startswith("text/plain")
        found = {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(response.text)
            for sample in family.samples
        }
        assert found["secagg_attempts_total", "finished"] == 2
        assert found["secagg_survivors",] == MEMBERS
        assert found["secagg_answers_total", "masked_input"] == 2 * MEMBERS
        assert found["secagg_missing_total", "masked_input"] == 0
        assert found["secagg_phase_seconds_count", "unmasking"] == 2
        assert found["secagg_bytes_total", "up"] > 0
        assert found["secagg_http_bytes_in_flight",] == 0
        for u in range(MEMBERS):
            assert found["secagg_member_missing_total", f"{u}"] == 0
        state = (await party.operator("/status.json")).json()
        assert (state["session"], state["finished"], state["phase"]) == (NAME, 2, None)
        last = state["attempts"][0]
        assert (last["number"], last["outcome"], last["cohort"]) == (1, "finished", MEMBERS)
        assert [phase["answered"] for phase in last["phases"]] == [MEMBERS] * 4
        assert all(phase["bytes_up"] and phase["seconds"] for phase in last["phases"])

    after_rounds(see)


async def test_a_round_that_waits_for_members_shows_who_is_missing():
    session = Session(REGISTRY, name=NAME, deadlines=1000)
    came = asyncio.Event()
    session.watch(lambda event: getattr(event, "present", 0) == 3 and came.set())
    async with party_of(session) as party:
        members = [party.join(u) for u in range(3)]
        running = asyncio.create_task(session.round(PARAMS))
        await came.wait()
        state = (await party.operator("/status.json")).json()["gathering"]
        assert 0 < state.pop("seconds_left") <= 1000
        assert state == {
            "present": 3,
            "wanted": MEMBERS,
            "needed": 3,
            "missing": 1,
            "missing_ids": ["3"],
            "missing_names": ["3"],
        }
        text = (await party.operator("/metrics")).text
        assert "secagg_gather_present 3.0" in text
        assert f"secagg_gather_wanted {MEMBERS}.0" in text
        members.append(party.join(3))
        await running
        assert (await party.operator("/status.json")).json()["gathering"] is None
        assert "secagg_gather_wanted 0.0" in (await party.operator("/metrics")).text
        await session.close()
        await asyncio.gather(*members)


async def test_failures_are_counted_and_shown():
    place = Place(NAME, 0, 0)

    async with party_of(Session(REGISTRY, name=NAME)) as party:
        await party.begin()
        hooks = party.session._hooks
        hooks(MessageRejected(place=place, phase="p", client=1, size=9, check="signature"))
        hooks(MemberDeclined(place=place, phase="p", client=2))
        hooks(HelperFailed(place=place, helper=3, phase="open", check="deadline"))
        state = (await party.operator("/status.json")).json()
        last = state["attempts"][0]
        assert state["phase"] == "advertise_keys"
        assert state["phase_seconds"] >= 0
        assert (last["phases"][0]["rejected"], last["declined"]) == (1, 1)
        assert last["helpers_failed"] == [3]
        for one in party.running:
            one.cancel()
        await asyncio.gather(*party.running, return_exceptions=True)
        error = {"error": TooFewSurvivors.__name__, "check": "", "left_out": ()}
        hooks(RoundFailed(place=place, phase="p", final=True, **error))
        size = {"kind": "round", "cohort": 9, "needed": 3, "length": 1}
        for number in range(60):  # no more is kept than is shown
            hooks(RoundBegun(place=Place(NAME, number, 0), **size))
        hooks(PhaseOpened(place=place, phase="p", awaited=100, deadline=1.0))
        end = {"seconds": 1.0, "answered": 0, "bytes_down": 1, "bytes_up": 1}
        hooks(PhaseClosed(place=place, phase="p", missing=tuple(range(100)), **end))
        state = (await party.operator("/status.json")).json()
        assert state["failed"] == 1
        assert len(state["attempts"]) == 50
        assert state["attempts"][0]["dropped"] == 100
        assert len(state["attempts"][0]["dropped_ids"]) == 20
        text = (await party.operator("/metrics")).text
        assert 'secagg_answers_rejected_total{check="signature",phase="p"} 1.0' in text
        assert 'secagg_missing_total{phase="p"} 100.0' in text
        assert 'secagg_attempts_total{outcome="TooFewSurvivors"} 1.0' in text
        assert 'secagg_helper_failures_total{helper="3",phase="open"} 1.0' in text


async def test_verdicts_and_the_suite_are_shown():
    async with party_of() as party:
        hooks, u = party.session._hooks, min(REGISTRY)
        size = {"kind": "round", "cohort": 9, "needed": 3, "length": 1, "suite": "hybrid"}
        hooks(RoundBegun(place=Place(NAME, 0, 0), clients=(u,), **size))
        done = {"seconds": 1.0, "survivors": 4, "disputes": 0, "clients": (u,)}
        hooks(RoundFinished(place=Place(NAME, 0, 0), **done))
        hooks(ClientConvicted(place=Place(NAME, 0, 0), client=u, kind="shares"))
        state = (await party.operator("/status.json")).json()
        (last,) = state["attempts"]
        named = party.session.called(u)
        assert last["suite"] == "hybrid"
        assert last["verdicts"] == [{"id": str(u), "name": named, "kind": "shares"}]
        (member,) = (one for one in state["members"] if one["id"] == str(u))
        assert member["last"] == "convicted: shares"
        text = (await party.operator("/metrics")).text
        assert 'secagg_verdicts_total{kind="shares"} 1.0' in text


async def test_spent_privacy_is_shown_beside_the_budget():
    session = Session(REGISTRY, name=NAME, budget=Budget(2, 1e-6))
    async with party_of(session) as party:
        size = {"kind": "round", "cohort": 9, "needed": 3, "length": 1}
        session._hooks(RoundBegun(place=Place(NAME, 0, 0), **size))
        done = {"seconds": 1.0, "survivors": 4, "disputes": 0, "epsilon": 0.5}
        session._hooks(RoundFinished(place=Place(NAME, 0, 0), **done))
        (last,) = (await party.operator("/status.json")).json()["attempts"]
        assert last["epsilon"] == 0.5
        session._expenses.loss = Loss.of_shares(Fraction(400), 5, 9, Fraction(100))
        text = (await party.operator("/metrics")).text
        assert "secagg_epsilon_budget 2.0" in text
        assert f"secagg_epsilon_spent {session.spent.epsilon(1e-6)}" in text


async def test_only_the_operator_has_the_operators_side():
    async with party_of() as party:
        for path in ("/", "/metrics", "/status.json"):
            assert (await party.http.get(path)).status_code == 404
            assert (await party.operator(path)).status_code == 200
        assert party.serving.operator_url.startswith("http://127.0.0.1:")
    async with party_of(operator_port=None) as party:
        assert party.serving.operator_url == ""
        assert (await party.http.get("/health")).status_code == 200


async def test_page_of_another_site_cannot_read_the_operators_side():
    """Its name would resolve to loopback (DNS rebinding), but its Host header tells."""
    async with party_of() as party, httpx.AsyncClient() as http:
        url = party.serving.operator_url + "/status.json"
        response = await http.get(url, headers={"Host": "evil.example"})
        assert response.status_code == 400


def test_page_loads_nothing_from_elsewhere():
    page = (Path(__file__).parents[3] / "secagg" / "http" / "status.html").read_text("utf-8")
    assert not re.search(
        r"(?:src|href)\s*=|url\(|@import|https?:", page.replace('href="status.json"', "")
    )
    assert "innerHTML" not in page


NAMES = [
    "<script>injected = 1</script>",
    "<img src=x onerror='injected = 1'>",
    "\"quoted\" & 'named'",
    "\u202egnp.exe",
    "\u05d1\u05d9\u05ea \u05d7\u05d5\u05dc\u05d9\u05dd, 7",
    "n" * 200,
    "many words " * 20,
    "\x1b[2Jwards\n",
]


def session_of_names(count: int) -> Session:
    """Return a session of members with names that are no words, and others."""
    names = (NAMES + [f"site {i}" for i in range(count)])[:count]
    keys = {name: make_identity(i).public for i, name in enumerate(names)}
    return Session(Registry(keys), name="counts", deadlines=1000)


def test_status_tells_of_each_member_by_name():
    """Presence with its time, the outcome of the last round and the missed phases."""
    session = session_of_names(9)
    ids = {session.called(u): u for u in session.names}
    there = {ids["site 0"]: Attendance(True, 5.0), ids["n" * 200]: Attendance(False, 65.0)}
    nobody = dict.fromkeys(ids.values(), Attendance(False, None))
    status = Status(
        "counts",
        names=session.names,
        attendance=lambda: nobody | there,
        time_of_day=lambda: 86400.0,
    )
    place, size = Place("counts", 0, 0), {"kind": "round", "needed": 3, "length": 1}
    here, long, away = ids["site 0"], ids["n" * 200], ids[NAMES[0]]
    status(RoundBegun(place=place, cohort=3, clients=(here, long, away), **size))
    status(PhaseOpened(place=place, phase="share_keys", awaited=3, deadline=1.0))
    status(
        MessageRejected(place=place, phase="share_keys", client=away, size=9, check="length")
    )
    end = {"seconds": 1.0, "answered": 1, "bytes_down": 1, "bytes_up": 1}
    status(PhaseClosed(place=place, phase="share_keys", missing=(long, away), **end))
    status(RoundFinished(place=place, seconds=1.0, survivors=1, disputes=0, clients=(here,)))
    document = status.document()
    assert document["attempts"][0]["dropped_names"] == sorted([NAMES[0], "n" * 200])
    members = {one["name"]: one for one in document["members"]}
    assert list(members) == [*sorted(members.keys() - {"site 0"}), "site 0"]  # missing first
    assert members.keys() == {
        *NAMES[:3],
        r"\u202egnp.exe",
        *NAMES[4:7],
        r"\x1b[2Jwards\n",
        "site 0",
    }
    found = [list(members[name].values()) for name in ("site 0", "n" * 200, NAMES[0], NAMES[2])]
    assert found == [
        [str(here), "site 0", True, "1970-01-01T23:59:55Z", 0, "in the sum"],
        [str(long), "n" * 200, False, "1970-01-01T23:58:55Z", 1, "dropped out: share_keys"],
        [str(away), NAMES[0], False, None, 1, "rejected: length"],
        [str(ids[NAMES[2]]), NAMES[2], False, None, 0, ""],
    ]


@pytest.mark.parametrize(("count", "labelled"), [(100, 100), (101, 0)])
async def test_labels_of_metrics_name_up_to_100_members(count, labelled):
    session = session_of_names(count)
    async with party_of(session) as party:
        assert await session.next_task(min(session.names), b"", 0) is None
        state = (await party.operator("/status.json")).json()
        text = (await party.operator("/metrics")).text
        assert len(state["members"]) == count
        present = {
            sample.labels["member"]: sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == "secagg_member_present"
        }
        assert len(present) == labelled
        assert sum(present.values()) == bool(labelled)
        assert present.keys() <= {session.called(u) for u in session.names}


@pytest.mark.parametrize("count", [1000, 1001])
async def test_up_to_1000_members_are_listed(count):
    async with party_of(Session(range(count))) as party:
        members = (await party.operator("/status.json")).json()["members"]
        assert (members and len(members)) == (count if count == 1000 else None)


async def dump(url: str, *more: str) -> str:
    assert BROWSER is not None
    process = await asyncio.create_subprocess_exec(
        BROWSER,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--virtual-time-budget=3000",
        *more,
        url,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    out, _ = await asyncio.wait_for(process.communicate(), 120)
    return out.decode()


@pytest.mark.large
@pytest.mark.skipif(BROWSER is None, reason="needs chromium")
def test_page_shows_the_state_in_a_browser(tmp_path: Path):
    async def see(party: Party) -> None:
        page = await dump(
            party.serving.operator_url, "--dump-dom", f"--user-data-dir={tmp_path}"
        )
        assert "<h1 id=\"session\">&lt;b&gt;wards&lt;/b&gt; &amp; 'clinics'</h1>" in page
        assert '<p id="link" role="status" class="">live</p>' in page
        assert re.search(r'<dd id="finished">2</dd>', page)
        assert page.count('<td class="left good">finished</td>') == 2
        for phase in ("advertise keys", "share keys", "masked input", "unmasking"):
            assert f'<th scope="row">{phase}</th><td>4 of 4</td><td>0</td>' in page

    after_rounds(see)


LAYOUT = """document.querySelectorAll('#members tr').length === COUNT && {
  names: [...document.querySelectorAll('#members th')].map(one => one.textContent),
  missing: [...document.querySelectorAll('#awaited bdi')].map(one => one.textContent),
  injected: document.scripts.length !== 1 || typeof injected !== 'undefined' ||
    document.images.length !== 0,
  width: document.documentElement.scrollWidth,
  column: document.querySelector('#members th').offsetWidth,
}"""


@pytest.mark.large
@pytest.mark.skipif(BROWSER is None, reason="needs chromium")
@pytest.mark.parametrize("count", [1, 30, 1000])
def test_names_of_members_neither_inject_nor_break_the_page(count, tmp_path):
    session = session_of_names(count)
    known = {u: session.called(u) for u in session.names}
    missing = tuple(known)[:9]

    async def look() -> None:
        async with party_of(session) as party:
            session._hooks(Gathering(Place("counts", 0, 0), 0, count, 3, 1000.0, missing))
            for width in (1280, 360):
                async with browser(tmp_path / str(width)) as page:
                    await page.open(party.serving.operator_url, width)
                    found = await page.value(LAYOUT.replace("COUNT", str(count)))
                assert found.pop("width") <= width
                assert found.pop("column") <= 600
                assert found == {
                    "names": sorted(known.values()),
                    "missing": sorted(known[u] for u in missing),
                    "injected": False,
                }

    asyncio.run(look())


def test_names_of_sessions_are_shown_without_control_characters():
    document = Status("\x1b[2J\u202ewards").document()
    assert document["session"] == r"\x1b[2J\u202ewards"
