/* Compiles the code of a call and, apart from it, its last expression. Python's compile() can do that by way of a tree of
   objects, and making those takes longer than all the rest. */
#define Py_BUILD_CORE 1
#include "internal/pycore_ast.h"
#undef Py_BUILD_CORE

extern PyCodeObject *_PyAST_Compile(mod_ty, PyObject *, PyCompilerFlags *, int, PyArena *);
extern mod_ty _PyParser_ASTFromString(const char *, PyObject *, int, PyCompilerFlags *, PyArena *);

/* Takes the last statement out of a module, if it is an expression. */
static mod_ty
take_last(mod_ty module, PyArena *arena)
{
    asdl_stmt_seq *body = module->v.Module.body;
    Py_ssize_t count = asdl_seq_LEN(body);
    stmt_ty last = count > 0 ? asdl_seq_GET(body, count - 1) : NULL;
    if (last == NULL || last->kind != Expr_kind) {
        return NULL;
    }
    body->size = count - 1;
    return _PyAST_Expression(last->v.Expr.value, arena);
}

/* compile_cell(source, name, flags) -> what to execute, and the last expression or None */
static PyObject *
compile_cell(PyObject *self, PyObject *arguments)
{
    PyObject *source, *name, *result = NULL;
    PyCompilerFlags flags = { .cf_flags = 0, .cf_feature_version = PY_MINOR_VERSION };
    Py_ssize_t length;
    if (!PyArg_ParseTuple(arguments, "UUi", &source, &name, &flags.cf_flags)) {
        return NULL;
    }
    const char *text = PyUnicode_AsUTF8AndSize(source, &length);
    if (text == NULL) {
        return NULL;
    }
    if (strlen(text) != (size_t)length) {
        PyErr_SetString(PyExc_SyntaxError, "source code string cannot contain null bytes");
        return NULL;
    }
    PyArena *arena = _PyArena_New();
    if (arena == NULL) {
        return NULL;
    }
    flags.cf_flags |= PyCF_SOURCE_IS_UTF8 | PyCF_IGNORE_COOKIE;
    mod_ty module = _PyParser_ASTFromString(text, name, Py_file_input, &flags, arena);
    if (module != NULL) {
        mod_ty expression = take_last(module, arena);
        /* First: a __future__ that it imports holds for the expression, too. */
        PyCodeObject *body = PyErr_Occurred() ? NULL : _PyAST_Compile(module, name, &flags, -1, arena);
        PyObject *last = body == NULL ? NULL
            : expression == NULL ? Py_NewRef(Py_None)
            : (PyObject *)_PyAST_Compile(expression, name, &flags, -1, arena);
        if (last != NULL) {
            result = PyTuple_Pack(2, (PyObject *)body, last);
        }
        Py_XDECREF(body);
        Py_XDECREF(last);
    }
    _PyArena_Free(arena);
    return result;
}

static PyMethodDef compile_cell_method = { "compile_cell", compile_cell, METH_VARARGS, NULL };
