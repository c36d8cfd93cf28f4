"""What ssl.py stands on: CPython's `_ssl`, over the TLS of the sandbox's gateway (docs/network.md).

Programs use `ssl`. A handshake is a record to the gateway and its answer; the gateway verifies the server, and plain bytes follow.
What the gateway decides (whom to trust, ciphers, keys) cannot be decided here: it is refused by name, or harmless and documented.
"""
import os as _os

from _ssl._constants import *
from _ssl._constants import _DEFAULT_CIPHERS, _OPENSSL_API_VERSION
from _ssl._context import _SSLContext
from _ssl._errors import (SSLCertVerificationError, SSLEOFError, SSLError, SSLSyscallError, SSLWantReadError, SSLWantWriteError,
                          SSLZeroReturnError)
from _ssl._connection import Certificate, MemoryBIO, SSLSession, _SSLSocket
from _ssl._x509 import OBJECTS as _OBJECTS

for _each in (Certificate, MemoryBIO, SSLSession, _SSLContext, _SSLSocket):
    _each.__module__ = '_ssl'
del _each


def RAND_add(string, entropy, /):
    """The kernel's random numbers need nothing added."""


def RAND_bytes(n, /):
    """Random bytes, fit for cryptography."""
    if n < 0:
        raise ValueError('num must be positive')
    return _os.urandom(n)


def RAND_status():
    """Whether there are random numbers: always."""
    return True


def txt2obj(txt, name=False):
    """Number, short name, long name and identifier of an object, by its identifier or also by a name."""
    for each in _OBJECTS:
        if txt == each[3] or name and txt in each[1:3]:
            return each
    raise ValueError(f"unknown object '{txt:.100}'")


def nid2obj(nid, /):
    """The same by its number."""
    if nid < 0:
        raise ValueError('NID must be positive')
    for each in _OBJECTS:
        if nid == each[0]:
            return each
    raise ValueError(f'unknown NID {nid}')


def get_default_verify_paths():
    """Where OpenSSL would look for authorities. Here the network policy decides who is trusted."""
    return 'SSL_CERT_FILE', '/etc/ssl/cert.pem', 'SSL_CERT_DIR', '/etc/ssl/certs'


def _test_decode_cert(path, /):
    from _ssl import _x509
    from _ssl._context import _BEGIN, _END
    import binascii
    with open(path, 'rb') as file:
        text = file.read()
    try:
        return _x509.decode(binascii.a2b_base64(text.partition(_BEGIN)[2].partition(_END)[0]))
    except ValueError:
        raise SSLError('Error decoding PEM-encoded file') from None
