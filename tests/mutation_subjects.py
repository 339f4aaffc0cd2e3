"""Sources that `mutation` changes, and their tests: all there is to mend after a move.

By subject and source file, the file's tests, the most specific and quickest first. A name x
stands for the one tests/**/test_x.py, and y/x for the one tests/**/y/test_x.py.
"""

from __future__ import annotations

SUBJECTS: dict[str, dict[str, str]] = {
    "protocol": {
        "secagg/protocol/phases.py": "phases client server active",
        "secagg/protocol/messages.py": "messages vectors_messages costs server client",
        "secagg/protocol/params_bytes.py": "params_bytes vectors messages vectors_messages",
        "secagg/protocol/client_ids.py": "client_ids vectors simulate client server",
        "secagg/client/client.py": "client active adversary consistency vectors_rounds",
        "secagg/client/states.py": "client active",
        "secagg/client/checks.py": "client active adversary consistency vectors_messages",
        "secagg/client/masked_input.py": "client simulate vectors_rounds vectors",
        "secagg/client/sealing.py": "client vectors_rounds adversary vectors_messages",
        "secagg/client/lifecycle.py": "suspend client active adversary phases",
        "secagg/client/stored.py": "stored suspend vectors_states",
        "secagg/vault/vault.py": "vault",
        "secagg/server/server.py": "server resume consistency simulate active journal",
        "secagg/server/stages.py": "consistency server active vectors_rounds vectors_messages",
        "secagg/server/cohort.py": "consistency vectors_rounds vectors_messages server",
    },
    "recovery": {
        "secagg/server/recovery.py": "server vectors_rounds resume vectors_messages recovery",
        "secagg/server/per_peer.py": "recovery vectors_rounds",
        "secagg/server/unmasking.py": "vectors_rounds simulate consistency vectors_messages",
        "secagg/shamir/reed_solomon.py": "shamir vectors_rounds recovery",
        "secagg/shamir/sharing.py": "shamir prime_fields vectors_rounds vectors server",
        "secagg/shamir/field.py": "shamir prime_fields vectors",
        "secagg/shamir/arithmetic.py": "prime_fields shamir",
        "secagg/shamir/primality.py": "prime_fields",
    },
    "packing": {
        "secagg/paillier/packing.py": "packing encrypted_items encrypted paillier_sum",
        "secagg/paillier/vectors.py": "encrypted paillier_trust encrypted_items threshold",
        "secagg/encoding/fixed_point.py": "fixedpoint fast_fixedpoint params encrypted",
        "secagg/encoding/integers.py": "fixedpoint params encrypted",
        "secagg/encoding/pieces.py": "fixedpoint suggestion encrypted",
        "secagg/encoding/ring.py": "ring params fixedpoint vectors_rounds messages",
    },
    "training": {
        "fedmf/training/loop.py": "trainer interrupts implicit_users mf",
        "fedmf/training/trainer.py": "trainer bad_input als mmf",
        "fedmf/training/schedule.py": "schedule trainer settings",
        "fedmf/training/optimisers.py": "fcf context settings",
        "fedmf/context/trainer.py": "context settings",
        "fedmf/fcf/fcf.py": "fcf implicit_users settings",
        "fedmf/fcf/federated.py": "fcf implicit_users implicit settings",
        "benches/papers/encrypted_items.py": "encrypted_items",
        "fedmf/aggregate/vectors.py": "aggregate mixed_sum mf trainer",
    },
}
