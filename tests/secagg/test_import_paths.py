"""Import paths: those of the documents of 0.4, and the libraries that an import loads."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ATTRIBUTES = """
fedmf.Factors.load fedmf.PaillierSum fedmf.__version__ fedmf._fast
fedmf.attacks fedmf.context fedmf.datasets.simulated fedmf.dp fedmf.dp.DPFedMF fedmf.fcf
fedmf.fcf.FCF fedmf.fcf.views fedmf.from_triples fedmf.ratings.Ratings
fedmf.splits
secagg.Client secagg.Field secagg.FixedPoint secagg.Identity.generate secagg.Integers
secagg.Journal secagg.Journal.create secagg.Journal.open secagg.Packing
secagg.Phase.ADVERTISE_KEYS secagg.Phase.FINISHED secagg.Phase.MASKED_INPUT
secagg.Phase.SHARE_KEYS secagg.Registry secagg.RemoteProtocolError secagg.RoundParams
secagg.RoundResult secagg.Server secagg.Server.resume secagg._fast secagg._fast.TIER
secagg.costs.client_traffic secagg.field.M61 secagg.graph.recommend secagg.keys.KEY_BYTES
secagg.keys.SEED_BYTES secagg.keys.TAG_BYTES secagg.keys._MASK_KEY_BYTES
secagg.messages.SEALED_BYTES secagg.messages.SHARE_BYTES secagg.messages.SHARE_LIMBS
secagg.messages.VERSION secagg.messages._FRAME secagg.modular.TABLE_BYTES secagg.paillier
secagg.paillier.PublicKey.from_bytes secagg.paillier.generate_keypair secagg.primes._ROUNDS
secagg.primes._SMALL secagg.proofs._CHALLENGE_BITS secagg.proofs._HIDING_BITS
secagg.public_key.MAX_BITS secagg.public_key.MIN_BITS secagg.public_key.short_exponent
secagg.rounds.NEXT secagg.set_threads secagg.shamir.LIMB_BYTES secagg.simulate_round
secagg.testing secagg.threshold secagg.threshold_key.MAX_TRUSTEES
"""
HTTP = ["httpx", "starlette", "uvicorn", "prometheus_client"]
IMPORTS = """
fedmf.FedMF fedmf.FedMMF fedmf.LocalHead fedmf.PaillierSum fedmf.PlainSum fedmf.RidgeMask
fedmf.SecAggSum fedmf.Trainer fedmf.cf.CF fedmf.federated_cf.FederatedCF fedmf.from_triples
fedmf.load
fedmf.datasets.simulated.simulate fedmf.splits.random_split
secagg.messages secagg.testing secagg.threshold secagg.paillier.PrivateKey
secagg.paillier.PublicKey secagg.paillier.generate_insecure_keypair
secagg.paillier.generate_keypair secagg.threshold.deal_insecure
"""


def run(code: str, **environment: str) -> str:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_attributes_documented_in_0_4_are_found():
    run("import fedmf, secagg\n" + "\n".join(ATTRIBUTES.split()))


def test_imports_documented_in_0_4_work():
    splits = (name.rpartition(".") for name in IMPORTS.split())
    run("\n".join(f"from {module} import {name}" for module, _, name in splits))


def test_moved_module_is_the_same_object_under_both_names():
    run(
        "import secagg.messages, secagg.protocol.messages, fedmf.datasets.simulated as old\n"
        "import fedmf.data.sets.simulated as new\n"
        "assert secagg.messages is secagg.protocol.messages\n"
        "assert old is new\n"
    )


def test_unknown_names_are_attribute_errors():
    run(
        "import fedmf, secagg\n"
        "assert not hasattr(fedmf, 'nothing')\n"
        "assert not hasattr(secagg, 'nothing')\n"
    )


@pytest.mark.parametrize("pure", ["0", pytest.param("1", marks=pytest.mark.large)])
@pytest.mark.parametrize(
    ("imports", "heavy"),
    [
        ("import secagg", ["gmpy2", "scipy", *HTTP]),
        ("from secagg.session import *", HTTP),
        ("import fedmf", ["joblib", "matplotlib", "pooch", "requests", "scipy", "sklearn"]),
    ],
)
def test_import_loads_no_heavy_library(imports, heavy, pure):
    code = f"{imports}\nimport sys; print([m for m in {heavy} if m in sys.modules])"
    assert run(code, SECAGG_PURE=pure) == "[]\n"


@pytest.mark.parametrize("package", HTTP)
def test_http_without_its_extra_names_it(package):
    run(
        f"import sys; sys.modules[{package!r}] = None\n"
        "import secagg\n"
        "try:\n"
        "    secagg.http\n"
        "except secagg.MissingExtra as error:\n"
        f"    assert error.name == {package!r} and 'secagg[http]' in str(error)\n"
        "else:\n"
        "    raise AssertionError\n"
    )


def test_a_node_of_flower_imports_no_server():
    """A node starts a process for each message, whose processor time is mostly imports."""
    pytest.importorskip("flwr")
    server = ["flower.grid", "journal", "oneshot.helper", "server", "session.session"]
    run(
        "from secagg.flower import SecAggMod\n"
        f"import sys\nassert not {{f'secagg.{{m}}' for m in {server}}} & sys.modules.keys()\n"
    )


@pytest.mark.parametrize("package", ["secagg.flower", "fedmf.flower"])
def test_flower_without_flwr_names_the_extra(package: str) -> None:
    code = f"import sys; sys.modules['flwr'] = None\ntry: import {package}\n"
    printed = run(code + "except Exception as error: print(type(error).__name__, error)")
    assert printed.startswith("MissingExtra ")
    assert "secagg[flower]" in printed


@pytest.mark.parametrize(
    "package", ["secagg", "fedmf", "secagg.session", "secagg.oneshot", "secagg.flower"]
)
def test_lazy_names_are_listed(package: str) -> None:
    """`help` and completion take `dir`, before any name is imported."""
    if package == "secagg.flower":
        pytest.importorskip("flwr")
    missing = f"import {package} as p; print(sorted(set(p.__all__) - set(dir(p))))"
    assert run(missing).strip() == "[]"


BLOCKED = "import sys; sys.modules['gmpy2'] = None\n"
ROUND = """
import numpy as np, secagg
from secagg import *
params = RoundParams(n_clients=5, threshold=3, length=4, encoding=FixedPoint(clip=8.0))
vectors = {c: np.full(4, c + 0.5) for c in range(5)}
result = simulate_round(vectors, params, dropouts={3: "masked_input"})
assert result.sum.tolist() == [9.0] * 4
for p in (97, 2**62 - 57, 2**127 - 1):
    assert shamir.combine(shamir.split(5, 2, 3, field=Field(p))) == 5
secagg.set_threads(1)
Packing(encoding=FixedPoint(clip=8.0), length=10, summands=3)
"""


def test_secret_sharing_runs_without_gmpy2():
    run(BLOCKED + ROUND)


@pytest.mark.large
def test_commands_and_recommenders_run_without_gmpy2():
    run(
        BLOCKED + "import fedmf.cli, secagg.cli, numpy as np\n"
        "from secagg.kit.timing import machine\n"
        "assert machine()['gmpy2'] == machine()['gmp'] == 'none'\n"
        "fedmf.SecAggSum(), fedmf.PaillierSum(trust='key holder')\n"
    )


@pytest.mark.parametrize(
    "call",
    [
        "paillier.generate_keypair()",
        "paillier.generate_insecure_keypair(512)",
        "paillier.PublicKey(15)",
        "paillier.PrivateKey(7, 11)",
        "threshold.deal(3, 2)",
        "threshold.deal_insecure(3, 2)",
    ],
)
def test_encryption_without_gmpy2_names_the_extra(call: str) -> None:
    run(
        BLOCKED + "import secagg\nfrom secagg import paillier, threshold\n"
        f"try: {call}\n"
        "except secagg.MissingExtra as error:\n"
        "    assert error.name == 'gmpy2' and 'pip install \"secagg[he]\"' in str(error)\n"
        "else: raise AssertionError\n"
    )
