# Runs once, in the image that every python3 starts from, after `site`.
#
# Modules that programs often import are imported here and put aside. An import finds one exactly where it would find the
# file: in its directory on sys.path, after what stands before that. So a user's own json.py comes first, as always, and
# sys.modules holds what was imported and nothing else.
import builtins
import gc
import importlib
import sys
from importlib.machinery import FileFinder, ModuleSpec, SourceFileLoader

COMMON = """
__future__ _colorize abc argparse ast asyncio base64 bisect calendar codecs collections collections.abc concurrent.futures
contextlib copy copyreg csv dataclasses datetime decimal difflib dis email.message email.parser enum errno fnmatch fractions
functools getopt glob gzip hashlib heapq hmac html html.parser http inspect io itertools json keyword linecache locale
math mimetypes numbers opcode operator os pathlib pickle platform pprint queue quopri random re runpy secrets select
selectors shlex shutil signal sqlite3 stat statistics string struct subprocess tempfile textwrap threading time timeit token tokenize
traceback types typing unicodedata urllib.parse uuid warnings weakref xml.etree.ElementTree zipfile zlib zoneinfo
""".split()

# numpy and pandas, with what they import when it is first needed. Whoever imports one of them has all of it.
SCIENCE = """
numpy numpy.fft numpy.linalg numpy.ma numpy.polynomial numpy.random numpy.strings numpy.testing
pandas pandas.api.types pandas.core.methods.describe pandas.core.reshape.merge pandas.core.window.rolling pandas.io.excel._openpyxl
pandas.io.formats.csvs pandas.io.formats.html pandas.io.formats.info pandas.io.formats.string pandas.io.json._json pandas.io.parsers
pandas.io.sql pandas.testing
""".split()

aside = {}
specs = {}
needs = {}


class Aside(SourceFileLoader):
    """Loads a module that was put aside, once; does everything else as its own loader would."""

    def __init__(self, module, spec):
        super().__init__(spec.name, spec.origin)
        self.module = module
        self.spec = spec

    def is_aside(self):
        return aside.get(self.spec.name) is self.module

    def create_module(self, spec):
        return self.module if self.is_aside() else self.spec.loader.create_module(self.spec)

    def exec_module(self, module):
        if module is not self.module or not self.is_aside():
            self.spec.loader.exec_module(module)
            return
        name = self.spec.name
        del aside[name]
        module.__spec__ = self.spec
        module.__loader__ = self.spec.loader
        # The parts of a package import it, whoever loads it.
        if self.spec.submodule_search_locations is not None:
            sys.modules.setdefault(name, module)
        bring_along(name)


class Directory(FileFinder):
    """Finds modules in a directory; those that were put aside without looking there. Looking changes nothing."""

    def find_spec(self, fullname, target=None):
        module = aside.get(fullname)
        if module is None:
            return super().find_spec(fullname, target)
        own = specs[fullname]
        spec = ModuleSpec(fullname, Aside(module, own), origin=own.origin)
        spec.submodule_search_locations = own.submodule_search_locations
        spec.cached = own.cached
        spec.has_location = True
        return spec


def bring_along(name):
    # What the module imported is imported with it.
    waiting, stale = [name], []
    while waiting:
        name = waiting.pop()
        if name in FRESHEN:
            stale.append(FRESHEN.pop(name))
        for needed in needs.pop(name, ()):
            # What the program has imported under that name stays.
            if needed not in aside or needed in sys.modules:
                continue
            sys.modules[needed] = module = aside.pop(needed)
            waiting.append(needed)
            package, _, part = needed.rpartition(".")
            parent = sys.modules.get(package)
            if parent is not None and parent is not modules.get(package):
                # Someone else has loaded the package, and has not seen its part.
                setattr(parent, part, module)
    # All is there: whatever these import is found.
    for freshen in stale:
        freshen()


def fresh_random():
    modules["random"]._inst.seed()


def fresh_logging():
    import time
    modules["logging"]._startTime = time.time_ns()


def fresh_numpy():
    modules["numpy.random.mtrand"]._rand.seed()
    # What it does not want to be warned of.
    warnings = sys.modules["warnings"] if "warnings" in sys.modules else modules["warnings"]
    warnings.filters[:0] = filters
    warnings._filters_mutated()


# What a module made for itself when it was imported and must not be shared.
FRESHEN = {"random": fresh_random, "logging": fresh_logging, "numpy": fresh_numpy}
modules = {}
filters = []


def put_aside():
    before = set(sys.modules)
    whole = set()
    plain = builtins.__import__

    def noting(name, globals=None, locals=None, fromlist=(), level=0):
        module = plain(name, globals, locals, fromlist, level)
        importer = (globals or {}).get("__name__")
        package = (globals or {}).get("__package__") or importer
        # Code in C imports in the name of whoever called it.
        if importer and importer not in whole:
            if level:
                name = importlib.util.resolve_name("." * level + name, package)
            noted = needs.setdefault(importer, set())
            parts = name.split(".")
            noted.update(".".join(parts[:end]) for end in range(1, len(parts) + 1))
            noted.update(f"{name}.{item}" for item in fromlist or () if f"{name}.{item}" in sys.modules)
        return module

    import importlib.util
    builtins.__import__ = noting
    try:
        for name in COMMON:
            try:
                importlib.import_module(name)
            except ImportError:
                pass
        import warnings
        plain_filters = warnings.filters[:]
        whole.update(sys.modules)
        for name in SCIENCE:
            importlib.import_module(name)
        filters.extend(item for item in warnings.filters if item not in plain_filters)
        warnings.filters[:] = plain_filters
        warnings._filters_mutated()
    finally:
        builtins.__import__ = plain
    for name in set(sys.modules) - before:
        module = sys.modules[name]
        spec = getattr(module, "__spec__", None)
        # Built in: no file of a user's comes before it. A part of a package goes with the package.
        if spec is None or not (isinstance(spec.loader, SourceFileLoader) or name.startswith(("numpy.", "pandas."))):
            continue
        del sys.modules[name]
        aside[name] = modules[name] = module
        specs[name] = spec
        # A parent is imported before its parts, and holds them.
        if "." in name:
            needs.setdefault(name, set()).add(name.rpartition(".")[0])
    # Modules in C import without being noted.
    for package in ("numpy", "pandas"):
        needs[package].update(name for name in aside if name.startswith(f"{package}."))
    for name in list(needs):
        if name not in aside:
            del needs[name]
    hook = sys.path_hooks[-1]
    places = set()
    for spec in (module.__spec__ for module in aside.values()):
        # Where a package is found, and where its parts are.
        for inside in spec.submodule_search_locations or ():
            places |= {inside, inside.rpartition("/")[0]}
        if spec.has_location:
            places.add(spec.origin.rpartition("/")[0])
    for path in places:
        finder = hook(path)
        finder.__class__ = Directory
        sys.path_importer_cache[path] = finder


def user_site():
    # What `site` does with the user's own directory, in its place: before the system's.
    import site
    system = [path for path in sys.path if path in site.getsitepackages()]
    for path in system:
        sys.path.remove(path)
    site.addusersitepackages(set(sys.path))
    sys.path.extend(system)
    if site.ENABLE_USER_SITE:
        site.execusercustomize()


def system_site():
    # Directories of packages that came with the sandbox and not with the system.
    import os
    import site
    places = site.getsitepackages()
    known = [path for path in sys.path if path in places]
    sys.path[:] = [path for path in sys.path if path not in places]
    for path in places:
        if path in known:
            sys.path.append(path)
        elif os.path.isdir(path):
            site.addsitedir(path, set(sys.path))


def python_path(text):
    # PYTHONPATH, as `site` leaves it: absolute, each once, before the library.
    import os
    import site
    front = []
    for path in text.split(":"):
        path = os.path.abspath(path)
        if path not in front:
            front.append(path)
    sys.path[:] = front + [path for path in sys.path if path not in front]
    site.execsitecustomize()
    if site.ENABLE_USER_SITE:
        site.execusercustomize()


put_aside()
