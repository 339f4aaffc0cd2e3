"""Redirections of a download over https."""

from __future__ import annotations

import datetime
import ipaddress
import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from fedmf.data.fetch.download import download
from fedmf.errors import DataError
from file_server import GOOD, FileServer, serving


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """An https server on this machine, whose certificate is trusted."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, SHA256())
    )
    file = tmp_path / "server.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(private + certificate.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(file))
    with serving(context) as running:
        running.content = GOOD
        yield running


def test_redirection_from_https_to_https_is_followed(server, tmp_path):
    server.elsewhere = "/good"
    download(server.url("moved"), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == GOOD


def test_redirection_from_https_to_this_machine_is_rejected(server, tmp_path):
    with serving() as plain:
        plain.content = GOOD
        server.elsewhere = plain.url("good")
        with pytest.raises(DataError, match=f"'{plain.url('good')}'"):
            download(server.url("moved"), tmp_path / "file")
        assert plain.asked == 0


def test_certificate_that_is_not_trusted_is_rejected(server, tmp_path, monkeypatch):
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    with pytest.raises(DataError, match="certificate"):
        download(server.url("good"), tmp_path / "file")


def test_download_with_a_netrc_sends_no_password(server, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server.elsewhere = "/good"
    download(server.url("moved"), tmp_path / "file")
    assert server.asked == 2
    assert server.passwords == []


def test_total_after_a_redirection_is_that_of_the_last(server, tmp_path):
    server.elsewhere, totals = "/unannounced", []
    download(
        server.url("moved"), tmp_path / "file", progress=lambda _, total: totals.append(total)
    )
    assert set(totals) == {None}


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_unreadable_ca_bundle_raises_with_its_path(server, tmp_path, monkeypatch, content):
    bundle = tmp_path / "bundle.pem"
    if content is not None:
        bundle.write_text(content)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
    with pytest.raises(DataError, match=re.escape(str(bundle))):
        download(server.url("good"), tmp_path / "file")
