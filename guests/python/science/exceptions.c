/* C++ exceptions end the process: the engine has none. numpy and pandas throw where memory is exhausted inside a C++
   container, and where something is wrong with themselves. */
#include <stdio.h>
#include <stdlib.h>

void *
__cxa_allocate_exception(size_t size)
{
    return malloc(size ? size : 1);
}

void
__cxa_free_exception(void *exception)
{
    free(exception);
}

_Noreturn void
__cxa_throw(void *exception, void *type, void (*destroy)(void *))
{
    (void)exception, (void)type, (void)destroy;
    fputs("fatal: a C++ exception was thrown (out of memory?)\n", stderr);
    abort();
}
