"""Sum by homomorphic encryption; the server adds ciphertexts that it cannot read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

import secagg
from fedmf.aggregate.aggregation import (
    Dropouts,
    Encoding,
    IntegerSum,
    Progress,
    RoundAborted,
    Stopwatch,
    in_the_sum,
)
from fedmf.aggregate.protocols import FEWEST
from fedmf.aggregate.trust import WARNINGS, KeyHolder, Parties, SharedClientKey, Trust, Trustees
from fedmf.aggregate.vectors import Aggregate, Vectors
from fedmf.errors import SettingError
from secagg.encoding.clipping import losses_ignored
from secagg.paillier import EncryptedVector, PrivateKey, generate_keypair
from secagg.paillier.public_key import MAX_BITS, MIN_BITS
from secagg.threshold import KeyShare, deal
from secagg.threshold.key import MAX_TRUSTEES

FEWEST_TRUSTEES = 2


@dataclass(frozen=True, kw_only=True)
class PaillierSum(IntegerSum):
    """Sum by Paillier encryption, with the same integers as `PlainSum` and `SecAggSum`.

    A user sends one message, in the phase of the masked input. So the same users are left out
    as in the other aggregations. A round is aborted if fewer than three users are left.

    **A party that can decrypt the sum can decrypt every single vector.** So `trust` has no
    default.

    Parameters
    ----------
    trust
        "shared client key": all users have the private key, the server does not (Chai et al.
        2020; Basu's thesis). *One user who colludes with the server, or a server that poses as
        a user, reads every user's vector.*
        "key holder": a party apart from users and server has the private key. *A key holder and
        a server that collude read every user's vector. A server that deviates from the
        protocol can have a single user's vector decrypted in place of the sum.*
        "threshold": trustees have shares of the private key, and `threshold` trustees decrypt
        together (Damgård and Jurik 2001). *No single party can decrypt, but a server that
        deviates from the protocol can have a single user's vector decrypted in place of the
        sum. `threshold` trustees who collude with the server read every user's vector.* The
        dealer makes the key, hands out the shares and must delete the key. If `key` is None,
        the dealer is this process.
    trustees, threshold
        Number of trustees, and number of trustees that decrypt together: 2 ≤ threshold ≤
        trustees ≤ 100. Required for "threshold" without a key, otherwise None.
    bits : int, length in bits of a key that is made here, 2048 to 8192, a multiple of 64
    key
        A private key of `secagg.paillier`; for "threshold", the shares that
        `secagg.threshold.deal` returned. If None, a key is made at first use.
    progress
        Function of the name of the phase, the number of finished clients and of all clients.
    clip, fractional_bits : see `IntegerSum`

    Raises
    ------
    SettingError
        If a value is out of range. Limits that depend on the cohort are checked by the sum.
    """

    trust: Trust
    trustees: int | None = None
    threshold: int | None = None
    bits: int = 3072
    key: PrivateKey | tuple[KeyShare, ...] | None = None
    progress: Progress | None = None

    def _check(self) -> None:
        super()._check()
        if not isinstance(self.bits, int) or not MIN_BITS <= self.bits <= MAX_BITS:
            raise SettingError(
                f"bits = {self.bits!r} must be from {MIN_BITS} to {MAX_BITS}; for tests, pass "
                "key=secagg.paillier.generate_insecure_keypair()"
            )
        if self.bits % 64:
            raise SettingError(f"bits = {self.bits} must be a multiple of 64, such as 3072")
        self._check_key()
        self._check_trustees()

    def _check_key(self) -> None:
        key = self.key
        if key is None:
            return
        if self.trust != "threshold":
            if not isinstance(key, PrivateKey):
                raise SettingError(f"key must be a PrivateKey, not {type(key).__name__}")
        elif not isinstance(key, tuple) or not all(isinstance(s, KeyShare) for s in key):
            raise SettingError(
                "key must be a tuple of KeyShare, the second result of secagg.threshold.deal"
            )
        elif not key or not FEWEST_TRUSTEES <= key[0].key.threshold <= len(key):
            raise SettingError(
                f"{len(key)} shares of the key do not fit: pass as many as its threshold, "
                f"which must be at least {FEWEST_TRUSTEES}, or more"
            )
        elif len({share.key for share in key}) > 1:
            raise SettingError("the shares belong to several keys: pass those of one key")
        elif len({share.index for share in key}) < len(key):
            given = ", ".join(str(share.index) for share in key)
            raise SettingError(
                f"the shares of trustees {given} are not distinct: pass each one once"
            )

    def _check_trustees(self) -> None:
        trustees, threshold = self.trustees, self.threshold
        shown = f"trustees = {trustees!r} and threshold = {threshold!r}"
        if self.trust != "threshold" or self.key is not None:
            if trustees is not None or threshold is not None:
                raise SettingError(f"{shown} need trust = 'threshold' and no key: omit them")
        elif isinstance(trustees, int) and isinstance(threshold, int) and threshold > trustees:
            raise SettingError(
                f"threshold = {threshold} is more than trustees = {trustees}, who could not "
                f"decrypt any sum: lower the threshold to {trustees} or less"
            )
        elif (
            not isinstance(trustees, int)
            or not isinstance(threshold, int)
            or not FEWEST_TRUSTEES <= threshold <= trustees <= MAX_TRUSTEES
        ):
            raise SettingError(
                f"{shown}: trust = 'threshold' needs {FEWEST_TRUSTEES} ≤ threshold ≤ "
                f"trustees ≤ {MAX_TRUSTEES}, such as trustees = 3 and threshold = 2"
            )

    @property
    def warning(self) -> str:
        """Assumption behind the trust model, in one sentence."""
        return WARNINGS[self.trust]

    @cached_property
    def parties(self) -> Parties:
        """Parties that encrypt and decrypt, with their keys."""
        key = self.key
        if key is None:
            self._report("making the key", 0, 1)
            if self.trustees is None or self.threshold is None:
                key = generate_keypair(self.bits)
            else:
                key = deal(self.trustees, self.threshold, bits=self.bits)[1]
        if isinstance(key, tuple):
            return Trustees(key)
        return SharedClientKey(key) if self.trust == "shared client key" else KeyHolder(key)

    def _add(
        self, vectors: Vectors, dropouts: Dropouts, session: bytes, encoding: Encoding
    ) -> Aggregate:
        survivors = in_the_sum(vectors, dropouts)
        packing = secagg.Packing(
            encoding=encoding,
            length=math.prod(vectors.shape),
            summands=len(vectors),
            session=session,
        )
        parties = self.parties
        total: EncryptedVector | None = None
        of_clients, of_server = Stopwatch(), Stopwatch()
        clipped = bytes_up = 0
        for done, user in enumerate(survivors):
            self._report("encrypting", done, len(survivors))
            # no warning: the Aggregate counts clipped values, and a training has many rounds
            with of_clients.running(), losses_ignored():
                vector = parties.encrypt(vectors[user].dense(), packing)
                message = vector.to_bytes()
            with of_server.running():  # which has the public key only
                received = parties.public_key.load_vector(message, packing)
                total = received if total is None else total + received
            clipped += vector.clipped
            bytes_up += len(message)
        if total is None or total.added < FEWEST:
            raise RoundAborted(
                f"{len(survivors)} of the {len(vectors)} users of the cohort are left, fewer "
                f"than the {FEWEST} that a sum needs to hide each of them"
            )
        with of_server.running():
            encrypted = total.to_bytes()  # blinded again
        self._report("decrypting", 0, 1)
        read = parties.decrypt(encrypted, packing, len(survivors))
        bytes_down = len(encrypted) * len(survivors) if parties.users_decrypt else 0
        return Aggregate(
            sum=np.asarray(read.total.sum, dtype=np.float64),
            integers=read.total.integers,
            survivors=survivors,
            clipped=clipped,
            client_seconds=of_clients.seconds + read.user_seconds * len(survivors),
            server_seconds=of_server.seconds + read.server_seconds,
            key_holder_seconds=read.key_holder_seconds,
            bytes_up=bytes_up / len(vectors),
            bytes_down=bytes_down / len(vectors),
        )

    def _report(self, what: str, done: int, of: int) -> None:
        if self.progress is not None:
            self.progress(what, done, of)
