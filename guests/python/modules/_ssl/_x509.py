"""Certificates as getpeercert() shows them: DER read just far enough for that."""

# Number, short name, long name and identifier, as OpenSSL has them.
_OBJECTS = """
6 rsaEncryption rsaEncryption 1.2.840.113549.1.1.1
13 CN commonName 2.5.4.3
14 C countryName 2.5.4.6
15 L localityName 2.5.4.7
16 ST stateOrProvinceName 2.5.4.8
17 O organizationName 2.5.4.10
18 OU organizationalUnitName 2.5.4.11
48 emailAddress emailAddress 1.2.840.113549.1.9.1
49 unstructuredName unstructuredName 1.2.840.113549.1.9.2
55 unstructuredAddress unstructuredAddress 1.2.840.113549.1.9.8
82 subjectKeyIdentifier X509v3_Subject_Key_Identifier 2.5.29.14
83 keyUsage X509v3_Key_Usage 2.5.29.15
85 subjectAltName X509v3_Subject_Alternative_Name 2.5.29.17
87 basicConstraints X509v3_Basic_Constraints 2.5.29.19
90 authorityKeyIdentifier X509v3_Authority_Key_Identifier 2.5.29.35
99 GN givenName 2.5.4.42
100 SN surname 2.5.4.4
101 initials initials 2.5.4.43
103 crlDistributionPoints X509v3_CRL_Distribution_Points 2.5.29.31
105 serialNumber serialNumber 2.5.4.5
106 title title 2.5.4.12
107 description description 2.5.4.13
126 extendedKeyUsage X509v3_Extended_Key_Usage 2.5.29.37
129 serverAuth TLS_Web_Server_Authentication 1.3.6.1.5.5.7.3.1
130 clientAuth TLS_Web_Client_Authentication 1.3.6.1.5.5.7.3.2
131 codeSigning Code_Signing 1.3.6.1.5.5.7.3.3
132 emailProtection E-mail_Protection 1.3.6.1.5.5.7.3.4
133 timeStamping Time_Stamping 1.3.6.1.5.5.7.3.8
173 name name 2.5.4.41
174 dnQualifier dnQualifier 2.5.4.46
177 authorityInfoAccess Authority_Information_Access 1.3.6.1.5.5.7.1.1
178 OCSP OCSP 1.3.6.1.5.5.7.48.1
179 caIssuers CA_Issuers 1.3.6.1.5.5.7.48.2
180 OCSPSigning OCSP_Signing 1.3.6.1.5.5.7.3.9
391 DC domainComponent 0.9.2342.19200300.100.1.25
408 id-ecPublicKey id-ecPublicKey 1.2.840.10045.2.1
458 UID userId 0.9.2342.19200300.100.1.1
509 generationQualifier generationQualifier 2.5.4.44
510 pseudonym pseudonym 2.5.4.65
660 street streetAddress 2.5.4.9
661 postalCode postalCode 2.5.4.17
860 businessCategory businessCategory 2.5.4.15
955 jurisdictionL jurisdictionLocalityName 1.3.6.1.4.1.311.60.2.1.1
956 jurisdictionST jurisdictionStateOrProvinceName 1.3.6.1.4.1.311.60.2.1.2
957 jurisdictionC jurisdictionCountryName 1.3.6.1.4.1.311.60.2.1.3
1089 organizationIdentifier organizationIdentifier 2.5.4.97
1090 c3 countryCode3c 2.5.4.98
"""


def _read_objects():
    rows = [line.split() for line in _OBJECTS.split('\n') if line]
    return [(int(nid), short, long.replace('_', ' '), oid) for nid, short, long, oid in rows]


OBJECTS = _read_objects()
_BY_OID = {each[3]: each for each in OBJECTS}
_MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split()
_ALT_NAME, _ACCESS, _REVOKED = '2.5.29.17', '1.3.6.1.5.5.7.1.1', '2.5.29.31'

_INTEGER, _BITS, _OID, _UTF8, _SEQUENCE, _SET = 0x02, 0x03, 0x06, 0x0C, 0x30, 0x31
_T61, _BMP, _UNIVERSAL, _UTC, _GENERALIZED = 0x14, 0x1E, 0x1C, 0x17, 0x18


def _next(data, at):
    """The element at this place: its tag, its content, and where the next one starts."""
    if at + 2 > len(data):
        raise ValueError('an element is cut off')
    tag, length, at = data[at], data[at + 1], at + 2
    if tag & 0x1F == 0x1F or length == 0x80:
        raise ValueError('an element is not DER')
    if length > 0x80:
        count = length & 0x7F
        if count > 4 or at + count > len(data):
            raise ValueError('a length is too long')
        length, at = int.from_bytes(data[at:at + count], 'big'), at + count
    if at + length > len(data):
        raise ValueError('an element is cut off')
    return tag, data[at:at + length], at + length


def _elements(data):
    at, found = 0, []
    while at < len(data):
        tag, content, at = _next(data, at)
        found.append((tag, content))
    return found


def _whole(data, tag):
    """The content of an element that is all there is."""
    found, content, end = _next(data, 0)
    if found != tag or end != len(data):
        raise ValueError('another element was expected')
    return content


def _oid(content):
    numbers, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    if not numbers or content[-1] & 0x80:
        raise ValueError('an identifier is cut off')
    first = min(numbers[0] // 40, 2)
    return '.'.join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


def _text(tag, content):
    if tag == _BMP:
        return content.decode('utf-16-be')
    if tag == _UNIVERSAL:
        return content.decode('utf-32-be')
    if tag == _T61:
        return content.decode('latin-1')
    return content.decode('utf-8')


def _name(content):
    parts = []
    for tag, part in _elements(content):
        pairs = []
        for _, pair in _elements(part):
            (_, key), (kind, value) = _elements(pair)
            oid = _oid(key)
            pairs.append((_BY_OID[oid][2] if oid in _BY_OID else oid, _text(kind, value)))
        parts.append(tuple(pairs))
    return tuple(parts)


def _time(tag, content):
    digits = content.decode('ascii')
    if tag == _UTC:
        digits = ('20' if digits[:2] < '50' else '19') + digits
    elif tag != _GENERALIZED:
        raise ValueError('a time is missing')
    if len(digits) != 15 or digits[14] != 'Z' or not digits[:14].isdigit():
        raise ValueError('a time cannot be read')
    month = _MONTHS[int(digits[4:6]) - 1]
    return f'{month} {int(digits[6:8]):2} {digits[8:10]}:{digits[10:12]}:{digits[12:14]} {int(digits[:4])} GMT'


def _address(content):
    if len(content) == 4:
        return '.'.join(map(str, content))
    if len(content) == 16:
        return ':'.join(f'{int.from_bytes(content[at:at + 2], "big"):X}' for at in range(0, 16, 2))
    return '<invalid>'


def _general_name(tag, content):
    kind = tag & 0x1F
    if kind in (1, 2, 6):
        return {1: 'email', 2: 'DNS', 6: 'URI'}[kind], content.decode('utf-8')
    if kind == 4:
        return 'DirName', _name(_whole(content, _SEQUENCE))
    if kind == 7:
        return 'IP Address', _address(content)
    if kind == 8:
        oid = _oid(content)
        return 'Registered ID', _BY_OID[oid][2] if oid in _BY_OID else oid
    return {0: 'othername', 3: 'X400Name', 5: 'EdiPartyName'}.get(kind, 'unknown'), '<unsupported>'


def _serial(content):
    number = int.from_bytes(content, 'big', signed=True)
    digits = f'{abs(number):X}'
    return ('-' if number < 0 else '') + ('0' if len(digits) % 2 else '') + digits


def _accesses(content):
    """Where to ask about a certificate, and where its issuer's is."""
    places = {'1.3.6.1.5.5.7.48.1': [], '1.3.6.1.5.5.7.48.2': []}
    for _, access in _elements(_whole(content, _SEQUENCE)):
        (_, method), (tag, place) = _elements(access)
        if tag & 0x1F == 6:
            places.get(_oid(method), []).append(place.decode('utf-8'))
    return (('OCSP', places['1.3.6.1.5.5.7.48.1']), ('caIssuers', places['1.3.6.1.5.5.7.48.2']))


def _lists(content):
    """Where lists of revoked certificates are."""
    found = []
    for _, point in _elements(_whole(content, _SEQUENCE)):
        for tag, part in _elements(point):
            if tag == 0xA0:
                found += [name.decode('utf-8') for kind, full in _elements(part) if kind == 0xA0
                          for tag, name in _elements(full) if tag & 0x1F == 6]
    return found


def _extensions(fields):
    for tag, content in fields:
        if tag == 0xA3:
            for _, extension in _elements(_whole(content, _SEQUENCE)):
                parts = _elements(extension)
                yield _oid(parts[0][1]), parts[-1][1]


def _fields(der):
    fields = _elements(_elements(_whole(der, _SEQUENCE))[0][1])
    version = 1
    if fields[0][0] == 0xA0:
        version = 1 + int.from_bytes(_whole(fields.pop(0)[1], _INTEGER), 'big')
    return version, fields


def decode(der):
    """What getpeercert() answers for a certificate. Raises ValueError if it is none."""
    try:
        version, fields = _fields(der)
        serial, _, issuer, validity, subject = fields[:5]
        begins, ends = _elements(validity[1])
        shown = {'subject': _name(subject[1]), 'issuer': _name(issuer[1]), 'version': version,
                 'serialNumber': _serial(serial[1]), 'notBefore': _time(*begins), 'notAfter': _time(*ends)}
        extensions = dict(_extensions(fields[5:]))
        if _ALT_NAME in extensions:
            names = _elements(_whole(extensions[_ALT_NAME], _SEQUENCE))
            shown['subjectAltName'] = tuple(_general_name(*name) for name in names)
        further = list(_accesses(extensions[_ACCESS])) if _ACCESS in extensions else []
        if _REVOKED in extensions:
            further.append(('crlDistributionPoints', _lists(extensions[_REVOKED])))
        shown.update((key, tuple(places)) for key, places in further if places)
        return shown
    except (IndexError, ValueError) as error:
        raise ValueError(f'not a certificate: {error}') from error


def split(data):
    """The certificates that follow each other in these bytes. Raises ValueError if there is something else."""
    found, at = [], 0
    while at < len(data):
        _, _, end = _next(data, at)
        decode(data[at:end])
        found.append(data[at:end])
        at = end
    return found


def is_authority(der):
    """Tells whether a certificate may sign others."""
    version, fields = _fields(der)
    basic = dict(_extensions(fields[5:])).get('2.5.29.19')
    # A certificate of the first version that signed itself counts as one, too.
    if basic is None:
        return version == 1 and fields[2][1] == fields[4][1]
    return (0x01, b'\xff') in _elements(_whole(basic, _SEQUENCE))
