/* The image: an interpreter that has read nothing of a user's. */

static const char prepare_source[] = {
#embed "prepare.py"
    , '\n',
#embed "resident.py"
    , 0
};

/* The functions of prepare.py that are called later; they live in the image and in no module. */
static PyObject *prepared;

static int
prepare(void)
{
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    config.parse_argv = 0;
    PyStatus status = PyConfig_SetBytesString(&config, &config.program_name, "/bin/python3");
    if (!PyStatus_Exception(status)) {
        status = Py_InitializeFromConfig(&config);
    }
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status)) {
        return 1;
    }
    prepared = PyDict_New();
    if (prepared == NULL || PyDict_SetItemString(prepared, "__builtins__", PyEval_GetBuiltins()) < 0) {
        return 1;
    }
    PyObject *compiles = PyCFunction_New(&compile_cell_method, NULL);
    if (compiles == NULL || PyDict_SetItemString(prepared, "compile_cell", compiles) < 0) {
        return 1;
    }
    Py_DECREF(compiles);
    PyObject *code = Py_CompileString(prepare_source, "<frozen wardian>", Py_file_input);
    PyObject *done = code == NULL ? NULL : PyEval_EvalCode(code, prepared, prepared);
    Py_XDECREF(code);
    if (done == NULL) {
        PyErr_Print();
        return 1;
    }
    Py_DECREF(done);
    return 0;
}
