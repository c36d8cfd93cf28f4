"""pip for an environment (python3 -m venv): a copy of the one that the sandbox comes with."""
import os
import shutil
import sys
import sysconfig

__all__ = ['version', 'bootstrap']

_READY = '/usr/lib/python3/dist-packages'


def _info():
    for name in sorted(os.listdir(_READY)):
        if name.startswith('pip-') and name.endswith('.dist-info'):
            return name
    raise FileNotFoundError(f'{_READY} has no pip')


def version():
    """Answers the version of pip that is copied."""
    return _info().removeprefix('pip-').removesuffix('.dist-info')


def _paths(root, user):
    scheme = sysconfig.get_preferred_scheme('user' if user else 'prefix')
    paths = sysconfig.get_paths(scheme)
    place = lambda path: os.path.join(root, path.lstrip('/')) if root else path
    return place(paths['purelib']), place(paths['scripts'])


def _write_script(path):
    with open('/usr/bin/pip') as file:
        _, rest = file.read().split('\n', 1)
    with open(path, 'w') as file:
        file.write(f'#!{sys.executable}\n{rest}')
    os.chmod(path, 0o777 & ~_umask())


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def bootstrap(*, root=None, upgrade=False, user=False, altinstall=False, default_pip=False, verbosity=0):
    """Copies pip into this environment, or into `root`."""
    if altinstall and default_pip:
        raise ValueError('Cannot use altinstall and default_pip together')
    sys.audit('ensurepip.bootstrap', root)
    library, scripts = _paths(root, user)
    if os.path.realpath(library) != _READY and not os.access(os.path.dirname(library), os.W_OK) and not root:
        if verbosity >= 0:
            print(f'pip {version()} is there already: {_READY}')
        return
    info = _info()
    for name in ('pip', info):
        shutil.rmtree(os.path.join(library, name), ignore_errors=True)
        shutil.copytree(os.path.join(_READY, name), os.path.join(library, name))
    os.makedirs(scripts, exist_ok=True)
    major, minor = sys.version_info[:2]
    names = [f'pip{major}.{minor}'] + ([f'pip{major}'] if not altinstall else []) + (['pip'] if default_pip else [])
    for name in names:
        _write_script(os.path.join(scripts, name))
    _rewrite_record(os.path.join(library, info, 'RECORD'), [os.path.relpath(os.path.join(scripts, name), library) for name in names])
    if verbosity >= 0:
        print(f'Successfully installed pip-{version()}')


def _rewrite_record(path, scripts):
    """The scripts are others than those of the copy."""
    with open(path) as file:
        lines = [line for line in file if not line.startswith('../')]
    with open(path, 'w') as file:
        file.writelines(lines + [f'{name},,\n' for name in scripts])


def _main(argv=None):
    import argparse
    parser = argparse.ArgumentParser(prog='python -m ensurepip')
    parser.add_argument('--version', action='version', version=f'pip {version()}')
    parser.add_argument('-v', '--verbose', action='count', default=0, dest='verbosity')
    parser.add_argument('-U', '--upgrade', action='store_true', default=False)
    parser.add_argument('--user', action='store_true', default=False)
    parser.add_argument('--root', default=None)
    parser.add_argument('--altinstall', action='store_true', default=False)
    parser.add_argument('--default-pip', action='store_true', default=False)
    args = parser.parse_args(argv)
    return bootstrap(root=args.root, upgrade=args.upgrade, user=args.user, verbosity=args.verbosity,
                     altinstall=args.altinstall, default_pip=args.default_pip)
