"""What `mutation` changes, and which tests are to notice: all there is to mend after a move.

By subject and source file, the file's tests, the most specific and quickest first. A name x
stands for the one tests/**/test_x.py, and y/x for the one tests/**/y/test_x.py.
"""

from __future__ import annotations

SUBJECTS: dict[str, dict[str, str]] = {
    "protocol": {
        "secagg/client.py": "client active adversary consistency vectors_rounds simulate",
        "secagg/client_state.py": "client active",
        "secagg/consistency.py": "active adversary consistency vectors_messages",
        "secagg/rounds.py": "client active adversary params server vectors_messages",
        "secagg/masking.py": "client simulate vectors_rounds vectors",
        "secagg/sealing.py": "client vectors_rounds adversary vectors_messages",
        "secagg/one_life.py": "client active adversary",
        "secagg/server.py": "server resume consistency simulate active journal",
        "secagg/stages.py": "consistency server active vectors_rounds resume vectors_messages",
        "secagg/stage.py": "server consistency active vectors_messages",
        "secagg/cohort.py": "vectors_rounds simulate active server",
        "secagg/messages.py": "messages vectors_messages costs server client",
    },
    "recovery": {
        "secagg/recovery.py": "server vectors_rounds resume vectors_messages",
        "secagg/unmasking.py": "vectors_rounds simulate consistency server vectors_messages",
        "secagg/reedsolomon.py": "shamir vectors_rounds server",
        "secagg/shamir.py": "shamir vectors_rounds vectors server",
        "secagg/summed.py": "consistency vectors_rounds active vectors_messages",
    },
    "packing": {
        "secagg/packing.py": "packing encrypted_items encrypted paillier_sum",
        "secagg/encrypted.py": "encrypted paillier_trust encrypted_items threshold",
        "secagg/fixedpoint.py": "fixedpoint fast_fixedpoint params simulate encrypted",
        "secagg/ring.py": "ring params fixedpoint vectors_rounds messages",
    },
    "training": {
        "fedmf/trainer.py": "trainer_refusals trainer bad_input als mmf",
        "fedmf/schedule.py": "schedule trainer_refusals trainer settings",
        "fedmf/counting.py": "trainer mf als implicit",
        "fedmf/optimisers.py": "fcf context settings",
        "fedmf/context/trainer.py": "context settings",
        "fedmf/implicit/fcf.py": "fcf implicit_users settings",
        "fedmf/implicit/federated_cf.py": "implicit fcf implicit_users",
        "fedmf/encrypted_items.py": "encrypted_items",
        "fedmf/sums/vectors.py": "aggregate mixed_sum mf trainer",
    },
}
