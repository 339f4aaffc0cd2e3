"""Ends of TLS certificates: warnings 30 days before, and the metric."""

from __future__ import annotations

import asyncio
import logging
import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from itertools import count
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from prometheus_client.parser import text_string_to_metric_families

from http_party import MEMBERS, PARAMS, party_of
from secagg.http import certificates

DAY = certificates.DAY


def certificate(folder: Path, days: float) -> tuple[Path, Path]:
    """Return the files of a new certificate of loopback that ends so many days from now."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "trial")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=400))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), False
        )
        .sign(key, hashes.SHA256())
    )
    chain, private = folder / "chain.pem", folder / "key.pem"
    chain.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return chain, private


@pytest.mark.parametrize(("days", "warns"), [(31, False), (29, True), (0, True), (-1, True)])
def test_a_certificate_is_warned_of_in_its_last_month(days: int, warns: bool) -> None:
    assert bool(certificates.warning("it", end=days * DAY, now=0)) == warns


async def test_a_server_warns_once_a_day(tmp_path, caplog):
    chain, _ = certificate(tmp_path, 31)
    end, days = certificates.end_of(chain), count()

    async def pause(seconds: float) -> None:
        assert seconds == DAY
        if next(days) == 4:
            raise TimeoutError

    clock = (end - left * DAY for left in (32, 31, 29, 1, -1))
    with suppress(TimeoutError), caplog.at_level(logging.WARNING, "secagg.http"):
        await certificates.watch(chain, lambda: next(clock), pause)
    assert len(caplog.records) == 3
    assert all(str(chain) in record.message for record in caplog.records)


async def test_metric_and_members_see_the_end(tmp_path, caplog):
    chain, key = certificate(tmp_path, 9)
    async with party_of(tls=(chain, key)) as party:
        trusted = ssl.create_default_context(cafile=chain)
        with caplog.at_level(logging.WARNING, "secagg.http"):
            members = party.join_all(tls=trusted)
            await party.session.round(PARAMS)
            text = (await party.operator("/metrics")).text
            await party.session.close()
            await asyncio.gather(*members)
    families = text_string_to_metric_families(text)
    samples = [sample for family in families for sample in family.samples]
    (left,) = (x.value for x in samples if x.name == "secagg_certificate_seconds_left")
    assert 8 * DAY < left < 9 * DAY
    # the server's own, and each member's once
    assert len([r for r in caplog.records if "in 8 days" in r.message]) == 1 + MEMBERS


async def test_metric_needs_a_certificate():
    async with party_of() as party:
        assert "certificate" not in (await party.operator("/metrics")).text
