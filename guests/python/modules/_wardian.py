"""The sandbox from inside: its extensions, its commands, and the network it was granted."""

__all__ = ['fetch', 'extension_call', 'is_extension', 'spawn']

_COMMANDS = '/usr/bin'


def spawn(cmd, stdin=''):
    """Runs a command and waits for it: a string is a line for the shell, a list a program and its arguments."""
    import subprocess
    data = stdin if isinstance(stdin, (bytes, bytearray)) else str(stdin).encode('utf-8', 'surrogateescape')
    shell = isinstance(cmd, (str, bytes))
    try:
        done = subprocess.run(cmd, shell=shell, input=data, capture_output=True)
    except OSError as error:
        # As a shell answers for a program that it cannot start.
        code = 127 if isinstance(error, FileNotFoundError) else 126
        return {'exit_code': code, 'stdout': '', 'stderr': f'{error.filename or cmd[0]}: {error.strerror}\n'}
    # A shell's number for a signal.
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return {'exit_code': code, 'stdout': done.stdout.decode('utf-8', 'replace'),
            'stderr': done.stderr.decode('utf-8', 'replace')}


def is_extension(name):
    """Tells whether the sandbox has an extension with this name that can be called."""
    if not isinstance(name, str) or not name or '/' in name or '\0' in name or name == 'extensions':
        return False
    try:
        with open(f'{_COMMANDS}/{name}', 'rb') as file:
            return file.read(len(name) + 64) == f'#!/bin/env {name}\n'.encode()
    except OSError:
        return False


def extension_call(extension, method, /, **kwargs):
    """Calls an extension: the method is its argument, a JSON object with the others its standard input.

    Answers what it printed, read as JSON if it is. Raises RuntimeError with what it said if it failed.
    """
    import json
    if not is_extension(extension):
        raise RuntimeError(f'the sandbox has no extension {extension!r}')
    done = spawn([f'{_COMMANDS}/{extension}', str(method)], json.dumps(kwargs))
    if done['exit_code']:
        said = done['stderr'].strip() or done['stdout'].strip() or f'exit code {done["exit_code"]}'
        raise RuntimeError(f'{extension}: {said}')
    try:
        return json.loads(done['stdout'])
    except ValueError:
        return done['stdout']


def missing_grant(host):
    """Names the grant that a connection to a host would need, or answers None if the sandbox has it."""
    import socket
    try:
        socket.getaddrinfo(host, None)
    except socket.gaierror as error:
        # A name that is granted stands for an address here, whether it exists or not.
        if error.errno == socket.EAI_FAIL:
            return f'no network: the sandbox was not granted {host} (option network.allowedHosts)'
    return None


def _answer(status=0, headers=(), body=b'', error=None):
    import base64
    return {'ok': error is None and 200 <= status < 300, 'status': status, 'headers': dict(headers),
            'body': body.decode('utf-8', 'replace'), 'body_base64': base64.b64encode(body).decode(), 'error': error}


def fetch(method, url, headers=None, body=None):
    """Makes an HTTP request.

    Answers a dict with ok, status, headers, body (text), body_base64 and error, whatever happens to the request.
    """
    import urllib.parse
    method = str(method).upper()
    try:
        parts = urllib.parse.urlsplit(url)
        is_web = parts.scheme in ('http', 'https') and bool(parts.hostname) and parts.port != 0
    except (ValueError, TypeError, AttributeError):
        is_web = False
    if not is_web:
        return _answer(error=f'not an address of the web: {url!r}')
    if isinstance(body, str):
        body = body.encode()
    missing = missing_grant(parts.hostname)
    if missing:
        return _answer(error=missing)
    import http.client
    import urllib.error
    import urllib.request
    try:
        request = urllib.request.Request(url, data=body, headers=dict(headers or {}), method=method)
        with urllib.request.urlopen(request) as response:
            return _answer(response.status, response.headers.items(), response.read())
    except urllib.error.HTTPError as response:
        with response:
            return _answer(response.code, response.headers.items(), response.read())
    # A value that no request can have: a header with a line break, an address with a space.
    except (OSError, http.client.HTTPException, ValueError) as error:
        return _answer(error=str(getattr(error, 'reason', error)))
