"""Identities of sites under FLARE's certificates, and servers that lie about them."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import msgspec
import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from typer.testing import CliRunner

pytest.importorskip("nvflare")

from nvflare.apis.shareable import ReturnCode, Shareable
from nvflare.apis.signal import Signal

from flare_kits import Project, rsa_key
from flare_network import Adding, Network, Site
from secagg.cli import app
from secagg.errors import ParameterError, RemoteProtocolError
from secagg.flare import SecAggFedAvg, SitePolicy
from secagg.flare.identities import Authority, Roster, SiteIdentity, sign
from secagg.protocol import Identity, client_id
from spoilt_boxes import spoil_boxes

CONTENT = b"content"
KEY = Identity.generate().public


@contextmanager
def rejects(check: str) -> Iterator[None]:
    """Expect the error of a check."""
    with pytest.raises(RemoteProtocolError) as caught:
        yield
    assert caught.value.check == check


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def kits(project: Project) -> dict[str, Path]:
    keys = {"site-1": rsa_key()}  # FLARE's; the others have EC keys
    return {
        f"site-{i}": project.kit(f"site-{i}", key=keys.get(f"site-{i}")) for i in range(1, 5)
    }


def verify(authority: Authority, site: str, kit: Path, content: bytes = CONTENT) -> None:
    pem, signature = sign(kit, CONTENT)
    authority.verify(site, pem, content, signature)


@pytest.mark.parametrize("site", ["site-1", "site-2"])
def test_signature_under_a_certificate_is_verified(kits, site):
    verify(Authority(kits["site-3"], ["site-1", "site-2"]), site, kits[site])
    with rejects("signature"):
        verify(Authority(kits["site-3"]), site, kits[site], b"other content")


@pytest.mark.parametrize(
    "kit",
    [
        {"site": "site-9", "days": -1},
        {"site": "site-9", "common_name": "site-8"},
        {"site": "site-9", "role": "project_admin"},
        {"site": "server1"},
        {"site": "site-9", "ca": True},
        {"site": "site-9", "project": "other"},
        {"site": "site-5"},  # not in the policy
    ],
    ids=str,
)
def test_certificate_that_is_not_of_a_site_is_rejected(project, kits, tmp_path, kit):
    made = {name: value for name, value in kit.items() if name != "project"}
    made = (Project(tmp_path, "project") if made != kit else project).kit(**made)
    authority = Authority(kits["site-1"], ["site-9", "server1", "site-1"])
    with rejects("certificate"):
        verify(authority, kit["site"], made)


@pytest.mark.parametrize("names", [["site-1"], ["site-1", "site-2"], ["site-2", "site-1"]])
def test_certificate_has_one_name(project, kits, names):
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, name) for name in names]
    good = x509.load_pem_x509_certificate((kits["site-2"] / "client.crt").read_bytes())
    made = x509.CertificateBuilder(
        issuer_name=good.issuer,
        subject_name=x509.Name(attributes),
        public_key=good.public_key(),
        serial_number=good.serial_number,
        not_valid_before=good.not_valid_before_utc,
        not_valid_after=good.not_valid_after_utc,
        extensions=list(good.extensions),
    ).sign(project.key, hashes.SHA256())
    _, signature = sign(kits["site-2"], CONTENT)
    authority, pem = Authority(kits["site-3"]), made.public_bytes(Encoding.PEM)
    with nullcontext() if len(names) == 1 else rejects("certificate"):
        authority.verify("site-1", pem, CONTENT, signature)


def other_version(pem: bytes) -> bytes:
    """Return a certificate of no known version; the parser has an error of its own for it."""
    der = x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)
    version = bytes.fromhex("a003020102")
    assert version in der
    wrong = base64.encodebytes(der.replace(version, bytes.fromhex("a003020103"), 1))
    return b"-----BEGIN CERTIFICATE-----\n" + wrong + b"-----END CERTIFICATE-----\n"


@pytest.mark.parametrize(
    "change", [lambda pem: b"", lambda pem: pem[:40], lambda pem: bytes(99), other_version]
)
def test_malformed_certificate_is_rejected(kits, change):
    pem, signature = sign(kits["site-2"], CONTENT)
    with rejects("certificate"):
        Authority(kits["site-1"]).verify("site-2", change(pem), CONTENT, signature)


def test_folder_without_a_kit_is_rejected(tmp_path):
    for wrong in (lambda: Authority(tmp_path), lambda: sign(tmp_path, CONTENT)):
        with pytest.raises(ParameterError):
            wrong()


def test_roster_covers_job_names_and_keys():
    keys = {"a": bytes(32), "b": bytes([1]) * 32}
    same = Roster("job", dict(reversed(keys.items()))).content
    assert Roster("job", keys).content == same
    assert hashlib.sha256(same).hexdigest()[:16] == "56128f99a0c89932"
    others = [
        Roster("job2", keys),
        Roster("job", keys | {"c": bytes(32)}),
        Roster("job", {"a": keys["b"], "b": keys["a"]}),
        Roster("joba", {"": bytes(32)} | keys),
    ]
    assert len({same, *(other.content for other in others)}) == 5


SIGNED = msgspec.msgpack.encode([b"", b""])


@pytest.mark.parametrize(
    ("keys", "signatures"),
    [
        ({"a": KEY, "b": KEY}, {"a": SIGNED, "b": SIGNED}),  # two sites with one key
        ({"a": KEY}, []),
        ({"a": KEY}, None),
        ({"a": KEY}, {"b": SIGNED}),
        ({"a": KEY}, {"a": b"garbage"}),
        ({"a": KEY}, {"a": None}),
        (None, {}),
        ([], {}),
        ({"a": "b"}, {}),
        ({1: b"a"}, {}),
    ],
)
def test_malformed_rosters_and_signatures_are_rejected(keys, signatures):
    Roster("job", {"a": KEY}).registry({"a": SIGNED}, None)
    with rejects("roster"):
        Roster("job", keys).registry(signatures, None)


def test_identity_signs_one_roster_with_its_own_key(kits):
    mine = SiteIdentity(kits["site-1"], "job", "site-1")
    keys = {"site-1": mine.key.public, "site-2": KEY}
    with rejects("roster"):
        mine.registry({}, Authority(kits["site-1"]))
    for other in ({}, keys | {"site-1": keys["site-2"]}):
        with rejects("roster"):
            mine.sign(other)
    mine.sign(keys)
    mine.sign(keys)
    with rejects("roster"):
        mine.sign(keys | {"site-3": Identity.generate().public})


class Server:
    """Server that collects keys and signatures of three sites, and may lie."""

    def __init__(self, kits: dict[str, Path], job: str = "job") -> None:
        self.kits = {name: kits[name] for name in ("site-1", "site-2", "site-3")}
        self.sites = {name: SiteIdentity(kit, job, name) for name, kit in self.kits.items()}
        self.keys = {name: site.key.public for name, site in self.sites.items()}

    def signatures(self, keys: dict[str, bytes]) -> dict[str, bytes]:
        return {name: site.sign(keys) for name, site in self.sites.items()}

    def shown_to_site_1(self, signatures: dict[str, bytes]) -> dict[int, bytes]:
        return dict(self.sites["site-1"].registry(signatures, Authority(self.kits["site-1"])))


def test_registry_has_the_keys_of_the_sites_that_signed(kits):
    server = Server(kits)
    signed = server.signatures(server.keys)
    found = server.shown_to_site_1({name: signed[name] for name in ("site-1", "site-3")})
    assert found == {client_id(name): server.keys[name] for name in ("site-1", "site-3")}


def test_server_cannot_substitute_a_key(project, kits):
    honest, lying = Server(kits), Server(kits)
    keys = lying.keys | {"site-3": Identity(bytes(32)).public}
    with rejects("roster"):
        lying.sites["site-3"].sign(keys)
    signed = {name: lying.sites[name].sign(keys) for name in ("site-1", "site-2")}
    lying.shown_to_site_1(signed)
    own = sign(project.kit("server1"), Roster("job", keys).content)
    for forged, check in (
        # of the same site and job, over another roster
        (honest.signatures(honest.keys)["site-3"], "signature"),
        (signed["site-2"], "certificate"),
        (msgspec.msgpack.encode(own), "certificate"),
    ):
        with rejects(check):
            lying.shown_to_site_1(signed | {"site-3": forged})


def test_server_cannot_replay_a_session(kits):
    old, new = Server(kits), Server(kits)
    signed = old.signatures(old.keys)
    with rejects("roster"):
        new.sites["site-1"].sign(old.keys)
    new.sites["site-1"].sign(old.keys | {"site-1": new.keys["site-1"]})
    with rejects("signature"):
        new.shown_to_site_1({name: signed[name] for name in ("site-2", "site-3")})


def test_site_signs_for_its_own_job(kits):
    server, other = Server(kits), Server(kits, "job 2")
    other.sites["site-2"] = server.sites["site-2"]
    other.keys["site-2"] = server.keys["site-2"]
    with rejects("signature"):
        other.shown_to_site_1(other.signatures(other.keys))


def four(kits: dict[str, Path]) -> list[Site]:
    names = [f"site-{i}" for i in range(1, 5)]
    policy = SitePolicy(require_active=True, sites=names)
    return [Site(name, Adding(0.5), policy, kits[name]) for name in names]


def run(network: Network, exchange_timeout: float = 1.0, **more: object) -> np.ndarray:
    """Run an active job; return the element that all sites of the sum add."""
    settings = {"model": {"w": np.zeros(3)}, "clip": 2.0, "security": "active", "attempts": 1}
    settings |= {"exchange_timeout": exchange_timeout, "train_timeout": 2.0, **more}
    return network.run(SecAggFedAvg(num_clients=4, num_rounds=1, **settings))["w"]


def too_few(network: Network, phase: str = "") -> None:
    with pytest.raises(AssertionError, match=f"TooFewSurvivors: {phase}"):
        run(network)
    assert not any(site.trainer.rounds for site in network.sites.values())


def test_active_job_over_certificates(kits):
    sites = four(kits)
    sites[0].kit = Path("none")
    sites[0].policy = SitePolicy(kit=str(kits["site-1"]))  # instead of FLARE's own
    assert run(Network(sites, kit=kits["site-4"])).tolist() == [0.5] * 3
    assert [site.trainer.rounds for site in sites] == [[0]] * 4


@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
def test_verdict_on_a_site_is_a_file_of_the_job(kits, monkeypatch, suite):
    ids = [client_id(f"site-{i}") for i in range(1, 5)]
    spoil_boxes(monkeypatch, ids[1], {ids[0], ids[2]})
    sites = four(kits)
    found = run(Network(sites, kit=kits["site-1"]), attempts=2, suite=suite)
    assert found.tolist() == [0.5] * 3
    assert [site.trainer.rounds for site in sites] == [[0], [0], [0], [0]]
    folder = Path("server", "job 1")
    (file,) = folder.glob("secagg-verdict-*.bin")
    assert file.name == f"secagg-verdict-0-{ids[1]}-complaints.bin"
    command = ["judge", str(file), "--registry", str(folder / "secagg-registry.json"), "--json"]
    judged = CliRunner().invoke(app, command)
    assert json.loads(judged.stdout)["name"] == "site-2"


def test_site_with_a_wrong_certificate_is_left_out(project, kits):
    sites = four(kits)
    sites[3] = Site("site-4", Adding(9.0), SitePolicy(), project.kit("site-7"))
    network = Network(sites, kit=kits["site-1"])
    assert run(network).tolist() == [0.5] * 3
    assert sites[3].trainer.rounds == []
    assert network.codes["take_part"] == [ReturnCode.OK] * 3


@pytest.mark.parametrize("key", [b"", bytes(32)], ids=["empty", "low order"])
def test_site_with_a_malformed_key_is_left_out(kits, key):
    """It would end the job for all, as it signs the roster with its certificate."""
    sites = four(kits)

    def lie(name: str, task: Shareable, *more: object) -> Shareable:
        if "keys" not in task:
            return Shareable({"key": key})
        signed = sign(kits["site-2"], Roster("job 1", task["keys"]).content)
        return Shareable({"signature": msgspec.msgpack.encode(signed)})

    sites[1].executor.execute = lie
    assert run(Network(sites, kit=kits["site-1"])).tolist() == [0.5] * 3
    assert sites[1].trainer.rounds == []


def test_sites_with_one_key_are_left_out(kits):
    """No registry takes a key twice, so two sites that share one would end the job for all."""
    names = [f"site-{i}" for i in range(1, 6)]
    sites = [Site(name, Adding(0.5), SitePolicy(), kits.get(name, Path())) for name in names]
    for site in sites[3:]:
        site.executor.execute = lambda name, task, *more: Shareable({"key": KEY})
    network = Network(sites, kit=kits["site-1"])
    assert run(network).tolist() == [0.5] * 3
    assert network.codes["sign"] == [ReturnCode.OK] * 3


def test_too_few_keys_are_not_signed(kits):
    sites = four(kits)
    for site in sites[2:]:
        site.executor.execute = lambda *task: Shareable()
    network = Network(sites, kit=kits["site-1"])
    too_few(network, phase="identify")
    assert network.codes.keys() == {"configure", "identify"}


def test_job_ends_if_too_few_sites_sign(project, kits):
    sites = four(kits)
    for site in sites[2:]:
        site.kit = project.kit("site-7")
    too_few(Network(sites, kit=kits["site-1"]), phase="identify")


def test_sites_take_no_part_beside_sites_outside_their_policy(kits):
    sites = four(kits)
    for site in sites:
        site.policy = SitePolicy(require_active=True, sites=["site-1", "site-2", "site-3"])
    network = Network(sites, kit=kits["site-1"])
    too_few(network)
    assert network.codes["take_part"] == [ReturnCode.EXECUTION_EXCEPTION] * 4


def test_key_of_a_site_serves_one_session(kits):
    sites = four(kits)
    network = Network(sites, kit=kits["site-1"])
    seen: list[Shareable] = []
    network.meddle = lambda site, data: (seen.append(data), data)[1]
    run(network)
    again = next(data for data in seen if "signatures" in data)
    for site in sites:
        site.signal = Signal()
        reply = network.perform(site, "secagg", again)
        assert reply.get_return_code() == ReturnCode.EXECUTION_EXCEPTION


@pytest.mark.parametrize(
    "change",
    [lambda one: None, lambda one: {}, lambda one: one | {"x": b""}],
    ids=["none", "empty", "one more"],
)
def test_no_site_trains_without_valid_signatures(kits, change):
    network = Network(four(kits))
    network.meddle = lambda site, data: (
        Shareable(data | {"signatures": change(data["signatures"])})
        if "signatures" in data
        else data
    )
    too_few(network)
    assert network.codes["take_part"] == [ReturnCode.EXECUTION_EXCEPTION] * 4
