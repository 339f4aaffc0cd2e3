"""Startup kits with certificates as FLARE's provisioning makes them."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from nvflare.lighter.utils import Identity, generate_cert, serialize_cert, serialize_pri_key

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


class Project:
    """Root of a project, and the kits that it provisions in a folder."""

    def __init__(self, folder: Path, name: str = "project") -> None:
        self.folder, self.name = folder, name
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.root = self._certificate(name, self.key, ca=True)

    def kit(
        self,
        site: str,
        *,
        key: Key | None = None,
        common_name: str | None = None,
        role: str | None = None,
        ca: bool = False,
        days: int = 360,
    ) -> Path:
        """Return the startup folder of a new kit."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        kit = self.folder / site / "startup"
        kit.mkdir(parents=True, exist_ok=True)
        pem = self._certificate(common_name or site, key, role=role, ca=ca, days=days)
        (kit / "client.crt").write_bytes(serialize_cert(pem))
        (kit / "client.key").write_bytes(serialize_pri_key(key))
        (kit / "rootCA.pem").write_bytes(serialize_cert(self.root))
        servers = [{"name": self.name, "identity": "server1"}]
        (kit / "fed_client.json").write_text(json.dumps({"servers": servers}))
        return kit

    def _certificate(
        self, name: str, key: Key, *, role: str | None = None, ca: bool = False, days: int = 360
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        return generate_cert(
            subject=Identity(name, "org", role),
            issuer=Identity(self.name, "org"),
            signing_pri_key=self.key,
            subject_pub_key=key.public_key(),
            ca=ca,
            not_valid_before=now - datetime.timedelta(days=400),
            not_valid_after=now + datetime.timedelta(days=days),
        )


def rsa_key() -> rsa.RSAPrivateKey:
    """Return a key as FLARE makes them."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)
