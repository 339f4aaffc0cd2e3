"""Kernels: the compiled core or numpy twins, chosen at import, with the same results.

The constant ``TIER`` names the implementation in use, from fastest to slowest:

- ``"vaes512"``: masks with AVX-512 and VAES; encoding with AVX-512; large numbers, elements of
  a prime field, and X25519 eight at a time with AVX-512 IFMA,
- ``"ifma"``: the same, but masks with AES-NI,
- ``"vaes"``: masks with AVX2 and VAES, encoding with AVX2, numbers with 64-bit instructions, as
  in all tiers below, and X25519 through ``cryptography``,
- ``"aesni"``: masks with AES-NI,
- ``"armv8"``: the same with the AES instructions of ARMv8,
- ``"portable"``: compiled code for any CPU; masks are expanded through ``cryptography``,
- ``"pure"``: the module ``reference``, without compiled code.

The environment variable ``SECAGG_TIER`` forces a tier, and ``SECAGG_PURE=1`` forces "pure".
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from functools import partial

from secagg._fast import openssl_x25519, reference
from secagg._fast.reference_m61 import P61, U64
from secagg.errors import ParameterError

__all__ = [
    "COMPILED",
    "MASK_BYTES",
    "SLICE_BYTES",
    "TIER",
    "TIERS",
    "choose_tier",
    "decode",
    "discrete_gaussian",
    "encode",
    "gcm_open",
    "gcm_seal",
    "hkdf",
    "m61_add",
    "m61_dot",
    "m61_errors",
    "m61_inv",
    "m61_lagrange_at_zero",
    "m61_matmul",
    "m61_mul",
    "m61_poly_eval",
    "m61_sub",
    "mask_mod",
    "mask_words",
    "modular_multiply",
    "modular_power",
    "modular_power_fixed",
    "modular_radix",
    "modular_table",
    "modular_width",
    "pack_bits",
    "pack_into",
    "prime_lagrange_at_zero",
    "prime_matmul",
    "prime_poly_eval",
    "unpack_bits",
    "x25519",
]


def choose_tier(wanted: str | None, available: tuple[str, ...]) -> str:
    """Return `wanted`, or for None the first tier; raise `ParameterError` if unavailable."""
    if wanted and wanted not in available:
        raise ParameterError(f"SECAGG_TIER={wanted} is not one of {', '.join(available)}")
    return wanted or available[0]


_PARTS = {
    "vaes512": ("vaes512", "ifma"),
    "ifma": ("aesni", "ifma"),
    "vaes": ("vaes", "portable"),
    "aesni": ("aesni", "portable"),
    "armv8": ("armv8", "portable"),
}
"""Kernels of the masks, and of large numbers, in each tier above "portable"."""

TIERS: tuple[str, ...] = ("pure",)
"""Tiers that can run on this machine, fastest first."""

if os.environ.get("SECAGG_PURE") != "1":
    try:
        import secagg._fast._kernels as _kernels  # this form names the missing file
    except ImportError as error:
        if os.environ.get("SECAGG_TIER") != "pure":
            remedy = "install a C compiler and reinstall it, leave the folder of its sources"
            if "t" in getattr(sys, "abiflags", ""):
                remedy = "take a Python with the GIL, as a free-threaded one has no stable ABI"
            warnings.warn(
                f"secagg runs without its compiled code ({error}), many times slower: "
                f"{remedy}, or set SECAGG_PURE=1",
                RuntimeWarning,
                stacklevel=2,
            )
    else:
        _found = (
            tier
            for tier, (masks, numbers) in _PARTS.items()
            if masks in _kernels.mask_tiers() and numbers in _kernels.modular_tiers()
        )
        TIERS = (*_found, "portable", *TIERS)

TIER = choose_tier(os.environ.get("SECAGG_TIER"), TIERS)
COMPILED = TIER != "pure"

MASK_BYTES = {"vaes512": 32 << 20, "vaes": 24 << 20, "ifma": 12 << 20, "aesni": 12 << 20}.get(
    TIER, 256 << 20
)
"""Least bytes of masks for threads to pay: on a core with AES, about a millisecond of masks.

Through ``cryptography``, in Python, threads wait for each other, and only long slices gain.
"""
SLICE_BYTES = 1 << (20 if TIER in ("portable", "pure") else 14)
"""Bytes of a vector, at least, for a thread that adds masks."""

_numbers = _PARTS[TIER][1] if TIER in _PARTS else "portable"
_masks = _kernels.Masks(_PARTS[TIER][0]) if TIER in _PARTS else reference
mask_words, mask_mod = _masks.mask_words, _masks.mask_mod

# a forced tier must not run wider instructions than the tier's name states
if TIER == "portable":
    encode = _kernels.encode_portable
elif TIER in ("vaes", "aesni"):
    encode = _kernels.encode_avx2
else:
    encode = _kernels.encode if COMPILED else reference.encode
if TIER == "portable":
    hkdf = _kernels.hkdf_portable
else:
    hkdf = _kernels.hkdf if COMPILED else reference.hkdf
# without AES instructions no kernel: AES by tables in C would leak keys through the cache
if TIER in _PARTS and _kernels.gcm_tiers():
    gcm_seal, gcm_open = _kernels.gcm_seal, _kernels.gcm_open
else:
    gcm_seal, gcm_open = reference.gcm_seal, reference.gcm_open
decode = _kernels.decode if COMPILED else reference.decode
if _numbers == "ifma":
    pack_bits, pack_into = _kernels.pack_bits, _kernels.pack_into
elif COMPILED:
    pack_bits, pack_into = _kernels.pack_bits_portable, _kernels.pack_into_portable
else:
    pack_bits, pack_into = reference.pack_bits, reference.pack_into
unpack_bits = _kernels.unpack_bits if COMPILED else reference.unpack_bits
m61_add = _kernels.m61_add if COMPILED else reference.m61_add
m61_sub = _kernels.m61_sub if COMPILED else reference.m61_sub
m61_mul = _kernels.m61_mul if COMPILED else reference.m61_mul
m61_inv = _kernels.m61_inv if COMPILED else reference.m61_inv
m61_dot = _kernels.m61_dot if COMPILED else reference.m61_dot
m61_matmul = _kernels.m61_matmul if COMPILED else reference.m61_matmul
m61_lagrange_at_zero = (
    _kernels.m61_lagrange_at_zero if COMPILED else reference.m61_lagrange_at_zero
)
m61_errors = _kernels.m61_errors if COMPILED else reference.m61_errors
_primes = _kernels.Primes(_numbers) if COMPILED else reference
prime_poly_eval = _primes.prime_poly_eval
m61_poly_eval: Callable[[U64, U64], U64] = (
    _kernels.m61_poly_eval if COMPILED else reference.m61_poly_eval
)
# eight elements at a time beat the kernel that knows this prime alone
if _numbers == "ifma":
    m61_poly_eval = partial(prime_poly_eval, p=P61)
prime_matmul = _kernels.prime_matmul if COMPILED else reference.prime_matmul
prime_lagrange_at_zero = (
    _kernels.prime_lagrange_at_zero if COMPILED else reference.prime_lagrange_at_zero
)
discrete_gaussian = _kernels.discrete_gaussian if COMPILED else reference.discrete_gaussian

_modular = _kernels.Modular(_numbers) if COMPILED else reference
modular_radix, modular_width = _modular.modular_radix, _modular.modular_width
modular_multiply, modular_power = _modular.modular_multiply, _modular.modular_power
modular_table, modular_power_fixed = _modular.modular_table, _modular.modular_power_fixed

# never the twin, which is far slower than OpenSSL and serves tests only
x25519 = _kernels.x25519 if _numbers == "ifma" else openssl_x25519.x25519
