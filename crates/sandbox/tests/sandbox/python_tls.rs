//! Python's `ssl`: what libraries do with it, over the gateway, with servers and an authority of the test's own.

use std::time::Duration;

use wardian::net::NetworkPolicy;
use wardian::{ErrorClass, Sandbox};

use crate::network::Here;
use crate::python_packages::{MAKE_WHEEL, built, output, python};
use crate::tls_server::{Authority, Pages};

fn hello() -> Pages {
    Pages::from([("/".to_owned(), b"hello".to_vec())])
}

async fn sandbox(policy: NetworkPolicy) -> Sandbox {
    built(Sandbox::builder().network(policy).resolver(Here)).await
}

/// Runs code with PORT set.
async fn with_port(sandbox: &Sandbox, port: u16, code: &str) -> String {
    python(sandbox, &format!("PORT = {port}\n{code}")).await
}

#[tokio::test]
async fn urllib_and_requests_reach_https_and_show_the_certificate() {
    let authority = Authority::new("one");
    let port = authority.serve("server.test", hello()).await;
    let sandbox = sandbox(authority.policy(port)).await;
    let code = "
import urllib.request, http.client, ssl, requests, socket, warnings, wardian, os
warnings.simplefilter('error')
url = f'https://server.test:{PORT}/'
print(urllib.request.urlopen(url, timeout=20).read().decode())
with requests.Session() as session:
    print([session.get(url, timeout=20).text for _ in range(3)], session.get(url + 'nosuch').status_code)
print(wardian.fetch('GET', url)['body'])
c = http.client.HTTPSConnection('server.test', PORT, timeout=20)
c.request('GET', '/'); print(c.getresponse().read(), c.sock.selected_alpn_protocol(), c.sock.version(), c.sock.cipher())
shown = c.sock.getpeercert()
print(shown['subjectAltName'], shown['version'], sorted(shown))
with open('/tmp/c.pem', 'w') as file: file.write(ssl.DER_cert_to_PEM_cert(c.sock.getpeercert(True)))
print(ssl._ssl._test_decode_cert('/tmp/c.pem') == shown, len(c.sock.get_unverified_chain()), shown['issuer'])
c.close()
context = ssl.create_default_context()
import warnings; warnings.simplefilter('ignore')
context.maximum_version = ssl.TLSVersion.TLSv1_2
try: context.wrap_socket(socket.create_connection(('server.test', PORT)), server_hostname='server.test')
except ssl.SSLError as e: print(e.reason)
context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
try: context.wrap_socket(socket.create_connection(('server.test', PORT)), server_hostname='server.test')
except ssl.SSLError as e: print(e.reason)";
    let expected = "hello\n['hello', 'hello', 'hello'] 404\nhello\n\
        b'hello' http/1.1 TLSv1.3 ('TLS_AES_256_GCM_SHA384', 'TLSv1.3', 256)\n\
        (('DNS', 'server.test'),) 3 ['issuer', 'notAfter', 'notBefore', 'serialNumber', 'subject', 'subjectAltName', 'version']\n\
        True 1 ((('commonName', 'one'),),)\nUNSUPPORTED_PROTOCOL\nNO_PROTOCOLS_AVAILABLE\n";
    assert_eq!(with_port(&sandbox, port, code).await, expected);
}

#[tokio::test]
async fn a_certificate_is_shown_as_cpython_shows_it() {
    let sandbox = built(Sandbox::builder()).await;
    sandbox.write_file("/tmp/c.pem", include_str!("certificate.pem")).await.expect("there is room");
    let code = "
import ssl, certifi
print(ssl._ssl._test_decode_cert('/tmp/c.pem'))
context = ssl.create_default_context(cafile='/tmp/c.pem')
print(context.cert_store_stats(), context.get_ca_certs())
context.load_verify_locations(certifi.where())
print(context.cert_store_stats()['x509_ca'] > 100, len(context.get_ca_certs()) > 100)
for wrong in ({'cafile': '/nosuch'}, {'cafile': '/etc/passwd'}, {'cadata': 'x'}, {'cadata': b'x'}, {}):
    try: context.load_verify_locations(**wrong)
    except (OSError, TypeError) as e: print(type(e).__name__, getattr(e, 'reason', None))";
    let expected = include_str!("certificate.txt").to_owned()
        + "{'x509': 1, 'crl': 0, 'x509_ca': 0} []\nTrue True\nFileNotFoundError None\n\
           SSLError NO_CERTIFICATE_OR_CRL_FOUND\nSSLError NO_START_LINE\nSSLError NOT_ENOUGH_DATA\nTypeError None\n";
    assert_eq!(python(&sandbox, code).await, expected);
}

#[tokio::test]
async fn a_server_that_cannot_be_verified_is_an_error_of_its_kind() {
    const CODE: &str = "
import ssl, socket, urllib.request, urllib.error, requests, asyncio
try: urllib.request.urlopen(f'https://server.test:{PORT}/')
except urllib.error.URLError as e: e = e.reason; print(type(e).__name__, e.verify_code, e.verify_message, e)
try: requests.get(f'https://server.test:{PORT}/')
except requests.exceptions.SSLError as e: print('CERTIFICATE_VERIFY_FAILED' in str(e))
try: asyncio.run(asyncio.open_connection('server.test', PORT, ssl=True))
except ssl.SSLCertVerificationError as e: print(e.reason)";
    let (authority, other) = (Authority::new("one"), Authority::new("another"));
    let port = other.serve("server.test", hello()).await;
    let said = with_port(&sandbox(authority.policy(port)).await, port, CODE).await;
    let expected = "SSLCertVerificationError 20 unable to get local issuer certificate [SSL: CERTIFICATE_VERIFY_FAILED] \
        certificate verify failed: unable to get local issuer certificate (gateway: invalid peer certificate: UnknownIssuer)\n\
        True\nCERTIFICATE_VERIFY_FAILED\n";
    assert_eq!(said, expected);
    let port = authority.serve("another.test", hello()).await;
    let said = with_port(&sandbox(authority.policy(port)).await, port, CODE).await;
    let expected = "SSLCertVerificationError 62 Hostname mismatch, certificate is not valid for 'server.test'. \
        [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: Hostname mismatch, certificate is not valid for 'server.test'. (gateway: ";
    assert!(said.starts_with(expected), "{said}");
    assert!(said.ends_with("\nTrue\nCERTIFICATE_VERIFY_FAILED\n"), "{said}");
}

#[tokio::test]
async fn without_verification_only_if_the_policy_allows_it() {
    const CODE: &str = "
import requests, warnings, ssl, socket
warnings.simplefilter('ignore')
try: print(requests.get(f'https://server.test:{PORT}/', verify=False).text)
except requests.exceptions.SSLError as e: print(e)
context = ssl._create_unverified_context()
try:
    s = context.wrap_socket(socket.create_connection(('server.test', PORT)), server_hostname='server.test')
    print(s.getpeercert(), len(s.getpeercert(True)) > 100)
except ssl.SSLError as e: print(e)";
    let (authority, other) = (Authority::new("one"), Authority::new("another"));
    let port = other.serve("server.test", hello()).await;
    let policy = authority.policy(port);
    let denied = "the policy does not allow TLS without verification (option network.allowUnverifiedTls)";
    let said = with_port(&sandbox(policy.clone()).await, port, CODE).await;
    assert_eq!(said.matches(denied).count(), 2, "{said}");
    assert!(!said.contains("hello"), "{said}");
    let policy = NetworkPolicy { allow_unverified_tls: true, ..policy };
    assert_eq!(with_port(&sandbox(policy).await, port, CODE).await, "hello\n{} True\n");
}

#[tokio::test]
async fn asyncio_and_sockets_that_do_not_wait_speak_tls() {
    let authority = Authority::new("one");
    let port = authority.serve("server.test", Pages::new()).await;
    // Not HTTP: the gateway passes bytes on as they are.
    let policy = NetworkPolicy { http_ports: Vec::new(), ports: vec![port], ..authority.policy(port) };
    let sandbox = sandbox(policy).await;
    let code = "
import asyncio, ssl, socket, select
async def one(n):
    r, w = await asyncio.open_connection('server.test', PORT, ssl=True)
    w.write(b'abc' * n); await w.drain()
    got = await r.readexactly(3 * n)
    print(got == b'ABC' * n, w.get_extra_info('peercert')['subjectAltName'], w.get_extra_info('cipher')[1])
    w.close(); await w.wait_closed()
async def main(): await asyncio.gather(*(one(n) for n in (1, 50, 100000)))
asyncio.run(main())
context = ssl.create_default_context()
raw = socket.create_connection(('server.test', PORT)); raw.setblocking(False)
s = context.wrap_socket(raw, server_hostname='server.test', do_handshake_on_connect=False)
waited = []
def until_done(act, *args):
    while True:
        try: return act(*args)
        except ssl.SSLWantReadError: waited.append('read'); select.select([s], [], [], 20)
        except ssl.SSLWantWriteError: waited.append('write'); select.select([], [s], [], 20)
try: s.getpeercert()
except ValueError as e: print(e)
until_done(s.do_handshake); print(until_done(s.send, b'xyz'), until_done(s.recv, 10), sorted(set(waited)))
s.settimeout(0.2)
try: s.recv(1)
except TimeoutError as e: print(e)
buffer = bytearray(4); s.sendall(b'more'); print(s.recv_into(buffer), buffer)
s.settimeout(20); print(s.unwrap() is s)
s = context.wrap_socket(socket.create_connection(('server.test', PORT)), server_hostname='server.test')
s.shutdown(socket.SHUT_WR); print(s.recv(1))
def bio(name='server.test'):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    return incoming, outgoing, context.wrap_bio(incoming, outgoing, server_hostname=name)
incoming, outgoing, o = bio()
try: o.do_handshake()
except ssl.SSLWantReadError: print(outgoing.read())
incoming.write(b'\\0WT')
try: o.do_handshake()
except ssl.SSLWantReadError: print(outgoing.pending)
incoming.write_eof()
try: o.do_handshake()
except ssl.SSLEOFError as e: print(e)";
    let expected = "True (('DNS', 'server.test'),) TLSv1.3\n".repeat(3)
        + "handshake not done yet\n3 b'XYZ' ['read']\nThe read operation timed out\n4 bytearray(b'MORE')\nTrue\nb''\n\
           b'\\x00WTLS\\x01\\x00\\x00\\x00\\x18server-name server.test\\n'\n0\nEOF occurred in violation of protocol\n";
    assert_eq!(with_port(&sandbox, port, code).await, expected);
}

/// A package index with two wheels, one of which needs the other, and the SHA-256 of the first.
async fn index() -> (Pages, String) {
    let maker = built(Sandbox::builder()).await;
    python(&maker, &format!("import os; os.chdir('/tmp')\n{MAKE_WHEEL}")).await;
    let mut pages = Pages::new();
    for name in ["alpha", "beta"] {
        let wheel = format!("{name}-1.0-py3-none-any.whl");
        let bytes = maker.read_file(&format!("/tmp/{wheel}")).await.expect("it was made");
        pages.insert(format!("/files/{wheel}"), bytes.to_vec());
        let link = format!("<!DOCTYPE html><html><body><a href=\"/files/{wheel}\">{wheel}</a></body></html>");
        pages.insert(format!("/simple/{name}/"), link.into_bytes());
    }
    let sum = output(&maker, "sha256sum /tmp/alpha-1.0-py3-none-any.whl").await;
    (pages, sum.split(' ').next().expect("a sum").to_owned())
}

#[tokio::test]
async fn pip_installs_from_an_index_over_https() {
    let (pages, _) = index().await;
    let authority = Authority::new("one");
    let port = authority.serve("server.test", pages).await;
    let sandbox = sandbox(authority.policy(port)).await;
    let script = format!(
        "export PIP_INDEX_URL=https://server.test:{port}/simple PIP_DISABLE_PIP_VERSION_CHECK=1
        pip install beta 2>&1 | tail -n 1; beta; alpha; pip install nosuch 2>&1 | tail -n 1"
    );
    let expected = "Successfully installed alpha-1.0 beta-1.0\nbeta runs\nalpha runs\n\
        ERROR: No matching distribution found for nosuch\n";
    assert_eq!(output(&sandbox, &script).await, expected);
}

#[tokio::test]
async fn pip_takes_what_has_the_required_hash_and_nothing_else() {
    let (pages, alpha) = index().await;
    let authority = Authority::new("one");
    let port = authority.serve("server.test", pages).await;
    let sandbox = sandbox(authority.policy(port)).await;
    let install = |hash: &str| {
        format!(
            "export PIP_INDEX_URL=https://server.test:{port}/simple PIP_DISABLE_PIP_VERSION_CHECK=1
            echo 'alpha==1.0{hash}' > /tmp/r
            pip install --require-hashes -r /tmp/r > /tmp/said 2>&1; echo $?; tail -n 1 /tmp/said"
        )
    };
    let wrong = "0".repeat(64);
    let refused = output(&sandbox, &install(&format!(" --hash=sha256:{wrong}"))).await;
    assert!(refused.starts_with("1\n"), "{refused}");
    let said = output(&sandbox, "cat /tmp/said").await;
    assert!(said.contains(&wrong) && said.contains(&alpha), "both hashes are shown: {said}");
    let refused = output(&sandbox, &install("")).await;
    assert!(refused.starts_with("1\n"), "a requirement without a hash: {refused}");
    assert_eq!(output(&sandbox, "command -v alpha || echo none").await, "none\n");
    let taken = output(&sandbox, &install(&format!(" --hash=sha256:{alpha}"))).await;
    assert_eq!(taken, "0\nSuccessfully installed alpha-1.0\n");
    assert_eq!(output(&sandbox, "alpha").await, "alpha runs\n");
}

#[tokio::test]
async fn a_host_that_is_not_granted_is_one_clear_error() {
    let authority = Authority::new("one");
    let port = authority.serve("server.test", hello()).await;
    let sandbox = sandbox(authority.policy(port)).await;
    let code = "
import urllib.request
try: urllib.request.urlopen('https://other.test/')
except OSError as e: print(type(e).__name__)";
    sandbox.write_file("/tmp/code.py", code).await.expect("there is room");
    let result = sandbox.run("python3 /tmp/code.py").await.expect("it runs");
    assert_eq!(String::from_utf8_lossy(&result.stdout), "URLError\n");
    assert_eq!(String::from_utf8_lossy(&result.stderr), "wardian: host not allowed: other.test\n");
    assert_eq!(result.error_class, Some(ErrorClass::CapabilityDenied));
    let said = output(&sandbox, "pip install --index-url https://other.test/simple x 2>&1; echo $?").await;
    assert!(said.contains("the sandbox was not granted other.test (option network.allowedHosts)"), "{said}");
    assert!(said.ends_with("\n1\n") && !said.contains("Traceback") && !said.contains("Retrying"), "{said}");
}

#[tokio::test]
async fn inside_the_sandbox_and_for_servers_tls_is_refused() {
    let sandbox = built(Sandbox::builder()).await;
    let code = "
import asyncio, ssl, socket
context = ssl.create_default_context()
listener = socket.create_server(('127.0.0.1', 0)); port = listener.getsockname()[1]
for sock in (socket.create_connection(('localhost', port)), socket.socketpair()[0]):
    try: context.wrap_socket(sock, server_hostname='localhost')
    except ssl.SSLError as e: print(e)
accepted = listener.accept()[0]; print(accepted.recv(10))
async def main():
    async def plain(r, w): await r.read(10); w.write(b'HTTP/1.1 400 Bad Request\\r\\n\\r\\n'); await w.drain(); w.close()
    server = await asyncio.start_server(plain, '127.0.0.1', 0)
    try: await asyncio.open_connection('127.0.0.1', server.sockets[0].getsockname()[1], ssl=True, server_hostname='localhost')
    except ssl.SSLError as e: print(e)
    async def silent(r, w): await asyncio.sleep(60)
    server = await asyncio.start_server(silent, '127.0.0.1', 0)
    try: await asyncio.open_connection('127.0.0.1', server.sockets[0].getsockname()[1], ssl=True, server_hostname='localhost', ssl_handshake_timeout=0.3)
    except ConnectionAbortedError as e: print(e)
asyncio.run(asyncio.wait_for(main(), 30))
server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
def attempt(name, act):
    try: act(); print(name, 'was accepted')
    except (ssl.SSLError, ValueError, NotImplementedError) as e: print(name, '|', type(e).__name__, '|', e)
one, two = ssl.MemoryBIO(), ssl.MemoryBIO()
attempt('server_side', lambda: server.wrap_bio(one, two, server_side=True))
attempt('server chain', lambda: server.load_cert_chain('/nosuch'))
attempt('client chain', lambda: context.load_cert_chain('/nosuch'))
attempt('keylog', lambda: setattr(context, 'keylog_filename', '/tmp/keys'))
attempt('crl', lambda: setattr(context, 'verify_flags', ssl.VERIFY_CRL_CHECK_LEAF))
attempt('ciphers', lambda: context.set_ciphers('RC4-MD5:!AES'))
attempt('curve', lambda: context.set_ecdh_curve('prime256v1'))
attempt('psk', lambda: context.set_psk_client_callback(lambda hint: None))
attempt('messages', lambda: setattr(context, '_msg_callback', print))
attempt('old', lambda: ssl.SSLContext(ssl.PROTOCOL_TLSv1))
attempt('unverified', lambda: setattr(context, 'verify_mode', ssl.CERT_NONE))
attempt('name', lambda: context.wrap_bio(one, two))
attempt('injected', lambda: context._wrap_bio(one, two, False, 'x\\nverify no'))
context.set_ciphers('ECDHE+AESGCM:!aNULL'); context.set_ciphers('DEFAULT@SECLEVEL=1'); context.post_handshake_auth = True; context.hostname_checks_common_name = False
print(len(ssl.RAND_bytes(16)), ssl.OPENSSL_VERSION_INFO >= (1, 1, 1), ssl.HAS_TLSv1_3, ssl.Purpose.SERVER_AUTH.shortname)";
    let gateway =
        "TLS is done by the gateway, for connections that leave the sandbox and from their first byte on";
    let server = "a program in the sandbox cannot be a TLS server: TLS is done by the gateway, for connections to the outside";
    let unsupported = "| SSLError | [SSL: UNSUPPORTED_IN_SANDBOX]";
    let expected = format!(
        "[SSL: UNSUPPORTED_IN_SANDBOX] {gateway}\n[SSL: UNSUPPORTED_IN_SANDBOX] {gateway}\nb''\n\
        [SSL: WRONG_VERSION_NUMBER] what answers is not the gateway: {gateway}\n\
        SSL handshake is taking longer than 0.3 seconds: aborting the connection\n\
        server_side {unsupported} {server}\n\
        server chain {unsupported} load_cert_chain: {server}\n\
        client chain {unsupported} load_cert_chain: client certificates are not supported, because TLS is done by the gateway\n\
        keylog {unsupported} keylog_filename (SSLKEYLOGFILE): the keys of a connection stay with the gateway\n\
        crl {unsupported} verify_flags: lists of revoked certificates (VERIFY_CRL_CHECK_*) are not supported\n\
        ciphers | SSLError | ('No cipher can be selected.',)\n\
        curve {unsupported} set_ecdh_curve: the curves are chosen by the gateway\n\
        psk | NotImplementedError | keys that are known beforehand (PSK) are not supported\n\
        messages {unsupported} _msg_callback: the messages of TLS stay with the gateway\n\
        old | ValueError | invalid or unsupported protocol version\n\
        unverified | ValueError | Cannot set verify_mode to CERT_NONE when check_hostname is enabled.\n\
        name | ValueError | check_hostname requires server_hostname\n\
        injected | ValueError | server_hostname must be a name\n\
        16 True True serverAuth\n"
    );
    let started = std::time::Instant::now();
    assert_eq!(python(&sandbox, code).await, expected);
    assert!(started.elapsed() < Duration::from_secs(60), "nothing waited for ever");
}
