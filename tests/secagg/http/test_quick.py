"""Quick verification of signatures: it accepts nothing that the general one rejects."""

from __future__ import annotations

import base64
import string
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


NOW, LATER = "created=%(now)d", "expires=%(later)d"
STATED = (
    f'("@method" "@path" "@query" "content-digest");{NOW};keyid="1";alg="ed25519";{LATER}'
    ';tag="secagg-http/1"'
)
DIGEST = lower(sign(make_identity(1), 1, "GET", TARGET, b""))["content-digest"]
OTHER = "sha-512=:" + 86 * "A" + "==:"
SIGNED = {"method": "GET", "path": "/a", "query": "?b=c", "digest": DIGEST, "stated": STATED}


def stated(old: str, new: str) -> dict[str, str]:
    assert STATED.count(old) == 1
    return {"stated": STATED.replace(old, new)}


def signed_by_hand(
    changes: dict[str, str], sent: dict[str, str]
) -> tuple[str, str, dict[str, str]]:
    """Return a request of client 1 that is signed with changes, then sent with others."""
    now = int(time.time())
    times = {"now": now, "later": now + 300, "soon": now + 30, "past": now - 1}
    times |= {"long ago": now - int(AGE) - 30}
    parts = {name: text % times for name, text in (SIGNED | changes).items()}
    lines = [f'"@{name}": {parts[name]}' for name in ("method", "path", "query")]
    lines += [f'"content-digest": {parts["digest"]}', f'"@signature-params": {parts["stated"]}']
    signature = base64.b64encode(make_identity(1).sign("\n".join(lines).encode())).decode()
    if sent.get("trailing bits"):
        alphabet = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
        last = alphabet[alphabet.index(signature[85]) + 1]  # of 6 bits, 4 are of no byte
        signature = signature[:85] + last + "=="
    label, head = sent.get("label", "secagg"), sent.get("signature label", "secagg")
    query = parts["query"] if parts["query"] != "?" else ""
    return (
        parts["method"],
        parts["path"] + query + sent.get("target", ""),
        {
            "content-digest": parts["digest"],
            "signature-input": f"{label}={parts['stated']}" + sent.get("input", ""),
            "signature": f"{head}=:{signature}:" + sent.get("signature", ""),
        },
    )


SENT_AS_SIGNED: dict[str, dict[str, str]] = {
    "method in lower case": {"method": "get"},
    "another method": {"method": "PUT"},
    "space in the path": {"path": "/a b"},
    "line in the path": {"path": '/a\n"x": y'},
    "mark in the path": {"path": "/a@b"},
    "path of no root": {"path": "a"},
    "line in the query": {"query": '?b\n"x": y'},
    "escape in the query": {"query": "?b=%%63"},
    "second mark": {"query": "?b?c"},
    "fragment": {"query": "?b#c"},
    "another digest": {"digest": OTHER},
    "two digests": {"digest": f"{DIGEST}, {OTHER}"},
    "short digest": {"digest": "sha-256=:AAAA:"},
    "no digest": {"digest": "x"},
    "digest not covered": stated(' "content-digest"', ""),
    "another order": stated('"@path" "@query"', '"@query" "@path"'),
    "more covered": stated(' "content-digest"', ' "content-digest" "@authority"'),
    "created later": stated(NOW, "created=%(soon)d"),
    "created long ago": stated(NOW, "created=%(long ago)d"),
    "expired": stated(LATER, "expires=%(past)d"),
    "created with a zero": stated(NOW, "created=0%(now)d"),
    "expires with a zero": stated(LATER, "expires=0%(later)d"),
    "not created": stated(f";{NOW}", ""),
    "no end": stated(f";{LATER}", ""),
    "id with a zero": stated('"1"', '"01"'),
    "unknown client": stated('"1"', '"9"'),
    "another client": stated('"1"', '"2"'),
    "another algorithm": stated("ed25519", "hmac-sha256"),
    "another tag": stated("secagg-http/1", "secagg-http/2"),
    "no tag": stated(';tag="secagg-http/1"', ""),
    "more parameters": stated('"secagg-http/1"', '"secagg-http/1";nonce="a"'),
}
SENT_WITH_MORE: dict[str, dict[str, str]] = {
    "longer path and query": {"target": "/b"},
    "fragment after": {"target": "#b"},
    "line after": {"target": "\n"},
    "second input": {"input": ', b=("@method");created=1'},
    "line after the input": {"input": "\n"},
    "second signature": {"signature": ", b=:AAAA:"},
    "line after the signature": {"signature": "\n"},
    "another label": {"label": "b", "signature label": "b"},
    "label of no input": {"signature label": "b"},
    "label of no signature": {"label": "b"},
    "trailing bits": {"trailing bits": "1"},
}


@pytest.mark.parametrize("changes", SENT_AS_SIGNED.values(), ids=SENT_AS_SIGNED)
def test_another_form_is_left_to_the_general_way_though_its_signature_is_right(changes):
    method, target, headers = signed_by_hand(changes, {})
    assert quick.verified(KEYS, method, target, headers, AGE) is None


@pytest.mark.parametrize("more", SENT_WITH_MORE.values(), ids=SENT_WITH_MORE)
@pytest.mark.parametrize("query", ["?b=c", "?"])
def test_what_was_not_signed_is_left_to_the_general_way(query, more):
    method, target, headers = signed_by_hand({"query": query}, more)
    assert quick.verified(KEYS, method, target, headers, AGE) is None


def test_the_signature_by_hand_is_right_otherwise():
    for method in ("GET", "POST"):
        for query in ("?b=c", "?"):
            request = signed_by_hand({"method": method, "query": query}, {})
            assert quick.verified(KEYS, *request, AGE) == (1, DIGEST)
            assert generally(*request) == (1, DIGEST)


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
