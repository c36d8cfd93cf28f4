/* Runs what the command line says and ends the process, as Py_RunMain and Py_FinalizeEx do, but without taking the
   interpreter apart: what came with the image goes with the process, and only what the program brought is finalised. That is
   most of the time that a short program takes. */

extern int _PyPathConfig_ComputeSysPath0(const PyWideStringList *argv, PyObject **path0_p);
extern int _Py_HandleSystemExit(int *exitcode_p);
extern void _PyModule_Clear(PyObject *module);

static int
adds_first_path(PyConfig *config)
{
    PyObject *first = NULL, *paths = PySys_GetObject("path");
    int found = _PyPathConfig_ComputeSysPath0(&config->argv, &first);
    if (found <= 0) {
        return found;
    }
    wchar_t *wide = PyUnicode_AsWideCharString(first, NULL);
    int failed = paths == NULL || wide == NULL || PyList_Insert(paths, 0, first) < 0 ||
                 PyStatus_Exception(PyConfig_SetString(config, &config->sys_path_0, wide));
    PyMem_Free(wide);
    Py_DECREF(first);
    return failed ? -1 : 0;
}

static PyObject *
run_command(const char *command, PyObject *space)
{
    PyCompilerFlags flags = { .cf_flags = PyCF_IGNORE_COOKIE, .cf_feature_version = PY_MINOR_VERSION };
    PyObject *source = PyUnicode_FromFormat("%s\n", command), *name = PyUnicode_FromString("<string>");
    PyObject *code = NULL, *done = NULL, *linecache = NULL;
    if (source && name) {
        code = Py_CompileStringObject(PyUnicode_AsUTF8(source), name, Py_file_input, &flags, -1);
    }
    if (code) {
        linecache = PyImport_ImportModule("linecache");
        PyObject *noted = linecache ? PyObject_CallMethod(linecache, "_register_code", "OOO", code, source, name) : NULL;
        done = noted ? PyEval_EvalCode(code, space, space) : NULL;
        Py_XDECREF(noted);
    }
    Py_XDECREF(linecache);
    Py_XDECREF(code);
    Py_XDECREF(source);
    Py_XDECREF(name);
    return done;
}

static PyObject *
run_module(const char *module)
{
    PyObject *runpy = PyImport_ImportModule("runpy");
    PyObject *done = runpy ? PyObject_CallMethod(runpy, "_run_module_as_main", "sO", module, Py_True) : NULL;
    Py_XDECREF(runpy);
    return done;
}

static PyObject *
run_script(PyConfig *config, FILE *file, PyObject *space)
{
    PyCompilerFlags flags = { .cf_flags = 0, .cf_feature_version = PY_MINOR_VERSION };
    PyObject *name = PyUnicode_FromWideChar(config->run_filename, -1), *loader = NULL, *path = NULL, *done = NULL;
    PyObject *machinery = PyImport_ImportModule("_frozen_importlib_external");
    if (name && machinery) {
        loader = PyObject_CallMethod(machinery, "SourceFileLoader", "sO", "__main__", name);
        path = PyUnicode_EncodeFSDefault(name);
    }
    if (loader && path && PyDict_SetItemString(space, "__file__", name) == 0 &&
        PyDict_SetItemString(space, "__cached__", Py_None) == 0 && PyDict_SetItemString(space, "__loader__", loader) == 0) {
        done = PyRun_FileExFlags(file, PyBytes_AS_STRING(path), Py_file_input, space, space, 1, &flags);
    } else {
        fclose(file);
    }
    Py_XDECREF(machinery);
    Py_XDECREF(loader);
    Py_XDECREF(path);
    Py_XDECREF(name);
    return done;
}

/* A text file; anything else that a command line can name is for Py_RunMain. */
static FILE *
open_script(const wchar_t *name)
{
    char *path = Py_EncodeLocale(name, NULL);
    FILE *file = path ? fopen(path, "rb") : NULL;
    struct stat status;
    unsigned char start[4] = { 0 };
    size_t length = path ? strlen(path) : 0;
    int plain = file && fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode) &&
                !(length > 4 && strcmp(path + length - 4, ".pyc") == 0);
    if (plain) {
        size_t count = fread(start, 1, sizeof start, file);
        plain = !(count >= 2 && (memcmp(start, "PK", 2) == 0 || memcmp(start + 2, "\r\n", 2) == 0)) && fseek(file, 0, SEEK_SET) == 0;
    }
    PyMem_Free(path);
    if (file && !plain) {
        fclose(file);
        file = NULL;
    }
    return file;
}

static int
flushes_stream(const char *name, int tells)
{
    PyObject *stream = PySys_GetObject(name);
    if (stream == NULL || stream == Py_None) {
        return 0;
    }
    PyObject *closed = PyObject_GetAttrString(stream, "closed");
    int is_closed = closed ? PyObject_IsTrue(closed) : 0;
    Py_XDECREF(closed);
    PyErr_Clear();
    if (is_closed > 0) {
        return 0;
    }
    PyObject *done = PyObject_CallMethod(stream, "flush", NULL);
    Py_XDECREF(done);
    if (done == NULL) {
        if (tells && strcmp(name, "stdout") == 0) {
            PyErr_FormatUnraisable("Exception ignored on flushing sys.stdout");
        }
        PyErr_Clear();
        return -1;
    }
    return 0;
}

/* Leaves what was raised before as it is. */
static int
flushes(const char *name, int tells)
{
    PyObject *raised = PyErr_GetRaisedException();
    int failed = flushes_stream(name, tells);
    PyErr_SetRaisedException(raised);
    return failed;
}

static int
flush_both(int tells)
{
    int failed = flushes("stdout", tells);
    return flushes("stderr", tells) < 0 ? -1 : failed;
}

/* Lets go of the modules that the program brought, as finalize_modules does with all. */
static void
drop_modules(void)
{
    PyObject *modules = PyImport_GetModuleDict(), *image = PyDict_GetItemString(prepared, "image");
    PyObject *names = PyDict_Keys(modules), *left = PyList_New(0);
    static const char *const values[] = { "last_exc", "last_type", "last_value", "last_traceback", "ps1", "ps2" };
    for (size_t at = 0; at < sizeof values / sizeof *values; at++) {
        PySys_SetObject(values[at], NULL);
    }
    PyErr_Clear();
    PyDict_SetItemString(PyEval_GetBuiltins(), "_", Py_None);
    for (Py_ssize_t at = 0; names && left && image && at < PyList_GET_SIZE(names); at++) {
        PyObject *name = PyList_GET_ITEM(names, at), *module = PyDict_GetItem(modules, name);
        if (module == NULL || !PyModule_Check(module) || PySet_Contains(image, module) == 1) {
            continue;
        }
        PyObject *reference = PyWeakref_NewRef(module, NULL);
        if (reference) {
            PyList_Append(left, reference);
            Py_DECREF(reference);
        }
        PyDict_SetItem(modules, name, Py_None);
        PyErr_Clear();
    }
    PyGC_Collect();
    for (Py_ssize_t at = left ? PyList_GET_SIZE(left) : 0; at-- > 0;) {
        PyObject *module = NULL;
        if (PyWeakref_GetRef(PyList_GET_ITEM(left, at), &module) == 1) {
            _PyModule_Clear(module);
            Py_DECREF(module);
        }
    }
    PyErr_Clear();
    PyGC_Collect();
}

static void
calls_at_end(const char *module, const char *function)
{
    PyObject *found = PyDict_GetItemString(PyImport_GetModuleDict(), module);
    PyObject *done = found ? PyObject_CallMethod(found, function, NULL) : NULL;
    if (found && done == NULL) {
        PyErr_FormatUnraisable("Exception ignored on %s shutdown", module);
    }
    Py_XDECREF(done);
}

static _Noreturn void
finish(int code, int interrupted)
{
    calls_at_end("threading", "_shutdown");
    PyObject *registered = PyImport_ImportModule("atexit");
    Py_XDECREF(registered);
    calls_at_end("atexit", "_run_exitfuncs");
    int failed = flush_both(1);
    PyGC_Collect();
    drop_modules();
    /* What could not be written is still there, and was told of. */
    if (flush_both(failed == 0) < 0 || failed < 0) {
        code = 120;
    }
    fflush(NULL);
    if (interrupted && PyOS_setsig(SIGINT, SIG_DFL) != SIG_ERR) {
        kill(getpid(), SIGINT);
    }
    _Exit(code);
}

static _Noreturn void
run_and_finish(PyConfig *config, const struct wanted *wanted)
{
    FILE *file = NULL;
    if (config->run_filename && (file = open_script(config->run_filename)) == NULL) {
        exit(Py_RunMain());
    }
    PyObject *main = PyImport_AddModule("__main__"), *done = NULL;
    PyObject *space = main ? PyModule_GetDict(main) : NULL;
    if (space && adds_first_path(config) == 0) {
        PyCompilerFlags flags = { .cf_flags = 0, .cf_feature_version = PY_MINOR_VERSION };
        done = wanted->command ? run_command(wanted->command, space)
               : wanted->module ? run_module(wanted->module)
               : file ? run_script(config, file, space)
                      : PyRun_FileExFlags(stdin, "<stdin>", Py_file_input, space, space, 0, &flags);
    }
    int code = 0, interrupted = 0;
    if (!wanted->command && !wanted->module) {
        flushes("stderr", 0);
        flushes("stdout", 0);
    }
    if (done == NULL) {
        code = 1;
        interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
        if (!_Py_HandleSystemExit(&code)) {
            PyErr_Print();
        }
    }
    finish(code, interrupted);
}
