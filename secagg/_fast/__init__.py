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
from typing import TYPE_CHECKING

from secagg._fast import openssl_x25519, reference
from secagg._fast.reference_m61 import P61, U64
from secagg.errors import ParameterError

__all__ = ["COMPILED", "MASK_BYTES", "SLICE_BYTES", "TIER", "TIERS", "choose_tier"]
__all__ += reference.__all__


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

# kernels have the signatures of their twins, by which callers are type-checked
if TYPE_CHECKING or not COMPILED:
    from secagg._fast import reference as _best
else:
    from secagg._fast import _kernels as _best
decode, unpack_bits = _best.decode, _best.unpack_bits
encode, hkdf, sha256 = _best.encode, _best.hkdf, _best.sha256
pack_bits, pack_into = _best.pack_bits, _best.pack_into
# a forced tier must not run wider instructions than the tier's name states
if TIER == "portable":
    encode, hkdf = _kernels.encode_portable, _kernels.hkdf_portable
    sha256 = _kernels.sha256_portable
elif TIER in ("vaes", "aesni"):
    encode = _kernels.encode_avx2
if COMPILED and _numbers != "ifma":
    pack_bits, pack_into = _kernels.pack_bits_portable, _kernels.pack_into_portable
gcm_seal, gcm_open = reference.gcm_seal, reference.gcm_open
# without AES instructions no kernel: AES by tables in C would leak keys through the cache
if TIER in _PARTS and _kernels.gcm_tiers():
    gcm_seal, gcm_open = _kernels.gcm_seal, _kernels.gcm_open
discrete_gaussian, gaussian_shares = _best.discrete_gaussian, _best.gaussian_shares
rotate, widen = _best.rotate, _best.widen
m61_add, m61_sub, m61_mul = _best.m61_add, _best.m61_sub, _best.m61_mul
m61_inv, m61_dot, m61_matmul = _best.m61_inv, _best.m61_dot, _best.m61_matmul
m61_errors, m61_lagrange_at_zero = _best.m61_errors, _best.m61_lagrange_at_zero
prime_matmul, prime_lagrange_at_zero = _best.prime_matmul, _best.prime_lagrange_at_zero

_primes = _kernels.Primes(_numbers) if COMPILED else reference
prime_poly_eval = _primes.prime_poly_eval
m61_poly_eval: Callable[[U64, U64], U64] = _best.m61_poly_eval
# eight elements at a time beat the kernel that knows this prime alone
if _numbers == "ifma":
    m61_poly_eval = partial(prime_poly_eval, p=P61)

_modular = _kernels.Modular(_numbers) if COMPILED else reference
modular_radix, modular_width = _modular.modular_radix, _modular.modular_width
modular_multiply, modular_power = _modular.modular_multiply, _modular.modular_power
modular_table, modular_power_fixed = _modular.modular_table, _modular.modular_power_fixed

# never the twin, which is far slower than OpenSSL and serves tests only
x25519 = _kernels.x25519 if _numbers == "ifma" else openssl_x25519.x25519
