/* The modules in C of numpy and pandas: part of the program, under the names that their packages import them by. */
#include <Python.h>

#define MODULES(MODULE)                                                                                                \
    MODULE(numpy._core, _multiarray_umath)                                                                             \
    MODULE(numpy._core, _multiarray_tests)                                                                             \
    MODULE(numpy.fft, _pocketfft_umath)                                                                                \
    MODULE(numpy.linalg, _umath_linalg)                                                                                \
    MODULE(numpy.linalg, lapack_lite)                                                                                  \
    MODULE(numpy.random, _bounded_integers)                                                                            \
    MODULE(numpy.random, _common)                                                                                      \
    MODULE(numpy.random, _generator)                                                                                   \
    MODULE(numpy.random, _mt19937)                                                                                     \
    MODULE(numpy.random, _pcg64)                                                                                       \
    MODULE(numpy.random, _philox)                                                                                      \
    MODULE(numpy.random, _sfc64)                                                                                       \
    MODULE(numpy.random, bit_generator)                                                                                \
    MODULE(numpy.random, mtrand)                                                                                       \
    MODULE(pandas._libs, _cyutility)                                                                                   \
    MODULE(pandas._libs.tslibs, base)                                                                                  \
    MODULE(pandas._libs.tslibs, ccalendar)                                                                             \
    MODULE(pandas._libs.tslibs, dtypes)                                                                                \
    MODULE(pandas._libs.tslibs, conversion)                                                                            \
    MODULE(pandas._libs.tslibs, fields)                                                                                \
    MODULE(pandas._libs.tslibs, nattype)                                                                               \
    MODULE(pandas._libs.tslibs, np_datetime)                                                                           \
    MODULE(pandas._libs.tslibs, offsets)                                                                               \
    MODULE(pandas._libs.tslibs, parsing)                                                                               \
    MODULE(pandas._libs.tslibs, period)                                                                                \
    MODULE(pandas._libs.tslibs, strptime)                                                                              \
    MODULE(pandas._libs.tslibs, timedeltas)                                                                            \
    MODULE(pandas._libs.tslibs, timestamps)                                                                            \
    MODULE(pandas._libs.tslibs, timezones)                                                                             \
    MODULE(pandas._libs.tslibs, tzconversion)                                                                          \
    MODULE(pandas._libs.tslibs, vectorized)                                                                            \
    MODULE(pandas._libs, algos)                                                                                        \
    MODULE(pandas._libs, arrays)                                                                                       \
    MODULE(pandas._libs, groupby)                                                                                      \
    MODULE(pandas._libs, hashing)                                                                                      \
    MODULE(pandas._libs, hashtable)                                                                                    \
    MODULE(pandas._libs, index)                                                                                        \
    MODULE(pandas._libs, indexing)                                                                                     \
    MODULE(pandas._libs, internals)                                                                                    \
    MODULE(pandas._libs, interval)                                                                                     \
    MODULE(pandas._libs, join)                                                                                         \
    MODULE(pandas._libs, lib)                                                                                          \
    MODULE(pandas._libs, missing)                                                                                      \
    MODULE(pandas._libs, pandas_datetime)                                                                              \
    MODULE(pandas._libs, pandas_parser)                                                                                \
    MODULE(pandas._libs, parsers)                                                                                      \
    MODULE(pandas._libs, json)                                                                                         \
    MODULE(pandas._libs, ops)                                                                                          \
    MODULE(pandas._libs, ops_dispatch)                                                                                 \
    MODULE(pandas._libs, properties)                                                                                   \
    MODULE(pandas._libs, reshape)                                                                                      \
    MODULE(pandas._libs, sas)                                                                                          \
    MODULE(pandas._libs, byteswap)                                                                                     \
    MODULE(pandas._libs, sparse)                                                                                       \
    MODULE(pandas._libs, tslib)                                                                                        \
    MODULE(pandas._libs, testing)                                                                                      \
    MODULE(pandas._libs, writers)                                                                                      \
    MODULE(pandas._libs.window, aggregations)                                                                          \
    MODULE(pandas._libs.window, indexers)

#define DECLARE(package, module) PyMODINIT_FUNC PyInit_##module(void);
MODULES(DECLARE)

#define ROW(package, module) { #package "." #module, PyInit_##module },
static struct _inittab table[] = { MODULES(ROW) { NULL, NULL } };

int
science_modules(void)
{
    return PyImport_ExtendInittab(table);
}
