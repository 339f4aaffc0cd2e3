"""oneshot.json: docs/oneshot.md §3 to §6 and §8, by independent parties in small sessions."""

from copy import copy

from draws import draw, given
from params import described

from independent_hpke import public_key
from independent_noise import noise_key
from independent_oneshot import Aggregator, Report, reserved
from independent_oneshot_params import RESERVATION, Parameters
from independent_primitives import identity_key, ids, integers, sign, u16le
from independent_sums import FixedPoint, Integers

SECRET = {"hybrid": 96, "x25519": 32}
Secrets = list[tuple[bytes, bytes]]  # each helper's private HPKE key and identity seed
RFC9180 = {  # appendix A.1.1, base mode, sequence number 0
    "ephemeral": "52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736",
    "public": "3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d",
    "info": "4f6465206f6e2061204772656369616e2055726e",
    "aad": "436f756e742d30",
    "plaintext": "4265617574792069732074727574682c20747275746820626561757479",
    "enc": "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431",
    "ciphertext": "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a9"
    "6d8770ac83d07bea87e13c512a",
}


def secrets(label: str, ell: int, suite: str = "x25519") -> Secrets:
    return [
        (draw(f"{label} box {j}", SECRET[suite]), draw(f"{label} identity {j}", 32))
        for j in range(1, ell + 1)
    ]


def helpers(of: Secrets) -> list[tuple[bytes, bytes]]:
    """The public keys."""
    return [(public_key(box), identity_key(identity)) for box, identity in of]


class Client(Report):
    """A report whose draws and ephemeral keys follow from the client's id and the session."""

    def __init__(
        self,
        p: Parameters,
        u: int,
        vector: list[float] | list[int],
        weight: int | None = None,
    ) -> None:
        self.vector, self.weight = vector, weight
        self.fresh = draw(f"one-shot fresh {u} {p.session.hex()}", 32)
        identity = draw(f"one-shot identity {u}", 32) if p.active else None
        super().__init__(vector, p, u, weight, identity, given([self.fresh]))

    def ephemeral(self, j: int) -> bytes:
        size = 64 if self.p.suite == "hybrid" else 32
        return draw(f"one-shot ephemeral {self.u} {j} {self.p.session.hex()}", size)

    def describe(self) -> dict[str, object]:
        held = self.p.held
        return {
            "id": self.u, "vector": self.vector, "weight": self.weight,
            "identity_seed": self.identity or b"", "draws": [self.fresh],
            "seeds": [*self.seeds.values()], "mask_keys": self.keys,
            "commitments": self.commitments, "head": self.head,
            "infos": [self.info(j) for j in held],
            "contents": [self.opened(j) for j in held],
            "ephemerals": [self.ephemeral(j) for j in held], "boxes": self.boxes,
            "signature": self.signature, "elements": ids(self.x), "masked": ids(self.y),
            "report": self.encode(),
        }  # fmt: skip


class Batch:
    """A list of clients, by ascending id, with the messages of §5 about it."""

    def __init__(
        self,
        p: Parameters,
        secrets: Secrets,
        clients: list[Client],
        batch: int = 0,
        name: str = "",
    ) -> None:
        self.p, self.secrets, self.batch, self.name = p, secrets, batch, name
        self.clients = sorted(clients, key=lambda c: c.u)
        self.sum = Aggregator(p, batch=batch)
        for client in self.clients:
            self.sum.add(client.encode())
        self.D = self.sum.list_digest()
        self.seeds = {i: {c.u: c.seeds[i] for c in self.clients} for i in self.p.places}
        self.masks = [p.list_mask(i, of, self.D) for i, of in self.seeds.items()]

    def but(self, clients: list[Client], batch: int) -> "Batch":
        return Batch(self.p, self.secrets, clients, batch)

    def boxes(self, j: int) -> bytes:
        return self.sum.boxes(j)

    def sign(self, j: int) -> bytes:
        return sign(self.secrets[j - 1][1], reserved(self.D))

    def request(self, *signers: int) -> bytes:
        signed = [(j, self.sign(j)) for j in signers]
        return self.p.request(self.batch, [c.u for c in self.clients], signed)

    def reservation(self, j: int) -> bytes:
        signature = self.sign(j) if self.p.active else b""
        return self.p.message(RESERVATION, u16le(j), self.D, signature)

    def answer(self, j: int, masks: list[list[int]] | None = None) -> bytes:
        chosen = self.masks if masks is None else masks
        return self.p.answer(j, self.D, [chosen[i - 1] for i in self.p.held[j]])

    def stored(self, fixed: bool, unsettled: list[Client]) -> bytes:
        made = copy(self.sum)
        made.fixed, made.kept = fixed, {c.u: c.encode() for c in unsettled}
        return made.encode()

    def integers(self) -> list[int]:
        """The sum, noise included, and the weight behind it if there is one."""
        found, weight, _ = self.sum.result(map(self.answer, self.p.held))
        return found if weight is None else [*found, weight]

    def describe(self) -> dict[str, object]:
        p, of = self.p, {i: [*seeds.values()] for i, seeds in self.seeds.items()}
        signers = [*p.held][-p.q :] if p.q else []
        noisy: dict[str, object] = {}
        if p.noise:
            noisy["noise_keys"] = [noise_key(i, seeds, self.D) for i, seeds in of.items()]
            noisy["noises"] = [p.noises(i, seeds, self.D) for i, seeds in of.items()]
        return {
            "batch": self.batch, "ids": [c.u for c in self.clients], "digest": self.D,
            "request": self.request(), "signers": signers,
            "signed_request": self.request(*signers),
            "boxes": [self.boxes(j) for j in p.held],
            "reservations": [self.reservation(j) for j in p.held],
            "answers": [self.answer(j) for j in p.held],
            "stored": self.stored(False, self.clients), "settled": self.stored(True, []),
            "integers": self.integers(), **noisy,
        }  # fmt: skip


def make(
    n: int, d: int, encoding: FixedPoint | Integers, t: int, of: Secrets, modulus: int = 2**32,
    **more: object,
) -> tuple[Parameters, Secrets]:  # fmt: skip
    return Parameters(n, d, encoding, t, helpers(of), modulus, **more), of


def sessions() -> dict[str, Batch]:
    """Every variant, suite, kind of modulus and threshold in a session of a few clients."""
    point, small = FixedPoint(1.0, 8), Integers(100)
    cases = {
        "example": make(4, 3, point, 2, secrets("example", 3), 2**15, max_weight=10,
                        session=b"example"),
        "two-of-two": make(5, 4, small, 2, secrets("two", 2), security="semi-honest",
                           min_clients=2, session=b""),
        "two-of-two-active": make(5, 9, FixedPoint(8.0, 16), 2, secrets("both", 2)),
        "hybrid": make(3, 2, Integers(2**53), 2, secrets("hybrid", 2, "hybrid"), 2**64,
                       suite="hybrid"),
        "three-of-five": make(9, 5, small, 3, secrets("five", 5), 2**61 - 1, max_weight=3),
        "many-rejections": make(3, 6, small, 2, secrets("rejections", 2), 2**64 // 5 + 1,
                                security="semi-honest"),
        "one-of-one": make(3, 3, Integers(1), 1, secrets("one", 1), 101, min_clients=2,
                           security="semi-honest"),
        "one-of-two": make(3, 3, Integers(1), 1, secrets("either", 2), 2**5, min_clients=2),
        "two-of-four": make(4, 2, FixedPoint(4.0, 30), 2, secrets("four", 4), 2**40),
        "noise": make(4, 5, FixedPoint(1.0, 6), 2, secrets("noise", 3), 2003, max_weight=3,
                      noise=640),
        "noise-below-zero": make(3, 6, Integers(1), 2, secrets("below", 2), 2**16,
                                 security="semi-honest", min_clients=2, max_weight=1,
                                 noise=2**12 + 1),
    }  # fmt: skip
    out = {}
    for number, (name, (p, keys)) in enumerate(cases.items()):
        rows: list[tuple[int, list[float] | list[int], int | None]]
        if name == "example":
            rows = [(1, [0.5, -0.25, 1.5], 2), (2, [0.001953125, 0.005859375, -1.0], 3),
                    (300, [0.1, 0.2, -0.3], 10)]  # fmt: skip
        else:
            among = (2**64 - 1, 7, 0, 256)[: max(p.least, 3)]
            rows = [(u, values(p, f"{name} {u}"), weight(p, u)) for u in among]
        clients = [Client(p, u, vector, w) for u, vector, w in rows]
        out[name] = Batch(p, keys, clients, number * 2**29, name)
    return out


def values(p: Parameters, label: str) -> list[float] | list[int]:
    numbers = integers(draw(label, 8 * p.d))
    if isinstance(p.encoding, Integers):
        return [x % (p.encoding.max + 1) for x in numbers]
    return [(x % 4001 - 2000) / 1000 * p.encoding.clip for x in numbers]


def weight(p: Parameters, u: int) -> int | None:
    return None if p.W is None else u % (p.W + 1)


def describe(batch: Batch) -> dict[str, object]:
    p = batch.p
    return {
        "name": batch.name, "parameters": described(p), "bytes": p.encode(),
        "digest": p.digest, "seeds": p.count, "held": [*p.held.values()], "quorum": p.q,
        "elements": p.e, "bits": p.b, "secrets": batch.secrets,
        "endorsements": [sign(seed, p.endorsement()) for _, seed in batch.secrets],
        "clients": [c.describe() for c in batch.clients], "list": batch.describe(),
    }  # fmt: skip


def counts() -> list[dict[str, object]]:
    """§2.4 and §3.2: seeds, holders and quorum for all thresholds of up to seven helpers."""
    out: list[dict[str, object]] = []
    for ell in range(1, 8):
        for t in range(1, ell + 1):
            p, _ = make(3, 1, Integers(1), t, secrets("counts", ell))
            out.append({"helpers": ell, "threshold": t, "seeds": p.count,
                        "held": [*p.held.values()], "quorum": p.q})  # fmt: skip
    return out


def oneshot() -> dict[str, object]:
    return {
        "sessions": [describe(batch) for batch in sessions().values()],
        "counts": counts(),
        "rfc9180": RFC9180,
    }
