"""A client without its messages: docs/protocol.md §3.4, §5.13 and §7.3."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from independent_keys import Keys, masking_private
from independent_messages import decode, limit
from independent_params import Parameters
from independent_policy import Policy
from independent_primitives import (
    LocalProtocolError,
    ParameterError,
    ProtocolError,
    Source,
    agreement,
    hedged,
    identity_key,
    integer,
    is_weak,
    require,
    valid,
    verifies,
)


@dataclass
class Sealing:
    """§5.1: the sealing pair that a client keeps over a session, and what it agreed on."""

    seed: bytes = b""
    agreed: dict[tuple[int, bytes], bytes] = field(default_factory=dict)  # by id and key


class Machine:
    """A client without its messages, which the classes that follow add."""

    roster: dict[int, Keys]
    session: bytes

    def __init__(
        self,
        client_id: int,
        params: Parameters,
        *,
        identity_seed: bytes | None = None,
        registry: Mapping[int, bytes] | None = None,
        entropy: Source = os.urandom,
        sealing: Sealing | None = None,
        policy: Policy = Policy(),  # noqa: B008
        rounding: str = "nearest",
    ) -> None:
        """Parameters and policy come before anything secret is drawn (§3.1, §3.4)."""
        self.id, self.p = integer(client_id, "client_id", 0, 2**64 - 1), params  # §1
        self.policy, self.identity, self.registry = policy, identity_seed, registry or {}
        valid(policy.in_range(), "policy: a field is out of its range")
        valid(policy.accepts(self.p, len(self.registry)), "policy: not these parameters")
        self.signers = max(self.p.least, policy.min_clients)
        self.enough = max(self.p.m, policy.min_clients) if self.p.k is None else self.signers
        if self.p.active:
            known = list(self.registry.values())
            valid(all(isinstance(k, bytes) and len(k) == 32 for k in known), "registry: a key")
            valid(len(set(known)) == len(known), "registry: a key occurs twice")
            valid(not any(map(is_weak, known)), "registry: a weak key")
            valid(isinstance(identity_seed, bytes) and len(identity_seed) == 32, "identity")
            own = identity_key(identity_seed)
            valid(self.registry.get(self.id) == own, "registry: not this identity")
        else:
            valid(identity_seed is None and registry is None, "identity: semi-honest round")
        self.params, self.phase, self.rounding = self.p.digest(), "advertise_keys", rounding
        self._entropy, self._pid, self._lock = entropy, os.getpid(), threading.Lock()
        self._sealing, self._masking, self._b = sealing or Sealing(), b"", b""
        self._seal_seed = self._kem = b""
        self._bases: dict[int, bytes] = {}  # by peer: B of what it seals for us
        self._agreed: dict[int, bytes] = {}  # by peer: A
        self._given: dict[int, tuple[bytes, bytes]] = {}  # by peer: our p and q for it
        self._shares: dict[int, list[bytes]] = {}  # by owner: b-share, s-share

    def __reduce__(self) -> str:
        raise LocalProtocolError("a client must not be copied or stored")  # §7.3

    @contextmanager
    def _step(self, phase: str, following: str) -> Iterator[None]:
        """§7.3: once per phase; a check that fails ends the client, its own mistakes do not."""
        if os.getpid() != self._pid or not self._lock.acquire(blocking=False):
            raise LocalProtocolError("in a forked child, or from two threads")
        try:
            if self.phase != phase:
                raise LocalProtocolError(f"{phase} is not due: {self.phase}")
            yield
            self.phase = following
        except (LocalProtocolError, ParameterError):
            raise
        except BaseException as error:  # whatever it is, nothing is ever sent again
            self.phase = "failed"
            if isinstance(error, ProtocolError):
                error.phase = phase
            raise
        finally:
            if self.phase in ("failed", "finished"):
                self._forget("_seal_seed", "_masking", "_kem", "_b", "_shares")
                self._forget("_bases", "_agreed", "_given")
            self._lock.release()

    def _forget(self, *names: str) -> None:
        for name in names:
            setattr(self, name, type(getattr(self, name))())

    def _hedged(self, purpose: bytes, secret: bytes, *about: bytes) -> Source:
        """§5.13, drawn as in Annex B."""
        return hedged(secret, self._entropy(32), b"secagg/2 hedged ", purpose, *about)

    def _agree(self, v: int) -> tuple[bytes, bytes]:
        """§5.1: the secrets shared with v, sealing and masking."""
        c, s, _ = self.roster[v]
        if (v, c) not in self._sealing.agreed:
            self._sealing.agreed[v, c] = self._secret(self._seal_seed, c)
        return self._sealing.agreed[v, c], self._secret(masking_private(self._masking), s)

    def _secret(self, seed: bytes, public: bytes) -> bytes:
        shared = agreement(seed, public)
        require(shared is not None, "public key")
        return shared

    def _decode(self, data: bytes, tag: int) -> list:
        return decode(data, tag, limit(self.p, tag))

    def _verify(
        self, u: int, signature: bytes, message: bytes, check: str = "signature"
    ) -> None:
        require(verifies(self.registry[u], message, signature), check)

    def _pair(self, v: int) -> dict[int, Keys]:
        return {u: self.roster[u] for u in (self.id, v)}
