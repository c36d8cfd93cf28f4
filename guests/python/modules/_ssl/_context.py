"""Contexts: what a program wants of TLS, as far as the gateway decides nothing else."""
import os
import warnings

from _ssl import _constants as c
from _ssl import _errors as errors
from _ssl import _record as record
from _ssl import _connection as connection
from _ssl import _x509 as x509

_SERVER = "a program in the sandbox cannot be a TLS server: TLS is done by the gateway, for connections to the outside"
_VERSIONS = {'TLSv1.2': (c.PROTO_TLSv1_2, c.OP_NO_TLSv1_2), 'TLSv1.3': (c.PROTO_TLSv1_3, c.OP_NO_TLSv1_3)}
_OLD = {c.PROTO_SSLv3: 'SSLv3', c.PROTO_TLSv1: 'TLSv1', c.PROTO_TLSv1_1: 'TLSv1_1'}
_NO_VERSION = c.OP_NO_SSLv2 | c.OP_NO_SSLv3 | c.OP_NO_TLSv1 | c.OP_NO_TLSv1_1 | c.OP_NO_TLSv1_2 | c.OP_NO_TLSv1_3
_BEGIN, _END = b'-----BEGIN CERTIFICATE-----', b'-----END CERTIFICATE-----'

# Words of OpenSSL's lists of ciphers that stand for at least one suite of the gateway.
_KNOWN = {'ALL', 'DEFAULT', 'COMPLEMENTOFDEFAULT', 'HIGH', 'AES', 'AES128', 'AES256', 'AESGCM', 'CHACHA20', 'ECDH', 'ECDHE', 'EECDH',
          'KECDHE', 'KEECDH', 'ECDSA', 'AECDSA', 'ARSA', 'RSA', 'TLSV1.2', 'SHA256', 'SHA384', 'AEAD', 'SUITEB128', 'SUITEB192', 'FIPS'}
_NAMES = {name.upper() for name, _ in connection.SUITES.values()}


class _SSLContext:
    """What ssl.SSLContext is made of."""

    def __new__(cls, protocol):
        if protocol not in (c.PROTOCOL_TLS, c.PROTOCOL_TLS_CLIENT, c.PROTOCOL_TLS_SERVER, c.PROTOCOL_TLSv1_2):
            raise ValueError('invalid or unsupported protocol version')
        if protocol == c.PROTOCOL_TLS:
            warnings.warn('ssl.PROTOCOL_TLS is deprecated', DeprecationWarning, stacklevel=3)
        elif protocol == c.PROTOCOL_TLSv1_2:
            warnings.warn('ssl.PROTOCOL_TLSv1_2 is deprecated', DeprecationWarning, stacklevel=3)
        self = object.__new__(cls)
        client = protocol == c.PROTOCOL_TLS_CLIENT
        self._protocol = int(protocol)
        self._verify_mode = c.CERT_REQUIRED if client else c.CERT_NONE
        self._check_hostname = client
        self._verify_flags = c.VERIFY_X509_TRUSTED_FIRST
        self._options = (c.OP_ALL | c.OP_NO_SSLv3 | c.OP_NO_COMPRESSION | c.OP_CIPHER_SERVER_PREFERENCE
                         | c.OP_ENABLE_MIDDLEBOX_COMPAT)
        self._minimum = c.PROTO_TLSv1_2
        self._maximum = c.PROTO_TLSv1_2 if protocol == c.PROTOCOL_TLSv1_2 else c.PROTO_MAXIMUM_SUPPORTED
        self._flags = c.HOSTFLAG_NO_PARTIAL_WILDCARDS
        self._alpn = []
        self._authorities = {}
        self._post_handshake_auth = False
        return self

    @property
    def protocol(self):
        return self._protocol

    @property
    def verify_mode(self):
        return self._verify_mode

    @verify_mode.setter
    def verify_mode(self, mode):
        mode = int(mode)
        if mode not in (c.CERT_NONE, c.CERT_OPTIONAL, c.CERT_REQUIRED):
            raise ValueError('invalid value for verify_mode')
        if mode == c.CERT_NONE and self._check_hostname:
            raise ValueError('Cannot set verify_mode to CERT_NONE when check_hostname is enabled.')
        self._verify_mode = mode

    @property
    def check_hostname(self):
        return self._check_hostname

    @check_hostname.setter
    def check_hostname(self, check):
        self._check_hostname = bool(check)
        if check and self._verify_mode == c.CERT_NONE:
            self._verify_mode = c.CERT_REQUIRED

    @property
    def verify_flags(self):
        return self._verify_flags

    @verify_flags.setter
    def verify_flags(self, flags):
        if int(flags) & c.VERIFY_CRL_CHECK_CHAIN:
            raise errors.refusal('verify_flags: lists of revoked certificates (VERIFY_CRL_CHECK_*) are not supported')
        self._verify_flags = int(flags)

    @property
    def options(self):
        return self._options

    @options.setter
    def options(self, options):
        if int(options) < 0:
            raise OverflowError("can't convert negative value to unsigned int")
        if int(options) & ~self._options & _NO_VERSION:
            warnings.warn('ssl.OP_NO_SSL*/ssl.OP_NO_TLS* options are deprecated', DeprecationWarning, stacklevel=3)
        self._options = int(options)

    @staticmethod
    def _version(version):
        if version not in (c.PROTO_MINIMUM_SUPPORTED, c.PROTO_MAXIMUM_SUPPORTED) and not c.PROTO_SSLv3 <= version <= c.PROTO_TLSv1_3:
            raise ValueError(f'Unsupported TLS/SSL version 0x{int(version):x}')
        if version in _OLD:
            warnings.warn(f'ssl.TLSVersion.{_OLD[version]} is deprecated', DeprecationWarning, stacklevel=4)
        return int(version)

    @property
    def minimum_version(self):
        return self._minimum

    @minimum_version.setter
    def minimum_version(self, version):
        version = self._version(version)
        self._minimum = c.PROTO_TLSv1_3 if version == c.PROTO_MAXIMUM_SUPPORTED else version

    @property
    def maximum_version(self):
        return self._maximum

    @maximum_version.setter
    def maximum_version(self, version):
        version = self._version(version)
        self._maximum = c.PROTO_TLSv1_2 if version == c.PROTO_MINIMUM_SUPPORTED else version

    def _allowed(self):
        """The versions that both the program and the gateway know."""
        most = c.PROTO_TLSv1_3 if self._maximum == c.PROTO_MAXIMUM_SUPPORTED else self._maximum
        return [name for name, (number, without) in _VERSIONS.items()
                if self._minimum <= number <= most and not self._options & without]

    def _check_version(self, version):
        """Raises if the server and the gateway agreed on another version than the program allows."""
        if version not in self._allowed():
            raise errors.failure('UNSUPPORTED_PROTOCOL', f'unsupported protocol: the gateway and the server chose {version}, '
                                 'which minimum_version, maximum_version or options exclude')

    def _asks(self, name):
        """The record for the gateway, and the name in it."""
        if not self._allowed():
            raise errors.failure('NO_PROTOCOLS_AVAILABLE', 'no protocols available: the gateway speaks TLSv1.2 and TLSv1.3')
        if not name:
            raise errors.refusal('server_hostname is needed: the gateway makes sure that it is the name of the connection')
        return record.request(name, self._verify_mode != c.CERT_NONE, self._alpn), name

    @property
    def _host_flags(self):
        return self._flags

    @_host_flags.setter
    def _host_flags(self, flags):
        self._flags = int(flags)

    @property
    def post_handshake_auth(self):
        return self._post_handshake_auth

    @post_handshake_auth.setter
    def post_handshake_auth(self, allowed):
        # Without a certificate of the client there is nothing to send.
        self._post_handshake_auth = bool(allowed)

    @property
    def keylog_filename(self):
        return None

    @keylog_filename.setter
    def keylog_filename(self, path):
        if path is not None:
            raise errors.refusal('keylog_filename (SSLKEYLOGFILE): the keys of a connection stay with the gateway')

    @property
    def sni_callback(self):
        return None

    @sni_callback.setter
    def sni_callback(self, callback):
        if self._protocol == c.PROTOCOL_TLS_CLIENT:
            raise ValueError('sni_callback cannot be set on TLS_CLIENT context')
        if callback is not None:
            raise errors.refusal(f'sni_callback: {_SERVER}')

    @property
    def _msg_callback(self):
        return None

    @_msg_callback.setter
    def _msg_callback(self, callback):
        if callback is not None:
            raise errors.refusal('_msg_callback: the messages of TLS stay with the gateway')

    @property
    def num_tickets(self):
        return 2

    @num_tickets.setter
    def num_tickets(self, count):
        if self._protocol != c.PROTOCOL_TLS_SERVER:
            raise ValueError('SSLContext is not a server context.')
        raise errors.refusal(f'num_tickets: {_SERVER}')

    @property
    def security_level(self):
        return 2

    def set_ciphers(self, ciphers, /):
        """The gateway chooses among its own suites; a list that has none of them is refused."""
        words = [word.partition('@')[0] for word in ciphers.upper().replace(',', ':').replace(' ', ':').split(':')]
        parts = [part for word in words if word and word[0] not in '!-' for part in word.lstrip('+').split('+')]
        if not any(part in _KNOWN or part in _NAMES for part in parts):
            raise errors.SSLError('No cipher can be selected.')

    def get_ciphers(self):
        found = []
        for name, bits in connection.SUITES.values():
            modern = name.startswith('TLS_')
            auth = 'any' if modern else 'ecdsa' if 'ECDSA' in name else 'rsa'
            version = 'TLSv1.3' if modern else 'TLSv1.2'
            found.append({'id': 0, 'name': name, 'protocol': version, 'description': f'{name} {version}', 'strength_bits': bits,
                          'alg_bits': bits, 'aead': True, 'symmetric': 'chacha20-poly1305' if 'CHACHA' in name else f'aes-{bits}-gcm',
                          'digest': None, 'kea': 'kx-any' if modern else 'kx-ecdhe', 'auth': f'auth-{auth}'})
        return found

    def _set_alpn_protocols(self, protocols, /):
        data, names = bytes(protocols), []
        while data:
            names.append(data[1:1 + data[0]].decode('ascii'))
            data = data[1 + data[0]:]
        if len(names) > 16 or not all(name.isprintable() for name in names):
            raise errors.refusal('set_alpn_protocols: at most 16 names, of printable characters')
        self._alpn = names

    def load_cert_chain(self, certfile, keyfile=None, password=None):
        if self._protocol == c.PROTOCOL_TLS_SERVER:
            raise errors.refusal(f'load_cert_chain: {_SERVER}')
        raise errors.refusal('load_cert_chain: client certificates are not supported, because TLS is done by the gateway')

    def load_verify_locations(self, cafile=None, capath=None, cadata=None):
        """Reads authorities. Who is trusted is decided by the sandbox's network policy, whatever is read here."""
        if cafile is None and capath is None and cadata is None:
            raise TypeError('cafile, capath and cadata cannot be all omitted')
        if cafile is not None:
            with open(cafile, 'rb') as file:
                text = file.read()
            if _BEGIN not in text:
                raise errors.failure('NO_CERTIFICATE_OR_CRL_FOUND', 'no certificate or crl found')
            self._add(_from_pem(text))
        if capath is not None:
            os.fspath(capath)
        if cadata is not None and not cadata:
            raise ValueError('Empty certificate data')
        if isinstance(cadata, str):
            cadata = cadata.encode('ascii')
            if _BEGIN not in cadata:
                raise errors.failure('NO_START_LINE', 'no start line: cadata does not contain a certificate')
            self._add(_from_pem(cadata))
        elif cadata is not None:
            self._add(_from_der(bytes(cadata)))

    def _add(self, certificates):
        """Each is kept once."""
        self._authorities.update(dict.fromkeys(certificates))

    def get_ca_certs(self, binary_form=False):
        all_of = [der for der in self._authorities if x509.is_authority(der)]
        return all_of if binary_form else [x509.decode(der) for der in all_of]

    def cert_store_stats(self):
        return {'x509': len(self._authorities), 'crl': 0, 'x509_ca': sum(map(x509.is_authority, self._authorities))}

    def set_default_verify_paths(self):
        """Reads what the variable for that names. The gateway trusts what the network policy says."""
        path = os.environ.get('SSL_CERT_FILE')
        if path:
            try:
                self.load_verify_locations(path)
            except OSError:
                # As in OpenSSL: what is not there is not an error.
                pass

    def session_stats(self):
        return dict.fromkeys(('number', 'connect', 'connect_good', 'connect_renegotiate', 'accept', 'accept_good',
                              'accept_renegotiate', 'hits', 'misses', 'timeouts', 'cache_full'), 0)

    def load_dh_params(self, path, /):
        raise errors.refusal(f'load_dh_params: {_SERVER}')

    def set_ecdh_curve(self, name, /):
        raise errors.refusal('set_ecdh_curve: the curves are chosen by the gateway')

    def set_psk_client_callback(self, callback):
        raise NotImplementedError('keys that are known beforehand (PSK) are not supported')

    def set_psk_server_callback(self, callback, identity_hint=None):
        raise NotImplementedError('keys that are known beforehand (PSK) are not supported')

    def _wrap_socket(self, sock, server_side, server_hostname=None, *, owner=None, session=None):
        return self._wrap(connection._SocketWire(sock), server_side, server_hostname, owner, session)

    def _wrap_bio(self, incoming, outgoing, server_side, server_hostname=None, *, owner=None, session=None):
        if not isinstance(incoming, connection.MemoryBIO) or not isinstance(outgoing, connection.MemoryBIO):
            raise TypeError('incoming and outgoing must be MemoryBIO objects')
        return self._wrap(connection._MemoryWire(incoming, outgoing), server_side, server_hostname, owner, session)

    def _wrap(self, wire, server_side, name, owner, session):
        if server_side:
            if self._protocol == c.PROTOCOL_TLS_CLIENT:
                raise errors.SSLError(c.SSL_ERROR_SSL, 'Cannot create a server socket with a PROTOCOL_TLS_CLIENT context')
            raise errors.refusal(_SERVER)
        if self._protocol == c.PROTOCOL_TLS_SERVER:
            raise errors.SSLError(c.SSL_ERROR_SSL, 'Cannot create a client socket with a PROTOCOL_TLS_SERVER context')
        if session is not None:
            raise TypeError('Value is not a SSLSession.')
        if name is not None and '\0' in name:
            raise TypeError('server_hostname must be a name without null characters')
        if name is not None and (not name or name.startswith('.')):
            raise ValueError('server_hostname cannot be an empty string or start with a leading dot.')
        if name is not None and not (name.isascii() and name.isprintable() and ' ' not in name):
            raise ValueError('server_hostname must be a name')
        if self._check_hostname and name is None:
            raise ValueError('check_hostname requires server_hostname')
        return connection._SSLSocket(self, wire, name, owner)


def _from_pem(text):
    """The certificates in a text."""
    import binascii
    found = []
    for part in text.split(_BEGIN)[1:]:
        try:
            der = binascii.a2b_base64(part.partition(_END)[0])
        except binascii.Error:
            der = b''
        # What is in them is read when somebody asks: a file may have a hundred.
        if not der.startswith(b'\x30'):
            raise errors.failure('PEM_LIB', 'PEM lib')
        found.append(der)
    return found


def _from_der(data):
    """The certificates in bytes, of which there must be one."""
    try:
        found = x509.split(data)
    except ValueError:
        found = []
    if not found:
        raise errors.failure('NOT_ENOUGH_DATA', 'not enough data: cadata does not contain a certificate')
    return found
