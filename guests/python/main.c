/* python3: CPython's own main; a start from an image of the initialised interpreter; the interpreter of a session.

   wardian_prepare is called once for the image that every later process starts from; wardian_start and the exports of
   session/resident.c continue there. docs/abi.md describes the exports, docs/cpython.md what an image may and may not hold. */
#pragma clang diagnostic ignored "-Wc23-extensions"
#include <Python.h>
#include <stdlib.h>

PyMODINIT_FUNC PyInit__kdf(void);
/* numpy's and pandas' modules in C. */
int science_modules(void);

/* Set while the image is made. */
static int preparing;

#include "session/cell.c"
#include "session/prepare.c"
#include "session/start.c"
#include "session/resident.c"

void _start(void);

__attribute__((export_name("wardian_prepare"))) void
wardian_prepare(void)
{
    preparing = 1;
    _start();
}

int
main(int argc, char **argv)
{
    PyImport_AppendInittab("_kdf", PyInit__kdf);
    science_modules();
    if (preparing) {
        int failed = prepare();
        preparing = 0;
        /* Not exit: what the C library would do at the end of a program is still to come. */
        _Exit(failed);
    }
    return Py_BytesMain(argc, argv);
}
