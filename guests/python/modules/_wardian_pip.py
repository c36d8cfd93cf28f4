"""What pip is told about the sandbox: guests/python/package-patches has the places where it asks."""
import base64
import csv
import hashlib
import urllib.parse

READY = '/usr/lib/python3/dist-packages'


def _ready():
    """The names of the packages that the sandbox comes with."""
    import importlib.metadata
    return sorted({each.metadata['Name'].lower() for each in importlib.metadata.distributions(path=[READY])})


def unsupported(filename):
    """Says why a wheel cannot be installed."""
    tag = filename.removesuffix('.whl').split('-')[-3:]
    if tag[-1:] == ['any']:
        return f'{filename} is for another version of Python ({"-".join(tag)}).'
    return (f'{filename} has native code for {tag[-1]}, which cannot be loaded in a WebAssembly sandbox: only wheels in pure '
            f'Python (named ...-none-any.whl) can be installed. Built in are: {", ".join(_ready())}.')


def check_network(url):
    """Raises what ends pip with one sentence where there is no network to ask."""
    from pip._internal.exceptions import InstallationError
    import _wardian
    parts = urllib.parse.urlsplit(url)
    missing = parts.scheme in ('http', 'https') and _wardian.missing_grant(parts.hostname)
    if missing:
        raise InstallationError(f'{missing}. Wheels in pure Python can be installed from files: pip install FILE.whl, '
                                'or --no-index --find-links DIRECTORY NAME.')


def verify(archive, path):
    """Compares the files of a wheel with its RECORD, before any of them is installed."""
    from pip._internal.exceptions import InstallationError
    records = [name for name in archive.namelist() if name.count('/') == 1 and name.endswith('.dist-info/RECORD')]
    if len(records) != 1:
        raise InstallationError(f'{path} has no RECORD of its files.')
    rows = csv.reader(archive.read(records[0]).decode('utf-8').splitlines())
    listed = {row[0]: row[1] for row in rows if len(row) == 3}
    # These describe or sign the list itself.
    own = {records[0] + ending for ending in ('', '.jws', '.p7s')}
    for name in archive.namelist():
        if name.endswith('/') or name in own:
            continue
        algorithm, _, expected = listed.get(name, '').partition('=')
        if not expected or algorithm in ('md5', 'sha1') or algorithm not in hashlib.algorithms_available:
            raise InstallationError(f'{path}: {name} has no hash in RECORD.')
        with archive.open(name) as file:
            digest = hashlib.file_digest(file, algorithm).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b'=').decode() != expected.rstrip('='):
            raise InstallationError(f'{path}: {name} is not what RECORD says.')
    missing = [name for name in listed if name and name not in own and name not in archive.NameToInfo]
    if missing:
        raise InstallationError(f'{path}: {missing[0]} is in RECORD but not in the wheel.')
