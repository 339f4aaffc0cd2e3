"""Identities of sites under FLARE's certificates, and servers that lie about them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

pytest.importorskip("nvflare")

from nvflare.apis.shareable import ReturnCode, Shareable
from nvflare.apis.signal import Signal

from flare_kits import Project, rsa_key
from flare_network import Adding, Network, Site
from secagg.errors import ParameterError, RemoteProtocolError
from secagg.flare import SecAggFedAvg, SitePolicy
from secagg.flare.certificates import Authority, sign
from secagg.flare.identities import Roster, SiteIdentity
from secagg.protocol import Identity, client_id

CONTENT = b"content"


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
def test_signature_under_a_certificate_is_verified(kits: dict[str, Path], site: str) -> None:
    verify(Authority(kits["site-3"], ["site-1", "site-2"]), site, kits[site])
    with pytest.raises(RemoteProtocolError) as caught:
        verify(Authority(kits["site-3"]), site, kits[site], b"other content")
    assert caught.value.check == "signature"


@pytest.mark.parametrize(
    "kit",
    [
        pytest.param({"site": "site-9", "days": -1}, id="expired"),
        pytest.param({"site": "site-9", "common_name": "site-8"}, id="other name"),
        pytest.param({"site": "site-9", "role": "project_admin"}, id="user"),
        pytest.param({"site": "server1"}, id="server"),
        pytest.param({"site": "site-9", "ca": True}, id="authority"),
        pytest.param({"site": "site-9", "project": "other"}, id="other project"),
        pytest.param({"site": "site-5"}, id="not in the policy"),
    ],
)
def test_certificate_that_is_not_of_a_site_is_rejected(
    project: Project, kits: dict[str, Path], tmp_path: Path, kit: dict[str, Any]
) -> None:
    other = Project(tmp_path, "project") if kit.pop("project", None) else project
    authority = Authority(kits["site-1"], ["site-9", "server1", "site-1"])
    with pytest.raises(RemoteProtocolError) as caught:
        verify(authority, kit["site"], other.kit(**kit))
    assert caught.value.check == "certificate"


@pytest.mark.parametrize("names", [["site-1"], ["site-1", "site-2"], ["site-2", "site-1"]])
def test_certificate_has_one_name(
    project: Project, kits: dict[str, Path], names: list[str]
) -> None:
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
    if len(names) == 1:
        authority.verify("site-1", pem, CONTENT, signature)
        return
    with pytest.raises(RemoteProtocolError) as caught:
        authority.verify("site-1", pem, CONTENT, signature)
    assert caught.value.check == "certificate"


@pytest.mark.parametrize("pem", [b"", b"-----BEGIN", bytes(99)], ids=["none", "cut", "zeros"])
def test_malformed_certificate_is_rejected(kits: dict[str, Path], pem: bytes) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        Authority(kits["site-1"]).verify("site-2", pem, CONTENT, bytes(64))
    assert caught.value.check == "certificate"


def test_certificate_of_no_known_version_is_rejected(kits: dict[str, Path]) -> None:
    """The parser has an error of its own for it, which would end the job for all."""
    pem, signature = sign(kits["site-2"], CONTENT)
    der = x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)
    version = bytes.fromhex("a003020102")
    assert version in der
    wrong = base64.encodebytes(der.replace(version, bytes.fromhex("a003020103"), 1))
    pem = b"-----BEGIN CERTIFICATE-----\n" + wrong + b"-----END CERTIFICATE-----\n"
    with pytest.raises(RemoteProtocolError) as caught:
        Authority(kits["site-1"]).verify("site-2", pem, CONTENT, signature)
    assert caught.value.check == "certificate"


def test_folder_without_a_kit_is_rejected(tmp_path: Path) -> None:
    for wrong in (lambda: Authority(tmp_path), lambda: sign(tmp_path, CONTENT)):
        with pytest.raises(ParameterError):
            wrong()


def test_roster_covers_job_names_and_keys() -> None:
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


def test_two_sites_with_one_key_are_no_registry() -> None:
    key = Identity.generate().public
    roster = Roster("job", {"a": key, "b": key})
    signed = msgspec.msgpack.encode([b"", b""])
    with pytest.raises(RemoteProtocolError) as caught:
        roster.registry({"a": signed, "b": signed}, None)
    assert caught.value.check == "roster"


def test_signatures_are_by_the_names_of_the_roster() -> None:
    roster, signed = Roster("job", {"a": bytes(32)}), msgspec.msgpack.encode([b"", b""])
    roster.verify("a", signed, None)
    for wrong in ([], None, {"b": signed}):
        with pytest.raises(RemoteProtocolError) as caught:
            roster.registry(wrong, None)
        assert caught.value.check == "roster"


@pytest.mark.parametrize("keys", [None, [], {"a": "b"}, {1: b"a"}], ids=repr)
def test_malformed_roster_is_rejected(keys: object) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        Roster("job", keys)
    assert caught.value.check == "roster"


def test_identity_signs_one_roster_with_its_own_key(kits: dict[str, Path]) -> None:
    mine = SiteIdentity(kits["site-1"], "job", "site-1")
    keys = {"site-1": mine.key.public, "site-2": Identity.generate().public}
    with pytest.raises(RemoteProtocolError, match="no roster"):
        mine.registry({}, Authority(kits["site-1"]))
    for other in ({}, keys | {"site-1": keys["site-2"]}):
        with pytest.raises(RemoteProtocolError, match="lacks the key"):
            mine.sign(other)
    mine.sign(keys)
    mine.sign(keys)
    with pytest.raises(RemoteProtocolError, match="another roster"):
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


def test_registry_has_the_keys_of_the_sites_that_signed(kits: dict[str, Path]) -> None:
    server = Server(kits)
    signed = server.signatures(server.keys)
    found = server.shown_to_site_1({name: signed[name] for name in ("site-1", "site-3")})
    assert found == {client_id(name): server.keys[name] for name in ("site-1", "site-3")}


def test_server_cannot_substitute_a_key(project: Project, kits: dict[str, Path]) -> None:
    server = Server(kits)
    honest = server.signatures(server.keys)
    lying = Server(kits)
    keys = lying.keys | {"site-3": Identity(bytes(32)).public}
    with pytest.raises(RemoteProtocolError, match="lacks the key"):
        lying.sites["site-3"].sign(keys)
    signed = {name: lying.sites[name].sign(keys) for name in ("site-1", "site-2")}
    lying.shown_to_site_1(signed)
    content = Roster("job", keys).content
    own = sign(project.kit("server1"), content)
    for forged in (
        honest["site-3"],  # of the same site and job, over another roster
        signed["site-2"],
        msgspec.msgpack.encode(own),
        b"garbage",
        None,
    ):
        with pytest.raises(RemoteProtocolError) as caught:
            lying.shown_to_site_1(signed | {"site-3": forged})
        assert caught.value.check in ("signature", "certificate", "roster")


def test_server_cannot_replay_a_session(kits: dict[str, Path]) -> None:
    old, new = Server(kits), Server(kits)
    signed = old.signatures(old.keys)
    with pytest.raises(RemoteProtocolError, match="lacks the key"):
        new.sites["site-1"].sign(old.keys)
    new.sites["site-1"].sign(old.keys | {"site-1": new.keys["site-1"]})
    with pytest.raises(RemoteProtocolError) as caught:
        new.shown_to_site_1({name: signed[name] for name in ("site-2", "site-3")})
    assert caught.value.check == "signature"


def test_site_signs_for_its_own_job(kits: dict[str, Path]) -> None:
    server, other = Server(kits), Server(kits, "job 2")
    other.sites["site-2"] = server.sites["site-2"]
    other.keys["site-2"] = server.keys["site-2"]
    with pytest.raises(RemoteProtocolError) as caught:
        other.shown_to_site_1(other.signatures(other.keys))
    assert caught.value.check == "signature"


def four(kits: dict[str, Path]) -> list[Site]:
    names = [f"site-{i}" for i in range(1, 5)]
    policy = SitePolicy(require_active=True, sites=names)
    return [Site(name, Adding(0.5), policy, kits[name]) for name in names]


def controller(exchange_timeout: float = 1.0) -> SecAggFedAvg:
    return SecAggFedAvg(
        num_clients=4,
        num_rounds=1,
        model={"w": np.zeros(3)},
        clip=2.0,
        security="active",
        exchange_timeout=exchange_timeout,
        train_timeout=2.0,
        attempts=1,
    )


def test_active_job_over_certificates(kits: dict[str, Path]) -> None:
    sites = four(kits)
    sites[0].kit = Path("none")
    sites[0].policy = SitePolicy(kit=str(kits["site-1"]))  # instead of FLARE's own
    model = Network(sites, kit=kits["site-4"]).run(controller())
    np.testing.assert_array_equal(model["w"], 0.5)
    assert [site.trainer.rounds for site in sites] == [[0]] * 4


def test_site_with_a_wrong_certificate_is_left_out(
    project: Project, kits: dict[str, Path]
) -> None:
    sites = four(kits)
    sites[3] = Site("site-4", Adding(9.0), SitePolicy(), project.kit("site-7"))
    network = Network(sites, kit=kits["site-1"])
    np.testing.assert_array_equal(network.run(controller())["w"], 0.5)
    assert sites[3].trainer.rounds == []
    assert network.codes["take_part"] == [ReturnCode.OK] * 3


@pytest.mark.parametrize("key", [b"", bytes(32)], ids=["empty", "low order"])
def test_site_with_a_malformed_key_is_left_out(kits: dict[str, Path], key: bytes) -> None:
    """It would end the job for all, as it signs the roster with its certificate."""
    sites = four(kits)

    def lie(name: str, task: Shareable, *more: object) -> Shareable:
        if "keys" not in task:
            return Shareable({"key": key})
        signed = sign(kits["site-2"], Roster("job 1", task["keys"]).content)
        return Shareable({"signature": msgspec.msgpack.encode(signed)})

    sites[1].executor.execute = lie
    model = Network(sites, kit=kits["site-1"]).run(controller())
    np.testing.assert_array_equal(model["w"], 0.5)
    assert sites[1].trainer.rounds == []


def test_sites_with_one_key_are_left_out(kits: dict[str, Path]) -> None:
    """No registry takes a key twice, so two sites that share one would end the job for all."""
    names = [f"site-{i}" for i in range(1, 6)]
    sites = [Site(name, Adding(0.5), SitePolicy(), kits.get(name, Path())) for name in names]
    key = Identity.generate().public
    for site in sites[3:]:
        site.executor.execute = lambda name, task, *more: Shareable({"key": key})
    network = Network(sites, kit=kits["site-1"])
    model = network.run(controller())
    np.testing.assert_array_equal(model["w"], 0.5)
    assert network.codes["sign"] == [ReturnCode.OK] * 3


def test_too_few_keys_are_not_signed(kits: dict[str, Path]) -> None:
    sites = four(kits)
    for site in sites[2:]:
        site.executor.execute = lambda *task: Shareable()
    network = Network(sites, kit=kits["site-1"])
    with pytest.raises(AssertionError, match="TooFewSurvivors: identify"):
        network.run(controller())
    assert network.codes.keys() == {"configure", "identify"}


def test_sites_take_no_part_beside_sites_outside_their_policy(kits: dict[str, Path]) -> None:
    sites = four(kits)
    for site in sites:
        site.policy = SitePolicy(require_active=True, sites=["site-1", "site-2", "site-3"])
    network = Network(sites, kit=kits["site-1"])
    with pytest.raises(AssertionError, match="TooFewSurvivors"):
        network.run(controller(0.1))
    assert network.codes["take_part"] == [ReturnCode.EXECUTION_EXCEPTION] * 4
    assert not any(site.trainer.rounds for site in sites)


def test_key_of_a_site_serves_one_session(kits: dict[str, Path]) -> None:
    sites = four(kits)
    network = Network(sites, kit=kits["site-1"])
    seen: list[Shareable] = []
    network.meddle = lambda site, data: (seen.append(data), data)[1]
    network.run(controller())
    again = next(data for data in seen if "signatures" in data)
    for site in sites:
        site.signal = Signal()
        reply = network.perform(site, "secagg", again)
        assert reply.get_return_code() == ReturnCode.EXECUTION_EXCEPTION


def test_job_ends_if_too_few_sites_sign(project: Project, kits: dict[str, Path]) -> None:
    sites = four(kits)
    for site in sites[2:]:
        site.kit = project.kit("site-7")
    with pytest.raises(AssertionError, match="TooFewSurvivors: identify"):
        Network(sites, kit=kits["site-1"]).run(controller())


@pytest.mark.parametrize(
    "change",
    [lambda one: None, lambda one: {}, lambda one: one | {"x": b""}],
    ids=["none", "empty", "one more"],
)
def test_no_site_trains_without_valid_signatures(
    kits: dict[str, Path], change: Callable[[Any], Any]
) -> None:
    sites = four(kits)
    network = Network(sites)
    network.meddle = lambda site, data: (
        Shareable(data | {"signatures": change(data["signatures"])})
        if "signatures" in data
        else data
    )
    with pytest.raises(AssertionError, match="TooFewSurvivors"):
        network.run(controller(0.1))
    assert network.codes["take_part"] == [ReturnCode.EXECUTION_EXCEPTION] * 4
    assert not any(site.trainer.rounds for site in sites)
