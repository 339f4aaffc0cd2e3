"""Certificates of sites, which FLARE's provisioning issues under a project's root."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import NameOID
from cryptography.x509.verification import (
    ExtensionPolicy,
    PolicyBuilder,
    Store,
    VerificationError,
)

from secagg.errors import ParameterError, RemoteProtocolError

_PSS = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.DIGEST_LENGTH)


class Authority:
    """Root certificate of a project, and the names of servers, which are no sites.

    Parameters
    ----------
    kit : Path
        Startup folder of FLARE, with rootCA.pem and, at a site, fed_client.json.
    sites : collection of str, optional
        Names of the sites that are accepted; None: all with a certificate of the project.

    Raises
    ------
    ParameterError
        The folder has no root certificate.
    """

    def __init__(self, kit: Path, sites: Collection[str] | None = None) -> None:
        self._sites = sites
        try:
            self._root = x509.load_pem_x509_certificate((kit / "rootCA.pem").read_bytes())
            config = kit / "fed_client.json"
            servers = json.loads(config.read_bytes())["servers"] if config.exists() else ()
            self._servers = {str(server["identity"]) for server in servers}
        except (OSError, ValueError, TypeError, KeyError):
            raise ParameterError(
                f"{kit} has no readable rootCA.pem and fed_client.json; active rounds need a "
                "startup kit of FLARE's provisioning"
            ) from None

    def verify(self, site: str, pem: bytes, content: bytes, signature: bytes) -> None:
        """Verify a site's signature under the certificate, and the certificate up to the root.

        Parameters
        ----------
        site : str
        pem : bytes
            Certificate of the site, and all certificates between this certificate and the root.
        content, signature : bytes
            Signed bytes, and the signature by `sign`.

        Raises
        ------
        RemoteProtocolError
            "certificate": the certificate is not of this site and project. "signature": the
            signature is invalid.
        """
        try:
            leaf, *others = x509.load_pem_x509_certificates(pem)
            _verify_chain(leaf, others, self._root)
        except (VerificationError, ValueError, x509.InvalidVersion):
            why = f"the certificate of {site!r} is not of this project"
            raise wrong("certificate", why) from None
        subject = leaf.subject
        names = [one.value for one in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        # a single name: a certificate with two names would serve two sites
        if names != [site]:
            raise wrong("certificate", f"the certificate of {site!r} is of {names}")
        # FLARE marks the certificates of users by a role, but does not mark servers
        role = subject.get_attributes_for_oid(NameOID.UNSTRUCTURED_NAME)
        if role or site in self._servers:
            raise wrong("certificate", f"the certificate of {site!r} is not of a site")
        if self._sites is not None and site not in self._sites:
            raise wrong("certificate", f"{site!r} is not among the sites of the policy")
        if not _is_signed(leaf, content, signature):
            raise wrong("signature", f"{site!r} has not signed its key of this job")


def sign(kit: Path, content: bytes) -> tuple[bytes, bytes]:
    """Return a site's certificate in PEM, and the site's signature of `content`.

    The signature is RSA-PSS (RFC 8017, §8.1) or ECDSA, with SHA-256.

    Parameters
    ----------
    kit : Path
        Startup folder of FLARE, with client.crt and client.key.
    content : bytes

    Raises
    ------
    ParameterError
        The folder has no usable key.
    """
    try:
        pem = (kit / "client.crt").read_bytes()
        key = load_pem_private_key((kit / "client.key").read_bytes(), None)
    except (OSError, ValueError, TypeError):
        raise ParameterError(
            f"{kit} has no readable client.crt and client.key; active rounds need a startup "
            "kit of FLARE's provisioning"
        ) from None
    if isinstance(key, rsa.RSAPrivateKey):
        return pem, key.sign(content, _PSS, hashes.SHA256())
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return pem, key.sign(content, ec.ECDSA(hashes.SHA256()))
    raise ParameterError(f"{kit / 'client.key'} is no RSA or EC key; provision one of these")


def _verify_chain(
    leaf: x509.Certificate, others: list[x509.Certificate], root: x509.Certificate
) -> None:
    """Raise VerificationError unless a chain leads to the root (RFC 5280, §6).

    FLARE's certificates of sites have no extension for the usage of keys, so none is demanded.
    """
    policy = PolicyBuilder().store(Store([root]))
    policy = policy.extension_policies(
        ca_policy=ExtensionPolicy.webpki_defaults_ca(), ee_policy=ExtensionPolicy.permit_all()
    )
    policy.build_client_verifier().verify(leaf, others)
    # permit_all accepts an authority as leaf, and an authority is no site
    for extension in leaf.extensions:
        if isinstance(extension.value, x509.BasicConstraints) and extension.value.ca:
            raise VerificationError


def _is_signed(leaf: x509.Certificate, content: bytes, signature: bytes) -> bool:
    key = leaf.public_key()
    with suppress(InvalidSignature):
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, content, _PSS, hashes.SHA256())
            return True
        if isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, content, ec.ECDSA(hashes.SHA256()))
            return True
    return False


def wrong(check: str, why: str) -> RemoteProtocolError:
    """Return the error for a certificate, key or signature of a site that fails a check."""
    return RemoteProtocolError(why, sender=None, phase="identify", check=check)
