"""Connections: a record to the gateway and its answer are the handshake, and plain bytes follow."""
import _socket
import weakref

from _ssl import _constants as c
from _ssl import _errors as errors
from _ssl import _record as record
from _ssl import _x509 as x509

# How long the answer is waited for on a socket without a timeout. The gateway has limits of its own, which are shorter.
PATIENCE = 60

# The gateway's cipher suites: their registered name, OpenSSL's name, and the bits of the key.
SUITES = {
    'TLS_AES_256_GCM_SHA384': ('TLS_AES_256_GCM_SHA384', 256),
    'TLS_AES_128_GCM_SHA256': ('TLS_AES_128_GCM_SHA256', 128),
    'TLS_CHACHA20_POLY1305_SHA256': ('TLS_CHACHA20_POLY1305_SHA256', 256),
    'TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384': ('ECDHE-ECDSA-AES256-GCM-SHA384', 256),
    'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256': ('ECDHE-ECDSA-AES128-GCM-SHA256', 128),
    'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256': ('ECDHE-ECDSA-CHACHA20-POLY1305', 256),
    'TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384': ('ECDHE-RSA-AES256-GCM-SHA384', 256),
    'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256': ('ECDHE-RSA-AES128-GCM-SHA256', 128),
    'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256': ('ECDHE-RSA-CHACHA20-POLY1305', 256),
}

_NO_GATEWAY = 'TLS is done by the gateway, for connections that leave the sandbox and from their first byte on'


def _is_address(name):
    for family in (_socket.AF_INET, _socket.AF_INET6):
        try:
            _socket.inet_pton(family, name)
            return True
        except OSError:
            pass
    return False


class MemoryBIO:
    """Bytes on their way between a TLS object and whoever moves them."""

    def __init__(self):
        self._data = bytearray()
        self._ended = False

    @property
    def pending(self):
        """The number of bytes that can be read."""
        return len(self._data)

    @property
    def eof(self):
        """Whether the end was written and everything before it read."""
        return self._ended and not self._data

    def read(self, size=-1, /):
        """Takes up to so many bytes out; all of them if there is no number."""
        if size < 0 or size >= len(self._data):
            data, self._data = bytes(self._data), bytearray()
            return data
        data = bytes(memoryview(self._data)[:size])
        del self._data[:size]
        return data

    def write(self, data, /):
        """Puts bytes in; answers how many."""
        view = memoryview(data)
        if not view.c_contiguous:
            raise BufferError('memoryview: underlying buffer is not C-contiguous')
        if self._ended:
            raise errors.SSLError('cannot write() after write_eof()')
        self._data += view
        return view.nbytes

    def write_eof(self):
        """Marks the end."""
        self._ended = True


class SSLSession:
    """There are none here: the gateway resumes sessions itself."""

    def __new__(cls, *args, **kwargs):
        raise TypeError("cannot create '_ssl.SSLSession' instances")


class Certificate:
    """A certificate of a chain."""

    def __init__(self, der):
        self._der = der

    def public_bytes(self, format=c.ENCODING_PEM):
        """The certificate as DER, or as text."""
        if format == c.ENCODING_DER:
            return self._der
        if format != c.ENCODING_PEM:
            raise ValueError('Unsupported format')
        import base64
        import textwrap
        lines = textwrap.wrap(base64.b64encode(self._der).decode(), 64)
        return '\n'.join(['-----BEGIN CERTIFICATE-----', *lines, '-----END CERTIFICATE-----', ''])

    def get_info(self):
        return x509.decode(self._der)

    def __eq__(self, other):
        return self._der == other._der if isinstance(other, Certificate) else NotImplemented

    def __hash__(self):
        return hash(self._der)


class _SocketWire:
    """Moves bytes by a socket. It is not kept alive: it owns the object that has this."""

    def __init__(self, sock):
        self._sock = weakref.ref(sock)

    def _get(self):
        sock = self._sock()
        if sock is None or sock.fileno() < 0:
            raise errors.SSLError(c.SSL_ERROR_SYSCALL, 'Underlying socket connection gone')
        return sock

    def check(self):
        """Raises what ends a handshake that no gateway would answer."""
        sock = self._get()
        if sock.family not in (_socket.AF_INET, _socket.AF_INET6):
            raise errors.refusal(_NO_GATEWAY)
        host = _socket.socket.getpeername(sock)[0].removeprefix('::ffff:')
        if host.startswith('127.') or host == '::1':
            raise errors.refusal(_NO_GATEWAY)

    def peer(self):
        return _socket.socket.getpeername(self._get())[0]

    def send(self, data, doing='write'):
        try:
            return _socket.socket.send(self._get(), data)
        except BlockingIOError:
            raise errors.want_write() from None
        except TimeoutError:
            raise TimeoutError(f'The {doing} operation timed out') from None

    def receive(self, size, doing='read'):
        sock = self._get()
        if doing == 'handshake' and sock.gettimeout() is None:
            self._wait(sock)
        try:
            return _socket.socket.recv(sock, size)
        except BlockingIOError:
            raise errors.want_read() from None
        except TimeoutError:
            raise TimeoutError(f'The {doing} operation timed out') from None

    def _wait(self, sock):
        import select
        if not select.select([sock.fileno()], [], [], PATIENCE)[0]:
            raise errors.failure('NO_ANSWER', f'nobody answered for {PATIENCE} seconds: {_NO_GATEWAY}')

    def receive_into(self, buffer, size):
        try:
            return _socket.socket.recv_into(self._get(), buffer, size)
        except BlockingIOError:
            raise errors.want_read() from None
        except TimeoutError:
            raise TimeoutError('The read operation timed out') from None

    def pending(self):
        return 0

    def end(self):
        """Says that nothing more will be sent, and waits for the same from the other side."""
        sock = self._get()
        try:
            _socket.socket.shutdown(sock, _socket.SHUT_WR)
        except OSError:
            # The other side was faster.
            return sock
        if self.receive(1, 'shutdown'):
            raise errors.failure('APPLICATION_DATA_AFTER_CLOSE_NOTIFY', 'application data after close notify')
        return sock


class _MemoryWire:
    """Moves bytes by two buffers."""

    def __init__(self, incoming, outgoing):
        self._incoming, self._outgoing = incoming, outgoing

    def check(self):
        """Nobody can tell where these bytes go."""

    def peer(self):
        return None

    def send(self, data, doing=None):
        return self._outgoing.write(data)

    def receive(self, size, doing=None):
        if not self._incoming.pending and not self._incoming.eof:
            raise errors.want_read()
        return self._incoming.read(size)

    def receive_into(self, buffer, size):
        data = self.receive(size)
        memoryview(buffer).cast('B')[:len(data)] = data
        return len(data)

    def pending(self):
        return self._incoming.pending

    def end(self):
        return None


class _SSLSocket:
    """One end of a connection, as ssl.py has it."""

    def __init__(self, context, wire, server_hostname, owner):
        self._context = context
        self._wire = wire
        self.server_hostname = server_hostname
        self.server_side = False
        self.session_reused = False
        self._owner = None if owner is None else weakref.ref(owner)
        self._asked = self._unsent = None
        self._answer = bytearray()
        self._failed = self._done = None
        self._verified = False

    @property
    def context(self):
        return self._context

    @context.setter
    def context(self, context):
        from _ssl import _SSLContext
        if not isinstance(context, _SSLContext):
            raise TypeError('The value must be a SSLContext')
        self._context = context

    @property
    def owner(self):
        return self._owner and self._owner()

    @owner.setter
    def owner(self, owner):
        self._owner = None if owner is None else weakref.ref(owner)

    @property
    def session(self):
        return None

    @session.setter
    def session(self, session):
        raise TypeError('Value is not a SSLSession.')

    def do_handshake(self):
        """Asks the gateway for TLS. Can be called again where it raised that it must wait."""
        if self._failed is not None:
            raise self._failed
        if self._done is not None:
            return
        try:
            self._shake()
        except (errors.SSLWantReadError, errors.SSLWantWriteError):
            raise
        except errors.SSLError as error:
            self._failed = error
            raise

    def _shake(self):
        if self._asked is None:
            self._wire.check()
            self._asked = self._context._asks(self.server_hostname or self._wire.peer())
            self._unsent = self._asked[0]
        while self._unsent:
            self._unsent = self._unsent[self._wire.send(self._unsent, 'handshake'):]
        try:
            while missing := record.missing(self._answer):
                data = self._wire.receive(missing, 'handshake')
                if not data:
                    raise errors.ragged_end()
                self._answer += data
            answer = record.Answer(self._answer)
        except record.Malformed as error:
            raise errors.failure('WRONG_VERSION_NUMBER', f'{error}: {_NO_GATEWAY}') from None
        self._take(answer)

    def _take(self, answer):
        said, name = answer.message or 'the gateway did not say why', self._asked[1]
        if answer.error in ('certificate', 'name') and 'certificate' in said:
            raise errors.unverified(said, name, _is_address(name), answer.error == 'name')
        if answer.error == 'denied':
            option = '' if self._context.verify_mode else ' (option network.allowUnverifiedTls)'
            raise errors.failure('DENIED', said + option)
        if answer.error is not None:
            raise errors.failure('HANDSHAKE_FAILURE', said)
        self._context._check_version(answer.version)
        self._verified = self._context.verify_mode != c.CERT_NONE
        self._done = answer

    def read(self, size, buffer=None, /):
        """Reads up to so many bytes, into the buffer if there is one. No bytes: the end."""
        if size < 0 and buffer is None:
            raise ValueError('size should not be negative')
        self.do_handshake()
        if buffer is not None:
            room = memoryview(buffer).nbytes
            size = room if size <= 0 else min(size, room)
            return self._wire.receive_into(buffer, size) if size else 0
        return self._wire.receive(size) if size else b''

    def write(self, data, /):
        """Writes bytes; answers how many."""
        self.do_handshake()
        view = memoryview(data).cast('B')
        return self._wire.send(view) if view.nbytes else 0

    def pending(self):
        """The number of bytes that are there already."""
        return 0 if self._done is None else self._wire.pending()

    def shutdown(self):
        """Ends the connection. It cannot go on without TLS."""
        if self._done is None:
            raise errors.failure('SHUTDOWN_WHILE_IN_INIT', 'shutdown while in init')
        return self._wire.end()

    def _handshake_done(self):
        if self._done is None:
            raise ValueError('handshake not done yet')
        return self._done

    def getpeercert(self, binary_mode=False, /):
        """The server's certificate: DER, or a dict if it was verified."""
        certificates = self._handshake_done().certificates
        if not certificates:
            return None
        if binary_mode:
            return certificates[0]
        if not self._verified:
            return {}
        try:
            return x509.decode(certificates[0])
        except ValueError as error:
            raise errors.SSLError(c.SSL_ERROR_SSL, str(error)) from None

    def get_unverified_chain(self):
        """The certificates that the server sent."""
        return [Certificate(each) for each in self._handshake_done().certificates]

    def get_verified_chain(self):
        raise errors.refusal('the verified chain is known to the gateway alone')

    def version(self):
        return self._done and self._done.version

    def cipher(self):
        if self._done is None:
            return None
        name, bits = SUITES.get(self._done.cipher, (self._done.cipher, 0))
        return name, self._done.version, bits

    def shared_ciphers(self):
        return self._done and [self.cipher()]

    def selected_alpn_protocol(self):
        return self._done and self._done.alpn

    def compression(self):
        return None

    def get_channel_binding(self, cb_type='tls-unique'):
        if cb_type != 'tls-unique':
            raise ValueError(f"'{cb_type}' channel binding type not implemented")
        raise errors.refusal('a channel binding is known to the gateway alone')

    def verify_client_post_handshake(self):
        raise errors.refusal('client certificates are not supported')
