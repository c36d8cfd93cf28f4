//! Servers of HTTPS on this machine, with an authority of the test's own.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use tokio_rustls::server::TlsStream;
use wardian::net::{NetworkPolicy, Roots};

/// A file with an authority's certificate, and servers with certificates by it.
pub struct Authority {
    file: tempfile::NamedTempFile,
    issuer: Issuer<'static, KeyPair>,
}

/// Bodies by path.
pub type Pages = BTreeMap<String, Vec<u8>>;

impl Authority {
    pub fn new(name: &str) -> Authority {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("params");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate");
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), certificate.pem()).expect("written");
        Authority { file, issuer: Issuer::new(params, key) }
    }

    /// Takes connections by TLS, with a certificate for this name.
    fn acceptor(&self, name: &str) -> TlsAcceptor {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("params");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("a configuration");
        TlsAcceptor::from(Arc::new(config))
    }

    /// Has a function serve each connection under this name; returns the port.
    async fn listen<F, T>(&self, name: &str, serve: F) -> u16
    where
        F: Fn(TlsStream<TcpStream>) -> T + Send + Sync + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        let acceptor = self.acceptor(name);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let serve = Arc::new(serve);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, serve) = (acceptor.clone(), serve.clone());
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream).await;
                    }
                });
            }
        });
        port
    }

    /// Serves pages over HTTPS under this name, and repeats in capitals what is no HTTP; returns the port.
    pub async fn serve(&self, name: &str, pages: Pages) -> u16 {
        let pages = Arc::new(pages);
        let serve = move |mut stream: TlsStream<TcpStream>| {
            let pages = pages.clone();
            async move {
                let mut received = Vec::new();
                while let Ok(count @ 1..) = stream.read_buf(&mut received).await {
                    let answer = match received.starts_with(b"GET ") {
                        true if !received.ends_with(b"\r\n\r\n") => continue,
                        true => page(&received, &pages),
                        false => received[received.len() - count..].to_ascii_uppercase(),
                    };
                    received.clear();
                    if stream.write_all(&answer).await.is_err() {
                        return;
                    }
                }
                let _ = stream.shutdown().await;
            }
        };
        self.listen(name, serve).await
    }

    /// Has a function answer each request, with a whole response; returns the port.
    pub async fn answer<F>(&self, name: &str, answer: F) -> u16
    where
        F: Fn(Asked) -> Vec<u8> + Send + Sync + 'static,
    {
        let answer = Arc::new(answer);
        let serve = move |stream| {
            let answer = answer.clone();
            async move {
                let mut stream = BufReader::new(stream);
                while let Some(asked) = Asked::read(&mut stream).await {
                    let answer = answer.clone();
                    let made = tokio::task::spawn_blocking(move || answer(asked)).await;
                    if stream.write_all(&made.expect("no panic")).await.is_err() {
                        return;
                    }
                }
            }
        };
        self.listen(name, serve).await
    }

    pub fn policy(&self, port: u16) -> NetworkPolicy {
        NetworkPolicy {
            allowed_hosts: vec!["server.test".into()],
            http_ports: vec![port],
            allow_private: vec!["127.0.0.0/8".parse().expect("a network")],
            roots: Roots::CaFile,
            ca_file: Some(self.file.path().to_owned()),
            ..NetworkPolicy::default()
        }
    }
}

fn page(request: &[u8], pages: &Pages) -> Vec<u8> {
    let head = String::from_utf8_lossy(request);
    let path = head.split(' ').nth(1).unwrap_or_default();
    let (status, body) = match pages.get(path) {
        Some(body) => ("200 OK", body.as_slice()),
        None => ("404 Not Found", &b"not here"[..]),
    };
    let kind = if path.ends_with('/') { "text/html" } else { "application/octet-stream" };
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// A request, with its whole body.
pub struct Asked {
    pub method: String,
    pub target: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Asked {
    async fn read(stream: &mut (impl AsyncBufRead + Unpin)) -> Option<Asked> {
        let first = line(stream).await?;
        let mut words = first.split(' ').map(str::to_owned);
        let (method, target) = (words.next()?, words.next()?);
        let mut headers = BTreeMap::new();
        loop {
            let line = line(stream).await?;
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let mut body = Vec::new();
        if headers.contains_key("transfer-encoding") {
            while let length @ 1.. = usize::from_str_radix(&line(stream).await?, 16).ok()? {
                let start = body.len();
                body.resize(start + length, 0);
                stream.read_exact(&mut body[start..]).await.ok()?;
                line(stream).await?;
            }
            line(stream).await?;
        } else if let Some(length) = headers.get("content-length") {
            body.resize(length.parse().ok()?, 0);
            stream.read_exact(&mut body).await.ok()?;
        }
        Some(Asked { method, target, headers, body })
    }
}

async fn line(stream: &mut (impl AsyncBufRead + Unpin)) -> Option<String> {
    let mut line = String::new();
    let count = stream.read_line(&mut line).await.ok()?;
    (count > 0).then(|| line.trim_end().to_owned())
}
