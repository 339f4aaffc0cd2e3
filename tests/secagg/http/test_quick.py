"""Quick verification of signatures: it accepts nothing that the general one rejects."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg.http import quick, signatures
from secagg.http.problems import Problem
from secagg.http.signatures import VALID, sign, verify
from secagg.testing import make_identity

KEYS = {u: make_identity(u).public for u in range(3)}
AGE = VALID.total_seconds()
TARGET = "/v1/sessions/a%2Fb/task?after=00"
ALPHABET = '/?=&%#[]@:;"()+*-_~. \t\n\\aZ09Aé٢'


def lower(headers: dict[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def generally(method: str, target: str, headers: dict[str, str]) -> tuple[int, str] | None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signatures, "verified", lambda *_: None)
        try:
            return verify(KEYS, method, target, headers.items())
        except Problem:
            return None


@pytest.mark.parametrize("target", [TARGET, "/v1/session", "/", "/a?", "/a?b=c&d"])
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("u", [0, 2])
def test_requests_of_this_package_are_accepted_as_the_general_way_does(u, method, target):
    headers = lower(sign(make_identity(u), u, method, target, b"body"))
    found = quick.verified(KEYS, method, target, headers, AGE)
    assert found == (u, headers["content-digest"])
    assert generally(method, target, headers) == found


@st.composite
def altered_requests(draw: st.DrawFn) -> tuple[str, str, dict[str, str]]:
    """Return a request of which some characters are others, missing, or there twice."""
    method, target = draw(st.sampled_from(["GET", "POST"])), TARGET
    parts = {"method": method, "target": target}
    parts |= lower(sign(make_identity(1), 1, method, target, b"body"))
    for name in draw(st.lists(st.sampled_from(sorted(parts)), min_size=1, max_size=2)):
        text = parts[name]
        at = draw(st.integers(0, len(text) - 1))
        by = draw(st.text(ALPHABET, max_size=2) | st.just(2 * text[at]))
        parts[name] = text[:at] + by + text[at + 1 :]
    return parts.pop("method"), parts.pop("target"), parts


@given(altered_requests())
def test_nothing_is_accepted_that_the_general_way_rejects(request_):
    method, target, headers = request_
    found = quick.verified(KEYS, method, target, headers, AGE)
    assert found is None or generally(method, target, headers) == found


@given(st.data())
def test_signed_requests_of_any_target_are_accepted_alike(data: Any):
    target = "/" + data.draw(st.text(ALPHABET, max_size=12))
    headers = lower(sign(make_identity(1), 1, "GET", TARGET, b""))
    try:
        headers |= lower(sign(make_identity(1), 1, "GET", target, b""))
    except Exception:
        return  # the library signs no such target
    found = quick.verified(KEYS, "GET", target, headers, AGE)
    assert found is None or generally("GET", target, headers) == found


@pytest.mark.parametrize("later", [-10, AGE + 10])
def test_a_signature_of_another_time_is_left_to_the_general_way(monkeypatch, later):
    headers = lower(sign(make_identity(1), 1, "GET", TARGET, b""))
    now = time.time() + later
    monkeypatch.setattr(quick.time, "time", lambda: now)
    assert quick.verified(KEYS, "GET", TARGET, headers, AGE) is None


def test_strangers_and_others_are_left_to_the_general_way():
    for signer, u in ((9, 9), (1, 2)):
        headers = lower(sign(make_identity(signer), u, "GET", TARGET, b""))
        assert quick.verified(KEYS, "GET", TARGET, headers, AGE) is None


def test_members_requests_need_no_general_verification(monkeypatch):
    monkeypatch.setattr(signatures, "_Verifier", None)
    headers = lower(sign(make_identity(1), 1, "GET", TARGET, b""))
    assert verify(KEYS, "GET", TARGET, headers.items())[0] == 1
