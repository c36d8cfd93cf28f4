/* python3. CPython's own main does everything; this file is here for what comes before it. */
#include <Python.h>

int
main(int argc, char **argv)
{
    return Py_BytesMain(argc, argv);
}
