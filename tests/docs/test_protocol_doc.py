"""docs/protocol.md and the code say the same: diagrams, checks, bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import protocol_doc
from harness import secret_of
from protocol_example import IDS, seed
from secagg import FixedPoint, Identity, Registry, RoundParams, Server
from secagg.encoding import Ring
from secagg.protocol import NEXT, Phase, dealing, kem, keys, pair_masks, sealing
from secagg.protocol.masks import MaskSum
from secagg.protocol.noise import Share
from vectors_reader import Unhedged

VECTORS = {1: (0.5, -0.25, 1.5), 2: (0.001953125, 0.005859375, -1.0), 3: (0.1, 0.2, -0.3)}
WEIGHTS = {1: 2, 2: 3, 3: 10}


def entropy(u: int) -> Callable[[int], bytes]:
    """The draws of Annex A, in the order of Annex B."""
    first = 1000 * (IDS.index(u) + 1)
    coefficients = np.arange(first, first + 20, dtype="<u8").tobytes()
    draws: Iterator[bytes] = iter([seed(0x10, u), seed(0x20, u), seed(0x30, u), coefficients])

    def draw(size: int) -> bytes:
        drawn = next(draws)
        assert len(drawn) == size, "not the draws of Annex B"
        return drawn

    return draw


def replay(variant: str) -> dict[str, str]:
    """Run the round of Annex A through the public interface; the messages of client 1."""
    active = variant == "active"
    params = RoundParams(
        n_clients=4,
        threshold=3,
        length=3,
        encoding=FixedPoint(clip=1.0, fractional_bits=8, rounding="nearest"),
        modulus_bits=15,
        max_weight=10,
        session=b"example",
        security=variant,
        suite="x25519",
    )
    identities = {u: Identity(seed(0x40, u)) for u in IDS} if active else {}
    registry = Registry({u: i.public for u, i in identities.items()}) if active else None
    server = Server(params, registry=registry)
    clients = {
        u: Unhedged(
            u, params, identity=identities.get(u), registry=registry, entropy=entropy(u)
        )
        for u in IDS
    }
    calls = {
        "AdvertiseKeys": lambda u, _: clients[u].advertise_keys(),
        "ShareKeys": lambda u, data: clients[u].share_keys(data),
        "MaskedInput": lambda u, data: clients[u].masked_input(
            data, np.array(VECTORS[u]), WEIGHTS[u]
        ),
        "ConsistencySignature": lambda u, data: clients[u].check_consistency(data),
        "UnmaskShares": lambda u, data: clients[u].unmask(data),
    }
    seen = {"parameters": params.to_bytes(), "parameters digest": params.digest}
    inbox = dict.fromkeys(IDS, b"")
    for phase, after in NEXT[variant].items():
        name = protocol_doc.SENT[phase]
        present = IDS if phase in (Phase.ADVERTISE_KEYS, Phase.SHARE_KEYS) else IDS[:3]
        sent = {u: calls[name](u, inbox[u]) for u in present}
        seen[f"{name} from 1"] = sent[1]
        for u, data in sent.items():
            server.receive(u, data)
        inbox = server.close_round()
        if after != Phase.FINISHED:
            seen[f"{protocol_doc.ANSWERED[after]} to 1"] = inbox[1]
    assert server.result().integers.tolist() == [516, 388, -1026]
    assert server.result().weight == 15
    return {name: data.hex() for name, data in seen.items()}


@pytest.mark.parametrize("name", protocol_doc.generated())
def test_generated_parts_are_up_to_date(name: str) -> None:
    made = protocol_doc.generated()[name]
    assert protocol_doc.section(name) == made, "run python tests/support/protocol_doc.py"


def test_tables_of_checks_are_those_of_the_code() -> None:
    documented = set(protocol_doc.documented_checks())
    for side, checks in protocol_doc.other_checks().items():
        documented |= {(check, side) for check in checks}
    assert documented == protocol_doc.checks_in_code()


def test_phases_of_the_table_of_checks_exist() -> None:
    phases = {phase.value for phase in Phase}
    for text in protocol_doc.documented_checks().values():
        named = text.removesuffix(", at closing").split(", ")
        assert text in ("all", "all but the first") or phases.issuperset(named)


@pytest.mark.filterwarnings("ignore::secagg.ClippingWarning")  # an element is clipped there
@pytest.mark.parametrize("variant", NEXT)
def test_worked_example_is_that_of_the_machines(variant: str) -> None:
    messages = replay(variant)
    shown = protocol_doc.listing(f"example {variant}")
    compared = messages.keys() & shown.keys()
    assert len(compared) == (9 if variant == "semi-honest" else 10)
    for name in compared:
        assert shown[name].replace(" ", "") == messages[name], name


class Schedule:
    """The key schedule of clients 1 and 2 in a session of the example."""

    def __init__(self, session: bytes, *, hybrid: bool) -> None:
        self.session = session
        self.seal = {u: keys.KeyPair(seed(0x10, u)) for u in IDS}
        self.mask = {u: keys.KeyPair.masking(seed(0x20, u)) for u in IDS}
        self.kem = {u: kem.KemPair(seed(0x50, u, 64)) if hybrid else None for u in IDS}
        self.publics = {
            u: keys.PublicKeys(self.seal[u].public, self.mask[u].public, k.public if k else b"")
            for u, k in self.kem.items()
        }

    def bases(self) -> tuple[keys.U8, keys.U8]:
        """B from 1 to 2 and from 2 to 1."""
        one, two = self.publics[1], self.publics[2]
        secrets = secret_of(self.seal[1], two.seal), secret_of(self.mask[1], two.mask)
        shared = keys.rows_of([b"".join(map(bytes, secrets))], 64)
        kems = None
        if two.kem:
            kems = tuple(keys.digests(keys.rows_of([x.kem], 1184)) for x in (two, one))
        mine = 1, one.seal + one.mask
        theirs = keys.rows_of([two.seal + two.mask], 64)
        return sealing.base_keys(shared, self.session, mine, np.array([2], "u8"), theirs, kems)

    def agreement(self) -> keys.U8:
        shared = self.mask[1].agree(keys.rows_of([self.publics[2].mask]))
        mine, theirs = (1, self.publics[1].mask), keys.rows_of([self.publics[2].mask])
        return pair_masks.agreements(shared, self.session, mine, np.array([2], "u8"), theirs)

    def contribution(self, u: int, v: int) -> keys.U8:
        seed_of_u = self.mask[u].seed
        return pair_masks.contributions(seed_of_u, self.session, u, np.array([v], "u8"))


def test_worked_example_has_the_key_schedules_values() -> None:
    """The values of the worked example are those of the key schedule."""
    listing = protocol_doc.listing("example semi-honest")
    shown = {name: bytes.fromhex(value) for name, value in listing.items()}
    made = Schedule(shown["session"], hybrid=False)
    session = made.session
    roster = keys.roster_digest(made.publics)
    assert keys.session_id(shown["parameters digest"], roster) == session
    there, back = made.bases()
    key, other = sealing.box_keys(there, session, 1, 2), sealing.box_keys(back, session, 2, 1)
    box = keys.rows_of([shown["ShareKeys from 1"][-3 * 96 - 6 :][:96]], 96)
    opened, authentic = sealing.open_sealed(key, session, np.array([1], "u8"), 2, box)
    assert authentic.all()
    agreed = made.agreement()
    derived = {
        "seal_key of 1": made.publics[1].seal,
        "masking private key of 1": made.mask[1].private,
        "mask_key of 1": made.publics[1].mask,
        "roster digest": roster,
        "session": session,
        "share of 1 for 2": opened,
        "sealing secret 1 to 2": there,
        "box key 1 to 2": key,
        "box key 2 to 1": other,
        "commitment of 1": keys.commitment(seed(0x30, 1), session, 1),
        "self mask key of 1": keys.self_mask_key(seed(0x30, 1), session, 1),
        "agreement of 1 and 2": agreed,
        "pairwise mask key of 1 and 2": pair_masks.mask_keys(
            agreed, session, 1, np.array([2], "u8")
        ),
    }
    assert {name: bytes(value) for name, value in derived.items()} == {
        name: shown[name] for name in derived
    }
    assert len(shown) == len(derived) + 9, "a value that no test looks at"


def test_worked_example_of_suite_hybrid_has_the_key_schedules_values() -> None:
    listing = protocol_doc.listing("values hybrid")
    shown = {name: bytes.fromhex(value) for name, value in listing.items()}
    made = Schedule(shown["session"], hybrid=True)
    session, two = made.session, np.array([2], "u8")
    params = RoundParams.from_bytes(shown["parameters"])
    roster = keys.roster_digest(made.publics)
    assert params.suite == "hybrid"
    assert keys.session_id(params.digest, roster) == session
    given, taken = made.contribution(1, 2), made.contribution(2, 1)
    both = pair_masks.Contributed(given[:, :32], taken[:, :32])
    there, _ = made.bases()
    # the ciphertext is a function of the receiver's key and of m; see the independent code
    encapsulated = tuple(
        keys.rows_of([shown[name]]) for name in ("K 1 to 2", "SHA-256 of ct 1 to 2")
    )
    agreed = made.agreement()
    derived = {
        "roster digest": roster,
        "SHA-256 of e of 1": keys.digests(keys.rows_of([made.publics[1].kem], 1184)),
        "SHA-256 of e of 2": keys.digests(keys.rows_of([made.publics[2].kem], 1184)),
        "sealing secret 1 to 2": there,
        "box key 1 to 2": sealing.box_keys(there, session, 1, 2, encapsulated),
        "p of 1 for 2": both.own,
        "q of 1 for 2": given[:, 32:],
        "p of 2 for 1": both.theirs,
        "q of 2 for 1": taken[:, 32:],
        "check of 1 for 2": pair_masks.checks(session, 1, 2, given),
        "deposit of 1 for 2": pair_masks.deposits(taken[:, 32:], session, 1, 2, both.own),
        "agreement of 1 and 2": agreed,
        "pairwise mask key of 1 and 2": pair_masks.mask_keys(agreed, session, 1, two, both),
    }
    assert {name: bytes(value) for name, value in derived.items()} == {
        name: shown[name] for name in derived
    }


def test_worked_example_of_an_active_round_has_a_tree_of_signed_hashes() -> None:
    listing = protocol_doc.listing("example active")
    shown = {name: bytes.fromhex(value) for name, value in listing.items()}
    root = dealing.roots(
        keys.rows_of([shown["leaf of 1 for 2"]]),
        1,
        keys.rows_of([shown["path of 2 in the tree of 1"]], 64).reshape(1, 2, 32),
    )
    assert bytes(root) == shown["root of 1"]
    sent = shown["ShareKeys from 1"]
    commitment = keys.commitment(seed(0x30, 1), shown["session"], 1)
    mask_key = keys.KeyPair.masking(seed(0x20, 1)).public
    signed = dealing.signed_dealt(shown["session"], 1, commitment, mask_key, bytes(root))
    assert Registry({1: shown["identity key of 1"]}).verifies(1, signed, sent[-64:])
    for kind, name in enumerate("bs"):
        assert sent.count(shown[f"hash of the {name}-share of 1 for 2"]) == 1, kind


def test_mask_streams_are_those_of_the_code() -> None:
    for name, value in protocol_doc.listing("masks").items():
        ring = Ring(int(name.removeprefix("R = ")))
        elements = ring.zeros(8)
        mask = MaskSum()
        mask.add(bytes(range(16)))
        mask.apply(elements, ring)
        ring.reduce(elements)
        assert value == ", ".join(map(str, elements.tolist()))


def test_samples_of_noise_are_those_of_the_code() -> None:
    rows = [row.strip("| ").split(" | ") for row in protocol_doc.section("noise").split("\n")]
    assert len(rows) == 4 + 2
    for p, *numbers, first, later in rows[2:]:
        share = Share(int(p))
        table, k, scale, shift = share.law
        assert numbers == [str(x) for x in (k, scale, shift, len(table))]
        for start, shown in ((0, first), (4096, later)):
            samples = [int(y) for y in shown.replace("−", "-").split(", ")]
            (block,) = share.blocks(bytes(range(16)), start, len(samples))
            assert block.tolist() == samples
