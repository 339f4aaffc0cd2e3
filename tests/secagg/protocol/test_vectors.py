"""Golden vectors of every derivation, made from docs/protocol.md by code of its own."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import independent_mlkem
from harness import secret_of
from imported_roots import roots_imported
from inputs_of import encoded
from secagg import (
    Identity,
    ParameterError,
    Registry,
    RemoteProtocolError,
    RoundParams,
    _fast,
    client_id,
    graph,
    shamir,
)
from secagg._hedging import Hedged
from secagg.encoding import Ring
from secagg.protocol import kem, keys, pair_masks, sealing
from secagg.protocol.identities import hedging_secret, signed_keys, signed_survivors
from secagg.protocol.masks import MaskSum
from vectors_reader import FOLDER, Fed, b, lanes, load, params_of, vector_of

no_kernels = pytest.mark.skipif(
    not _fast.COMPILED,
    reason="nothing of the package runs, so that compiled or not is the same",
)


@pytest.mark.large
@no_kernels
def test_check27_generator_writes_the_same_vectors(tmp_path: Path) -> None:
    subprocess.run([sys.executable, FOLDER / "generate.py", tmp_path], check=True)  # noqa: S603
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_bytes() for path in FOLDER.glob("*.json")}


@no_kernels
def test_check27_generator_shares_no_code_with_the_package() -> None:
    independent = set((FOLDER.parent / "support").glob("independent_*.py"))
    independent = {path for path in independent if path.stem != "independent_views"}
    paths = {*FOLDER.glob("*.py"), *independent}
    allowed = {*sys.stdlib_module_names, "cryptography", *(path.stem for path in paths)}
    for path in paths:
        assert roots_imported(path) <= allowed, path.name


def test_check27_vectors_include_the_documents_worked_example() -> None:
    document = (FOLDER.parents[1] / "docs" / "protocol.md").read_text(encoding="utf-8")
    rounds = (FOLDER / "rounds.json").read_text(encoding="ascii")
    for block, messages in zip(document.split("<!-- example ")[1:], (7, 8), strict=True):
        values: list[list[str]] = []
        for line in block.split("```")[1].splitlines()[1:]:
            if line.startswith(" "):
                values[-1][1] += line.strip()
            else:
                values.append([line, ""])
        # the names of messages begin with a capital
        sent = [v for name, v in values if name[0].isupper()]
        assert len(sent) == messages
        assert all(f'"{value}"' in rounds for value in sent)


@pytest.mark.parametrize("case", load("parameters")["digests"], ids=lambda c: c["changed"])
def test_check27_parameters_digest(case) -> None:
    params, data = params_of(case["parameters"]), b(case["bytes"])
    assert "".join(field["bytes"] for field in case["layout"]) == case["bytes"]
    assert params.to_bytes() == data
    assert params.digest == b(case["digest"])
    assert hashlib.sha256(b"secagg/4 parameters" + data).digest() == b(case["digest"])
    read = RoundParams.from_bytes(data)
    assert (read.to_bytes(), read.digest) == (data, params.digest)
    assert replace(params, suite=None).suite == case["suggested"]
    names = ("holders", "bits", "elements", "least", "survivors", "share")
    share = params.share.scaled if params.share else 0
    derived = (params.holders, params.ring.bits, params.elements, params.least)
    assert (*derived, params.min_survivors, share) == tuple(case[name] for name in names)
    assert params_of(case["parameters"] | {"suite": None}).suite == case["suggested"]


@pytest.mark.parametrize("case", load("parameters")["refused"], ids=lambda c: c["name"])
def test_check27_bytes_that_are_no_parameters_are_rejected(case) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        RoundParams.from_bytes(b(case["bytes"]))
    assert caught.value.check == case["check"]


@pytest.mark.parametrize("case", load("client_ids")["names"], ids=lambda c: ascii(c["name"]))
def test_check27_ids_of_names(case) -> None:
    assert client_id(case["name"]) == int(case["id"])
    assert client_id(b(case["normal"]).decode()) == int(case["id"])


@pytest.mark.parametrize("name", load("client_ids")["refused"], ids=ascii)
def test_check27_text_that_is_no_name_is_rejected(name: str) -> None:
    with pytest.raises(ParameterError):
        client_id(name)


@pytest.mark.parametrize("case", load("roster")["rosters"])
def test_check27_roster_digest_and_session(case) -> None:
    columns = ("seal_key", "mask_key", "kem_key")
    publics = {
        int(c["id"]): keys.PublicKeys(*(b(c[name]) for name in columns))
        for c in case["clients"]
    }
    digest = keys.roster_digest(publics)
    assert digest == b(case["digest"])
    assert keys.session_id(b(case["parameters_digest"]), digest) == b(case["session"])


DIRECTIONS = ("lo_to_hi", "hi_to_lo")
PAIRS = [
    (case, *ends)
    for case in load("keys")["pairs"]
    for ends in (("lo", "hi", *DIRECTIONS), ("hi", "lo", *DIRECTIONS[::-1]))
]


def row(data: bytes) -> np.ndarray:
    return keys.rows_of([data], len(data))


@pytest.mark.parametrize(("case", "mine", "theirs", "to", "back"), PAIRS)
def test_check27_keys_of_a_pair_from_both_sides(case, mine, theirs, to, back) -> None:
    session, own, peer = b(load("keys")["session"]), case[mine], case[theirs]
    sent, came, hybrid = case[to], case[back], case["suite"] == "hybrid"
    me, you = int(own["id"]), np.array([int(peer["id"])], np.uint64)
    seal_pair = keys.KeyPair(b(own["seal_seed"]))
    mask_pair = keys.KeyPair.masking(b(own["mask_seed"]))
    assert seal_pair.public == b(own["seal_key"])
    assert mask_pair.private == b(own["mask_private"])
    assert mask_pair.public == b(own["mask_key"])
    seal_shared = secret_of(seal_pair, b(peer["seal_key"]))
    mask_shared = secret_of(mask_pair, b(peer["mask_key"]))
    assert seal_shared == b(case["seal_shared"])
    assert mask_shared == b(case["mask_shared"])

    kems = encapsulated = opened_secret = None
    if hybrid:
        pair = kem.KemPair(b(own["kem_seed"]))
        assert pair.public == b(own["kem_key"])
        assert kem.is_valid(b(peer["kem_key"]))
        assert independent_mlkem.encapsulate(b(peer["kem_key"]), b(sent["coins"])) == (
            b(sent["secret"]),
            b(sent["ciphertext"]),
        )
        assert pair.decapsulate(b(came["ciphertext"])) == b(came["secret"])
        digest = lambda data: row(hashlib.sha256(data).digest())  # noqa: E731
        kems = digest(b(peer["kem_key"])), digest(b(own["kem_key"]))
        encapsulated = row(b(sent["secret"])), digest(b(sent["ciphertext"]))
        opened_secret = row(b(came["secret"])), digest(b(came["ciphertext"]))
    publics = row(b(peer["seal_key"]) + b(peer["mask_key"]))
    both = row(seal_shared + mask_shared)
    end = me, seal_pair.public + mask_pair.public
    sending, opening = sealing.base_keys(both, session, end, you, publics, kems)
    assert sending.tobytes() == b(sent["seal_base"])
    assert opening.tobytes() == b(came["seal_base"])
    box = sealing.box_keys(sending, session, me, you, encapsulated)
    key = sealing.box_keys(opening, session, you, me, opened_secret)
    assert (box.tobytes(), key.tobytes()) == (b(sent["box_key"]), b(came["box_key"]))
    content = row(b(sent["content"]))
    sealed = b(sent["ciphertext"]) + sealing.seal(box, session, me, you, content).tobytes()
    assert sealed == b(sent["sealed"])
    arrived = row(b(came["sealed"])[len(b(came["ciphertext"])) :])
    opened, authentic = sealing.open_sealed(key, session, you, me, arrived)
    assert (opened.tobytes(), authentic.tolist()) == (b(came["content"]), [True])
    _, authentic = sealing.open_sealed(box, session, you, me, arrived)
    assert authentic.tolist() == [False]

    end = me, mask_pair.public
    agreed = pair_masks.agreements(row(mask_shared), session, end, you, publics[:, 32:])
    assert agreed.tobytes() == b(case["agreement"])
    contributed = None
    if hybrid:
        p_q = pair_masks.contributions(b(own["mask_seed"]), session, me, you)
        assert p_q.tobytes() == b(sent["p"]) + b(sent["q"])
        assert content[:, 80:].tobytes() == p_q.tobytes()
        checks = pair_masks.checks(session, me, you, p_q)
        assert checks.tobytes() == b(sent["check"])
        left = pair_masks.deposits(row(b(came["q"])), session, me, you, p_q[:, :32])
        assert left.tobytes() == b(sent["deposit"])
        contributed = pair_masks.Contributed(p_q[:, :32], row(b(came["p"])))
    mask_key = pair_masks.mask_keys(agreed, session, me, you, contributed)
    assert mask_key.tobytes() == b(case["pairwise_mask"])


@pytest.mark.parametrize("case", load("keys")["own"])
def test_check27_self_mask_and_commitment(case) -> None:
    session, u, seed = b(load("keys")["session"]), int(case["id"]), b(case["b"])
    assert keys.self_mask_key(seed, session, u) == b(case["self_mask"])
    assert keys.commitment(seed, session, u) == b(case["commitment"])


def test_check27_unusable_public_keys() -> None:
    case = load("keys")["unusable"]
    for key in [*case["low_order"], *case["not_canonical"]]:
        assert not keys.is_usable(b(key))
    for key in case["kem_keys"]:
        assert not kem.is_valid(b(key))


@pytest.mark.parametrize("case", load("masks")["streams"], ids=lambda c: c["name"])
def test_check27_mask_streams(case) -> None:
    ring = Ring(int(case["modulus"]))
    values = ring.zeros(case["count"])
    total = MaskSum()
    total.add(b(case["key"]))
    total.apply(values, ring)
    ring.reduce(values)
    stream = values.astype("<u8").tobytes()
    if "elements" in case:
        assert stream == b(case["elements"])
        values = lanes(case["elements"], ring)
    else:
        assert stream[80_000:80_064] == b(case["from_10000"])
        assert stream[-64:] == b(case["last"])
        assert hashlib.sha256(stream).digest() == b(case["sha256"])
    back = MaskSum()
    back.add(b(case["key"]), negate=True)
    back.apply(values, ring)
    ring.reduce(values)
    assert not values.any()


@pytest.mark.parametrize(
    "case", [c for c in load("masks")["streams"] if "from_10000" in c], ids=lambda c: c["name"]
)
def test_check27_mask_streams_from_the_middle(case) -> None:
    ring = Ring(int(case["modulus"]))
    for skipped in range(4):
        values = ring.zeros(8 - skipped)
        arguments = (values, b(case["key"]), b"\0")
        if ring.is_power_of_two:
            _fast.mask_words(*arguments, start=10_000 + skipped)
        else:
            _fast.mask_mod(*arguments, ring.modulus, start=10_000 + skipped)
        ring.reduce(values)
        assert values.tolist() == lanes(case["from_10000"], ring)[skipped:].tolist()


@pytest.mark.parametrize("case", load("packing")["packings"])
def test_check27_packing(case) -> None:
    ring = Ring(1 << case["bits"])
    elements = lanes(case["elements"], ring)
    assert _fast.pack_bits(elements, case["bits"]) == b(case["packed"])
    out = ring.zeros(elements.size)
    _fast.unpack_bits(b(case["packed"]), case["bits"], out)
    assert out.tolist() == elements.tolist()


@pytest.mark.parametrize("case", load("encodings")["nearest"], ids=lambda c: c["name"])
def test_check27_encoding_to_the_nearest(case) -> None:
    params = params_of(case["parameters"])
    values, _ = encoded(vector_of(case["vector"], params), case["weight"], params, Fed([]))
    assert values.tolist() == lanes(case["elements"], params.ring).tolist()
    assert _fast.pack_bits(values, params.ring.bits) == b(case["packed"])
    unpacked = params.ring.zeros(params.elements)
    _fast.unpack_bits(b(case["packed"]), params.ring.bits, unpacked)
    assert unpacked.tolist() == values.tolist()


@pytest.mark.parametrize("case", load("encodings")["stochastic"])
def test_check27_stochastic_rounding(case) -> None:
    params = params_of(case["parameters"], "stochastic")
    values, _ = encoded(vector_of(case["vector"], params), None, params, Fed([case["key"]]))
    assert values.tolist() == lanes(case["elements"], params.ring).tolist()


@pytest.mark.parametrize("case", load("encodings")["decoding"])
def test_check27_decoding_a_sum(case) -> None:
    params = params_of(case["parameters"])
    floats, integers = params.encoding.decode(lanes(case["elements"], params.ring), params.ring)
    assert integers.tolist() == [int(x) for x in case["integers"]]
    assert floats.tolist() == case["values"]
    again = [int(x) % params.ring.modulus for x in case["integers"]]
    assert again == lanes(case["elements"], params.ring).tolist()


@pytest.mark.parametrize("case", load("encodings")["refused"], ids=lambda c: c["name"])
def test_check27_rejected_vectors(case) -> None:
    params = params_of(case["parameters"])
    vector = np.frombuffer(b(case["f64le"]), dtype="<f8")
    if not params.encoding.signed and (vector == np.floor(vector)).all():
        vector = vector.astype(np.int64)
    with pytest.raises(ParameterError):
        encoded(vector, None, params, Fed([]))


@pytest.mark.parametrize("case", load("shamir")["limbs"])
def test_check27_limbs(case) -> None:
    limbs = shamir.to_limbs(b(case["secret"]))
    assert limbs.tolist() == [int(x) for x in case["limbs"]]
    assert shamir.from_limbs(limbs, 32) == b(case["secret"])


def test_check27_limbs_that_encode_no_secret() -> None:
    for limbs in load("shamir")["no_secret"]:
        wrong = np.array([int(x) for x in limbs], dtype=np.uint64)
        assert shamir.from_limbs(wrong, 32) is None


@pytest.mark.parametrize(
    "case", load("shamir")["splits"], ids=lambda c: f"{c['threshold']} of {c['holders']}"
)
def test_check27_split_and_combine(case) -> None:
    n, t = case["holders"], case["threshold"]
    secrets = b(case["b"]), b(case["mask_seed"])
    limbs = np.concatenate([shamir.to_limbs(secret) for secret in secrets])
    points = np.arange(1, n + 1, dtype=np.uint64)
    rows = shamir.split_limbs(limbs, t, points, Fed([case["coefficients"]]))
    assert [row.tobytes().hex() for row in rows.astype("<u8")] == case["shares"]

    at = case["combine_points"]
    values = np.stack([np.frombuffer(b(case["shares"][x - 1]), dtype="<u8") for x in at])
    rebuilt = shamir.combine_limbs(np.array(at, dtype=np.uint64), values.astype(np.uint64))
    assert rebuilt.tolist() == limbs.tolist()
    for secret, columns in zip(secrets, (slice(0, 5), slice(5, 10)), strict=True):
        shares = [
            shamir.Share(x, t, 32, tuple(row[columns].tolist()))
            for x, row in zip(at, values, strict=True)
        ]
        assert shamir.combine(shares) == secret


@pytest.mark.parametrize("case", load("shamir")["draws"])
def test_check27_coefficients_from_entropy(case) -> None:
    t, fed = case["threshold"], Fed(case["entropy"])
    zeros = np.zeros(10, dtype=np.uint64)
    shares = shamir.split_limbs(zeros, t, np.arange(1, t + 1, dtype=np.uint64), fed)
    assert not fed.left
    # f(x) / x from t points determines the coefficients; so equal shares mean equal ones
    expected = shamir.split_limbs(
        zeros, t, np.arange(1, t + 1, dtype=np.uint64), Fed([case["coefficients"]])
    )
    assert shares.tolist() == expected.tolist()


@pytest.mark.parametrize("case", load("hedging")["sources"])
def test_check27_hedged_bytes(case) -> None:
    fed = Fed([case["entropy"]])
    source = Hedged(fed, b(case["secret"]), b(case["statement"]))
    assert not fed.left, "all of it is drawn when the source is made"
    for output in case["outputs"]:
        assert source(len(output) // 2).hex() == output


def test_check27_secret_of_an_identity() -> None:
    about = load("hedging")
    identity = Identity(b(about["identity_seed"]))
    assert hedging_secret(identity).hex() == about["identity_secret"]
    assert hedging_secret(None) == b""


@pytest.mark.parametrize("case", load("signatures")["signatures"])
def test_check27_signatures(case) -> None:
    about = load("signatures")
    identity, u = Identity(b(case["identity_seed"])), int(case["id"])
    registry = Registry({u: identity.public})
    survivors = np.array([int(v) for v in case["survivors"]], dtype="<u8").tobytes()
    contents = {
        "keys": signed_keys(
            b(about["parameters_digest"]),
            u,
            keys.PublicKeys(b(case["seal_key"]), b(case["mask_key"]), b(case["kem_key"])),
        ),
        "survivors": signed_survivors(b(about["session"]), u, survivors),
    }
    assert identity.public == b(case["identity_key"])
    for name, content in contents.items():
        signature = b(case[f"{name}_signature"])
        assert content == b(case[f"signed_{name}"])
        assert identity.sign(content) == signature
        assert registry.verifies(u, content, signature)
        assert not registry.verifies(u, content + b"\0", signature)


@pytest.mark.parametrize("case", load("graph")["graphs"])
def test_check27_graph_from_its_seed(case) -> None:
    clients = [int(u) for u in case["clients"]]
    drawn = graph.draw(clients, case["neighbours"], b(case["seed"]))
    assert drawn.holders == {
        int(h["id"]): tuple(int(v) for v in h["holders"]) for h in case["holders"]
    }
