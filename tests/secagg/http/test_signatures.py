"""Signatures of requests: what they cover, what is rejected, and what is never confused."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from http_message_signatures import HTTPMessageSigner
from http_message_signatures.algorithms import ED25519

from secagg import Identity, Integers, Registry, RoundParams, simulate_one_shot, simulate_round
from secagg.http import quick, signatures
from secagg.http.problems import Problem
from secagg.http.signatures import COVERED, TAG, VALID, Message, sign, verify
from secagg.oneshot import Helper, OneShotParams
from secagg.simulate import temporary_journals
from secagg.testing import make_identity

KEYS = {u: make_identity(u).public for u in range(3)}
TARGET = "/v1/sessions/a%2Fb/task?after=00"


def check_of(method: str, target: str, headers: dict[str, str]) -> str:
    with pytest.raises(Problem) as caught:
        verify(KEYS, method, target, lower(headers))
    assert caught.value.status == 401
    return caught.value.check


def lower(headers: dict[str, str]) -> list[tuple[str, str]]:
    return [(name.lower(), value) for name, value in headers.items()]


def test_signed_request_is_its_clients():
    headers = sign(make_identity(2), 2, "POST", TARGET, b"body")
    client, digest = verify(
        KEYS, "POST", TARGET, [*lower(headers), ("host", "h"), ("host", "i")]
    )
    assert client == 2
    assert digest == headers["Content-Digest"]


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("GET", TARGET),
        ("POST", TARGET + "1"),
        ("POST", TARGET.replace("a%2Fb", "c")),
        ("POST", TARGET + "#&after=00"),
    ],
    ids=["method", "query", "session", "fragment"],
)
def test_signature_is_of_one_request(method, target):
    headers = sign(make_identity(2), 2, "POST", TARGET, b"")
    assert check_of(method, target, headers) == "signature"


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


def test_identity_of_another_client_is_rejected():
    assert check_of("GET", TARGET, sign(make_identity(1), 2, "GET", TARGET, b"")) == "signature"


def rejection(method: str, target: str, headers: dict[str, str]) -> tuple[int, str, str]:
    """Return everything that the sender of a request is told."""
    with pytest.raises(Problem) as caught:
        verify(KEYS, method, target, lower(headers))
    return caught.value.status, caught.value.check, caught.value.detail


@pytest.mark.parametrize("hours", [-1, 0, 1])
def test_check54_strangers_do_not_learn_who_is_registered(monkeypatch, hours):
    """A stranger gets the same answer for every id, after as many verifications."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:
            return datetime.now(UTC) + timedelta(hours=hours)

    monkeypatch.setattr(signatures, "datetime", Clock)
    keys: list[bytes] = []
    load = Ed25519PublicKey.from_public_bytes
    watched = SimpleNamespace(from_public_bytes=lambda key: keys.append(key) or load(key))
    monkeypatch.setattr(quick, "Ed25519PublicKey", watched)
    monkeypatch.setattr(signatures, "Ed25519PublicKey", watched)
    stranger, found = make_identity(9), set()
    for u in (2, 9, 1 << 63):
        told = rejection("GET", TARGET, sign(stranger, u, "GET", TARGET, b""))
        found.add((*told, len(keys)))
        keys.clear()
    assert len(found) == 1


def test_id_that_is_no_number_is_no_client():
    headers = sign(make_identity(9), 9, "GET", TARGET, b"")
    for keyid in ("02", "-2", "1e3", "٢", "2 ", ""):
        altered = headers["Signature-Input"].replace('keyid="9"', f'keyid="{keyid}"')
        assert check_of("GET", TARGET, headers | {"Signature-Input": altered}) == "signature"


@pytest.mark.parametrize("hours", [-1, 1])
def test_signature_of_another_time_is_rejected(monkeypatch, hours):
    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:
            return datetime.now(UTC) + timedelta(hours=hours)

    monkeypatch.setattr(signatures, "datetime", Clock)
    assert check_of("GET", TARGET, sign(make_identity(2), 2, "GET", TARGET, b"")) == "clock"


def test_signature_that_claims_a_long_life_is_rejected():
    now = datetime.now(UTC)
    assert check_of_form(created=now - timedelta(hours=1), expires=now + VALID) == "clock"


@pytest.mark.parametrize(
    "changes",
    [
        {"covered_component_ids": COVERED[:3]},
        {"covered_component_ids": COVERED[::-1]},
        {"covered_component_ids": (*COVERED, '"@query-param";name="after"')},
        {"tag": "another"},
        {"tag": None},
        {"expires": None},
        {"twice": True},
    ],
    ids=["fewer", "another order", "more", "tag", "no tag", "no end", "two signatures"],
)
def test_signature_of_another_form_is_rejected(changes):
    assert check_of_form(**changes) == "signature"


def check_of_form(*, twice: bool = False, **changes: object) -> str:
    """Return the failed check of a request whose signature is made by hand."""
    now = datetime.now(UTC)
    message = Message("GET", "http://host" + TARGET, {})
    signer = HTTPMessageSigner(signature_algorithm=ED25519)
    form = {"covered_component_ids": COVERED, "tag": TAG, "label": "b"}
    form |= {"created": now, "expires": now + VALID}
    for one in [form, form | {"label": "a"}] if twice else [form | changes]:
        message.headers.setdefault("Content-Digest", digest_of(b""))
        prepared = signer.prepare(message, key_id="2", use_existing_digest=True, **one)
        signature = make_identity(2).sign(prepared.signature_base)
        signer.apply(message, prepared, signature, append_if_signature_exists=True)
    return check_of("GET", TARGET, message.headers)


def digest_of(body: bytes) -> str:
    return sign(make_identity(2), 2, "GET", TARGET, body)["Content-Digest"]


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
    kinds = {bytes(re.match(rb"secagg/[12] [a-z -]*", content)[0]) for content in signed}
    assert len(kinds) == 6, kinds
