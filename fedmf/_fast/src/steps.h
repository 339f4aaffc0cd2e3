/* The steps of factorisation over the ratings of a block of users; specified by reference.py.
 *
 * Every sum adds the terms in sequence, in a fixed order. So a user's numbers do not depend on
 * the other users in the block, and equal the numbers of reference.py, bit for bit.
 */
#ifndef FEDMF_STEPS_H
#define FEDMF_STEPS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    size_t users, k;
    const int64_t *indptr; /* users + 1, from 0 */
    const int32_t *items;
    const double *values;
    const double *q; /* k to an item */
} fedmf_block;

typedef struct {
    const double *precision;      /* n * n */
    const double *scale;          /* users */
    const double *shifts, *noise; /* n to a user */
} fedmf_prior;

void fedmf_predict(double *out, const double *p, const double *q, const int64_t *users,
                   const int64_t *items, size_t n, size_t k);
/* work: k elements */
void fedmf_descend(double *p, double *work, const fedmf_block *block, size_t fixed, double rate,
                   double reg);
/* centre: k elements; work: (n + 1) * n + 2 * n + 4 * (n + 1) elements, n = k - fixed */
void fedmf_solve(double *p, uint8_t *solved, double *work, const fedmf_block *block,
                 size_t fixed, double reg, const double *centre);
/* work: 2 * n elements; tables: (n + 1) * n to a row, overwritten */
void fedmf_draw(double *found, uint8_t *solved, double *work, double *tables,
                const double *noise, size_t rows, size_t n);
/* work: as fedmf_solve */
void fedmf_draw_users(double *p, uint8_t *solved, double *work, const fedmf_block *block,
                      const fedmf_prior *prior, size_t fixed);
void fedmf_gradients(double *out, const double *p, const fedmf_block *block, size_t width,
                     double reg, const double *centre);
void fedmf_add_integers(int64_t *table, const int32_t *rows, const int64_t *values, size_t n,
                        size_t k);
void fedmf_add_floats(double *table, const int32_t *rows, const double *values, size_t n,
                      size_t k);

#endif
