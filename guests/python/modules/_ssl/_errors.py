"""The exceptions of ssl."""
from _ssl import _constants as c


class SSLError(OSError):
    """An error occurred in the SSL implementation."""
    library = None
    reason = None

    def __str__(self):
        return self.strerror if isinstance(self.strerror, str) else str(self.args)


class SSLZeroReturnError(SSLError):
    """SSL/TLS session closed cleanly."""


class SSLWantReadError(SSLError):
    """Non-blocking SSL socket needs to read more data before the requested operation can be completed."""


class SSLWantWriteError(SSLError):
    """Non-blocking SSL socket needs to write more data before the requested operation can be completed."""


class SSLSyscallError(SSLError):
    """System error when attempting SSL operation."""


class SSLEOFError(SSLError):
    """SSL/TLS connection terminated abruptly."""


class SSLCertVerificationError(SSLError, ValueError):
    """A certificate could not be verified."""
    verify_code = None
    verify_message = None


ALL = (SSLError, SSLZeroReturnError, SSLWantReadError, SSLWantWriteError, SSLSyscallError, SSLEOFError,
       SSLCertVerificationError)
for _each in ALL:
    _each.__module__ = 'ssl'


def failure(reason, text):
    """An error as OpenSSL's are: a reason in capitals and a sentence."""
    error = SSLError(c.SSL_ERROR_SSL, f'[SSL: {reason}] {text}')
    error.library, error.reason = 'SSL', reason
    return error


def refusal(text):
    """An error for what cannot be done in the sandbox."""
    return failure('UNSUPPORTED_IN_SANDBOX', text)


def want_read():
    return SSLWantReadError(c.SSL_ERROR_WANT_READ, 'The operation did not complete (read)')


def want_write():
    return SSLWantWriteError(c.SSL_ERROR_WANT_WRITE, 'The operation did not complete (write)')


def ragged_end():
    return SSLEOFError(c.SSL_ERROR_EOF, 'EOF occurred in violation of protocol')


# What the gateway's verifier says, OpenSSL's number for it and OpenSSL's words.
_VERDICTS = (
    ('UnknownIssuer', 20, 'unable to get local issuer certificate'),
    ('NotValidYet', 9, 'certificate is not yet valid'),
    ('not valid yet', 9, 'certificate is not yet valid'),
    ('Expired', 10, 'certificate has expired'),
    ('certificate expired', 10, 'certificate has expired'),
    ('Revoked', 23, 'certificate revoked'),
    ('BadSignature', 7, 'certificate signature failure'),
    ('Purpose', 26, 'unsuitable certificate purpose'),
    ('extended key usage', 26, 'unsuitable certificate purpose'),
    ('CaUsedAsEndEntity', 79, 'invalid CA certificate'),
)


def unverified(said, name, is_address, wrong_name):
    """The error for a certificate that the gateway did not accept."""
    if wrong_name:
        code, kind = (64, 'IP address') if is_address else (62, 'Hostname')
        message = f"{kind} mismatch, certificate is not valid for '{name}'."
    else:
        found = [verdict[1:] for verdict in _VERDICTS if verdict[0] in said]
        code, message = found[0] if found else (1, 'unspecified certificate verification error')
    text = f'[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {message} (gateway: {said})'
    error = SSLCertVerificationError(c.SSL_ERROR_SSL, text)
    error.library, error.reason = 'SSL', 'CERTIFICATE_VERIFY_FAILED'
    error.verify_code, error.verify_message = code, message
    return error
