"""Runs one module of CPython's test suite and reports each test on a line.

    python3 conformance.py MODULE SKIPS DONE

SKIPS is a file with the tests to skip (`PATTERN<tab>REASON`), DONE one with the names of tests that have been
reported by an earlier run of this module that did not come to its end. Reports go to standard output:

    begin NAME              the test starts
    passed NAME             and its outcome
    failed NAME<tab>TRACEBACK
    skipped NAME<tab>REASON by the suite itself
    excluded NAME<tab>REASON    by SKIPS
    end                     all tests have been run
"""

import fnmatch
import os
import re
import signal
import sys
import traceback
import types
import unittest

# A test that takes longer has failed. Some tests use the alarm themselves; the caller's own limit covers those.
SECONDS = 90


NOT_BUILT = "C modules that exist for tests alone are not built"

# What the suite takes for granted on Linux. Its own reasons for skipping, and what the reports say.
MISSING = {
    "requires threading support": "a process has one thread",
    "requires working os.fork()": "`os.fork` cannot return twice",
    NOT_BUILT: NOT_BUILT,
}

# Modules of the suite that import such a module by a plain statement, though few of their tests call it.
INSISTENT = {"test_class": "_testinternalcapi", "test_compile": "_testinternalcapi"}

# Errors that say of what docs/cpython.md documents as missing that a test has met it.
DOCUMENTED = {
    "can't start new thread: a process has one here": "a process has one thread",
    "unable to start watchdog thread": "a process has one thread",
    "cannot join thread before it is started": "a process has one thread",
    "unable to start the thread": "a process has one thread",
    "[Errno 97] Address family not supported": "there is no such socket",
    "could not bind on any address": "there is no such socket",
    "No module named '_posixshmem'": "processes share no memory",
    "No module named '_ctypes'": "there is no foreign code, so no `ctypes`",
    "out of pty devices": "there are no pseudo-terminals",
    "[SSL: UNSUPPORTED_IN_SANDBOX]": "TLS is done by the gateway, to the outside alone",
    "os.fork() cannot work in WebAssembly": "`os.fork` cannot return twice",
    "needs memory that processes share, and there is none here": "processes share no memory",
    "[Errno 88] Socket operation on non-socket": "connections of `multiprocessing` pass no descriptors",
    "manager needs threads, and a process has one here": "a process has one thread",
    "forkserver start method not available": "`os.fork` cannot return twice",
    "No module named '_testcapi'": NOT_BUILT,
    "No module named '_testinternalcapi'": NOT_BUILT,
}

# A child that a test spawns imports this file, too, without being told anything.
MODULE = sys.argv[1] if __name__ == "__main__" else ""


class TookTooLong(BaseException):
    pass


class Reporter:
    """Writes to what was standard output at the start; what tests print goes to standard error."""

    def __init__(self):
        self.descriptor = os.dup(1)
        os.dup2(2, 1)

    def __call__(self, outcome, name="", detail=None):
        line = f"{outcome} {one_line(name)}".rstrip()
        if detail is not None:
            line += "\t" + one_line(detail)
        os.write(self.descriptor, line.encode("utf-8", "backslashreplace") + b"\n")


def one_line(text):
    return str(text).replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")


def name_of(test):
    name = test.id()
    fixture = re.match(r"(setUp|tearDown)(Class|Module) \((.*)\)$", name)
    if fixture:
        name = f"{fixture[3]}.{fixture[1]}{fixture[2]}"
    name = name.removeprefix("test.").replace(" ", "_")
    # Tests that are defined elsewhere: `test_datetime:datetimetester.TestDate…`.
    return name if name.startswith(MODULE) else f"{MODULE}:{name}"


class Result(unittest.TestResult):
    def __init__(self, report, reasons):
        super().__init__()
        self.report = report
        self.reasons = reasons
        self.failed = set()

    def startTest(self, test):
        self.report("begin", name_of(test))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
        signal.signal(signal.SIGALRM, too_long)
        signal.alarm(SECONDS)
        super().startTest(test)

    def stopTest(self, test):
        signal.alarm(0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        super().stopTest(test)

    def fail(self, test, error):
        name = name_of(test)
        if name not in self.failed:
            self.failed.add(name)
            text = "".join(traceback.format_exception(*error))[-6000:]
            missing = next((reason for words, reason in DOCUMENTED.items() if words in text[-400:]), None)
            self.report("excluded" if missing else "failed", name, missing or text)

    def addSuccess(self, test):
        if name_of(test) not in self.failed:
            self.report("passed", name_of(test))

    def addFailure(self, test, error):
        self.fail(test, error)

    def addError(self, test, error):
        self.fail(test, error)

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.fail(test, error)

    def addSkip(self, test, reason):
        # Of a test that skips some of its parts the outcome is reported, too, and counts.
        if hasattr(test, "test_case"):
            return
        own = self.reasons.get(name_of(test)) or MISSING.get(reason)
        self.report("excluded" if own else "skipped", name_of(test), own or reason)

    def addExpectedFailure(self, test, error):
        self.report("passed", name_of(test))

    def addUnexpectedSuccess(self, test):
        self.report("failed", name_of(test), "unexpected success")


def too_long(*_):
    raise TookTooLong(f"it takes longer than {SECONDS} s")


def read_skips(path):
    lines = [line.rstrip("\n").split("\t", 1) for line in open(path, encoding="utf-8")]
    return [(re.compile(fnmatch.translate(pattern)), reason) for pattern, reason in lines]


def select(suite, done, skips):
    """Takes out what is done, and makes what is to be skipped skip itself; a class with nothing left is not set up."""
    reasons = {}
    kept = []
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            reasons.update(select(test, done, skips))
            kept.append(test)
            continue
        name = name_of(test)
        if name in done:
            continue
        reason = next((reason for pattern, reason in skips if pattern.match(name)), None)
        if reason:
            reasons[name] = reason
            test = Excluded(test)
        kept.append(test)
    suite._tests = kept
    return reasons


class Excluded(unittest.TestCase):
    """Stands in for a test that is skipped: the fixtures of its class need not run for it."""

    def __init__(self, test):
        super().__init__("stand_in")
        self.name = test.id()

    @unittest.skip("excluded")
    def stand_in(self):
        pass

    def id(self):
        return self.name


class StandIn(types.ModuleType):
    """Stands in for a C module that is not built, while modules of the suite are imported: a test that calls a function
    of it is skipped, and the others of its module are not."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

        def missing(*_, **__):
            raise unittest.SkipTest(NOT_BUILT)

        return missing


def has_no_debug_ranges():
    """Whether code knows its columns: the suite would ask a C module that is not built."""
    lines = compile("1", "", "eval").co_positions()
    return not any(column is not None for *_, column in lines)


class NoManager:
    """Tests of executors start a manager before each test, though few ask anything of it."""

    def shutdown(self):
        pass

    def __getattr__(self, name):
        raise NotImplementedError("the server of a multiprocessing manager needs threads, and a process has one here")


def exception_print(error, legacy=False):
    """As the C module for tests has it: both end in `PyErr_Display`."""
    sys.__excepthook__(type(error), error, getattr(error, "__traceback__", None))


def prepare(support, threading_helper):
    """Answers what the suite would ask of modules and processes that do not exist here."""
    threading_helper.can_start_thread = False
    support.has_fork_support = False
    support.use_resources = ["subprocess", "tzdata", "console"]
    support.has_no_debug_ranges = has_no_debug_ranges
    # Without free threading, nothing is made immortal in a way that can be suppressed.
    support.skip_if_suppress_immortalization = lambda: unittest.skip("requires immortalization of deferred objects")
    if MODULE.startswith("test_concurrent_futures."):
        from multiprocessing import context

        # The package asks for threads as a whole; executors do without.
        threading_helper.requires_working_threading = lambda module=False: lambda test: test
        context.BaseContext.Manager = lambda self: NoManager()
    if MODULE == "test_traceback":
        sys.modules["_testcapi"] = StandIn("_testcapi")
        sys.modules["_testcapi"].exception_print = exception_print


def load(import_helper):
    """The tests of the module. What imports a module that is not built while it runs is skipped by the suite."""
    plain = import_helper.import_module
    is_loading = True

    def import_module(name, *rest, **more):
        try:
            return plain(name, *rest, **more)
        except unittest.SkipTest:
            if is_loading and name.startswith("_test"):
                return StandIn(name)
            raise

    import_helper.import_module = import_module
    insists = INSISTENT.get(MODULE)
    if insists:
        sys.modules[insists] = StandIn(insists)
    try:
        return unittest.defaultTestLoader.loadTestsFromName("test." + MODULE)
    finally:
        is_loading = False
        if insists:
            del sys.modules[insists]


class WholeModule:
    def id(self):
        return MODULE


def main():
    skips, done = sys.argv[2:]
    report = Reporter()
    skips = read_skips(skips)
    done = {line.rstrip("\n") for line in open(done, encoding="utf-8")}
    os.makedirs("/tmp/conformance", exist_ok=True)
    os.chdir("/tmp/conformance")
    sys.path.pop(0)
    # The suite asks with `sys.argv` and `__main__` how it was started; it must not find this script.
    sys.argv = ["/usr/lib/python3.13/test/__main__.py"]

    from test import support
    from test.support import import_helper, threading_helper

    prepare(support, threading_helper)
    result = Result(report, {})
    try:
        suite = load(import_helper)
        result.reasons = select(suite, done, skips)
        suite.run(result)
    except unittest.SkipTest as reason:
        result.addSkip(WholeModule(), str(reason))
    except Exception:
        result.fail(WholeModule(), sys.exc_info())
    report("end")
    # What is left over (children, handlers at exit) is no part of the result.
    os._exit(0)


if __name__ == "__main__":
    main()
