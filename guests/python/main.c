/* python3: CPython's own main, and one module that is not CPython's. */
#include <Python.h>

PyMODINIT_FUNC PyInit__kdf(void);

int
main(int argc, char **argv)
{
    PyImport_AppendInittab("_kdf", PyInit__kdf);
    return Py_BytesMain(argc, argv);
}
