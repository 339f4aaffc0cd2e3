# The part of _kernels.pyx for lanes: wrappers of src/fixedpoint.c and src/bits.c.


def encode(x, out, clip, scale, weight, modulus, random):
    return encode_with(x, out, clip, scale, weight, modulus, random, SECAGG_AVX512)


def encode_avx2(x, out, clip, scale, weight, modulus, random):
    return encode_with(x, out, clip, scale, weight, modulus, random, SECAGG_AVX2)


def encode_portable(x, out, clip, scale, weight, modulus, random):
    return encode_with(x, out, clip, scale, weight, modulus, random, SECAGG_PLAIN)


cdef encode_with(x, out, clip, scale, weight, modulus, random, int widest):
    cdef size_t n = len(x), clipped, bad = 0
    cdef int finite
    cdef const float[::1] floats = None
    cdef const double[::1] doubles = None
    cdef uint32_t[::1] out32 = None
    cdef uint64_t[::1] out64 = None
    cdef const uint64_t[::1] noise = None
    cdef const void *elements
    cdef secagg_encoding how
    if x.itemsize == 4:
        floats = x
        elements = &floats[0]
    else:
        doubles = x
        elements = &doubles[0]
    if out.itemsize == 4:
        out32 = out
    else:
        out64 = out
    check_modulus(modulus, out.itemsize)
    if min(clip, scale) <= 0 or weight < 0:
        raise ValueError("clip and scale must be positive, weight not negative")
    # max(weight, 1) would branch on the weight
    if not (clip * scale <= 2.0**62 and clip * scale * weight <= 2.0**62):
        raise ValueError("clip · scale · weight exceeds 2^62")
    if modulus & (modulus - 1) and ceil(clip * scale) * weight >= modulus:
        raise ValueError("weight · ⌈clip · scale⌉ is not below the modulus")
    if <size_t>len(out) != n:
        raise ValueError(f"lengths differ: {n} and {len(out)}")
    how.random = NULL
    if random is not None:
        noise = random
        if <size_t>noise.shape[0] != n:
            raise ValueError(f"lengths differ: {n} and {noise.shape[0]}")
        how.random = &noise[0]
    how.width = x.itemsize
    how.widest = widest
    how.clip = clip
    how.scale = scale
    how.weight = weight
    how.largest = modulus - 1
    with nogil:
        if out32 is not None:
            clipped = secagg_encode32(&out32[0], elements, n, &how, &finite)
        else:
            clipped = secagg_encode64(&out64[0], elements, n, &how, &finite)
        if not finite:
            bad = secagg_first_not_finite(elements, n, how.width)
    return clipped, -1 if finite else bad


def decode(values, double[::1] out, modulus, double inverse_scale):
    cdef size_t n = out.shape[0]
    cdef const uint32_t[::1] values32 = None
    cdef const uint64_t[::1] values64 = None
    if values.itemsize == 4:
        values32 = values
    else:
        values64 = values
    check_modulus(modulus, values.itemsize)
    if <size_t>len(values) != n:
        raise ValueError(f"lengths differ: {len(values)} and {n}")
    cdef uint64_t largest = modulus - 1
    with nogil:
        if values32 is not None:
            secagg_decode32(&out[0], &values32[0], n, largest, inverse_scale)
        else:
            secagg_decode64(&out[0], &values64[0], n, largest, inverse_scale)


cdef check_bits(bits, width):
    if not 1 <= bits <= 8 * width:
        raise ValueError(f"{bits} bits do not fit lanes of {8 * width} bits")


def pack_bits(values, bits):
    return packed_with(values, bits, SECAGG_AVX512)


def pack_bits_portable(values, bits):
    return packed_with(values, bits, SECAGG_PLAIN)


def pack_into(values, bits, packed):
    pack_into_with(values, bits, packed, SECAGG_AVX512)


def pack_into_portable(values, bits, packed):
    pack_into_with(values, bits, packed, SECAGG_PLAIN)


cdef packed_with(values, bits, int widest):
    check_bits(bits, values.itemsize)
    cdef bytes packed = PyBytes_FromStringAndSize(NULL, (len(values) * bits + 7) // 8)
    pack(<uint8_t *>PyBytes_AsString(packed), values, bits, widest)
    return packed


cdef pack_into_with(values, bits, uint8_t[::1] packed, int widest):
    check_bits(bits, values.itemsize)
    if packed.shape[0] != (len(values) * bits + 7) // 8:
        raise ValueError(f"{packed.shape[0]} bytes for {len(values)} values of {bits} bits")
    pack(&packed[0], values, bits, widest)


cdef pack(uint8_t *packed, values, unsigned bits, int widest):
    cdef const uint32_t[::1] values32 = None
    cdef const uint64_t[::1] values64 = None
    if values.itemsize == 4:
        values32 = values
    else:
        values64 = values
    cdef size_t n = len(values)
    with nogil:
        if values32 is not None:
            secagg_pack32(packed, &values32[0], n, bits, widest)
        else:
            secagg_pack64(packed, &values64[0], n, bits, widest)


def unpack_bits(const uint8_t[::1] data, bits, out):
    cdef uint32_t[::1] out32 = None
    cdef uint64_t[::1] out64 = None
    if out.itemsize == 4:
        out32 = out
    else:
        out64 = out
    check_bits(bits, out.itemsize)
    cdef size_t n = len(out)
    cdef unsigned b = bits
    cdef int status
    if data.shape[0] != (len(out) * bits + 7) // 8:
        raise ValueError(f"{data.shape[0]} bytes are not {n} values of {bits} bits")
    with nogil:
        if out32 is not None:
            status = secagg_unpack32(&out32[0], &data[0], n, b)
        else:
            status = secagg_unpack64(&out64[0], &data[0], n, b)
    if status != 0:
        raise ValueError("a padding bit is set")
