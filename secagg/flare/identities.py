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

import struct
from collections.abc import Mapping
from pathlib import Path

import msgspec

from secagg._secrets import Confined
from secagg.errors import ParameterError
from secagg.flare.certificates import Authority, sign, wrong
from secagg.protocol import Identity, Registry

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
            raise wrong("roster", "the roster has no keys by the names of sites")
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
            raise wrong("roster", why)
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
            raise wrong("roster", "the roster has no signatures by the names of sites")
        for site, signed in signatures.items():
            self.verify(site, signed, authority)
        try:
            return Registry({site: self.keys[site] for site in signatures})
        except ParameterError as error:
            raise wrong("roster", str(error)) from None


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
            raise wrong("roster", "the roster lacks the key that this site drew")
        # two rosters with this key could show two sites different keys of a third site
        if self._roster is not None and self._roster.content != roster.content:
            raise wrong("roster", "this site has signed another roster with this key")
        self._roster = roster
        return msgspec.msgpack.encode(_Signed(*sign(self._kit, roster.content)))

    def registry(self, signatures: object, authority: Authority) -> Registry:
        """Return the registry of the roster that this site signed; see `Roster.registry`."""
        if self._roster is None:
            raise wrong("roster", "this site has signed no roster")
        return self._roster.registry(signatures, authority)


def _prefixed(part: bytes) -> bytes:
    return struct.pack("<I", len(part)) + part
