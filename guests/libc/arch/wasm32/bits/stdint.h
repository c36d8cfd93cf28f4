typedef __INT_FAST16_TYPE__ int_fast16_t;
typedef __INT_FAST32_TYPE__ int_fast32_t;
typedef __UINT_FAST16_TYPE__ uint_fast16_t;
typedef __UINT_FAST32_TYPE__ uint_fast32_t;

#define INT_FAST16_MIN  (-1-INT_FAST16_MAX)
#define INT_FAST32_MIN  INT32_MIN

#define INT_FAST16_MAX  __INT_FAST16_MAX__
#define INT_FAST32_MAX  INT32_MAX

#define UINT_FAST16_MAX __UINT_FAST16_MAX__
#define UINT_FAST32_MAX UINT32_MAX

#define INTPTR_MIN      INT32_MIN
#define INTPTR_MAX      INT32_MAX
#define UINTPTR_MAX     UINT32_MAX
#define PTRDIFF_MIN     INT32_MIN
#define PTRDIFF_MAX     INT32_MAX
#define SIZE_MAX        UINT32_MAX
