"""A client, an aggregator and a helper of docs/oneshot.md (`§`), from the document alone.

The client rounds to nearest. A helper's journal is a file of lines, each on the disk before an
answer.
"""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from independent_hpke import public_key, seal, unseal
from independent_oneshot_params import (
    ACCUMULATOR,
    ANSWER,
    BOXES,
    REPORT,
    REQUEST,
    RESERVATION,
    Parameters,
)
from independent_primitives import (
    Source,
    cut,
    hedged,
    hedging_secret,
    identity_key,
    number,
    require,
    sha256,
    sign,
    split,
    u8,
    u16le,
    u64le,
    valid,
    verifies,
)


class TooFew(Exception):
    """§9, TooFewSurvivors."""


class Report:
    """§6.1, without a policy: a client's report, and all that it is made of."""

    def __init__(
        self,
        vector: Iterable,
        p: Parameters,
        u: int,
        weight: int | None = None,
        identity_seed: bytes | None = None,
        entropy: Source = os.urandom,
    ) -> None:
        valid((identity_seed is not None) == p.active, "identity")
        self.p, self.u, self.identity = p, u, identity_seed
        self.x = p.elements(vector, weight)
        about = b"secagg/1 one-shot seeds", p.digest, u64le(u)  # §4.1
        source = hedged(hedging_secret(identity_seed), entropy(32), *about)
        self.seeds = dict(enumerate(cut(source(16 * p.count), 16), 1))
        self.keys = [p.mask_key(u, i, seed) for i, seed in self.seeds.items()]
        self.y = p.add(self.x, *map(p.mask, self.keys))
        self.commit([p.commitment(u, i, seed) for i, seed in self.seeds.items()])

    def commit(self, commitments: Sequence[bytes]) -> None:
        """Build head, boxes and signature over these commitments."""
        self.commitments = commitments
        self.content = u64le(self.u) + b"".join(commitments)
        self.head = self.p.head(self.content)
        self.boxes = [self.box(j) for j in self.p.held]
        self.signature = sign(self.identity, self.head) if self.identity else b""

    def info(self, j: int) -> bytes:
        return self.p.info(self.content, j)

    def opened(self, j: int) -> bytes:
        """The content of helper j's box."""
        return b"".join(self.seeds[i] for i in self.p.held[j])

    def ephemeral(self, j: int) -> bytes:
        return os.urandom(64 if self.p.suite == "hybrid" else 32)

    def box(self, j: int, content: bytes | None = None, info: bytes = b"") -> bytes:
        """§4.4."""
        key, _ = self.p.helpers[j - 1]
        content = self.opened(j) if content is None else content
        return seal(key, info or self.info(j), content, self.ephemeral(j))

    def record(self, j: int) -> bytes:
        return self.content + self.boxes[j - 1] + self.signature

    def encode(self, y: bytes | None = None) -> bytes:
        y = self.p.pack(self.y) if y is None else y
        return self.p.message(REPORT, self.content, *self.boxes, self.signature, y)


def reserved(D: bytes) -> bytes:
    """§4.5: what a helper signs."""
    return b"secagg/1 one-shot reserved" + D


class Aggregator:
    """§6.2: the reports of one batch."""

    def __init__(
        self, p: Parameters, registry: Mapping[int, bytes] | None = None, batch: int = 0
    ) -> None:
        self.p, self.registry, self.batch = p, registry, batch
        self.total = [0] * p.e
        self.heads: dict[int, bytes] = {}
        self.kept: dict[int, bytes] = {}
        self.fixed = False

    def _read(self, data: bytes) -> tuple[bytes, list[bytes], bytes, bytes]:
        """Content of the head, boxes, signature, y packed."""
        p = self.p
        body = p.body(data, REPORT, "report")
        content, *boxes, signature, y = split(body, p.content, *p.box.values(), p.sigma)
        require(len(y) == p.packed, "length", "report")
        return content, boxes, signature, y

    def add(self, data: bytes) -> bool:
        p = self.p
        content, _, signature, y = self._read(data)
        u, head = number(content[:8]), sha256(p.head(content))
        if self.heads.get(u) == head:
            return False
        require(u not in self.heads, "id", "report")
        require(len(self.heads) < p.n, "count", "report")
        if self.registry is not None:
            known = verifies(self.registry.get(u), p.head(content), signature)
            require(known, "signature", "report")
        self.total = p.add(self.total, p.unpack(y, "report"))
        self.heads[u], self.kept[u] = head, data
        return True

    def boxes(self, j: int) -> bytes:
        records = []
        for data in self.kept.values():
            content, boxes, signature, _ = self._read(data)
            records.append(content + boxes[j - 1] + signature)
        return self.p.message(BOXES, u16le(j), *records)

    def drop(self, u: int) -> None:
        y = self.p.unpack(self._read(self.kept.pop(u))[3], "report")
        del self.heads[u]
        self.total = self.p.add(self.total, minus=[y])

    def encode(self) -> bytes:
        """§5.3."""
        counts = u64le(self.batch) + u8(self.fixed)
        counts += u64le(len(self.heads)) + u64le(len(self.kept))
        rows = [u64le(u) + self.heads[u] for u in sorted(self.heads)]
        rows += [self.kept[u] for u in sorted(self.kept)]
        return self.p.message(ACCUMULATOR, counts, self.p.pack(self.total), *rows)

    @classmethod
    def decode(
        cls, data: bytes, p: Parameters, registry: Mapping[int, bytes] | None
    ) -> Aggregator:
        phase = "accumulator"
        body = p.body(data, ACCUMULATOR, phase)
        require(len(body) >= 25, "length", phase)
        fields = split(body, 8, 1, 8, 8)
        batch, fixed, count, unsettled = map(number, fields[:4])
        require(fixed < 2 and unsettled <= count <= p.n, "count", phase)
        require(not fixed or count >= p.least, "count", phase)
        each = 34 + p.content + sum(p.box.values()) + p.sigma + p.packed
        size = p.packed + 40 * count + each * unsettled
        require(len(fields[4]) == size, "length", phase)
        packed, rows, reports = split(fields[4], p.packed, 40 * count)
        new = cls(p, registry, batch)
        new.total = p.unpack(packed, phase)
        ids = [number(row[:8]) for row in cut(rows, 40)]
        waiting = [number(data[34:42]) for data in cut(reports, each)]
        ascend = all(a < b for some in (ids, waiting) for a, b in pairwise(some))
        require(ascend, "ids", phase)
        new.heads = {u: row[8:] for u, row in zip(ids, cut(rows, 40), strict=True)}
        for u, data in zip(waiting, cut(reports, each), strict=True):
            content, _, _, y = new._read(data)
            require(new.heads.get(u) == sha256(p.head(content)), "ids", phase)
            p.unpack(y, "report")
            new.kept[u] = data
        new.fixed = bool(fixed)
        return new

    def request(self, reservations: Iterable[bytes] = ()) -> bytes:
        p = self.p
        if len(self.heads) < p.least:
            raise TooFew(len(self.heads))
        self.fixed = True
        signed: dict[int, bytes] = {}
        for data in reservations:
            j, signature = self._reply(data, RESERVATION, "reserve")
            message = reserved(self.list_digest())
            good = not p.active or verifies(p.helpers[j - 1][1], message, signature)
            require(good, "signature", "reserve")
            signed[j] = signature
        valid(not signed or len(signed) >= p.q, "too few helpers")
        in_order = sorted(signed.items()) if p.q else ()
        return p.request(self.batch, sorted(self.heads), in_order)

    def list_digest(self) -> bytes:
        """§4.5: D."""
        return self.p.list_digest(self.batch, self.heads)

    def _reply(self, data: bytes, kind: int, phase: str) -> tuple[int, bytes]:
        p = self.p
        body = p.body(data, kind, phase)
        require(len(body) >= 34, "length", phase)
        j = number(body[:2])
        require(1 <= j <= p.ell, "helper", phase)
        require(body[2:34] == self.list_digest(), "list", phase)
        size = p.sigma if kind == RESERVATION else p.packed * len(p.held[j])
        require(len(body) == 34 + size, "length", phase)
        return j, body[34:]

    def result(self, answers: Iterable[bytes]) -> tuple[list[int], int | None, list[int]]:
        """The integers, the weight, and the outvoted helpers."""
        p = self.p
        given: dict[int, bytes] = {}
        for data in answers:
            j, masks = self._reply(data, ANSWER, "open")
            require(given.setdefault(j, masks) == masks, "holders", "open")
        valid(len(given) >= p.t, "too few helpers")
        chosen, outvoted = [], set()
        for i in range(1, p.count + 1):
            votes = {
                j: cut(masks, p.packed)[p.held[j].index(i)]
                for j, masks in given.items()
                if i in p.held[j]
            }
            tally = Counter(votes.values())
            if len(tally) > 1:
                most = [mask for mask, count in tally.items() if count >= p.t]
                require(len(most) == 1, "holders", "open")
            else:
                most = list(tally)
            outvoted |= {j for j, mask in votes.items() if mask != most[0]}
            chosen.append(p.unpack(most[0], "open"))
        opened = p.add(self.total, minus=chosen)
        half = (p.R - 1) // 2
        heaviest = len(self.heads) * (p.W or 1)  # P §8.5, §8.1
        most_ = heaviest * p.bound + p.nu
        least = -most_ if p.signed else -p.nu
        half = half if p.signed else most_ if p.nu else p.R
        integers = [v - p.R if v > half else v for v in opened[: p.d]]
        weight = opened[p.d] if p.W else None
        if weight is not None and p.nu and weight > heaviest + p.nu:
            weight -= p.R
        inside = weight is None or -p.nu <= weight <= heaviest + p.nu
        require(inside, "weight", "unmasking")
        require(all(least <= v <= most_ for v in integers), "sum", "unmasking")
        return integers, weight, sorted(outvoted)


class Journal:
    """§7: keys and lists in one file. A line is params, batch, D and ids, in hexadecimal."""

    def __init__(self, path: Path, secrets: tuple[bytes, bytes] | None = None) -> None:
        if secrets:  # created together with the keys, never over another file
            keys = " ".join(part.hex() for part in secrets)
            self._append(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), keys)
        self._file = os.open(path, os.O_RDWR | os.O_APPEND)
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        first, *lists = path.read_text().splitlines()
        self.box_secret, self.seed = map(bytes.fromhex, first.split())
        rows = [[bytes.fromhex(part) for part in line.split()] for line in lists]
        self.lists = [(*row[:3], set(cut(row[3], 8))) for row in rows]

    @staticmethod
    def _append(file: int, line: str) -> None:
        os.write(file, line.encode() + b"\n")
        os.fsync(file)

    def reserve(self, params: bytes, batch: int, D: bytes, ids: Sequence[bytes]) -> None:
        for known, taken, digest, spent in self.lists:
            if known == params and taken == u64le(batch):
                require(digest == D, "batch", "reserve")
                return
            require(known != params or not spent & set(ids), "spent", "reserve")
        row = (params, u64le(batch), D, b"".join(ids))
        self._append(self._file, " ".join(part.hex() for part in row))
        self.lists.append((*row[:3], set(ids)))

    def close(self) -> None:
        os.close(self._file)


class Helper:
    """§6.3 to §6.5."""

    def __init__(
        self,
        p: Parameters,
        journal: Journal,
        registry: Mapping[int, bytes] | None = None,
        min_clients: int = 3,
    ) -> None:
        keys = public_key(journal.box_secret), identity_key(journal.seed)
        valid(keys in p.helpers, "not a helper of these parameters")
        self.p, self.journal, self.registry = p, journal, registry
        self.j, self.least = p.helpers.index(keys) + 1, max(min_clients, p.least)
        self.checked: dict[int, tuple[bytes, list[bytes]]] = {}

    def endorse(self) -> bytes:
        return sign(self.journal.seed, self.p.endorsement())

    def check(self, data: bytes) -> list[int]:
        """The ids that are rejected."""
        p, j = self.p, self.j
        body = p.body(data, BOXES, "check")
        size = p.content + p.box[j] + p.sigma
        require(len(body) >= 2 and (len(body) - 2) % size == 0, "length", "check")
        require(number(body[:2]) == j, "helper", "check")
        rejected = []
        for record in cut(body[2:], size):
            content, box, signature = split(record, p.content, p.box[j])
            u, head = number(content[:8]), p.head(content)
            stated = cut(content[8:], 32)
            opened = unseal(self.journal.box_secret, p.info(content, j), box)
            seeds = dict(zip(p.held[j], cut(opened or b"", 16), strict=opened is not None))
            good = opened is not None and all(
                p.commitment(u, i, seed) == stated[i - 1] for i, seed in seeds.items()
            )
            if self.registry is not None:
                good = good and verifies(self.registry.get(u), head, signature)
            if good:
                self.checked[u] = sha256(head), list(seeds.values())
            else:
                rejected.append(u)
        return rejected

    def _read(self, data: bytes) -> tuple[int, list[bytes], bytes, dict[int, bytes]]:
        """Batch, ids, D and signatures: §6.4 up to `unchecked`."""
        p, phase = self.p, "reserve"
        body = p.body(data, REQUEST, phase)
        require(len(body) >= 16, "length", phase)
        batch, count = number(body[:8]), number(body[8:16])
        require(len(body) >= 16 + 8 * count, "length", phase)
        ids, rows = cut(body[16 : 16 + 8 * count], 8), body[16 + 8 * count :]
        require(len(rows) % 66 == 0, "length", phase)
        require(all(number(a) < number(b) for a, b in pairwise(ids)), "ids", phase)
        signed = [(number(row[:2]), row[2:]) for row in cut(rows, 66)]
        numbers = [0, *(j for j, _ in signed), p.ell + 1]
        require(all(a < b for a, b in pairwise(numbers)), "signatures", phase)
        require(self.least <= count <= p.n, "count", phase)
        users = [number(u) for u in ids]
        require(all(u in self.checked for u in users), "unchecked", phase)
        D = p.list_digest(batch, {u: self.checked[u][0] for u in users})
        return batch, ids, D, dict(signed)

    def reserve(self, data: bytes) -> bytes:
        p = self.p
        batch, ids, D, _ = self._read(data)
        self.journal.reserve(p.digest, batch, D, ids)
        signature = b""
        if p.active:
            signature = sign(self.journal.seed, reserved(D))
        return p.message(RESERVATION, u16le(self.j), D, signature)

    def open(self, data: bytes) -> bytes:
        p = self.p
        batch, ids, D, signed = self._read(data)
        if p.q:
            message = reserved(D)
            good = (verifies(p.helpers[j - 1][1], message, s) for j, s in signed.items())
            require(all(good), "signature", "open")
            require(len(signed) >= p.q, "quorum", "open")
        self.journal.reserve(p.digest, batch, D, ids)
        users, held = [number(u) for u in ids], p.held[self.j]
        seeds = [{u: self.checked[u][1][place] for u in users} for place in range(len(held))]
        masks = [p.list_mask(i, of, D) for i, of in zip(held, seeds, strict=True)]
        return p.answer(self.j, D, masks)
