"""oneshot.json: docs/oneshot.md §3 to §6 and §8, from the document alone, in small sessions."""

import hpke
import oneshot_noise
import primitives as pr
from oneshot_params import OneShot, secrets, u16le
from params import FixedPoint, Integers, elements_of
from primitives import draw, sha256, u8, u64le

REPORT, BOXES, REQUEST, RESERVATION, ANSWER, ACCUMULATOR = range(1, 7)


class Client:
    """One client, its draws, and all that §4 derives from them."""

    def __init__(
        self, p: OneShot, u: int, vector: list[float] | list[int], weight: int | None = None
    ) -> None:
        self.u, self.vector, self.weight, self.p = u, vector, weight, p
        params = p.digest()
        self.identity = draw(f"one-shot identity {u}", 32) if p.active else None
        self.fresh = draw(f"one-shot fresh {u} {p.session.hex()}", 32)
        statement = b"secagg/1 one-shot seeds" + params + u64le(u)
        secret = pr.hedging_secret(self.identity)
        (drawn,) = pr.hedged(secret, self.fresh, [16 * p.count], statement)
        self.seeds = [drawn[16 * i : 16 * i + 16] for i in range(p.count)]
        at = [u64le(u) + u16le(i) for i in range(1, p.count + 1)]
        self.keys = [
            pr.hkdf(seed, params, b"secagg/1 one-shot mask" + place, 16)
            for seed, place in zip(self.seeds, at, strict=True)
        ]
        self.commitments = [
            sha256(b"secagg/1 one-shot seed", params, place, seed)
            for seed, place in zip(self.seeds, at, strict=True)
        ]
        self.elements = elements_of(p.sums, vector, weight, None)
        self.masks = [pr.prg(key, p.sums.elements, p.modulus) for key in self.keys]
        columns = zip(self.elements, *self.masks, strict=True)
        self.y = [sum(column) % p.modulus for column in columns]
        self.set_head(self.commitments)

    def set_head(self, commitments: list[bytes]) -> None:
        """Build head, boxes and signature over these commitments."""
        self.content = u64le(self.u) + b"".join(commitments)
        self.head = b"secagg/1 one-shot report" + self.p.digest() + self.content
        self.boxes = [self.seal(j) for j in range(1, self.p.ell + 1)]
        self.signature = pr.ed25519_sign(self.identity, self.head) if self.identity else b""

    def info(self, j: int) -> bytes:
        return b"secagg/1 one-shot box" + sha256(self.head, u16le(j))

    def ephemeral(self, j: int) -> bytes:
        size = 64 if self.p.suite == "hybrid" else 32
        return draw(f"one-shot ephemeral {self.u} {j} {self.p.session.hex()}", size)

    def opened(self, j: int) -> bytes:
        """The content of helper j's box."""
        return b"".join(self.seeds[i - 1] for i in self.p.held(j))

    def seal(self, j: int, content: bytes | None = None, info: bytes = b"") -> bytes:
        public = self.p.helpers[j - 1][0]
        content = self.opened(j) if content is None else content
        return hpke.seal(public, self.ephemeral(j), info or self.info(j), content)

    def packed(self, y: list[int] | None = None) -> bytes:
        return pr.pack(self.y if y is None else y, self.p.sums.bits)

    def report(self, y: bytes | None = None) -> bytes:
        y = self.packed() if y is None else y
        return message(self.p, REPORT, self.content, *self.boxes, self.signature, y)

    def record(self, j: int) -> bytes:
        return self.content + self.boxes[j - 1] + self.signature

    def describe(self) -> dict[str, object]:
        held = range(1, self.p.ell + 1)
        return {
            "id": self.u, "vector": self.vector, "weight": self.weight,
            "identity_seed": self.identity or b"", "draws": [self.fresh],
            "seeds": self.seeds, "mask_keys": self.keys, "commitments": self.commitments,
            "head": self.head, "infos": [self.info(j) for j in held],
            "contents": [self.opened(j) for j in held],
            "ephemerals": [self.ephemeral(j) for j in held], "boxes": self.boxes,
            "signature": self.signature, "elements": b"".join(map(u64le, self.elements)),
            "masked": b"".join(map(u64le, self.y)), "report": self.report(),
        }  # fmt: skip


def message(p: OneShot, kind: int, *body: bytes) -> bytes:
    return u8(1) + u8(kind) + p.digest() + b"".join(body)


class Batch:
    """A list of clients, by ascending id, with the messages of §5 about it."""

    def __init__(
        self, p: OneShot, clients: list[Client], batch: int = 0, name: str = ""
    ) -> None:
        self.p, self.batch, self.name = p, batch, name
        self.clients = sorted(clients, key=lambda c: c.u)
        rows = (u64le(c.u) + sha256(c.head) for c in self.clients)
        counts = u64le(batch) + u64le(len(clients))
        self.D = sha256(b"secagg/1 one-shot batch", p.digest(), counts, *rows)
        self.noise_keys = [
            oneshot_noise.noise_key(i + 1, [c.seeds[i] for c in self.clients], self.D)
            for i in range(p.count)
        ]
        self.noises = [
            [0] * p.sums.elements if p.noise is None
            else oneshot_noise.noises(key, p.noise, p.sums.elements)
            for key in self.noise_keys
        ]  # fmt: skip
        self.masks = [
            self._sum([*(c.masks[i] for c in self.clients), self.noises[i]])
            for i in range(p.count)
        ]
        self.total = self._sum([c.y for c in self.clients])

    def _sum(self, vectors: list[list[int]]) -> list[int]:
        return [sum(column) % self.p.modulus for column in zip(*vectors, strict=True)]

    def boxes(self, j: int) -> bytes:
        return message(self.p, BOXES, u16le(j), *(c.record(j) for c in self.clients))

    def sign(self, j: int) -> bytes:
        identity = self.p.secrets[j - 1][1]
        return pr.ed25519_sign(identity, b"secagg/1 one-shot reserved" + self.D)

    def request(self, *signers: int) -> bytes:
        signed = (u16le(j) + self.sign(j) for j in signers)
        counts = u64le(self.batch) + u64le(len(self.clients))
        ids = pr.ids([c.u for c in self.clients])
        return message(self.p, REQUEST, counts, ids, *signed)

    def reservation(self, j: int) -> bytes:
        signature = self.sign(j) if self.p.active else b""
        return message(self.p, RESERVATION, u16le(j), self.D, signature)

    def answer(self, j: int, masks: list[list[int]] | None = None) -> bytes:
        chosen = self.masks if masks is None else masks
        packed = (pr.pack(chosen[i - 1], self.p.sums.bits) for i in self.p.held(j))
        return message(self.p, ANSWER, u16le(j), self.D, *packed)

    def stored(self, fixed: bool, unsettled: list[Client]) -> bytes:
        counts = u64le(self.batch) + u8(fixed) + u64le(len(self.clients))
        rows = (u64le(c.u) + sha256(c.head) for c in self.clients)
        total = pr.pack(self.total, self.p.sums.bits)
        counts += u64le(len(unsettled))
        waiting = (c.report() for c in sorted(unsettled, key=lambda c: c.u))
        return message(self.p, ACCUMULATOR, counts, total, *rows, *waiting)

    def integers(self) -> list[int]:
        """§8.1: the sum less all noise, and the weight behind it if there is one."""
        p, clients = self.p, len(self.clients)
        weight = clients * (p.max_weight or 1)
        highest = [weight * p.encoding.bound() + p.nu] * p.d + [weight + p.nu]
        less = [[-x for x in noise] for noise in self.noises]
        total = self._sum([*(c.elements for c in self.clients), *less])
        return [v - p.modulus if v > top else v for v, top in zip(total, highest, strict=False)]

    def describe(self) -> dict[str, object]:
        helpers = range(1, self.p.ell + 1)
        signers = list(helpers)[-self.p.quorum :] if self.p.quorum else []
        noisy = {"noise_keys": self.noise_keys, "noises": self.noises} if self.p.noise else {}
        return {
            "batch": self.batch, "ids": [c.u for c in self.clients], "digest": self.D,
            "request": self.request(), "signers": signers,
            "signed_request": self.request(*signers),
            "boxes": [self.boxes(j) for j in helpers],
            "reservations": [self.reservation(j) for j in helpers],
            "answers": [self.answer(j) for j in helpers],
            "stored": self.stored(False, self.clients), "settled": self.stored(True, []),
            "integers": self.integers(), **noisy,
        }  # fmt: skip


def sessions() -> dict[str, Batch]:
    """Every variant, suite, kind of modulus and threshold in a session of a few clients."""
    point, small = FixedPoint(1.0, 8), Integers(100)
    cases = {
        "example": OneShot(4, 3, point, 2, secrets("example", 3), 2**15, max_weight=10,
                           session=b"example"),
        "two-of-two": OneShot(5, 4, small, 2, secrets("two", 2), security="semi-honest",
                              least=2, session=b""),
        "two-of-two-active": OneShot(5, 9, FixedPoint(8.0, 16), 2, secrets("both", 2)),
        "hybrid": OneShot(3, 2, Integers(2**53), 2, secrets("hybrid", 2, "hybrid"), 2**64,
                          suite="hybrid"),
        "three-of-five": OneShot(9, 5, small, 3, secrets("five", 5), 2**61 - 1, max_weight=3),
        "many-rejections": OneShot(3, 6, small, 2, secrets("rejections", 2), 2**64 // 5 + 1,
                                   security="semi-honest"),
        "one-of-one": OneShot(3, 3, Integers(1), 1, secrets("one", 1), 101, least=2,
                              security="semi-honest"),
        "one-of-two": OneShot(3, 3, Integers(1), 1, secrets("either", 2), 2**5, least=2),
        "two-of-four": OneShot(4, 2, FixedPoint(4.0, 30), 2, secrets("four", 4), 2**40),
        "noise": OneShot(4, 5, FixedPoint(1.0, 6), 2, secrets("noise", 3), 2003, max_weight=3,
                         noise=640),
        "noise-below-zero": OneShot(3, 6, Integers(1), 2, secrets("below", 2), 2**16,
                                    security="semi-honest", least=2, max_weight=1,
                                    noise=2**12 + 1),
    }  # fmt: skip
    out = {}
    for number, (name, p) in enumerate(cases.items()):
        rows: list[tuple[int, list[float] | list[int], int | None]]
        if name == "example":
            rows = [(1, [0.5, -0.25, 1.5], 2), (2, [0.001953125, 0.005859375, -1.0], 3),
                    (300, [0.1, 0.2, -0.3], 10)]  # fmt: skip
        else:
            ids = (2**64 - 1, 7, 0, 256)[: max(p.least, 3)]
            rows = [(u, values(p, f"{name} {u}"), weight(p, u)) for u in ids]
        clients = [Client(p, u, vector, w) for u, vector, w in rows]
        out[name] = Batch(p, clients, number * 2**29, name)
    return out


def values(p: OneShot, label: str) -> list[float] | list[int]:
    words = draw(label, 8 * p.d)
    numbers = [int.from_bytes(words[8 * i : 8 * i + 8], "little") for i in range(p.d)]
    if isinstance(p.encoding, Integers):
        return [x % (p.encoding.max + 1) for x in numbers]
    return [(x % 4001 - 2000) / 1000 * p.encoding.clip for x in numbers]


def weight(p: OneShot, u: int) -> int | None:
    return None if p.max_weight is None else u % (p.max_weight + 1)


def describe(batch: Batch) -> dict[str, object]:
    p = batch.p
    signatures = (
        pr.ed25519_sign(identity, b"secagg/1 one-shot endorsed" + p.digest())
        for _, identity in p.secrets
    )
    return {
        "name": batch.name, "parameters": p.describe(), "bytes": p.to_bytes(),
        "digest": p.digest(), "seeds": p.count,
        "held": [p.held(j) for j in range(1, p.ell + 1)], "quorum": p.quorum,
        "elements": p.sums.elements, "bits": p.sums.bits,
        "secrets": [list(pair) for pair in p.secrets], "endorsements": list(signatures),
        "clients": [c.describe() for c in batch.clients], "list": batch.describe(),
    }  # fmt: skip


def counts() -> list[dict[str, object]]:
    """§2.4 and §3.2: seeds, holders and quorum for all thresholds of up to seven helpers."""
    out: list[dict[str, object]] = []
    for ell in range(1, 8):
        keys = secrets("counts", ell)
        for t in range(1, ell + 1):
            p = OneShot(3, 1, Integers(1), t, keys)
            held = [p.held(j) for j in range(1, ell + 1)]
            out.append({"helpers": ell, "threshold": t, "seeds": p.count, "held": held,
                        "quorum": p.quorum})  # fmt: skip
    return out


def oneshot() -> dict[str, object]:
    hpke.confirm()
    oneshot_noise.confirm()
    return {
        "sessions": [describe(batch) for batch in sessions().values()],
        "counts": counts(),
        "rfc9180": hpke.RFC9180,
    }
