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

aside = {}
needs = {}


class Aside(SourceFileLoader):
    """Loads a module that was put aside; does everything else as its own loader would."""

    def __init__(self, module):
        spec = module.__spec__
        super().__init__(spec.name, spec.origin)
        self.module = module
        self.spec = spec

    def create_module(self, spec):
        return self.module

    def exec_module(self, module):
        module.__spec__ = self.spec
        module.__loader__ = self.spec.loader
        bring_along(self.spec.name)


class Directory(FileFinder):
    """Finds modules in a directory; those that were put aside without looking there."""

    def find_spec(self, fullname, target=None):
        module = aside.pop(fullname, None)
        if module is None:
            return super().find_spec(fullname, target)
        own = module.__spec__
        spec = ModuleSpec(fullname, Aside(module), origin=own.origin)
        spec.submodule_search_locations = own.submodule_search_locations
        spec.cached = own.cached
        spec.has_location = True
        return spec


def bring_along(name):
    # What the module imported is imported with it.
    waiting = [name]
    while waiting:
        name = waiting.pop()
        freshen = FRESHEN.pop(name, None)
        if freshen:
            freshen()
        for needed in needs.pop(name, ()):
            module = aside.pop(needed, None)
            if module is not None:
                sys.modules[needed] = module
                waiting.append(needed)


def fresh_random():
    modules["random"]._inst.seed()


def fresh_logging():
    import time
    modules["logging"]._startTime = time.time_ns()


# What a module made for itself when it was imported and must not be shared.
FRESHEN = {"random": fresh_random, "logging": fresh_logging}
modules = {}


def put_aside():
    before = set(sys.modules)
    plain = builtins.__import__

    def noting(name, globals=None, locals=None, fromlist=(), level=0):
        module = plain(name, globals, locals, fromlist, level)
        importer = (globals or {}).get("__name__")
        package = (globals or {}).get("__package__") or importer
        if importer:
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
    finally:
        builtins.__import__ = plain
    for name in set(sys.modules) - before:
        module = sys.modules[name]
        spec = getattr(module, "__spec__", None)
        # Built in: no file of a user's comes before it.
        if spec is None or not isinstance(spec.loader, SourceFileLoader):
            continue
        del sys.modules[name]
        aside[name] = modules[name] = module
        # A parent is imported before its parts, and holds them.
        if "." in name:
            needs.setdefault(name, set()).add(name.rpartition(".")[0])
    for name in list(needs):
        if name not in aside:
            del needs[name]
    hook = sys.path_hooks[-1]
    for path in {module.__spec__.origin.rpartition("/")[0] for module in aside.values()} | {
        path for module in aside.values() for path in module.__spec__.submodule_search_locations or ()
    }:
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
