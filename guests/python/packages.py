"""Lays out the packages that are ready in the sandbox as they are shipped below /usr: packages.py DOWNLOADS PATCHES TO, with a
CPython of the version that the sandbox has.

Each is there as an installer would leave it, with what describes it (METADATA, licences, RECORD) and its console scripts. Tests and
what is for other systems are left out. All of it is part of every binary, so room decides what else is there: those that are imported
most are there compiled as well, and the largest are without their doc strings and comments.
"""
import ast
import configparser
import email
import io
import pathlib
import re
import subprocess
import sys
import tarfile
import tokenize
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from library import compiled

PLACE = pathlib.PurePath('lib/python3/dist-packages')
# The system has the zones that dateutil brings along, and the certificates of pip are those of certifi.
WITHOUT = {'tests', 'benchmarks', '__pycache__', 'dateutil-zoneinfo.tar.gz'}
DOUBLE = 'pip/_vendor/certifi/cacert.pem'
WITHOUT_ENDINGS = {'.exe', '.pyi', '.c', '.so'}
# Compiled as well.
COMPILED = {'yaml', 'jinja2', 'markupsafe', 'six.py'}
# Without doc strings and comments.
BARE = ('sympy', 'networkx', 'mpmath', 'pygments', 'openpyxl', '_pytest', 'pip/_vendor')
# Where the modules of a source package are.
SOURCES = {'pyyaml': 'lib', 'markupsafe': 'src'}
SCRIPT = '''#!/usr/bin/python3
import sys
from {module} import {top}
if __name__ == '__main__':
    sys.exit({call}())
'''

def of_wheel(path):
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if not name.endswith('/'):
                yield pathlib.PurePath(name), archive.read(name)

def of_sources(path):
    """What a wheel built from it would have, without code in C."""
    name, version = path.name.removesuffix('.tar.gz').rsplit('-', 1)
    info = pathlib.PurePath(f'{name}-{version}.dist-info')
    with tarfile.open(path) as archive:
        for member in archive:
            inside = pathlib.PurePath(*pathlib.PurePath(member.name).parts[1:])
            if not member.isfile():
                continue
            content = archive.extractfile(member).read()
            if inside.parts[0] == SOURCES[name] and not inside.parts[1].endswith('.egg-info'):
                yield inside.relative_to(SOURCES[name]), content
            elif str(inside) == 'PKG-INFO':
                yield info / 'METADATA', content
            elif inside.stem == 'LICENSE':
                yield info / 'licenses' / inside, content
    yield info / 'WHEEL', b'Wheel-Version: 1.0\nGenerator: wardian\nRoot-Is-Purelib: true\nTag: py3-none-any\n'

def wanted(path):
    return not WITHOUT.intersection(path.parts) and path.suffix not in WITHOUT_ENDINGS and path.name != 'RECORD' and path.as_posix() != DOUBLE

def bare(source):
    """The same code, on the same lines, with doc strings that are empty."""
    lines = source.decode().split('\n')
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [node.body[0].value for node in ast.walk(ast.parse(source))
             if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None]
    for text in sorted(texts, key=lambda text: text.lineno, reverse=True):
        before = lines[text.lineno - 1].encode()[:text.col_offset].decode()
        after = lines[text.end_lineno - 1].encode()[text.end_col_offset:].decode()
        lines[text.lineno - 1:text.end_lineno] = [f'{before}""{after}'] + [''] * (text.end_lineno - text.lineno)
    return '\n'.join(lines).encode()

def uncommented(source):
    """The same code, on the same lines, with empty lines for those that are comments: except before the code, and where they say
    whose it is."""
    lines = source.decode().split('\n')
    begun = False
    for token in tokenize.generate_tokens(io.StringIO(source.decode()).readline):
        if token.type == tokenize.COMMENT:
            alone = token.line.lstrip().startswith('#')
            if begun and alone and not re.search('copyright|licen[sc]e|author', token.string, re.I):
                lines[token.start[0] - 1] = ''
        elif token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.STRING):
            begun = True
    return '\n'.join(lines).encode()

def is_bare(path):
    return path.suffix == '.py' and path.as_posix().startswith(BARE)

def scripts(files):
    """Its console scripts, by their names."""
    for path, content in files.items():
        if path.name != 'entry_points.txt' or not path.parent.suffix == '.dist-info':
            continue
        parser = configparser.ConfigParser(delimiters='=')
        parser.optionxform = str
        parser.read_string(content.decode())
        for name, target in parser['console_scripts'].items() if 'console_scripts' in parser else ():
            module, call = re.fullmatch(r'([\w.]+)\s*:\s*([\w.]+).*', target).groups()
            yield name, SCRIPT.format(module=module, call=call, top=call.split('.')[0]).encode()

def laid_out(package):
    """Its files below /usr."""
    files = {path: content for path, content in package if wanted(path) and not path.parts[0].endswith('.data')}
    info = next(path.parent for path in files if path.name == 'METADATA' and path.parent.suffix == '.dist-info')
    check(email.message_from_bytes(files[info / 'METADATA']), files, info)
    files[info / 'INSTALLER'] = b'wardian\n'
    # Whoever asked for it by name.
    files[info / 'REQUESTED'] = b''
    # How it came here: not as a file of this machine.
    files.pop(info / 'direct_url.json', None)
    result = {PLACE / path: bare(content) if is_bare(path) else content for path, content in files.items()}
    for name, text in scripts(files):
        result[pathlib.PurePath('bin') / name] = text
    return info, result

def check(metadata, files, info):
    texts = [path for path in files if path.is_relative_to(info) and re.match('(LICEN[CS]E|COPYING|NOTICE)', path.name, re.I)]
    if not texts:
        raise SystemExit(f'{metadata["Name"]} has no licence text')

def record(info, files):
    # Nobody can change them, so there is nothing to compare hashes with.
    names = [path.relative_to(PLACE) if path.is_relative_to(PLACE) else pathlib.PurePath('../../..') / path for path in sorted(files)]
    return ''.join(f'{name},,\n' for name in [*names, info / 'RECORD']).encode()

def main(downloads, patches, to):
    to = pathlib.Path(to)
    infos = {}
    for package in sorted(pathlib.Path(downloads).iterdir()):
        read = of_wheel if package.suffix == '.whl' else of_sources
        info, files = laid_out(read(package))
        infos[info] = list(files)
        for path, content in files.items():
            target = to / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    for patch in sorted(pathlib.Path(patches).glob('*.patch')):
        subprocess.run(['patch', '-p1', '-s', '--no-backup-if-mismatch', '-i', patch.absolute()], cwd=to / PLACE, check=True)
    for info, paths in infos.items():
        files = {path: (to / path).read_bytes() for path in paths}
        for path, content in list(files.items()):
            if path.is_relative_to(PLACE) and is_bare(path.relative_to(PLACE)):
                # Only now: the patches know the comments.
                files[path] = uncommented(content)
            if path.suffix == '.py' and path.is_relative_to(PLACE) and path.relative_to(PLACE).parts[0] in COMPILED:
                cache = path.parent / '__pycache__' / f'{path.stem}.{sys.implementation.cache_tag}.pyc'
                files[cache] = compiled(content, path)
        files[PLACE / info / 'RECORD'] = record(info, files)
        for path, content in files.items():
            (to / path).parent.mkdir(parents=True, exist_ok=True)
            (to / path).write_bytes(content)

if __name__ == '__main__':
    main(*sys.argv[1:])
