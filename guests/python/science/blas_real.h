/* For one of float and double: included by blas.c with

   REAL      the type
   NAME(f)   the name of a function for it
   LANES     how many of it are in a vector, and load, store, splat, madd, add and mul of one

   A block of A and one of B are copied into the order in which the kernel reads them; the kernel computes ROWS x COLUMNS
   elements of C, all in registers. */

#define ROWS 4
#define COLUMNS (2 * LANES)

static REAL NAME(packed_a)[BLOCK_M * BLOCK_K] __attribute__((aligned(16)));
static REAL NAME(packed_b)[BLOCK_K * BLOCK_N] __attribute__((aligned(16)));

/* A matrix as it is read: the element in row i and column j is at[i * row + j * column]. */
typedef struct {
    const REAL *at;
    int row, column;
} NAME(matrix);

static inline NAME(matrix)
NAME(view)(const REAL *at, int leading, int by_columns)
{
    NAME(matrix) seen = { at, by_columns ? 1 : leading, by_columns ? leading : 1 };
    return seen;
}

/* Strips of ROWS rows, each column by column; what is missing at the end is zero. */
static void
NAME(pack_a)(NAME(matrix) a, int rows, int depth, REAL *to)
{
    for (int strip = 0; strip < rows; strip += ROWS) {
        int have = rows - strip < ROWS ? rows - strip : ROWS;
        const REAL *from = a.at + (ptrdiff_t)strip * a.row;
        for (int k = 0; k < depth; k++, from += a.column) {
            for (int i = 0; i < ROWS; i++) {
                *to++ = i < have ? from[(ptrdiff_t)i * a.row] : 0;
            }
        }
    }
}

/* Strips of COLUMNS columns, each row by row. */
static void
NAME(pack_b)(NAME(matrix) b, int depth, int columns, REAL *to)
{
    for (int strip = 0; strip < columns; strip += COLUMNS) {
        int have = columns - strip < COLUMNS ? columns - strip : COLUMNS;
        const REAL *from = b.at + (ptrdiff_t)strip * b.column;
        for (int k = 0; k < depth; k++, from += b.row) {
            if (have == COLUMNS && b.column == 1) {
                memcpy(to, from, COLUMNS * sizeof *to);
                to += COLUMNS;
                continue;
            }
            for (int j = 0; j < COLUMNS; j++) {
                *to++ = j < have ? from[(ptrdiff_t)j * b.column] : 0;
            }
        }
    }
}

#define STEP(at)                                                                                                       \
    do {                                                                                                               \
        v128_t left = LOAD(b + (at) * COLUMNS), right = LOAD(b + (at) * COLUMNS + LANES), one;                         \
        one = SPLAT(a + (at) * ROWS);                                                                                  \
        c00 = MADD(one, left, c00), c01 = MADD(one, right, c01);                                                       \
        one = SPLAT(a + (at) * ROWS + 1);                                                                              \
        c10 = MADD(one, left, c10), c11 = MADD(one, right, c11);                                                       \
        one = SPLAT(a + (at) * ROWS + 2);                                                                              \
        c20 = MADD(one, left, c20), c21 = MADD(one, right, c21);                                                       \
        one = SPLAT(a + (at) * ROWS + 3);                                                                              \
        c30 = MADD(one, left, c30), c31 = MADD(one, right, c31);                                                       \
    } while (0)

/* One strip of each: `tile` gets their product. */
static inline void
NAME(kernel)(const REAL *a, const REAL *b, int depth, REAL *tile)
{
    v128_t c00 = wasm_i32x4_const_splat(0), c01 = c00, c10 = c00, c11 = c00, c20 = c00, c21 = c00, c30 = c00, c31 = c00;
    for (; depth >= 4; depth -= 4, a += 4 * ROWS, b += 4 * COLUMNS) {
        STEP(0);
        STEP(1);
        STEP(2);
        STEP(3);
    }
    for (; depth > 0; depth--, a += ROWS, b += COLUMNS) {
        STEP(0);
    }
    wasm_v128_store(tile, c00), wasm_v128_store(tile + LANES, c01);
    wasm_v128_store(tile + COLUMNS, c10), wasm_v128_store(tile + COLUMNS + LANES, c11);
    wasm_v128_store(tile + 2 * COLUMNS, c20), wasm_v128_store(tile + 2 * COLUMNS + LANES, c21);
    wasm_v128_store(tile + 3 * COLUMNS, c30), wasm_v128_store(tile + 3 * COLUMNS + LANES, c31);
}

/* C, by rows: C + alpha * (a block of A) * (a block of B), both packed. */
static void
NAME(add_block)(int rows, int columns, int depth, REAL alpha, REAL *c, int leading)
{
    REAL tile[ROWS * COLUMNS] __attribute__((aligned(16)));
    for (int j = 0; j < columns; j += COLUMNS) {
        int wide = columns - j < COLUMNS ? columns - j : COLUMNS;
        for (int i = 0; i < rows; i += ROWS) {
            int high = rows - i < ROWS ? rows - i : ROWS;
            NAME(kernel)(NAME(packed_a) + (ptrdiff_t)i * depth, NAME(packed_b) + (ptrdiff_t)j * depth, depth, tile);
            for (int y = 0; y < high; y++) {
                REAL *to = c + (ptrdiff_t)(i + y) * leading + j;
                for (int x = 0; x < wide; x++) {
                    to[x] += alpha * tile[y * COLUMNS + x];
                }
            }
        }
    }
}

static void
NAME(scale)(int rows, int columns, REAL beta, REAL *c, int leading)
{
    for (int i = 0; i < rows && beta != 1; i++) {
        REAL *row = c + (ptrdiff_t)i * leading;
        for (int j = 0; j < columns; j++) {
            /* What is there may be no number. */
            row[j] = beta == 0 ? 0 : beta * row[j];
        }
    }
}

/* C, by rows: alpha * A * B + beta * C. */
static void
NAME(multiply)(int m, int n, int depth, REAL alpha, NAME(matrix) a, NAME(matrix) b, REAL beta, REAL *c, int leading)
{
    NAME(scale)(m, n, beta, c, leading);
    for (int k = 0; k < depth && alpha != 0; k += BLOCK_K) {
        int deep = depth - k < BLOCK_K ? depth - k : BLOCK_K;
        for (int j = 0; j < n; j += BLOCK_N) {
            int wide = n - j < BLOCK_N ? n - j : BLOCK_N;
            NAME(matrix) part = { b.at + (ptrdiff_t)k * b.row + (ptrdiff_t)j * b.column, b.row, b.column };
            NAME(pack_b)(part, deep, wide, NAME(packed_b));
            for (int i = 0; i < m; i += BLOCK_M) {
                int high = m - i < BLOCK_M ? m - i : BLOCK_M;
                NAME(matrix) top = { a.at + (ptrdiff_t)i * a.row + (ptrdiff_t)k * a.column, a.row, a.column };
                NAME(pack_a)(top, high, deep, NAME(packed_a));
                NAME(add_block)(high, wide, deep, alpha, c + (ptrdiff_t)i * leading + j, leading);
            }
        }
    }
}

void
CBLAS(gemm)(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE transA, enum CBLAS_TRANSPOSE transB, int m, int n, int k,
            REAL alpha, const REAL *a, int lda, const REAL *b, int ldb, REAL beta, REAL *c, int ldc)
{
    int columns = order == CblasColMajor;
    NAME(matrix) left = NAME(view)(a, lda, columns ^ (transA != CblasNoTrans));
    NAME(matrix) right = NAME(view)(b, ldb, columns ^ (transB != CblasNoTrans));
    if (columns) {
        /* By columns C is, by rows, its transpose: that of B times that of A. */
        NAME(matrix) first = { right.at, right.column, right.row }, second = { left.at, left.column, left.row };
        NAME(multiply)(n, m, k, alpha, first, second, beta, c, ldc);
    } else {
        NAME(multiply)(m, n, k, alpha, left, right, beta, c, ldc);
    }
}

/* Both triangles are computed; whoever asked for one finds it. */
void
CBLAS(syrk)(enum CBLAS_ORDER order, enum CBLAS_UPLO uplo, enum CBLAS_TRANSPOSE trans, int n, int k, REAL alpha,
            const REAL *a, int lda, REAL beta, REAL *c, int ldc)
{
    (void)uplo;
    int transposed = trans != CblasNoTrans;
    CBLAS(gemm)(order, transposed ? CblasTrans : CblasNoTrans, transposed ? CblasNoTrans : CblasTrans, n, n, k, alpha, a, lda,
                a, lda, beta, c, ldc);
}

static REAL
NAME(dot_of)(int n, const REAL *x, const REAL *y)
{
    v128_t sums[4] = { wasm_i32x4_const_splat(0), wasm_i32x4_const_splat(0), wasm_i32x4_const_splat(0), wasm_i32x4_const_splat(0) };
    int i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        for (int part = 0; part < 4; part++) {
            sums[part] = MADD(LOAD(x + i + part * LANES), LOAD(y + i + part * LANES), sums[part]);
        }
    }
    REAL lanes[LANES], sum = 0;
    wasm_v128_store(lanes, ADD(ADD(sums[0], sums[1]), ADD(sums[2], sums[3])));
    for (int lane = 0; lane < LANES; lane++) {
        sum += lanes[lane];
    }
    for (; i < n; i++) {
        sum += x[i] * y[i];
    }
    return sum;
}

REAL
CBLAS(dot)(int n, const REAL *x, int incx, const REAL *y, int incy)
{
    if (incx == 1 && incy == 1) {
        return NAME(dot_of)(n, x, y);
    }
    x += incx < 0 ? (ptrdiff_t)(1 - n) * incx : 0;
    y += incy < 0 ? (ptrdiff_t)(1 - n) * incy : 0;
    REAL sum = 0;
    for (int i = 0; i < n; i++, x += incx, y += incy) {
        sum += *x * *y;
    }
    return sum;
}

void
CBLAS(axpy)(int n, REAL alpha, const REAL *x, int incx, REAL *y, int incy)
{
    int i = 0;
    if (incx == 1 && incy == 1) {
        REAL pair[LANES];
        for (int lane = 0; lane < LANES; lane++) {
            pair[lane] = alpha;
        }
        v128_t factor = wasm_v128_load(pair);
        for (; i + LANES <= n; i += LANES) {
            wasm_v128_store(y + i, MADD(factor, LOAD(x + i), LOAD(y + i)));
        }
        x += i, y += i;
    } else {
        x += incx < 0 ? (ptrdiff_t)(1 - n) * incx : 0;
        y += incy < 0 ? (ptrdiff_t)(1 - n) * incy : 0;
    }
    for (; i < n; i++, x += incx, y += incy) {
        *y += alpha * *x;
    }
}

void
CBLAS(gemv)(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans, int m, int n, REAL alpha, const REAL *a, int lda,
            const REAL *x, int incx, REAL beta, REAL *y, int incy)
{
    int transposed = trans != CblasNoTrans;
    int rows = transposed ? n : m, columns = transposed ? m : n;
    REAL *to = y + (incy < 0 ? (ptrdiff_t)(1 - rows) * incy : 0);
    for (int i = 0; i < rows; i++) {
        to[(ptrdiff_t)i * incy] = beta == 0 ? 0 : beta * to[(ptrdiff_t)i * incy];
    }
    x += incx < 0 ? (ptrdiff_t)(1 - columns) * incx : 0;
    if ((order == CblasColMajor) == transposed) {
        for (int i = 0; i < rows; i++) {
            to[(ptrdiff_t)i * incy] += alpha * CBLAS(dot)(columns, a + (ptrdiff_t)i * lda, 1, x, incx);
        }
    } else {
        for (int j = 0; j < columns; j++) {
            CBLAS(axpy)(rows, alpha * x[(ptrdiff_t)j * incx], a + (ptrdiff_t)j * lda, 1, to, incy);
        }
    }
}

#undef ROWS
#undef COLUMNS
#undef STEP
