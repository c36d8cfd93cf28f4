/* For complex numbers of float or double: included by blas.c with REAL, NAME and CBLAS of the parts, and COMPLEX(f) for the
   name of a function of BLAS. A product of matrices is that of their real and imaginary parts. */

typedef struct {
    REAL re, im;
} COMPLEX(number);

static inline COMPLEX(number)
COMPLEX(product)(COMPLEX(number) a, COMPLEX(number) b)
{
    COMPLEX(number) made = { a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
    return made;
}

/* The parts of a matrix as its product needs them: by rows, real, then imaginary. */
static void
COMPLEX(split)(const COMPLEX(number) *a, int leading, int by_columns, int conjugate, int rows, int columns, REAL *to)
{
    REAL *imaginary = to + (size_t)rows * columns;
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < columns; j++) {
            COMPLEX(number) one = a[by_columns ? (ptrdiff_t)j * leading + i : (ptrdiff_t)i * leading + j];
            *to++ = one.re;
            *imaginary++ = conjugate ? -one.im : one.im;
        }
    }
}

static COMPLEX(number) *
COMPLEX(element)(COMPLEX(number) *c, int leading, int by_columns, int i, int j)
{
    return c + (by_columns ? (ptrdiff_t)j * leading + i : (ptrdiff_t)i * leading + j);
}

/* Without room for the parts. */
static COMPLEX(number)
COMPLEX(sum)(const COMPLEX(number) *a, int a_step, int a_conjugate, const COMPLEX(number) *b, int b_step, int b_conjugate, int k)
{
    COMPLEX(number) sum = { 0, 0 };
    for (int l = 0; l < k; l++) {
        COMPLEX(number) left = a[(ptrdiff_t)l * a_step], right = b[(ptrdiff_t)l * b_step];
        left.im = a_conjugate ? -left.im : left.im;
        right.im = b_conjugate ? -right.im : right.im;
        COMPLEX(number) one = COMPLEX(product)(left, right);
        sum.re += one.re;
        sum.im += one.im;
    }
    return sum;
}

static void
COMPLEX(put)(COMPLEX(number) *to, COMPLEX(number) alpha, COMPLEX(number) made, COMPLEX(number) beta)
{
    COMPLEX(number) scaled = COMPLEX(product)(alpha, made), before = { 0, 0 };
    if (beta.re != 0 || beta.im != 0) {
        before = COMPLEX(product)(beta, *to);
    }
    to->re = scaled.re + before.re;
    to->im = scaled.im + before.im;
}

void
COMPLEX(gemm)(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE transA, enum CBLAS_TRANSPOSE transB, int m, int n, int k,
              const void *alpha, const void *a, int lda, const void *b, int ldb, const void *beta, void *c, int ldc)
{
    int columns = order == CblasColMajor, a_columns = columns ^ (transA != CblasNoTrans), b_columns = columns ^ (transB != CblasNoTrans);
    int a_conjugate = transA == CblasConjTrans, b_conjugate = transB == CblasConjTrans;
    size_t left = (size_t)m * k, right = (size_t)k * n, whole = (size_t)m * n;
    REAL *room = malloc(2 * (left + right + whole) * sizeof *room), *as = room, *bs = as + 2 * left, *cs = bs + 2 * right;
    if (room) {
        NAME(matrix) re = { as, k, 1 }, im = { as + left, k, 1 }, b_re = { bs, n, 1 }, b_im = { bs + right, n, 1 };
        COMPLEX(split)(a, lda, a_columns, a_conjugate, m, k, as);
        COMPLEX(split)(b, ldb, b_columns, b_conjugate, k, n, bs);
        NAME(multiply)(m, n, k, 1, re, b_re, 0, cs, n);
        NAME(multiply)(m, n, k, -1, im, b_im, 1, cs, n);
        NAME(multiply)(m, n, k, 1, re, b_im, 0, cs + whole, n);
        NAME(multiply)(m, n, k, 1, im, b_re, 1, cs + whole, n);
    }
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            COMPLEX(number) made;
            if (room) {
                made.re = cs[(size_t)i * n + j];
                made.im = cs[whole + (size_t)i * n + j];
            } else {
                const COMPLEX(number) *row = (const COMPLEX(number) *)a + (ptrdiff_t)i * (a_columns ? 1 : lda);
                const COMPLEX(number) *column = (const COMPLEX(number) *)b + (ptrdiff_t)j * (b_columns ? ldb : 1);
                made = COMPLEX(sum)(row, a_columns ? lda : 1, a_conjugate, column, b_columns ? 1 : ldb, b_conjugate, k);
            }
            COMPLEX(put)(COMPLEX(element)(c, ldc, columns, i, j), *(const COMPLEX(number) *)alpha, made,
                         *(const COMPLEX(number) *)beta);
        }
    }
    free(room);
}

void
COMPLEX(syrk)(enum CBLAS_ORDER order, enum CBLAS_UPLO uplo, enum CBLAS_TRANSPOSE trans, int n, int k, const void *alpha,
              const void *a, int lda, const void *beta, void *c, int ldc)
{
    (void)uplo;
    int transposed = trans != CblasNoTrans;
    COMPLEX(gemm)(order, transposed ? CblasTrans : CblasNoTrans, transposed ? CblasNoTrans : CblasTrans, n, n, k, alpha, a, lda,
                  a, lda, beta, c, ldc);
}

void
COMPLEX(dotu_sub)(int n, const void *x, int incx, const void *y, int incy, void *result)
{
    const COMPLEX(number) *left = (const COMPLEX(number) *)x + (incx < 0 ? (ptrdiff_t)(1 - n) * incx : 0);
    const COMPLEX(number) *right = (const COMPLEX(number) *)y + (incy < 0 ? (ptrdiff_t)(1 - n) * incy : 0);
    *(COMPLEX(number) *)result = COMPLEX(sum)(left, incx, 0, right, incy, 0, n);
}

void
COMPLEX(dotc_sub)(int n, const void *x, int incx, const void *y, int incy, void *result)
{
    const COMPLEX(number) *left = (const COMPLEX(number) *)x + (incx < 0 ? (ptrdiff_t)(1 - n) * incx : 0);
    const COMPLEX(number) *right = (const COMPLEX(number) *)y + (incy < 0 ? (ptrdiff_t)(1 - n) * incy : 0);
    *(COMPLEX(number) *)result = COMPLEX(sum)(left, incx, 1, right, incy, 0, n);
}

void
COMPLEX(axpy)(int n, const void *alpha, const void *x, int incx, void *y, int incy)
{
    const COMPLEX(number) *from = (const COMPLEX(number) *)x + (incx < 0 ? (ptrdiff_t)(1 - n) * incx : 0);
    COMPLEX(number) *to = (COMPLEX(number) *)y + (incy < 0 ? (ptrdiff_t)(1 - n) * incy : 0);
    for (int i = 0; i < n; i++, from += incx, to += incy) {
        COMPLEX(number) one = COMPLEX(product)(*(const COMPLEX(number) *)alpha, *from);
        to->re += one.re;
        to->im += one.im;
    }
}

void
COMPLEX(gemv)(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE trans, int m, int n, const void *alpha, const void *a, int lda,
              const void *x, int incx, const void *beta, void *y, int incy)
{
    int transposed = trans != CblasNoTrans, by_columns = (order == CblasColMajor) ^ transposed;
    int rows = transposed ? n : m, columns = transposed ? m : n;
    const COMPLEX(number) *from = (const COMPLEX(number) *)x + (incx < 0 ? (ptrdiff_t)(1 - columns) * incx : 0);
    COMPLEX(number) *to = (COMPLEX(number) *)y + (incy < 0 ? (ptrdiff_t)(1 - rows) * incy : 0);
    for (int i = 0; i < rows; i++) {
        const COMPLEX(number) *row = (const COMPLEX(number) *)a + (ptrdiff_t)i * (by_columns ? 1 : lda);
        COMPLEX(number) made = COMPLEX(sum)(row, by_columns ? lda : 1, trans == CblasConjTrans, from, incx, 0, columns);
        COMPLEX(put)(to + (ptrdiff_t)i * incy, *(const COMPLEX(number) *)alpha, made, *(const COMPLEX(number) *)beta);
    }
}
