#include "steps.h"

#include <math.h>
#include <string.h>

/* A pivot below this share of the original diagonal element counts as zero. */
#define TINY 0x1p-40

static inline double dot(const double *restrict a, const double *restrict b, size_t k)
{
    double sum = a[0] * b[0];
    for (size_t f = 1; f < k; f++)
        sum += a[f] * b[f];
    return sum;
}

void fedmf_predict(double *out, const double *p, const double *q, const int64_t *users,
                   const int64_t *items, size_t n, size_t k)
{
    for (size_t j = 0; j < n; j++)
        out[j] = dot(q + (size_t)items[j] * k, p + (size_t)users[j] * k, k);
}

void fedmf_descend(double *p, double *restrict slope, const fedmf_block *block, size_t fixed,
                   double rate, double reg)
{
    const size_t k = block->k;
    for (size_t u = 0; u < block->users; u++) {
        const int64_t first = block->indptr[u], end = block->indptr[u + 1];
        double *restrict mine = p + u * k;
        memset(slope, 0, k * sizeof *slope);
        for (int64_t j = first; j < end; j++) {
            const double *restrict q = block->q + (size_t)block->items[j] * k;
            const double error = block->values[j] - dot(q, mine, k);
            for (size_t f = fixed; f < k; f++)
                slope[f] += error * q[f];
        }
        const double pull = (double)(end - first) * reg;
        for (size_t f = fixed; f < k; f++)
            mine[f] -= rate * (pull * mine[f] - slope[f]);
    }
}

/* Add the products of a rating to `table`: rows 0 to n of a lower triangle, the right side as
 * row n. x has n factors and the target. */
static inline void add_products(double *restrict table, const double *restrict x, size_t n)
{
    for (size_t a = 0; a <= n; a++) {
        double *restrict row = table + a * n;
        const size_t length = a < n ? a + 1 : n;
        for (size_t b = 0; b < length; b++)
            row[b] += x[a] * x[b];
    }
}

/* The same of four ratings in turn; each element is loaded and stored once. */
static inline void add_four(double *restrict table, const double *restrict x, size_t n)
{
    const double *restrict y = x + n + 1, *restrict z = y + n + 1, *restrict w = z + n + 1;
    for (size_t a = 0; a <= n; a++) {
        double *restrict row = table + a * n;
        const double xa = x[a], ya = y[a], za = z[a], wa = w[a];
        const size_t length = a < n ? a + 1 : n;
        for (size_t b = 0; b < length; b++)
            row[b] = (((row[b] + xa * x[b]) + ya * y[b]) + za * z[b]) + wa * w[b];
    }
}

/* Cholesky's decomposition of the n rows, and forward substitution of row n, in place. */
static int eliminate(double *restrict table, double *restrict column, size_t n)
{
    for (size_t j = 0; j < n; j++)
        column[j] = TINY * table[j * n + j];
    for (size_t j = 0; j < n; j++) {
        const double pivot = table[j * n + j];
        if (!(pivot > column[j]))
            return 0;
        const double root = sqrt(pivot);
        table[j * n + j] = root;
        for (size_t i = j + 1; i <= n; i++) {
            const double factor = table[i * n + j] / root;
            double *restrict row = table + i * n;
            row[j] = factor;
            if (i < n)
                column[n + i] = factor;
            const size_t length = i < n ? i + 1 : n;
            for (size_t m = j + 1; m < length; m++)
                row[m] -= factor * column[n + m];
        }
    }
    return 1;
}

/* Set the n + 1 rows of `table` to the lower triangle of QᵀQ and to Qᵀr of the ratings of user
 * u, with the part of the fixed columns taken off. x: 4 * (n + 1) elements. */
static void add_ratings(double *table, double *x, const double *mine, const fedmf_block *block,
                        size_t u, size_t fixed)
{
    const size_t k = block->k, n = k - fixed;
    memset(table, 0, (n + 1) * n * sizeof *table);
    size_t held = 0;
    for (int64_t j = block->indptr[u]; j < block->indptr[u + 1]; j++) {
        const double *q = block->q + (size_t)block->items[j] * k;
        double *next = x + held * (n + 1), target = block->values[j];
        for (size_t f = 0; f < fixed; f++)
            target -= q[f] * mine[f];
        memcpy(next, q + fixed, n * sizeof *next);
        next[n] = target;
        if (++held == 4) {
            add_four(table, x, n);
            held = 0;
        }
    }
    for (size_t j = 0; j < held; j++)
        add_products(table, x + j * (n + 1), n);
}

/* Solve Lᵀ x = row n of `table`; the other rows are L, and row n is overwritten. */
static void substitute(double *found, double *table, size_t n)
{
    double *right = table + n * n;
    for (size_t j = n; j-- > 0;) {
        const double *restrict row = table + j * n;
        found[j] = right[j] / row[j];
        for (size_t m = 0; m < j; m++)
            right[m] -= row[m] * found[j];
    }
}

void fedmf_solve(double *p, uint8_t *solved, double *work, const fedmf_block *block,
                 size_t fixed, double reg, const double *centre)
{
    const size_t k = block->k, n = k - fixed;
    double *table = work, *column = table + (n + 1) * n, *x = column + 2 * n;
    for (size_t u = 0; u < block->users; u++) {
        const int64_t first = block->indptr[u], end = block->indptr[u + 1];
        double *mine = p + u * k;
        solved[u] = 1;
        if (first == end)
            continue;
        add_ratings(table, x, mine, block, u, fixed);
        const double pull = (double)(end - first) * reg;
        for (size_t f = 0; f < n; f++) {
            table[f * n + f] += pull;
            table[n * n + f] += pull * centre[fixed + f];
        }
        solved[u] = (uint8_t)eliminate(table, column, n);
        if (solved[u])
            substitute(mine + fixed, table, n);
    }
}

/* Draw from the rows 0 to n of a table; see fedmf_draw. */
static inline int draw(double *found, double *table, double *column, const double *noise,
                       size_t n)
{
    if (!eliminate(table, column, n))
        return 0;
    for (size_t f = 0; f < n; f++)
        table[n * n + f] += noise[f];
    substitute(found, table, n);
    return 1;
}

void fedmf_draw(double *found, uint8_t *solved, double *work, double *tables,
                const double *noise, size_t rows, size_t n)
{
    for (size_t r = 0; r < rows; r++)
        solved[r] = (uint8_t)draw(found + r * n, tables + r * (n + 1) * n, work, noise + r * n,
                                  n);
}

void fedmf_draw_users(double *p, uint8_t *solved, double *work, const fedmf_block *block,
                      const fedmf_prior *prior, size_t fixed)
{
    const size_t k = block->k, n = k - fixed;
    double *table = work, *column = table + (n + 1) * n, *x = column + 2 * n;
    for (size_t u = 0; u < block->users; u++) {
        add_ratings(table, x, p + u * k, block, u, fixed);
        const double scale = prior->scale[u], *shift = prior->shifts + u * n;
        for (size_t f = 0; f < n * n; f++)
            table[f] = prior->precision[f] + scale * table[f];
        for (size_t f = 0; f < n; f++)
            table[n * n + f] = shift[f] + scale * table[n * n + f];
        solved[u] = (uint8_t)draw(p + u * k + fixed, table, column, prior->noise + u * n, n);
    }
}

void fedmf_gradients(double *out, const double *p, const fedmf_block *block, size_t width,
                     double reg, const double *restrict centre)
{
    const size_t k = block->k;
    for (size_t u = 0; u < block->users; u++) {
        const double *restrict mine = p + u * k;
        for (int64_t j = block->indptr[u]; j < block->indptr[u + 1]; j++) {
            const double *restrict q = block->q + (size_t)block->items[j] * k;
            double *restrict row = out + (size_t)j * width;
            const double error = block->values[j] - dot(q, mine, k);
            for (size_t f = 0; f < width; f++)
                row[f] = reg * (q[f] - centre[f]) - error * mine[f];
        }
    }
}

void fedmf_add_integers(int64_t *table, const int32_t *rows, const int64_t *values, size_t n,
                        size_t k)
{
    for (size_t j = 0; j < n; j++) {
        int64_t *restrict row = table + (size_t)rows[j] * k;
        const int64_t *restrict added = values + j * k;
        for (size_t f = 0; f < k; f++)
            row[f] += added[f];
    }
}

void fedmf_add_floats(double *table, const int32_t *rows, const double *values, size_t n,
                      size_t k)
{
    for (size_t j = 0; j < n; j++) {
        double *restrict row = table + (size_t)rows[j] * k;
        const double *restrict added = values + j * k;
        for (size_t f = 0; f < k; f++)
            row[f] += added[f];
    }
}
