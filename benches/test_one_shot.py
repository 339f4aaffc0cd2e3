"""Times of the parties of a one-shot sum beside plain code, with 2 of 2 helpers.

The plain code seals, signs, masks and adds, without formats, commitments, checks and a journal.
Times of the server and of a helper are those of all clients together: divide them by N.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from benches import plain
from benches.conftest import Versus
from benches.plain import CLIP, U32
from secagg import FixedPoint, Identity, Registry
from secagg.oneshot import (
    Accumulator,
    Helper,
    HelperJournal,
    OneShotParams,
    report,
    suites,
)
from secagg.protocol.shape import Security
from secagg.protocol.suites import SuiteName
from secagg.simulate import temporary_journals

if TYPE_CHECKING:
    from secagg.oneshot.suites import PublicKey

N, LENGTH = 100, 100_000
VECTOR = np.random.default_rng(0).uniform(-CLIP, CLIP, LENGTH)
PLAIN = "cryptography, numpy, no checks"
KEMS = {"x25519": hpke.KEM.X25519, "hybrid": hpke.KEM.MLKEM768_X25519}

pytestmark = pytest.mark.large


class Session(NamedTuple):
    """Parties of a session, and the reports of all its clients."""

    params: OneShotParams
    journals: list[HelperJournal]
    identities: list[Identity]
    registry: Registry | None
    reports: list[bytes]

    @property
    def setting(self) -> str:
        """Description for the name of a group."""
        return f"{self.params.security}, {self.params.suite}, d = {LENGTH:,}: {PLAIN}"

    def report(self, u: int) -> bytes:
        """Return a client's report."""
        identity = self.identities[u] if self.params.active else None
        return report(VECTOR, self.params, u, identity=identity)


@pytest.fixture(scope="module", params=["semi-honest", "active"])
def security(request: pytest.FixtureRequest) -> Security:
    chosen: Security = request.param
    return chosen


@pytest.fixture(scope="module", params=["x25519", "hybrid"])
def suite(request: pytest.FixtureRequest) -> SuiteName:
    chosen: SuiteName = request.param
    return chosen


@pytest.fixture(scope="module")
def session(security: Security, suite: SuiteName) -> Iterator[Session]:
    with temporary_journals(2, suite) as journals:
        params = OneShotParams(
            n_clients=N,
            length=LENGTH,
            encoding=FixedPoint(CLIP, rounding="nearest"),
            helpers=tuple(journal.public for journal in journals),
            threshold=2,
            min_clients=-(-7 * N // 10),
            security=security,
            suite=suite,
            session=b"bench",
        )
        identities = [Identity.generate() for _ in range(N)]
        keys = {u: one.public for u, one in enumerate(identities)}
        registry = Registry(keys) if params.active else None
        made = Session(params, journals, identities, registry, [])
        made.reports.extend(made.report(u) for u in range(N))
        yield made


def test_client(versus: Versus, session: Session) -> None:
    """Compare a report with an encoded and masked vector, two boxes and a signature."""
    sealer, keys, signer = _sealer(session), _public_keys(session), Ed25519PrivateKey.generate()

    def by_hand() -> bytes:
        seeds = [os.urandom(16) for _ in keys]
        y = plain.encode(VECTOR, None)
        for seed in seeds:
            y += _mask(seed)
        boxes = [sealer.encrypt(seed, key, b"") for seed, key in zip(seeds, keys, strict=True)]
        signed = signer.sign(b"".join(boxes)) if session.params.active else b""
        return b"".join((*boxes, signed, y.tobytes()))

    def check(ours: bytes, theirs: bytes) -> None:
        assert len(ours) == session.params.layout.report > len(theirs) > 4 * LENGTH

    versus(f"one-shot client, {session.setting}", lambda: session.report(0), by_hand, check)


def test_server(versus: Versus, session: Session) -> None:
    """Compare an accumulator, the boxes of both helpers included, with additions."""
    signer = Ed25519PrivateKey.generate()
    signature, public = signer.sign(bytes(100)), signer.public_key()
    values = slice(session.params.layout.values, None)

    def ours() -> bytes:
        accumulator = Accumulator(session.params, registry=session.registry)
        for one in session.reports:
            accumulator.add(one)
        for j in (1, 2):
            list(accumulator.boxes(j))
        accumulator.settle()
        return accumulator.to_bytes()

    def by_hand() -> U32:
        total = np.zeros(LENGTH, np.uint32)
        for one in session.reports:
            if session.params.active:
                public.verify(signature, bytes(100))
            total += np.frombuffer(one[values], np.uint32)
        return total

    def check(stored: bytes, total: U32) -> None:
        assert total.tobytes() in stored

    versus(f"one-shot server, {N} clients, {session.setting}", ours, by_hand, check)


def test_helper(versus: Versus, session: Session) -> None:
    """Compare a helper with the opening of boxes and the sum of masks."""
    accumulator = Accumulator(session.params, registry=session.registry)
    for one in session.reports:
        accumulator.add(one)
    chunks, request = list(accumulator.boxes(1)), accumulator.request()
    sealer, key = _sealer(session), session.journals[0].box_key._private
    boxes = [sealer.encrypt(os.urandom(16), _public_keys(session)[0], b"") for _ in range(N)]
    signer = Ed25519PrivateKey.generate()
    signature, public = signer.sign(bytes(100)), signer.public_key()

    def ours() -> bytes:
        helper = Helper(session.params, session.journals[0], registry=session.registry)
        rejected = [u for chunk in chunks for u in helper.check(chunk)]
        assert not rejected
        return helper.open(request)

    def by_hand() -> bytes:
        total = np.zeros(LENGTH, np.uint32)
        for box in boxes:
            if session.params.active:
                public.verify(signature, bytes(100))
            total += _mask(sealer.decrypt(box, key, b""))
        return total.tobytes()

    def check(ours: bytes, theirs: bytes) -> None:
        assert len(ours) == 2 + 32 + 2 + 32 + len(theirs)

    versus(f"one-shot helper, {N} clients, {session.setting}", ours, by_hand, check)


def _sealer(session: Session) -> hpke.Suite:
    kem = KEMS[session.params.suite]
    return hpke.Suite(kem, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_128_GCM)


def _public_keys(session: Session) -> list[PublicKey]:
    return [suites.load_key(session.params.suite, box) for box, _ in session.params.helpers]


def _mask(seed: bytes) -> U32:
    return np.frombuffer(plain.keystream(seed, 4 * LENGTH), np.uint32)
