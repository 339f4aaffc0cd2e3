"""Files and messages that release 0.4.0 wrote: read, or rejected with the remedy.

The files are of commit eecb429: a Paillier key of 2048 bits with a sum of three vectors, a
threshold key of 1024 bits with two shares and two partial decryptions, a journal in the middle
of a round, the first message of client 0 and the roster. tests/fedmf/models has a model.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import secagg
from secagg import paillier, threshold

KEPT = Path(__file__).parents[1] / "vectors" / "release-0.4"
PACKING = secagg.Packing(
    encoding=secagg.FixedPoint(clip=8.0), length=6, summands=5, session=b"kept"
)
SUM = 3 * np.arange(6) / 4 + 3
PARAMS = secagg.RoundParams(
    n_clients=5,
    threshold=3,
    length=8,
    encoding=secagg.FixedPoint(clip=8.0),
    session=b"kept",
    suite="x25519",
)


def kept(name: str) -> bytes:
    return (KEPT / name).read_bytes()


def test_paillier_keys_and_sums_are_read() -> None:
    key = paillier.PrivateKey.from_bytes(kept("paillier-key"))
    public = paillier.PublicKey.from_bytes(kept("paillier-public-key"))
    assert key.public_key == public
    total = public.load_vector(kept("encrypted-sum"), PACKING, summands=None)
    np.testing.assert_allclose(key.decrypt_vector(total).sum, SUM, atol=1e-4)


def test_threshold_keys_shares_and_decryptions_are_read() -> None:
    key = threshold.ThresholdKey.from_bytes(kept("threshold-key"), allow_insecure=True)
    total = key.public_key.load_vector(kept("threshold-sum"), PACKING, summands=None)
    old = [key.load_partial(kept(f"partial-decryption-{place}")) for place in range(2)]
    np.testing.assert_allclose(key.combine_vector(total, old).sum, SUM, atol=1e-4)
    share = threshold.KeyShare.from_bytes(kept("key-share-0"), key)
    new = share.decrypt_partially(total.ciphertexts)
    np.testing.assert_allclose(key.combine_vector(total, [new, old[1]]).sum, SUM, atol=1e-4)


def test_journal_is_rejected_with_the_remedy_and_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    shutil.copyfile(KEPT / "journal", path)
    with pytest.raises(secagg.JournalError, match=r"secagg 0\.4"):
        secagg.Journal.open(path, PARAMS)
    assert path.read_bytes() == kept("journal")


def test_server_rejects_a_client_of_0_4() -> None:
    server = secagg.Server(PARAMS)
    with pytest.raises(secagg.RemoteProtocolError) as caught:
        server.receive(0, kept("advertise-keys"))
    assert caught.value.check == "version"
    assert "secagg" in str(caught.value)  # which release both sides need


def test_client_rejects_a_server_of_0_4() -> None:
    client = secagg.Client(0, PARAMS)
    client.answer(b"")
    with pytest.raises(secagg.RemoteProtocolError) as caught:
        client.answer(kept("roster"))
    assert caught.value.check == "version"
