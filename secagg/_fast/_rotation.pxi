# The part of _kernels.pyx for rotations: wrappers of src/rotation.c.


def widen(x, double[::1] out):
    cdef size_t n = len(x), size = out.shape[0], bad = 0
    cdef int finite
    cdef double square
    cdef const float[::1] floats = None
    cdef const double[::1] doubles = None
    cdef const void *elements
    if n > size:
        raise ValueError(f"{n} elements do not fit {size}")
    if x.itemsize == 4:
        floats = x
        elements = &floats[0]
    else:
        doubles = x
        elements = &doubles[0]
    cdef size_t width = x.itemsize
    with nogil:
        square = secagg_widen(&out[0], size, elements, n, width, &finite)
        if not finite:
            bad = secagg_first_not_finite(elements, n, width)
    return square, -1 if finite else bad


def rotate(double[::1] values, const uint64_t[::1] signs, inverse):
    cdef size_t n = values.shape[0]
    cdef int backwards = bool(inverse)
    if n == 0 or n & (n - 1):
        raise ValueError(f"{n} elements are no power of two")
    if <size_t>signs.shape[0] != (n + 63) // 64:
        raise ValueError(f"{signs.shape[0]} words of signs for {n} elements")
    with nogil:
        secagg_rotate(&values[0], n, &signs[0], backwards)
