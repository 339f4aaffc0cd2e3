"""docs/protocol.md and the code say the same: diagrams, checks, bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import protocol_doc
from harness import mask_key_of, opening_of, seal_keys_of
from secagg import FixedPoint, Identity, Registry, RoundParams, Server
from secagg.encoding import Ring
from secagg.protocol import NEXT, Phase, keys
from secagg.protocol.masks import MaskSum
from secagg.protocol.noise import Share
from vectors_reader import Unhedged

IDS = (1, 2, 3, 300)
VECTORS = {1: (0.5, -0.25, 1.5), 2: (0.001953125, 0.005859375, -1.0), 3: (0.1, 0.2, -0.3)}
WEIGHTS = {1: 2, 2: 3, 3: 10}


def seed(kind: int, u: int) -> bytes:
    return bytes([kind + IDS.index(u) + 1]) * 32


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


@pytest.mark.parametrize("variant", NEXT)
def test_state_diagram_is_the_transition_table(variant: str) -> None:
    drawn = protocol_doc.section(f"diagram {variant}")
    assert drawn == protocol_doc.diagram(variant), "run python tests/support/protocol_doc.py"


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
    assert len(compared) == (9 if variant == "semi-honest" else 6)
    for name in compared:
        assert shown[name].replace(" ", "") == messages[name], name


def test_worked_example_has_the_key_schedules_values() -> None:
    """The values of the worked example are those of the key schedule."""
    listing = protocol_doc.listing("example semi-honest")
    shown = {name: bytes.fromhex(value) for name, value in listing.items()}
    seal_pairs = {u: keys.KeyPair(seed(0x10, u)) for u in IDS}
    mask_pairs = {u: keys.KeyPair(seed(0x20, u)) for u in IDS}
    c1, c2 = seal_pairs[1].public, seal_pairs[2].public
    s1, s2 = mask_pairs[1].public, mask_pairs[2].public
    roster = keys.roster_digest([(u, seal_pairs[u].public, mask_pairs[u].public) for u in IDS])
    session = keys.session_id(shown["parameters digest"], roster)
    shared = seal_pairs[1].agree(c2) + mask_pairs[1].agree(s2)
    there, back = seal_keys_of(shared, session, (1, c1 + s1), (2, c2 + s2))
    sealed_for_2 = shown["ShareKeys from 1"][-3 * 96 : -2 * 96]
    derived = {
        "seal_key of 1": c1,
        "mask_key of 1": s1,
        "roster digest": roster,
        "session": session,
        "share of 1 for 2": opening_of(there, session, 1, 2, sealed_for_2),
        "seal key 1 to 2": there,
        "seal key 2 to 1": back,
        "commitment of 1": keys.commitment(seed(0x30, 1), session, 1),
        "self mask key of 1": keys.self_mask_key(seed(0x30, 1), session, 1),
        "pairwise mask key of 1 and 2": mask_key_of(
            mask_pairs[1].agree(s2), session, (1, s1), (2, s2)
        ),
    }
    assert derived == {name: shown[name] for name in derived}
    assert len(shown) == len(derived) + 9, "a value that no test looks at"


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
