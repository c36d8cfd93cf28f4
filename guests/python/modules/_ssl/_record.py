"""The record by which a guest asks the gateway for TLS, and its answer (docs/network.md)."""
import binascii

MAGIC = b'\0WTLS\1'
HEADER = 10
MOST = 65536


class Malformed(ValueError):
    """What came is no answer of a gateway."""


def request(name, verify=True, alpn=()):
    """The record that asks for TLS with this server."""
    lines = [f'server-name {name}']
    if not verify:
        lines.append('verify no')
    lines += [f'alpn {protocol}' for protocol in alpn]
    body = ''.join(f'{line}\n' for line in lines).encode()
    if len(lines) != body.count(b'\n') or len(body) > MOST:
        raise ValueError('a name cannot be part of a record')
    return MAGIC + len(body).to_bytes(4, 'big') + body


def missing(answer):
    """How many bytes of an answer must come next, as far as can be told; 0 if it is complete."""
    start = answer[:len(MAGIC)]
    if start != MAGIC[:len(start)]:
        raise Malformed('what answers is not the gateway')
    if len(answer) < HEADER:
        return HEADER - len(answer)
    length = int.from_bytes(answer[len(MAGIC):HEADER], 'big')
    if length > MOST:
        raise Malformed('the answer is too long')
    return HEADER + length - len(answer)


class Answer:
    """What the gateway says: `error` is None or one of its words, with a message."""

    def __init__(self, answer):
        self.error = self.message = self.version = self.cipher = self.alpn = None
        self.certificates = []
        try:
            lines = bytes(answer[HEADER:]).decode().split('\n')
            first, self.error = lines[0].partition(' ')[::2]
            for key, _, value in (line.partition(' ') for line in lines[1:]):
                if key == 'certificate':
                    self.certificates.append(binascii.a2b_base64(value, strict_mode=True))
                elif key in ('message', 'version', 'cipher', 'alpn'):
                    setattr(self, key, value)
        except ValueError as error:
            raise Malformed('the answer cannot be read') from error
        if first == 'ok':
            self.error = None
        elif first != 'error':
            raise Malformed('the answer is neither ok nor an error')
