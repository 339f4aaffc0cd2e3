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
        "secagg/client/client.py": "client active adversary consistency vectors",
        "secagg/client/states.py": "client active",
        "secagg/client/checks.py": "client active adversary consistency vectors_messages",
        "secagg/client/masked_input.py": "client simulate adversary vectors",
        "secagg/client/lifecycle.py": "suspend client active adversary phases",
        "secagg/client/stored.py": "stored suspend vectors_states",
        "secagg/vault/vault.py": "vault",
        "secagg/server/server.py": "server resume consistency simulate active journal",
        "secagg/server/stages.py": "consistency server active vectors vectors_messages",
        "secagg/server/cohort.py": "recovery vectors vectors_messages server",
    },
    "recovery": {
        "secagg/server/unmasking.py": "server vectors resume vectors_messages recovery",
        "secagg/shamir/reed_solomon.py": "shamir vectors recovery",
        "secagg/shamir/sharing.py": "shamir prime_fields vectors server",
        "secagg/shamir/field.py": "shamir prime_fields vectors",
        "secagg/shamir/primality.py": "prime_fields",
    },
    "packing": {
        "secagg/paillier/packing.py": "packing encrypted_items encrypted paillier_sum",
        "secagg/paillier/vectors.py": "encrypted paillier_trust encrypted_items threshold",
        "secagg/encoding/fixed_point.py": "fixedpoint fast_fixedpoint params encrypted",
        "secagg/encoding/integers.py": "fixedpoint params encrypted",
        "secagg/encoding/pieces.py": "fixedpoint suggestion encrypted",
        "secagg/encoding/encoding.py": "ring params fixedpoint vectors messages",
    },
    "training": {
        "fedmf/training/loop.py": "trainer interrupts implicit mf",
        "fedmf/training/trainer.py": "trainer als mmf",
        "fedmf/training/schedule.py": "schedule trainer declared_settings",
        "fedmf/training/optimisers.py": "fcf context declared_settings",
        "fedmf/context/trainer.py": "context declared_settings",
        "fedmf/fcf/fcf.py": "fcf implicit declared_settings",
        "fedmf/fcf/federated.py": "fcf implicit declared_settings",
        "benches/papers/encrypted_items.py": "encrypted_items",
        "fedmf/aggregate/vectors.py": "aggregate mixed_sum mf trainer",
    },
}
