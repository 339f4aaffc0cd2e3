"""Signatures of requests: what they cover, what is rejected, and what is never confused."""

from __future__ import annotations

import base64
import re
import string
import time
from types import SimpleNamespace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_der_private_key
from hypothesis import given
from hypothesis import strategies as st

from secagg import Identity, Integers, Registry, RoundParams, simulate_one_shot, simulate_round
from secagg.http import signatures
from secagg.http.problems import Problem
from secagg.http.signatures import (
    CLOCK_SKEW,
    VALID,
    content_digest,
    sign,
    signature_base,
    verify,
)
from secagg.oneshot import Helper, OneShotParams
from secagg.simulate import temporary_journals
from secagg.testing import make_identity

KEYS = {u: make_identity(u).public for u in range(3)}
TARGET = "/v1/sessions/a%2Fb/task?after=00"
ALPHABET = '/?=&%#[]@:;"()+*-_~. \t\n\\aZ09Aé٢'


def check_of(method: str, target: str, headers: dict[str, str]) -> str:
    with pytest.raises(Problem) as caught:
        verify(KEYS, method, target, lower(headers))
    assert caught.value.status == 401
    return caught.value.check


def lower(headers: dict[str, str]) -> list[tuple[str, str]]:
    return [(name.lower(), value) for name, value in headers.items()]


@pytest.mark.parametrize("header", ["Content-Digest", "Signature-Input", "Signature"])
def test_altered_or_missing_headers_are_rejected(header):
    headers = sign(make_identity(2), 2, "POST", TARGET, b"body")
    other = sign(make_identity(1), 1, "POST", TARGET + "&", b"other")
    assert check_of("POST", TARGET, headers | {header: other[header]}) == "signature"
    assert check_of("POST", TARGET, headers | {header: "=" * 513}) == "signature"
    assert check_of("POST", TARGET, headers | {header: "é\x00("}) == "signature"
    twice = [*lower(headers), (header.lower(), headers[header])]
    with pytest.raises(Problem):
        verify(KEYS, "POST", TARGET, twice)
    del headers[header]
    assert check_of("POST", TARGET, headers) == "unsigned"


def signed_at(later: float, u: int, client: int) -> dict[str, str]:
    """Return headers of a request by a client whose clock is fast."""
    with pytest.MonkeyPatch.context() as patch:
        clock = SimpleNamespace(time=lambda: time.time() + later)
        patch.setattr(signatures, "time", clock)
        return sign(make_identity(u), client, "GET", TARGET, b"")


@pytest.mark.parametrize("hours", [-1, 0, 1])
def test_check54_strangers_do_not_learn_who_is_registered(monkeypatch, hours):
    """A stranger gets the same answer for every id, after as many verifications."""
    keys: list[bytes] = []
    load = Ed25519PublicKey.from_public_bytes
    watched = SimpleNamespace(from_public_bytes=lambda key: keys.append(key) or load(key))
    monkeypatch.setattr(signatures, "Ed25519PublicKey", watched)
    found = set()
    for u in (2, 9, 1 << 63):
        with pytest.raises(Problem) as caught:
            verify(KEYS, "GET", TARGET, lower(signed_at(3600 * hours, 9, u)))
        told = caught.value
        found.add((told.status, told.check, told.detail, len(keys)))
        keys.clear()
    assert len(found) == 1


@pytest.mark.parametrize(
    ("later", "check"),
    [
        (-VALID - CLOCK_SKEW - 5, "clock"),
        (-VALID - CLOCK_SKEW + 5, None),
        (CLOCK_SKEW - 5, None),
        (CLOCK_SKEW + 5, "clock"),
    ],
)
def test_signature_of_another_time_is_rejected(later, check):
    headers = signed_at(later, 2, 2)
    if check:
        assert check_of("GET", TARGET, headers) == check
    else:
        assert verify(KEYS, "GET", TARGET, lower(headers))[0] == 2


@st.composite
def altered_requests(draw: st.DrawFn) -> tuple[dict[str, str], dict[str, str]]:
    """Return a request, and the same with some characters others, missing, or there twice."""
    parts = {"method": draw(st.sampled_from(["GET", "POST"])), "target": TARGET}
    parts |= dict(lower(sign(make_identity(1), 1, parts["method"], TARGET, b"body")))
    altered = dict(parts)
    for name in draw(st.lists(st.sampled_from(sorted(parts)), min_size=1, max_size=2)):
        text = altered[name]
        at = draw(st.integers(0, len(text) - 1))
        by = draw(st.text(ALPHABET, max_size=2) | st.just(2 * text[at]))
        altered[name] = text[:at] + by + text[at + 1 :]
    return parts, altered


@given(altered_requests())
def test_no_altered_request_is_accepted(requests):
    signed, altered = requests
    if altered != signed:
        check_of(altered.pop("method"), altered.pop("target"), altered)


@given(st.text(ALPHABET, max_size=12))
def test_signed_requests_of_any_target_are_accepted_or_of_another_form(rest):
    target = "/" + rest
    headers = sign(make_identity(1), 1, "GET", target, b"")
    if re.fullmatch(r"[A-Za-z0-9/._~%-]*(\?[A-Za-z0-9=&]*)?", rest):
        assert verify(KEYS, "GET", target, lower(headers))[0] == 1
    else:
        assert check_of("GET", target, headers) == "signature"


NOW, LATER = "created=%(now)d", "expires=%(later)d"
STATED = (
    f'("@method" "@path" "@query" "content-digest");{NOW};keyid="1";alg="ed25519";{LATER}'
    ';tag="secagg-http/1"'
)
DIGEST = content_digest(b"")
SIGNED = {"method": "GET", "path": "/a", "query": "?b=c", "digest": DIGEST, "stated": STATED}


def stated(old: str, new: str) -> dict[str, str]:
    assert STATED.count(old) == 1
    return {"stated": STATED.replace(old, new)}


def signed_by_hand(
    changes: dict[str, str], sent: dict[str, str]
) -> tuple[str, str, dict[str, str]]:
    """Return a request of client 1 that is signed with changes, then sent with others."""
    now = int(time.time())
    times = {
        "now": now,
        "later": now + 300,
        "soon": now + CLOCK_SKEW + 30,
        "past": now - CLOCK_SKEW - 1,
    }
    times |= {"long ago": now - VALID - CLOCK_SKEW - 30}
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
    "space in the path": {"path": "/a b"},
    "line in the path": {"path": '/a\n"x": y'},
    "escape in the query": {"query": "?b=%%63"},
    "fragment": {"query": "?b#c"},
    "digest not covered": stated(' "content-digest"', ""),
    "more covered": stated(' "content-digest"', ' "content-digest" "@authority"'),
    "created later": stated(NOW, "created=%(soon)d"),
    "expired": stated(LATER, "expires=%(past)d"),
    "unknown client": stated('"1"', '"9"'),
    "another algorithm": stated("ed25519", "hmac-sha256"),
    "another tag": stated("secagg-http/1", "secagg-http/2"),
}
SENT_WITH_MORE: dict[str, dict[str, str]] = {
    "fragment after": {"target": "#b"},
    "second input": {"input": ', b=("@method");created=1'},
    "line after the input": {"input": "\n"},
    "line after the signature": {"signature": "\n"},
    "another label": {"label": "b", "signature label": "b"},
    "label of no input": {"signature label": "b"},
    "trailing bits": {"trailing bits": "1"},
}


CHECKS = dict.fromkeys(("created later", "created long ago", "expired"), "clock")


@pytest.mark.parametrize("name", SENT_AS_SIGNED)
def test_another_form_is_rejected_though_its_signature_is_right(name):
    method, target, headers = signed_by_hand(SENT_AS_SIGNED[name], {})
    assert check_of(method, target, headers) == CHECKS.get(name, "signature")


@pytest.mark.parametrize("more", SENT_WITH_MORE.values(), ids=SENT_WITH_MORE)
@pytest.mark.parametrize("query", ["?b=c", "?"])
def test_what_was_not_signed_is_rejected(query, more):
    method, target, headers = signed_by_hand({"query": query}, more)
    assert check_of(method, target, headers) == "signature"


def test_the_signature_by_hand_is_right_otherwise():
    for method in ("GET", "POST"):
        for query in ("?b=c", "?"):
            *request, headers = signed_by_hand({"method": method, "query": query}, {})
            assert verify(KEYS, *request, lower(headers)) == (1, DIGEST)


def test_example_of_rfc_9421_b_2_6():
    """Other components are covered there; base and signature are computed in the same way."""
    key = load_der_private_key(
        base64.b64decode("MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF"),
        None,
    )
    assert not isinstance(key, Ed25519PublicKey)
    covered = {
        "date": "Tue, 20 Apr 2021 02:07:55 GMT",
        "@method": "POST",
        "@path": "/foo",
        "@authority": "example.com",
        "content-type": "application/json",
        "content-length": "18",
    }
    names = " ".join(f'"{name}"' for name in covered)
    parameters = f'({names});created=1618884473;keyid="test-key-ed25519"'
    signature = key.sign(signature_base(covered.items(), parameters))
    assert base64.b64encode(signature) == (
        b"wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="
    )


def test_example_of_rfc_9421_b_2():
    """Content-Digest of the example's body, SHA-256 in place of SHA-512."""
    digest = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"
    assert content_digest(b'{"hello": "world"}') == digest


def test_no_statement_of_the_protocol_is_a_signature_base(monkeypatch):
    """A signature base begins with a quotation mark, and a statement never does."""
    signed: list[bytes] = []
    sign_really = Identity.sign

    def recorded(self: Identity, content: bytes) -> bytes:
        signed.append(content)
        return sign_really(self, content)

    monkeypatch.setattr(Identity, "sign", recorded)
    sign(make_identity(2), 2, "POST", TARGET, b"body")
    assert [content.partition(b" ")[0] for content in signed] == [b'"@method":']

    signed.clear()
    shape = {"n_clients": 4, "length": 2, "encoding": Integers(9), "security": "active"}
    simulate_round(np.ones((4, 2), int), RoundParams(threshold=3, session=b"a", **shape))
    with temporary_journals(3, "x25519") as journals:
        keys = tuple(journal.public for journal in journals)
        more = {"helpers": keys, "suite": "x25519", "min_clients": 3}
        params = OneShotParams(threshold=2, session=b"b", **shape, **more)
        simulate_one_shot(np.ones((4, 2), int), params, journals)
        Helper(params, journals[0], registry=Registry(KEYS)).endorse()
    kinds = {bytes(re.match(rb"secagg/[124] [a-z -]*", content)[0]) for content in signed}
    assert len(kinds) == 9, kinds
