/* The interpreter of a session: it stays, and is asked to run one piece of code after the other.

   The question is what resident.py takes; the answer is what it gives. Between two calls no frame is on the stack, and the
   kernel may copy, keep or replace the memory. */

static char *question;
/* Holds the answer until the next call. */
static PyObject *answered;
static int begun;

/* Gives the interpreter what a process has of its own, at the first call. */
static int
begin(void)
{
    int count = 0;
    PyConfig *config = (PyConfig *)_PyInterpreterState_GetConfig(PyInterpreterState_Get());
    __environ = start_strings(start_count_environ, start_get_environ, &count);
    if (__environ == NULL) {
        return -1;
    }
    take_signals();
    struct wanted wanted = { .executable = "/bin/python3", .python_path = getenv("PYTHONPATH") };
    if (take_environment() < 0 || take_zone() < 0 || take_streams(config) < 0 || take_paths(config, &wanted) < 0) {
        return -1;
    }
    return calls_prepared("begin", NULL);
}

__attribute__((export_name("wardian_alloc"))) char *
wardian_alloc(size_t length)
{
    char *larger = PyMem_RawRealloc(question, length ? length : 1);
    if (larger == NULL) {
        /* The call ends here, and the session is what it was. */
        _Exit(137);
    }
    return question = larger;
}

__attribute__((export_name("wardian_ask"))) long long
wardian_ask(char *text, size_t length)
{
    Py_CLEAR(answered);
    __wardian_forked();
    start_sigword(&wardian_signalled);
    if (!begun) {
        if (begin() < 0) {
            PyErr_Print();
            return -1;
        }
        begun = 1;
    }
    PyObject *callable = PyDict_GetItemString(prepared, "answer");
    answered = callable ? PyObject_CallFunction(callable, "y#", text, (Py_ssize_t)length) : NULL;
    PyMem_RawFree(question);
    question = NULL;
    if (answered == NULL || !PyBytes_Check(answered)) {
        PyErr_Print();
        Py_CLEAR(answered);
        return -1;
    }
    return (long long)(size_t)PyBytes_AS_STRING(answered) << 32 | (long long)PyBytes_GET_SIZE(answered);
}
