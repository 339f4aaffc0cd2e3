"""Choice of implementation: made once, forced by the environment, never by accident."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from secagg import _fast
from secagg._fast import reference
from secagg.errors import ParameterError

PROBE = """
import numpy as np
from secagg import _fast
acc = np.zeros(100, np.uint64)
_fast.mask_words(acc, bytes(16), b"\\1", 3)
noise = np.zeros(4, np.int64)
_fast.discrete_gaussian(acc, noise, 700)
acc %= 97
acc[:4] ^= noise.view(np.uint64) % 97
_fast.mask_mod(acc, bytes(range(16)), b"\\0", 97, 3)
n, square = np.array([97], np.uint64), np.array([4**_fast.modular_radix(1) % 97], np.uint64)
_fast.modular_multiply(acc[:, None], acc[:1, None], acc[:, None], n, square, n[:0])
print(_fast.TIER, _fast.COMPILED, ",".join(_fast.TIERS), acc.tobytes().hex()[:64], end=" ")
print(_fast.modular_radix(1), end=" ")
point = np.full((1, 32), 7, np.uint8)
_fast.x25519(point, point, point)
print(point.tobytes().hex(), _fast.x25519.__module__, _fast.gcm_seal.__module__)
"""
WITHOUT_EXTENSION = "import sys; sys.modules['secagg._fast._kernels'] = None\n" + PROBE

LADDER = ("vaes512", "ifma", "vaes", "aesni", "armv8", "portable", "pure")
RADIX = dict.fromkeys(LADDER, 64) | {"vaes512": 8 * 52, "ifma": 8 * 52, "pure": 0}
"""log2 of Montgomery's radix for one limb: it differs between the implementations."""

SEALING = ("vaes512", "ifma", "vaes", "aesni")
HAS_GCM = _fast.COMPILED and _fast._kernels.gcm_tiers() != ()
SEVENS = np.full((1, 32), 7, np.uint8)


def probe(code: str = PROBE, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("SECAGG_")}
    return subprocess.run(  # noqa: S603
        [sys.executable, "-c", code],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def expected() -> str:
    acc = np.zeros(100, np.uint64)
    reference.mask_words(acc, bytes(16), b"\1", 3)
    noise = np.zeros(4, np.int64)
    assert reference.discrete_gaussian(acc, noise, 700)[0] == 4
    acc %= 97
    acc[:4] ^= noise.view(np.uint64) % 97
    reference.mask_mod(acc, bytes(range(16)), b"\0", 97, 3)
    acc = acc * acc[0] % 97
    return acc.tobytes().hex()[:64]


@pytest.mark.parametrize(
    "tier", [*(pytest.param(t, marks=pytest.mark.large) for t in _fast.TIERS[:-1]), "pure"]
)
def test_every_tier_can_be_forced_and_gives_the_same_results(tier):
    done = probe(SECAGG_TIER=tier)
    chosen, compiled, _, results, radix, shared, module, gcm = done.stdout.split()
    assert chosen == tier
    assert compiled == str(tier != "pure")
    assert results == expected()
    assert int(radix) == RADIX[tier]
    out = np.empty_like(SEVENS)
    reference.x25519(SEVENS, SEVENS, out)
    assert shared == out.tobytes().hex()
    ran = "_kernels" if tier in ("vaes512", "ifma") else "openssl_x25519"
    assert module == f"secagg._fast.{ran}"
    ran = "_kernels" if tier in SEALING and HAS_GCM else "reference_gcm"
    assert gcm == f"secagg._fast.{ran}"


AVX512 = {"aes", "sse4_1", "avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl"}
NEEDS = {
    "vaes512": AVX512 | {"avx512ifma", "vaes"},
    "ifma": AVX512 | {"avx512ifma"},
    "vaes": {"aes", "sse4_1", "avx2", "vaes"},
    "aesni": {"aes", "sse4_1"},
}
"""Instructions of the tiers for x86-64, as Linux names them."""


@pytest.mark.skipif(
    not _fast.COMPILED or (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="compiled code for x86-64 under Linux asks the processor",
)
def test_tiers_are_those_of_the_processor_as_linux_lists_it():
    words = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\nflags")[2]
    flags = set(words.partition("\n")[0].split())
    assert "fpu" in flags
    found = [tier for tier, needed in NEEDS.items() if needed <= flags]
    assert [tier for tier in _fast.TIERS if tier in NEEDS] == found


def test_every_kernel_of_the_twins_is_dispatched():
    assert {name for name in _fast.__all__ if not hasattr(_fast, name)} == set()
    assert set(reference.__all__) < set(_fast.__all__)


@pytest.mark.skipif(
    os.environ.get("SECAGG_PURE") == "1"
    or os.environ.get("SECAGG_TIER") == "pure"
    or os.environ.get("SECAGG_NO_EXTENSION") == "1",
    reason="pure Python was asked for",
)
def test_compiled_code_runs_by_default():
    assert _fast.COMPILED
    assert _fast.TIER != "pure"


def test_tiers_are_in_order_and_the_first_is_the_default():
    assert [tier for tier in LADDER if tier in _fast.TIERS] == list(_fast.TIERS)
    assert _fast.choose_tier(None, ("ifma", "aesni", "portable", "pure")) == "ifma"
    assert _fast.choose_tier("", ("portable", "pure")) == "portable"


def test_tiers_that_cannot_run_are_named_in_the_error():
    with pytest.raises(ParameterError) as caught:
        _fast.choose_tier("abacus", ("aesni", "portable"))
    for name in ("abacus", "aesni", "portable"):
        assert name in str(caught.value)
    done = probe(SECAGG_PURE="1", SECAGG_TIER="portable")
    assert "ParameterError: SECAGG_TIER=portable " in done.stderr
    for name in ("Masks", "Primes", "Modular") if _fast.COMPILED else ():
        with pytest.raises(ValueError, match="abacus"):
            getattr(_fast._kernels, name)("abacus")
        with pytest.raises(TypeError):
            getattr(_fast._kernels, name)()


def test_without_the_extension_the_twins_run():
    done = probe("import sys; sys.abiflags = 't'\n" + WITHOUT_EXTENSION)
    assert done.stdout.split()[:5] == ["pure", "False", "pure", expected(), "0"]
    assert done.stderr.count("RuntimeWarning") == 1
    assert "free-threaded" in done.stderr
    assert "free-threaded" not in probe(WITHOUT_EXTENSION).stderr


@pytest.mark.parametrize(
    "chosen",
    [{"SECAGG_PURE": "1"}, pytest.param({"SECAGG_TIER": "pure"}, marks=pytest.mark.large)],
)
def test_pure_python_chosen_deliberately_does_not_warn(chosen):
    done = probe(WITHOUT_EXTENSION, **chosen)
    assert done.stdout.split()[:3] == ["pure", "False", "pure"]
    assert done.stderr == ""
