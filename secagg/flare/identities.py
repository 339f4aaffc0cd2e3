"""Identities of sites for rounds with ``security="active"``, bound to FLARE's certificates.

1. Each site draws an Ed25519 key for one session. The server collects the keys to a roster.
2. Each site checks that the roster has the site's key, and signs the roster with the private
   key of the site's certificate.
3. Each site verifies all certificates and signatures against the root certificate of the
   site's own startup kit. The sites that signed are the registry.

So the server cannot choose a key, and all sites have the same keys. A signature from another
session is of no use, since the roster has a key that this site drew just now.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
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

from secagg._secrets import Confined
from secagg.errors import ParameterError, RemoteProtocolError
from secagg.protocol import Identity, Registry

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
            raise _wrong("certificate", why) from None
        subject = leaf.subject
        names = [one.value for one in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        # a single name: a certificate with two names would serve two sites
        if names != [site]:
            raise _wrong("certificate", f"the certificate of {site!r} is of {names}")
        # FLARE marks the certificates of users by a role, but does not mark servers
        role = subject.get_attributes_for_oid(NameOID.UNSTRUCTURED_NAME)
        if role or site in self._servers:
            raise _wrong("certificate", f"the certificate of {site!r} is not of a site")
        if self._sites is not None and site not in self._sites:
            raise _wrong("certificate", f"{site!r} is not among the sites of the policy")
        if not _is_signed(leaf, content, signature):
            raise _wrong("signature", f"{site!r} has not signed its key of this job")


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


def _wrong(check: str, why: str) -> RemoteProtocolError:
    """Return the error for a certificate, key or signature of a site that fails a check."""
    return RemoteProtocolError(why, sender=None, phase="identify", check=check)


_LABEL = b"secagg/1 flare roster"


class _Signed(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    pem: bytes
    signature: bytes


class Roster:
    """Ed25519 keys of the sites of a session, and the sites' signatures of all keys.

    Parameters
    ----------
    job : str
        Id of the job.
    keys : mapping of str to bytes
        Key of each site by the site's name, as another party sent the keys.

    Raises
    ------
    RemoteProtocolError
        "roster": `keys` are no keys by name.
    """

    def __init__(self, job: str, keys: object) -> None:
        if not isinstance(keys, Mapping) or not all(
            isinstance(site, str) and isinstance(key, bytes) for site, key in keys.items()
        ):
            raise _wrong("roster", "the roster has no keys by the names of sites")
        self.keys: dict[str, bytes] = dict(keys)
        self.content = _LABEL + _prefixed(job.encode())
        # in one order and with lengths: every site must sign the same bytes for the same keys
        for site in sorted(self.keys):
            self.content += _prefixed(site.encode()) + _prefixed(self.keys[site])

    def verify(self, site: str, signed: object, authority: Authority | None) -> None:
        """Verify a site's signature of this roster.

        Parameters
        ----------
        site : str
        signed : bytes
            `SiteIdentity.sign` of that site.
        authority : Authority or None
            Root of the project. None, at a server without certificates: only the encoding.

        Raises
        ------
        RemoteProtocolError
            "roster": the signature is malformed, or the roster lacks the site. Or a check of
            `Authority.verify`.
        """
        try:
            data = signed if isinstance(signed, bytes) else b""
            found = msgspec.msgpack.decode(data, type=_Signed)
        except msgspec.MsgspecError:
            found = None
        if found is None or site not in self.keys:
            why = f"the signature of {site!r} is malformed or of another roster"
            raise _wrong("roster", why)
        if authority is not None:
            authority.verify(site, found.pem, self.content, found.signature)

    def registry(self, signatures: object, authority: Authority | None) -> Registry:
        """Return the registry of the sites that signed; all signatures must be valid.

        Raises
        ------
        RemoteProtocolError
            "roster": `signatures` are no signatures by name, or two sites have one key. Or as
            `verify`.
        """
        if not isinstance(signatures, Mapping):
            raise _wrong("roster", "the roster has no signatures by the names of sites")
        for site, signed in signatures.items():
            self.verify(site, signed, authority)
        try:
            return Registry({site: self.keys[site] for site in signatures})
        except ParameterError as error:
            raise _wrong("roster", str(error)) from None


class SiteIdentity(Confined):
    """Key of this site for one session.

    Parameters
    ----------
    kit : Path
        Startup folder of the site.
    job, site : str
        Id of the job, and name of the site.
    """

    _remedy = "each process draws its own"

    def __init__(self, kit: Path, job: str, site: str) -> None:
        self.key = Identity.generate()
        self._kit, self._job, self._site = kit, job, site
        self._roster: Roster | None = None

    def sign(self, keys: object) -> bytes:
        """Return this site's signature of a roster; no second roster is signed.

        Raises
        ------
        RemoteProtocolError
            "roster": the roster is malformed or lacks this site's key, or another roster was
            signed.
        ParameterError
            The startup folder has no usable certificate.
        """
        roster = Roster(self._job, keys)
        if roster.keys.get(self._site) != self.key.public:
            raise _wrong("roster", "the roster lacks the key that this site drew")
        # two rosters with this key could show two sites different keys of a third site
        if self._roster is not None and self._roster.content != roster.content:
            raise _wrong("roster", "this site has signed another roster with this key")
        self._roster = roster
        return msgspec.msgpack.encode(_Signed(*sign(self._kit, roster.content)))

    def registry(self, signatures: object, authority: Authority) -> Registry:
        """Return the registry of the roster that this site signed; see `Roster.registry`."""
        if self._roster is None:
            raise _wrong("roster", "this site has signed no roster")
        return self._roster.registry(signatures, authority)


def _prefixed(part: bytes) -> bytes:
    return struct.pack("<I", len(part)) + part
