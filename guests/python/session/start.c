/* A command that starts from the image: what a process has of its own is put in place, and CPython's own main runs it.

   An interpreter that would have to be initialised differently (most options, most PYTHON… variables, another locale, an
   ignored signal, a virtual environment) cannot be one of these: wardian_start returns, and the kernel starts the program
   from nothing. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wardian.h>

#define IMPORT(from, name) __attribute__((import_module(from), import_name(#name)))
IMPORT("wasi_snapshot_preview1", args_sizes_get) int start_args_sizes(size_t *count, size_t *bytes);
IMPORT("wasi_snapshot_preview1", args_get) int start_args(char **list, char *text);
IMPORT("wasi_snapshot_preview1", environ_sizes_get) int start_environ_sizes(size_t *count, size_t *bytes);
IMPORT("wasi_snapshot_preview1", environ_get) int start_environ(char **list, char *text);
IMPORT("wardian", sigaction) int start_sigaction(int signal, int disposition, int *old);
IMPORT("wardian", sigword) int start_sigword(volatile unsigned *word);

extern char **__environ;
void __wardian_forked(void);
extern const PyConfig *_PyInterpreterState_GetConfig(PyInterpreterState *interp);
extern int _Py_abspath(const wchar_t *path, wchar_t **abspath_p);

#define HOME "/home/user"
#define USER_SITE HOME "/.local/lib/python3.13/site-packages"
/* Where extensions bring their packages. */
#define EXTENSIONS "/usr/lib/python3/site-packages"

/* What the arguments and variables say. */
struct wanted {
    const char *command, *module, *file;
    /* The first argument that is the program's. */
    int first;
    int unbuffered, writes_no_bytecode;
    const char *python_path;
    char executable[PATH_MAX];
};

static char **
start_strings(int (*sizes)(size_t *, size_t *), int (*get)(char **, char *), int *count)
{
    size_t many = 0, bytes = 0;
    if (sizes(&many, &bytes)) {
        return NULL;
    }
    char **list = PyMem_RawMalloc((many + 1) * sizeof *list);
    char *text = PyMem_RawMalloc(bytes + 1);
    if (!list || !text || get(list, text)) {
        return NULL;
    }
    list[many] = NULL;
    *count = (int)many;
    return list;
}

/* Imports cannot be pointed to. */
static int start_count_args(size_t *count, size_t *bytes) { return start_args_sizes(count, bytes); }
static int start_get_args(char **list, char *text) { return start_args(list, text); }
static int start_count_environ(size_t *count, size_t *bytes) { return start_environ_sizes(count, bytes); }
static int start_get_environ(char **list, char *text) { return start_environ(list, text); }

static int
is_locale_of_image(const char *value)
{
    return value == NULL || *value == 0 || strcmp(value, "C.UTF-8") == 0;
}

static int
reads_environment(struct wanted *wanted)
{
    for (char **pair = __environ; *pair; pair++) {
        if (strncmp(*pair, "PYTHON", 6) != 0) {
            continue;
        }
        const char *value = strchr(*pair, '=');
        if (value == NULL || value[1] == 0) {
            continue;
        }
        value++;
        size_t name = (size_t)(value - *pair);
        if (strncmp(*pair, "PYTHONUNBUFFERED=", name) == 0) {
            wanted->unbuffered = 1;
        } else if (strncmp(*pair, "PYTHONDONTWRITEBYTECODE=", name) == 0) {
            wanted->writes_no_bytecode = 1;
        } else if (strncmp(*pair, "PYTHONPATH=", name) == 0) {
            wanted->python_path = value;
        } else {
            return 0;
        }
    }
    const char *home = getenv("HOME");
    return (home == NULL || strcmp(home, HOME) == 0) && is_locale_of_image(getenv("LC_ALL")) &&
           is_locale_of_image(getenv("LC_CTYPE")) && is_locale_of_image(getenv("LANG"));
}

static int
reads_arguments(int argc, char **argv, struct wanted *wanted)
{
    int at = 1;
    for (; at < argc && argv[at][0] == '-' && argv[at][1] != 0; at++) {
        if (strcmp(argv[at], "-u") == 0) {
            wanted->unbuffered = 1;
        } else if (strcmp(argv[at], "-B") == 0) {
            wanted->writes_no_bytecode = 1;
        } else if (strcmp(argv[at], "-c") == 0 || strcmp(argv[at], "-m") == 0) {
            if (at + 1 >= argc) {
                return 0;
            }
            *(argv[at][1] == 'c' ? &wanted->command : &wanted->module) = argv[at + 1];
            wanted->first = at + 2;
            return 1;
        } else {
            return 0;
        }
    }
    wanted->first = at;
    if (at < argc) {
        wanted->file = strcmp(argv[at], "-") == 0 ? NULL : argv[at];
    }
    /* A prompt is another matter. */
    return wanted->file != NULL || !isatty(0);
}

/* Where getpath would find the program. */
static int
finds_executable(const char *called, char *found)
{
    const char *path = getenv("PATH");
    if (strchr(called, '/')) {
        if (called[0] != '/' || strlen(called) >= PATH_MAX) {
            return 0;
        }
        strcpy(found, called);
    } else {
        for (;; path++) {
            if (path == NULL || *path == 0) {
                return 0;
            }
            size_t length = strcspn(path, ":");
            if (length == 0 || *path != '/' || length + strlen(called) + 2 > PATH_MAX) {
                return 0;
            }
            memcpy(found, path, length);
            found[length] = '/';
            strcpy(found + length + 1, called);
            struct stat status;
            if (stat(found, &status) == 0 && S_ISREG(status.st_mode) && status.st_mode & 0111) {
                break;
            }
            path += length;
            if (*path == 0) {
                return 0;
            }
        }
    }
    static const char *const places[] = { "/bin/", "/usr/bin/" };
    for (size_t place = 0; place < sizeof places / sizeof *places; place++) {
        size_t length = strlen(places[place]);
        if (strncmp(found, places[place], length) == 0) {
            const char *name = found + length;
            return strcmp(name, "python3") == 0 || strcmp(name, "python") == 0 || strcmp(name, "python3.13") == 0;
        }
    }
    return 0;
}

/* What the parent ignored stays ignored, and Python says so from the beginning. */
static int
has_default_signals(void)
{
    for (int signal = 1; signal < 32; signal++) {
        int old = 0;
        if (start_sigaction(signal, -1, &old) == 0 && old != 0) {
            return 0;
        }
    }
    return 1;
}

/* Tells the kernel of the new process what the image's interpreter has told that of its own. */
static void
take_signals(void)
{
    __wardian_forked();
    start_sigword(&wardian_signalled);
    for (int signal = 1; signal < 32; signal++) {
        struct sigaction action;
        if (sigaction(signal, NULL, &action) == 0 && action.sa_handler != SIG_DFL) {
            sigaction(signal, &action, NULL);
        }
    }
}

/* What `time` says of the time zone, if the process has one of its own. */
static int
take_zone(void)
{
    const char *zone = getenv("TZ");
    if (zone == NULL) {
        return 0;
    }
    PyObject *time = PyImport_ImportModule("time");
    PyObject *done = time ? PyObject_CallMethod(time, "tzset", NULL) : NULL;
    Py_XDECREF(time);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* posix.environ, which os.environ stands on. */
static int
take_environment(void)
{
    PyObject *posix = PyImport_ImportModule("posix");
    PyObject *environment = posix ? PyObject_GetAttrString(posix, "environ") : NULL;
    Py_XDECREF(posix);
    if (environment == NULL) {
        return -1;
    }
    PyDict_Clear(environment);
    int failed = 0;
    for (char **pair = __environ; *pair && !failed; pair++) {
        const char *value = strchr(*pair, '=');
        if (value == NULL) {
            continue;
        }
        PyObject *name = PyBytes_FromStringAndSize(*pair, value - *pair);
        PyObject *text = PyBytes_FromString(value + 1);
        failed = name == NULL || text == NULL || PyDict_SetDefault(environment, name, text) == NULL;
        Py_XDECREF(name);
        Py_XDECREF(text);
    }
    Py_DECREF(environment);
    return failed ? -1 : 0;
}

/* A standard stream as pylifecycle.c makes it. */
static PyObject *
make_stream(PyObject *io, const PyConfig *config, int fd, const char *name, const wchar_t *errors)
{
    int writes = fd != 0, unbuffered = writes && !config->buffered_stdio;
    if (fcntl(fd, F_GETFD) < 0) {
        Py_RETURN_NONE;
    }
    PyObject *stream = NULL, *raw = NULL, *text = PyUnicode_FromString(name);
    PyObject *buffer = PyObject_CallMethod(io, "open", "isiOOOO", fd, writes ? "wb" : "rb", unbuffered ? 0 : -1, Py_None,
                                           Py_None, Py_None, Py_False);
    if (buffer) {
        raw = unbuffered ? Py_NewRef(buffer) : PyObject_GetAttrString(buffer, "raw");
    }
    if (raw && text && PyObject_SetAttrString(raw, "name", text) == 0) {
        int lines = config->buffered_stdio && (fd == 2 || isatty(fd));
        PyObject *encoding = PyUnicode_FromWideChar(config->stdio_encoding, -1);
        PyObject *handling = PyUnicode_FromWideChar(errors, -1);
        PyObject *mode = PyUnicode_FromString(writes ? "w" : "r");
        if (encoding && handling && mode) {
            stream = PyObject_CallMethod(io, "TextIOWrapper", "OOOsOO", buffer, encoding, handling, "\n",
                                         lines ? Py_True : Py_False, config->buffered_stdio ? Py_False : Py_True);
            if (stream && PyObject_SetAttrString(stream, "mode", mode) < 0) {
                Py_CLEAR(stream);
            }
        }
        Py_XDECREF(encoding);
        Py_XDECREF(handling);
        Py_XDECREF(mode);
    }
    Py_XDECREF(raw);
    Py_XDECREF(text);
    Py_XDECREF(buffer);
    return stream;
}

static int
take_streams(const PyConfig *config)
{
    static const char *const names[] = { "stdin", "stdout", "stderr" };
    PyObject *io = PyImport_ImportModule("io");
    if (io == NULL) {
        return -1;
    }
    int failed = 0;
    for (int fd = 0; fd < 3 && !failed; fd++) {
        char name[16];
        snprintf(name, sizeof name, "<%s>", names[fd]);
        PyObject *stream = make_stream(io, config, fd, name, fd == 2 ? L"backslashreplace" : config->stdio_errors);
        snprintf(name, sizeof name, "__%s__", names[fd]);
        failed = stream == NULL || PySys_SetObject(name, stream) < 0 || PySys_SetObject(names[fd], stream) < 0;
        Py_XDECREF(stream);
    }
    Py_DECREF(io);
    return failed ? -1 : 0;
}

static int
sets_list(const char *name, int count, char **items, const char *front)
{
    int more = front != NULL;
    PyObject *list = PyList_New(count + more);
    if (list == NULL) {
        return -1;
    }
    for (int at = 0; at < count + more; at++) {
        PyObject *item = PyUnicode_DecodeFSDefault(at < more ? front : items[at - more]);
        if (item == NULL) {
            Py_DECREF(list);
            return -1;
        }
        PyList_SET_ITEM(list, at, item);
    }
    int failed = PySys_SetObject(name, list);
    Py_DECREF(list);
    return failed;
}

static int
sets_wide(PyConfig *config, wchar_t **to, const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    char *whole = PyMem_RawMalloc(length + tail + 1);
    if (whole == NULL) {
        return -1;
    }
    memcpy(whole, text, length);
    memcpy(whole + length, end, tail + 1);
    PyStatus status = PyConfig_SetBytesString(config, to, whole);
    PyMem_RawFree(whole);
    return PyStatus_Exception(status) ? -1 : 0;
}

/* The arguments as the interpreter's own parser leaves them. */
static int
take_arguments(PyConfig *config, int argc, char **argv, const struct wanted *wanted)
{
    const char *front = wanted->command ? "-c" : wanted->module ? "-m" : wanted->first < argc ? NULL : "";
    int count = argc - wanted->first;
    PyStatus status = PyStatus_Ok();
    Py_ssize_t length = count + (front != NULL);
    wchar_t **wide = PyMem_RawCalloc((size_t)length + 1, sizeof *wide);
    if (wide == NULL) {
        return -1;
    }
    int failed = 0;
    for (Py_ssize_t at = 0; at < length && !failed; at++) {
        const char *item = front == NULL ? argv[wanted->first + at] : at == 0 ? front : argv[wanted->first + at - 1];
        failed = (wide[at] = Py_DecodeLocale(item, NULL)) == NULL;
    }
    if (!failed) {
        status = PyConfig_SetWideStringList(config, &config->argv, length, wide);
    }
    for (Py_ssize_t at = 0; at < length; at++) {
        PyMem_RawFree(wide[at]);
    }
    PyMem_RawFree(wide);
    if (failed || PyStatus_Exception(status) || sets_list("argv", count, argv + wanted->first, front) < 0 ||
        sets_list("orig_argv", argc, argv, NULL) < 0) {
        return -1;
    }
    if (wanted->command) {
        return sets_wide(config, &config->run_command, wanted->command, "\n");
    }
    if (wanted->module) {
        return sets_wide(config, &config->run_module, wanted->module, "");
    }
    if (wanted->file) {
        wchar_t *absolute = NULL;
        if (sets_wide(config, &config->run_filename, wanted->file, "") < 0) {
            return -1;
        }
        if (config->run_filename[0] != L'/' && _Py_abspath(config->run_filename, &absolute) == 0 && absolute) {
            PyMem_RawFree(config->run_filename);
            config->run_filename = absolute;
        }
    }
    return 0;
}

static int
calls_prepared(const char *function, const char *argument)
{
    PyObject *callable = PyDict_GetItemString(prepared, function);
    PyObject *done = NULL;
    if (callable) {
        done = argument ? PyObject_CallFunction(callable, "N", PyUnicode_DecodeFSDefault(argument))
                        : PyObject_CallNoArgs(callable);
    }
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int
take_paths(PyConfig *config, const struct wanted *wanted)
{
    struct stat status;
    if (strcmp(wanted->executable, "/bin/python3") != 0) {
        PyObject *path = PyUnicode_DecodeFSDefault(wanted->executable);
        int failed = path == NULL || PySys_SetObject("executable", path) < 0 || PySys_SetObject("_base_executable", path) < 0;
        Py_XDECREF(path);
        if (failed || sets_wide(config, &config->executable, wanted->executable, "") < 0) {
            return -1;
        }
    }
    if (stat(EXTENSIONS, &status) == 0 && calls_prepared("system_site", NULL) < 0) {
        return -1;
    }
    if (stat(USER_SITE, &status) == 0 && calls_prepared("user_site", NULL) < 0) {
        return -1;
    }
    return wanted->python_path ? calls_prepared("python_path", wanted->python_path) : 0;
}

static int
take_options(PyConfig *config, const struct wanted *wanted)
{
    if (wanted->unbuffered) {
        config->buffered_stdio = 0;
    }
    if (wanted->writes_no_bytecode) {
        config->write_bytecode = 0;
        /* sys.flags is a tuple; its fifth field is this one. */
        PyObject *flags = PySys_GetObject("flags"), *one = PyLong_FromLong(1);
        if (flags == NULL || one == NULL || PySys_SetObject("dont_write_bytecode", Py_True) < 0) {
            return -1;
        }
        PyStructSequence_SetItem(flags, 4, one);
    }
    return 0;
}

#include "run.c"

__attribute__((export_name("wardian_start"))) void
wardian_start(void)
{
    int argc = 0, count = 0;
    struct wanted wanted = { 0 };
    char **argv = start_strings(start_count_args, start_get_args, &argc);
    __environ = start_strings(start_count_environ, start_get_environ, &count);
    struct stat status;
    if (argv == NULL || __environ == NULL || argc < 1 || !reads_environment(&wanted) ||
        !reads_arguments(argc, argv, &wanted) || !finds_executable(argv[0], wanted.executable) || !has_default_signals() ||
        stat("/bin/pyvenv.cfg", &status) == 0 || stat("/pyvenv.cfg", &status) == 0 ||
        (fstat(0, &status) == 0 && S_ISDIR(status.st_mode))) {
        return;
    }
    take_signals();
    PyConfig *config = (PyConfig *)_PyInterpreterState_GetConfig(PyInterpreterState_Get());
    if (take_environment() < 0 || take_zone() < 0 || take_options(config, &wanted) < 0 || take_streams(config) < 0 ||
        take_arguments(config, argc, argv, &wanted) < 0 || take_paths(config, &wanted) < 0) {
        PyErr_Print();
        exit(1);
    }
    run_and_finish(config, &wanted);
}
