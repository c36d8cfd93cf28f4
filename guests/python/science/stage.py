"""Lays out the Python files of numpy and pandas as they are shipped below /usr: stage.py WORK TO, with a CPython of the version
that the sandbox has. WORK has their sources and what was built of them; their modules in C are part of the program.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from library import compiled
from packages import PLACE, bare, record

# What needs a compiler, is for the build or for tests.
WITHOUT = {'tests', '__pycache__', 'f2py', '_pyinstaller', '_examples', 'code_generators', 'conftest.py', 'meson_cpu', '_build_utils'}
ENDINGS = {'.py', '.tpl'}
LICENCES = {
    'numpy': ['LICENSE.txt', 'numpy/random/LICENSE.md', 'numpy/random/src/*/LICENSE.md', 'numpy/linalg/lapack_lite/LICENSE.txt', 'numpy/_core/src/*/*LICENSE*',
              'numpy/_core/include/numpy/libdivide/LICENSE.txt', 'numpy/ma/LICENSE', 'numpy/fft/pocketfft/LICENSE.md'],
    'pandas': ['LICENSE', 'LICENSES/*'],
}
WHEEL = 'Wheel-Version: 1.0\nGenerator: wardian\nRoot-Is-Purelib: false\nTag: cp313-none-any\n'

def modules(work, name):
    """Its files, by their paths in dist-packages."""
    source, built = work / name, work / f'build-{name}'
    for path in sorted((source / name).rglob('*')):
        inside = path.relative_to(source)
        if path.is_file() and path.suffix in ENDINGS and not WITHOUT.intersection(inside.parts):
            yield inside, path.read_bytes()
    if name == 'numpy':
        # Where it was built says nothing about where it is.
        yield pathlib.PurePath('numpy/__config__.py'), (built / 'numpy/__config__.py').read_bytes().replace(f'{work}/'.encode(), b'')
    else:
        yield pathlib.PurePath('pandas/_version_meson.py'), (source / '_version_meson.py').read_bytes()

def description(work, name):
    source = work / name
    metadata = (source / 'PKG-INFO').read_bytes()
    version = next(line.split()[1] for line in metadata.decode().splitlines() if line.startswith('Version:'))
    info = pathlib.PurePath(f'{name}-{version}.dist-info')
    files = {info / 'METADATA': metadata, info / 'WHEEL': WHEEL.encode(), info / 'INSTALLER': b'wardian\n', info / 'REQUESTED': b''}
    for pattern in LICENCES[name]:
        for path in sorted(source.glob(pattern)):
            files[info / 'licenses' / path.relative_to(source)] = path.read_bytes()
    return info, files

def main(work, to):
    work, to = pathlib.Path(work), pathlib.Path(to)
    for name in ('numpy', 'pandas'):
        info, files = description(work, name)
        for path, content in modules(work, name):
            files[path] = content = bare(content) if path.suffix == '.py' and path.parts[0] == 'pandas' else content
            if path.suffix == '.py':
                cache = path.parent / '__pycache__' / f'{path.stem}.{sys.implementation.cache_tag}.pyc'
                files[cache] = compiled(content, PLACE / path)
        placed = {PLACE / path: content for path, content in files.items()}
        placed[PLACE / info / 'RECORD'] = record(info, placed)
        for path, content in placed.items():
            (to / path).parent.mkdir(parents=True, exist_ok=True)
            (to / path).write_bytes(content)

if __name__ == '__main__':
    main(*sys.argv[1:])
