"""Operator's side: metrics and the status page, in a browser, while a round runs."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from http_party import MEMBERS, PARAMS, REGISTRY, Party, party_of
from secagg import TooFewSurvivors
from secagg.http.status import Status
from secagg.session import (
    HelperFailed,
    MemberDeclined,
    MessageRejected,
    PhaseClosed,
    PhaseOpened,
    Place,
    RoundBegun,
    RoundFailed,
    Session,
)

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
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
        for u in range(MEMBERS):  # who takes part is not in the labels
            assert not re.search(rf'client="?{u}', response.text)
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


def test_names_of_sessions_are_shown_without_control_characters():
    document = Status("\x1b[2J\u202ewards").document()
    assert document["session"] == r"\x1b[2J\u202ewards"
