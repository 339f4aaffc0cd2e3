"""Shared by the tests of masks: every implementation, and known answers of AES."""

from __future__ import annotations

import pytest

from secagg import _fast
from secagg._fast import reference

IMPLEMENTATIONS = {"reference": reference, "active": _fast}
if _fast.COMPILED:
    from secagg._fast import _kernels

    IMPLEMENTATIONS |= {name: _kernels.Masks(name) for name in _kernels.mask_tiers()}

every = pytest.mark.parametrize("masks", IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS.keys())

# AESAVS: KeySbox 1-3 and VarKey 1, 2, 128 encrypt a block of zeros, which is our block 0.
ZERO_BLOCK = [
    ("10a58869d74be5a374cf867cfb473859", "6d251e6944b051e04eaa6fb4dbf78465"),
    ("caea65cdbb75e9169ecd22ebe6e54675", "6e29201190152df4ee058139def610bb"),
    ("a2e2fa9baf7d20822ca9f0542f764a41", "c3b44b95d9d2f25670eee9a0de099fa3"),
    ("80000000000000000000000000000000", "0edd33d3c621e546455bd8ba1418bec8"),
    ("c0000000000000000000000000000000", "4bc3f883450c113c64ca42e1112a9e87"),
    ("ffffffffffffffffffffffffffffffff", "a1f6258c877d5fcd8964484538bfc92c"),
]
# The GCM specification (McGrew and Viega), test cases 1 and 2: H, then E(K, Y0), then the
# ciphertext of zeros, which are the zero key's blocks 0, 1 and 2.
ZERO_KEY = (
    "66e94bd4ef8a2c3b884cfa59ca342b2e58e2fccefa7e3061367f1d57a4e7455a"
    "0388dace60b6a392f328c2b971b2fe78"
)
KNOWN = [*ZERO_BLOCK, ("00" * 16, ZERO_KEY)]
"""Keys, and the first blocks of their streams."""
