# The part of _kernels.pyx for large numbers: wrappers of src/modular.c.


def modular_tiers():
    """Names of the implementations of large numbers that this CPU can run, best first."""
    names = []
    cdef const secagg_modular_tier *const *tier = secagg_modular_tiers
    while tier[0] != NULL:
        if tier[0].supported():
            names.append((<bytes>tier[0].name).decode())
        tier += 1
    return tuple(names)


cdef check_limbs(limbs):
    if not 1 <= limbs <= SECAGG_MODULAR_LIMBS:
        raise ValueError(f"{limbs} limbs of a modulus are outside [1, {SECAGG_MODULAR_LIMBS}]")


cdef check_batch(const uint64_t[:, ::1] batch, Py_ssize_t count, size_t limbs):
    if batch.shape[0] != count or <size_t>batch.shape[1] != limbs:
        shape = (batch.shape[0], batch.shape[1])
        raise ValueError(f"a batch of shape {shape} in place of {(count, limbs)}")


cdef check_status(int status):
    if status == -1:
        raise MemoryError
    if status == -2:
        raise ValueError("an exponent has more bits than the table has windows for")


cdef class Modular:
    """Arithmetic of large numbers of a tier."""

    cdef const secagg_modular_tier *tier

    def __init__(self, str tier):
        names = modular_tiers()
        if tier not in names:
            raise ValueError(f"{tier} is not one of {names}")
        cdef const secagg_modular_tier *const *row = secagg_modular_tiers
        while <bytes>row[0].name != tier.encode():
            row += 1
        self.tier = row[0]

    def modular_radix(self, limbs):
        check_limbs(limbs)
        return self.tier.digit_bits * self.tier.digits(limbs)

    def modular_width(self, limbs):
        check_limbs(limbs)
        return self.tier.digits(limbs)

    cdef secagg_modulus modulus(
        self, const uint64_t[::1] n, const uint64_t[::1] square, const uint64_t[::1] root
    ) except *:
        """Check N, R² and √N, and bind them to the tier; all must outlive the result."""
        cdef secagg_modulus bound
        check_limbs(n.shape[0])
        if square.shape[0] != n.shape[0]:
            raise ValueError(f"{n.shape[0]} limbs of a modulus, {square.shape[0]} of a square")
        if n[0] % 2 == 0 or n[n.shape[0] - 1] == 0:
            raise ValueError("the modulus is even, or its highest limb is zero")
        bound.tier = self.tier
        bound.n = &n[0]
        bound.square = &square[0]
        bound.limbs = n.shape[0]
        bound.root_limbs = root.shape[0]
        bound.root = NULL
        if root.shape[0] > 0:
            if 2 * root.shape[0] - n.shape[0] not in (0, 1) or root[0] % 2 == 0:
                raise ValueError(f"a root of {root.shape[0]} limbs, or even")
            bound.root = &root[0]
        return bound

    cdef check_table(
        self, const uint64_t[:, :, ::1] table, window, const secagg_modulus *bound
    ):
        if not 1 <= window <= 16:
            raise ValueError(f"a window of {window} bits is outside [1, 16]")
        shape = (table.shape[0], 1 << window, self.tier.digits(bound.limbs))
        if (table.shape[1], table.shape[2]) != shape[1:]:
            raise ValueError(f"a table whose entries do not have the shape {shape[1:]}")

    def modular_multiply(
        self,
        const uint64_t[:, ::1] a,
        const uint64_t[:, ::1] b,
        uint64_t[:, ::1] out,
        const uint64_t[::1] modulus,
        const uint64_t[::1] square,
        const uint64_t[::1] root,
    ):
        cdef secagg_modulus bound = self.modulus(modulus, square, root)
        cdef size_t step = 0 if b.shape[0] == 1 else bound.limbs
        cdef int status
        check_batch(a, a.shape[0], bound.limbs)
        check_batch(out, a.shape[0], bound.limbs)
        check_batch(b, 1 if b.shape[0] == 1 else a.shape[0], bound.limbs)
        with nogil:
            status = secagg_modular_multiply(
                &out[0, 0], &a[0, 0], &b[0, 0], a.shape[0], step, &bound
            )
        check_status(status)

    def modular_power(
        self,
        const uint64_t[:, ::1] base,
        const uint64_t[::1] exponent,
        uint64_t[:, ::1] out,
        const uint64_t[::1] modulus,
        const uint64_t[::1] square,
        const uint64_t[::1] root,
    ):
        cdef secagg_modulus bound = self.modulus(modulus, square, root)
        cdef int status
        check_batch(base, base.shape[0], bound.limbs)
        check_batch(out, base.shape[0], bound.limbs)
        with nogil:
            status = secagg_modular_power(
                &out[0, 0], &base[0, 0], base.shape[0], &exponent[0], exponent.shape[0], &bound
            )
        check_status(status)

    def modular_table(
        self,
        const uint64_t[::1] base,
        uint64_t[:, :, ::1] table,
        window,
        const uint64_t[::1] modulus,
        const uint64_t[::1] square,
        const uint64_t[::1] root,
    ):
        cdef secagg_modulus bound = self.modulus(modulus, square, root)
        cdef unsigned bits
        cdef int status
        if <size_t>base.shape[0] != bound.limbs:
            raise ValueError(f"a base of {base.shape[0]} limbs in place of {bound.limbs}")
        self.check_table(table, window, &bound)
        bits = window
        with nogil:
            status = secagg_modular_table(
                &table[0, 0, 0], &base[0], table.shape[0], bits, &bound
            )
        check_status(status)

    def modular_power_fixed(
        self,
        const uint64_t[:, :, ::1] table,
        const uint64_t[:, ::1] exponents,
        uint64_t[:, ::1] out,
        window,
        const uint64_t[::1] modulus,
        const uint64_t[::1] square,
        const uint64_t[::1] root,
    ):
        cdef secagg_modulus bound = self.modulus(modulus, square, root)
        cdef unsigned bits
        cdef int status
        check_batch(out, out.shape[0], bound.limbs)
        self.check_table(table, window, &bound)
        check_batch(exponents, out.shape[0], exponents.shape[1])
        bits = window
        with nogil:
            status = secagg_modular_power_fixed(
                &out[0, 0], &table[0, 0, 0], &exponents[0, 0], out.shape[0],
                exponents.shape[1], table.shape[0], bits, &bound
            )
        check_status(status)
