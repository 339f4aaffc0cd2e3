# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False, freethreading_compatible=True
"""Python wrappers of src/steps.c, which validate shapes and ranges and release the GIL.

Meaning and ranges are documented in ``reference``, types in ``_kernels.pyi``.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np

cdef extern from "steps.h" nogil:
    ctypedef struct fedmf_block:
        size_t users, k
        const int64_t *indptr
        const int32_t *items
        const double *values
        const double *q
    ctypedef struct fedmf_prior:
        const double *precision
        const double *scale
        const double *shifts
        const double *noise

    void fedmf_predict(double *, const double *, const double *, const int64_t *,
                       const int64_t *, size_t, size_t)
    void fedmf_descend(double *, double *, const fedmf_block *, size_t, double, double)
    void fedmf_draw(double *, uint8_t *, double *, double *, const double *, size_t, size_t)
    void fedmf_draw_users(double *, uint8_t *, double *, const fedmf_block *,
                          const fedmf_prior *, size_t)
    void fedmf_solve(double *, uint8_t *, double *, const fedmf_block *, size_t, double,
                     const double *)
    void fedmf_gradients(double *, const double *, const fedmf_block *, size_t, double,
                         const double *)
    void fedmf_add_integers(int64_t *, const int32_t *, const int64_t *, size_t, size_t)
    void fedmf_add_floats(double *, const int32_t *, const double *, size_t, size_t)

ctypedef fused index:
    int32_t
    int64_t


cdef check_range(str what, const index[::1] numbers, Py_ssize_t bound):
    cdef Py_ssize_t j
    cdef int outside = 0
    for j in range(numbers.shape[0]):
        outside |= (numbers[j] < 0) | (numbers[j] >= bound)
    if outside:
        raise IndexError(f"{what} is not in 0 <= {what} < {bound}")


cdef check_shape(const double[:, ::1] table, Py_ssize_t rows, Py_ssize_t columns):
    if table.shape[0] != rows or table.shape[1] != columns:
        raise ValueError(f"a table must have {rows} rows and {columns} columns")


cdef class Block:
    """Checked `fedmf_block`; the arrays behind the pointers must outlive the block."""

    cdef fedmf_block inner

    def __init__(
        self,
        const int64_t[::1] indptr,
        const int32_t[::1] items,
        const double[::1] values,
        const double[:, ::1] q,
        double[:, ::1] p,
        Py_ssize_t fixed,
    ):
        cdef Py_ssize_t n = items.shape[0], users = indptr.shape[0] - 1, u
        if users != p.shape[0] or indptr[0] != 0 or indptr[users] != n or n != values.shape[0]:
            raise ValueError("the ratings do not fit the users")
        for u in range(users):
            if indptr[u] > indptr[u + 1]:
                raise ValueError("indptr descends")
        if p.shape[1] != q.shape[1] or not 0 <= fixed < p.shape[1]:
            raise ValueError("the factors do not fit each other")
        check_range[int32_t]("item", items, q.shape[0])
        self.inner.users = users
        self.inner.k = p.shape[1]
        # &array[0] of an empty array would be an address outside the array
        self.inner.indptr = &indptr[0]
        self.inner.items = &items[0] if n else NULL
        self.inner.values = &values[0] if n else NULL
        self.inner.q = &q[0, 0] if q.shape[0] else NULL


def predict(
    const double[:, ::1] p,
    const double[:, ::1] q,
    const int64_t[::1] users,
    const int64_t[::1] items,
    double[::1] out,
):
    cdef size_t n = out.shape[0], k = p.shape[1]
    if not users.shape[0] == items.shape[0] == out.shape[0]:
        raise ValueError("as many users as items and predictions")
    if p.shape[1] != q.shape[1] or k == 0:
        raise ValueError("the factors do not fit each other")
    check_range[int64_t]("user", users, p.shape[0])
    check_range[int64_t]("item", items, q.shape[0])
    if n:
        with nogil:
            fedmf_predict(&out[0], &p[0, 0], &q[0, 0], &users[0], &items[0], n, k)


def descend(indptr, items, values, q, double[:, ::1] p, size_t fixed, double rate, double reg):
    cdef Block block = Block(indptr, items, values, q, p, fixed)
    cdef double[::1] work = np.empty(block.inner.k)
    if block.inner.users:
        with nogil:
            fedmf_descend(&p[0, 0], &work[0], &block.inner, fixed, rate, reg)


def solve(
    indptr,
    items,
    values,
    q,
    double[:, ::1] p,
    size_t fixed,
    double reg,
    const double[::1] centre,
):
    cdef Block block = Block(indptr, items, values, q, p, fixed)
    cdef size_t n = block.inner.k - fixed
    cdef double[::1] work = np.empty((n + 1) * n + 2 * n + 4 * (n + 1))
    if <size_t>centre.shape[0] != block.inner.k:
        raise ValueError("the centre does not fit the factors")
    solved = np.empty(block.inner.users, np.bool_)
    cdef uint8_t[::1] flags = solved.view(np.uint8)
    if block.inner.users:
        with nogil:
            fedmf_solve(
                &p[0, 0], &flags[0], &work[0], &block.inner, fixed, reg, &centre[0]
            )
    return solved


def draw(double[:, :, ::1] tables, const double[:, ::1] noise, double[:, ::1] out):
    cdef size_t rows = tables.shape[0], n = tables.shape[2]
    if n == 0 or tables.shape[1] != tables.shape[2] + 1:
        raise ValueError("a table has a row more than columns")
    check_shape(noise, rows, n)
    check_shape(out, rows, n)
    cdef double[::1] work = np.empty(2 * n)
    solved = np.empty(rows, np.bool_)
    cdef uint8_t[::1] flags = solved.view(np.uint8)
    if rows:
        with nogil:
            fedmf_draw(&out[0, 0], &flags[0], &work[0], &tables[0, 0, 0], &noise[0, 0], rows, n)
    return solved


def draw_users(
    indptr,
    items,
    values,
    q,
    double[:, ::1] p,
    size_t fixed,
    const double[::1] scale,
    const double[:, ::1] precision,
    const double[:, ::1] shifts,
    const double[:, ::1] noise,
):
    cdef Block block = Block(indptr, items, values, q, p, fixed)
    cdef Py_ssize_t users = block.inner.users, n = block.inner.k - fixed
    cdef fedmf_prior prior
    if scale.shape[0] != users:
        raise ValueError("as many scales as users")
    check_shape(precision, n, n)
    check_shape(shifts, users, n)
    check_shape(noise, users, n)
    cdef double[::1] work = np.empty((n + 1) * n + 2 * n + 4 * (n + 1))
    solved = np.empty(users, np.bool_)
    cdef uint8_t[::1] flags = solved.view(np.uint8)
    if users:
        prior.precision, prior.scale = &precision[0, 0], &scale[0]
        prior.shifts, prior.noise = &shifts[0, 0], &noise[0, 0]
        with nogil:
            fedmf_draw_users(&p[0, 0], &flags[0], &work[0], &block.inner, &prior, fixed)
    return solved


def gradients(
    indptr,
    items,
    values,
    q,
    double[:, ::1] p,
    double[:, ::1] out,
    double reg,
    const double[::1] centre,
):
    cdef Block block = Block(indptr, items, values, q, p, 0)
    cdef size_t width = out.shape[1]
    if out.shape[0] != items.shape[0] or not 0 < width <= block.inner.k:
        raise ValueError("the gradients do not fit the ratings")
    if <size_t>centre.shape[0] != block.inner.k:
        raise ValueError("the centre does not fit the factors")
    if out.shape[0]:
        with nogil:
            fedmf_gradients(&out[0, 0], &p[0, 0], &block.inner, width, reg, &centre[0])


def add_rows(table, const int32_t[::1] rows, values):
    cdef size_t n = rows.shape[0], k = table.shape[1]
    cdef int64_t[:, ::1] integers
    cdef const int64_t[:, ::1] more_integers
    cdef double[:, ::1] floats
    cdef const double[:, ::1] more_floats
    if values.shape != (n, k):
        raise ValueError("the rows do not fit the table")
    check_range[int32_t]("row", rows, table.shape[0])
    if n == 0 or k == 0:
        return
    if table.dtype == np.int64:
        integers, more_integers = table, values
        with nogil:
            fedmf_add_integers(&integers[0, 0], &rows[0], &more_integers[0, 0], n, k)
    else:
        floats, more_floats = table, values
        with nogil:
            fedmf_add_floats(&floats[0, 0], &rows[0], &more_floats[0, 0], n, k)
