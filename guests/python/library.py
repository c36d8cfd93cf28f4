"""Lays out the standard library as it is shipped below /usr: library.py LIB OURS ZONES TO, with a CPython of the same version.

Each module is there as its source, for tracebacks and readers, and compiled, marked as never to be checked against it.
"""
import importlib.util
import marshal
import pathlib
import sys

HOME = '/usr/lib/python{}.{}'.format(*sys.version_info)
# Tests, what draws on a screen, what carries pip's wheel.
WITHOUT = {'test', 'tests', 'idlelib', 'tkinter', 'turtledemo', 'ensurepip', '__pycache__', 'idle_test',
           'turtle.py', '__phello__', '_ios_support.py', '_android_support.py', '_aix_support.py', '_osx_support.py'}

def compiled(source, path):
    code = compile(source, f'/usr/{path}', 'exec', dont_inherit=True, optimize=0)
    # PEP 552: bit 0 says that a hash of the source follows, bit 1 unset that it is not to be looked at.
    return importlib.util.MAGIC_NUMBER + (1).to_bytes(4, 'little') + importlib.util.source_hash(source) + marshal.dumps(code)

def put(to, path, source):
    target = to / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source)
    if path.suffix == '.py':
        cache = target.parent / '__pycache__'
        cache.mkdir(exist_ok=True)
        (cache / f'{path.stem}.{sys.implementation.cache_tag}.pyc').write_bytes(compiled(source, path))

# What sysconfig is asked for by programs, without a trace of the machine it was built on.
VARIABLES = {
    'prefix': '/usr', 'exec_prefix': '/usr', 'BINDIR': '/usr/bin', 'LIBDIR': '/usr/lib', 'LIBDEST': HOME,
    'BINLIBDEST': HOME, 'INCLUDEPY': '/usr/include/python{}.{}'.format(*sys.version_info), 'EXT_SUFFIX': f'.{sys.implementation.cache_tag}-wasm32.so',
    'SOABI': f'{sys.implementation.cache_tag}-wasm32', 'MULTIARCH': '', 'Py_DEBUG': 0, 'Py_ENABLE_SHARED': 0, 'Py_GIL_DISABLED': 0,
    'WITH_PYMALLOC': 1, 'WITH_DOC_STRINGS': 1, 'SIZEOF_VOID_P': 4, 'HAVE_FORK': 0, 'PLATLIBDIR': 'lib', 'TZPATH': '/usr/share/zoneinfo',
    'VERSION': '{}.{}'.format(*sys.version_info), 'SHLIB_SUFFIX': '.so', 'CC': 'cc', 'AR': 'ar', 'CFLAGS': '', 'LDFLAGS': '',
}

# Other forms of the same zones, and what only other programs read.
NO_ZONES = {'right', 'posix', 'posixrules', 'localtime', 'leap-seconds.list', 'leapseconds', 'tzdata.zi'}

def main(lib, ours, zones, to):
    lib, ours, zones, to = map(pathlib.Path, (lib, ours, zones, to))
    home = pathlib.Path(HOME).relative_to('/usr')
    for source in sorted(lib.rglob('*')):
        path = source.relative_to(lib)
        if source.is_file() and not WITHOUT.intersection(path.parts) and source.suffix not in ('.ico', '.icns', '.exe'):
            put(to, home / path, source.read_bytes())
    for source in sorted(ours.rglob('*.py')):
        put(to, home / source.relative_to(ours), source.read_bytes())
    # Where Python's license() looks.
    put(to, home / 'LICENSE.txt', (lib.parent / 'LICENSE').read_bytes())
    # Without this directory the interpreter complains.
    put(to, home / 'lib-dynload' / 'README', b'All modules in C are part of the program.\n')
    text = f'# The variables of sysconfig that mean something in the sandbox.\nbuild_time_vars = {VARIABLES!r}\n'
    put(to, home / '_sysconfigdata__linux_.py', text.encode())
    # It must be there when the interpreter looks for places with modules; extensions put theirs into it.
    put(to, pathlib.Path('lib/python3/site-packages/README'), b'Modules of extensions.\n')
    for zone in sorted(zones.rglob('*')):
        path = zone.relative_to(zones)
        if zone.is_file() and not NO_ZONES.intersection(path.parts):
            put(to, 'share/zoneinfo' / path, zone.read_bytes())

if __name__ == '__main__':
    main(*sys.argv[1:])
