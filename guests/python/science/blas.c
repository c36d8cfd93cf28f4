/* The part of BLAS that numpy calls: products of matrices and vectors. Blocked, and in vectors of 128 bits; where the
   processor multiplies and adds in one step, that is used, so last digits depend on the processor, as with other libraries. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <wasm_simd128.h>

enum CBLAS_ORDER { CblasRowMajor = 101, CblasColMajor = 102 };
enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112, CblasConjTrans = 113 };
enum CBLAS_UPLO { CblasUpper = 121, CblasLower = 122 };

/* A block of B stays in the second cache, one of A in the first. */
#define BLOCK_M 64
#define BLOCK_K 256
#define BLOCK_N 512

#define LOAD(at) wasm_v128_load(at)

#define REAL double
#define LANES 2
#define NAME(function) blas_double_##function
#define CBLAS(function) cblas_d##function
#define COMPLEX(function) cblas_z##function
#define SPLAT(at) wasm_v128_load64_splat(at)
#define MADD(a, b, c) wasm_f64x2_relaxed_madd(a, b, c)
#define ADD(a, b) wasm_f64x2_add(a, b)
#include "blas_real.h"
#include "blas_complex.h"
#undef REAL
#undef LANES
#undef NAME
#undef CBLAS
#undef COMPLEX
#undef SPLAT
#undef MADD
#undef ADD

#define REAL float
#define LANES 4
#define NAME(function) blas_float_##function
#define CBLAS(function) cblas_s##function
#define COMPLEX(function) cblas_c##function
#define SPLAT(at) wasm_v128_load32_splat(at)
#define MADD(a, b, c) wasm_f32x4_relaxed_madd(a, b, c)
#define ADD(a, b) wasm_f32x4_add(a, b)
#include "blas_real.h"
#include "blas_complex.h"
