//! TLS to servers: who is trusted, and the handshake.
//!
//! The cryptography is ring's: it needs a C compiler at most, where aws-lc-rs also needs CMake and an assembler.

use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, ProtocolVersion, RootCertStore, SignatureScheme,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::name::Host;
use crate::policy::{NetworkPolicy, Roots};
use crate::record::{TlsAnswer, TlsErrorCode};
use crate::rules::PolicyError;

/// Most bytes of a file with authorities.
const CA_FILE: u64 = 16 << 20;

/// Sessions that a sandbox can resume. They are its own: no other sandbox can tell what it visited.
const SESSIONS: usize = 32;

/// What a sandbox trusts.
pub(crate) struct Tls {
    verified: Arc<ClientConfig>,
    unverified: Option<Arc<ClientConfig>>,
}

impl Tls {
    pub(crate) fn new(policy: &NetworkPolicy) -> Result<Tls, PolicyError> {
        let provider = Arc::new(ring::default_provider());
        let roots = roots(policy)?;
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build();
        let verifier = verifier.map_err(|error| PolicyError::new("roots", error))?;
        let unverified = || config(provider.clone(), Arc::new(Anyone(provider.clone())));
        Ok(Tls {
            unverified: policy.allow_unverified_tls.then(unverified).transpose()?,
            verified: config(provider.clone(), verifier)?,
        })
    }

    /// Returns the same trust for another sandbox, with no sessions to resume.
    pub(crate) fn fresh(&self) -> Tls {
        let fresh = |config: &Arc<ClientConfig>| {
            let mut config = ClientConfig::clone(config);
            config.resumption = Resumption::in_memory_sessions(SESSIONS);
            Arc::new(config)
        };
        Tls { verified: fresh(&self.verified), unverified: self.unverified.as_ref().map(fresh) }
    }

    /// Shakes hands with a server that must be `host`. `None`: connections without verification are not allowed.
    pub(crate) async fn connect(
        &self,
        stream: TcpStream,
        host: &Host,
        verify: bool,
        alpn: &[Vec<u8>],
    ) -> Option<Result<TlsStream<TcpStream>, (TlsErrorCode, String)>> {
        let config = if verify { &self.verified } else { self.unverified.as_ref()? };
        let mut config = ClientConfig::clone(config);
        config.alpn_protocols = alpn.to_vec();
        let name = match host {
            Host::Name(name) => match ServerName::try_from(name.clone()) {
                Ok(name) => name,
                Err(_) => return Some(Err((TlsErrorCode::Name, "no certificate can have this name".into()))),
            },
            Host::Ip(address) => ServerName::IpAddress((*address).into()),
        };
        let connected = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        Some(connected.map_err(|error| (code(&error), error.to_string())))
    }
}

fn config(
    provider: Arc<CryptoProvider>,
    verifier: Arc<dyn ServerCertVerifier>,
) -> Result<Arc<ClientConfig>, PolicyError> {
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| PolicyError::new("roots", error))?;
    let mut config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    config.resumption = Resumption::in_memory_sessions(SESSIONS);
    Ok(Arc::new(config))
}

/// Returns who is trusted. The machine's own authorities are read once for all sandboxes.
fn roots(policy: &NetworkPolicy) -> Result<Arc<RootCertStore>, PolicyError> {
    static PLATFORM: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    static WEBPKI: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let webpki = || {
        WEBPKI
            .get_or_init(|| Arc::new(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }))
            .clone()
    };
    let base = match policy.roots {
        Roots::Webpki => webpki(),
        Roots::CaFile => Arc::new(RootCertStore::empty()),
        Roots::Platform => {
            let platform = PLATFORM.get_or_init(|| {
                let mut store = RootCertStore::empty();
                store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                Arc::new(store)
            });
            if platform.is_empty() { webpki() } else { platform.clone() }
        }
    };
    let Some(file) = &policy.ca_file else { return Ok(base) };
    let mut store = RootCertStore::clone(&base);
    for certificate in certificates(file)? {
        store.add(certificate).map_err(|error| PolicyError::new("caFile", error))?;
    }
    Ok(Arc::new(store))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, PolicyError> {
    let wrong = |why: String| PolicyError::new("caFile", format!("{}: {why}", file.display()));
    let size = fs::metadata(file).map_err(|error| wrong(error.to_string()))?.len();
    if size > CA_FILE {
        return Err(wrong("too large".into()));
    }
    let text = fs::read(file).map_err(|error| wrong(error.to_string()))?;
    let all = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|error| wrong(format!("{error:?}")))?;
    if all.is_empty() { Err(wrong("it has no certificate".into())) } else { Ok(all) }
}

/// Returns what a guest is told about a failed handshake.
fn code(error: &std::io::Error) -> TlsErrorCode {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        )) => TlsErrorCode::Name,
        Some(rustls::Error::InvalidCertificate(_)) => TlsErrorCode::Certificate,
        _ => TlsErrorCode::Handshake,
    }
}

/// Describes a connection to the guest. `alpn` is what the guest is told was agreed on.
pub(crate) fn describe(stream: &TlsStream<TcpStream>, alpn: Option<String>) -> TlsAnswer {
    let (_, session) = stream.get_ref();
    let version = match session.protocol_version() {
        Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
        _ => "TLSv1.3",
    };
    let cipher = session
        .negotiated_cipher_suite()
        .map_or(String::new(), |suite| format!("{:?}", suite.suite()).replacen("TLS13_", "TLS_", 1));
    let certificates = session.peer_certificates().unwrap_or_default();
    TlsAnswer::Ok {
        version,
        cipher,
        alpn,
        certificates: certificates.iter().map(|der| der.to_vec()).collect(),
    }
}

/// Accepts every certificate, but not a handshake that its key did not sign.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
