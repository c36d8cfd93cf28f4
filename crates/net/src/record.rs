//! The control record with which a guest asks for TLS, and its answer.
//!
//! ```text
//! 00 57 54 4C 53 01      "\0WTLS\x01"
//! 00 00 00 1B            the length of what follows, big-endian, at most 65,536
//! server-name x.com\n    lines of a key, a space and a value
//! verify yes\n
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The first bytes of a record. No HTTP request and no TLS handshake begins like that.
pub const MAGIC: [u8; 6] = *b"\0WTLS\x01";

/// The most bytes after the length.
pub const MOST: usize = 65_536;

/// Magic and length.
pub const HEADER: usize = 10;

/// What a guest asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsRequest {
    /// The name that the certificate must be for.
    pub server_name: String,
    /// Whether the certificate is checked.
    pub verify: bool,
    /// Application protocols, the preferred one first.
    pub alpn: Vec<String>,
}

/// Why a request for TLS failed, as the guest is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsErrorCode {
    /// The certificate is not trusted.
    Certificate,
    /// The certificate is for another name.
    Name,
    /// The handshake failed.
    Handshake,
    /// The policy does not allow it.
    Denied,
    /// The record is malformed.
    BadRequest,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsAnswer {
    /// Plain bytes follow.
    Ok {
        /// `TLSv1.3` or `TLSv1.2`.
        version: &'static str,
        /// The cipher suite by its registered name.
        cipher: String,
        /// The application protocol, if one was agreed on.
        alpn: Option<String>,
        /// The server's certificates (DER), its own first.
        certificates: Vec<Vec<u8>>,
    },
    /// The connection is closed after this.
    Error(TlsErrorCode, String),
}

/// Returns the length of the body, given the first [`HEADER`] bytes.
pub fn body_length(header: &[u8; HEADER]) -> Result<usize, &'static str> {
    if header[..6] != MAGIC {
        return Err("not a TLS control record");
    }
    let length = u32::from_be_bytes([header[6], header[7], header[8], header[9]]) as usize;
    if length > MOST { Err("the record is too long") } else { Ok(length) }
}

impl TlsRequest {
    /// Reads the body of a record.
    pub fn parse(body: &[u8]) -> Result<TlsRequest, &'static str> {
        let text = std::str::from_utf8(body).map_err(|_| "not UTF-8")?;
        let (mut server_name, mut verify, mut alpn) = (None, None, Vec::new());
        let text = match text.strip_suffix('\n') {
            Some(text) => text,
            None => return Err("the last line has no end"),
        };
        for line in text.split('\n') {
            match line.split_once(' ') {
                Some(("server-name", name)) if server_name.is_none() => server_name = Some(name.to_owned()),
                Some(("verify", "yes")) if verify.is_none() => verify = Some(true),
                Some(("verify", "no")) if verify.is_none() => verify = Some(false),
                Some(("alpn", name)) if (1..=255).contains(&name.len()) && alpn.len() < 16 => {
                    alpn.push(name.to_owned())
                }
                _ => return Err("an unknown, repeated or malformed line"),
            }
        }
        let server_name = server_name.ok_or("server-name is missing")?;
        Ok(TlsRequest { server_name, verify: verify.unwrap_or(true), alpn })
    }

    /// Returns the whole record. For guests that are written in Rust, and for tests.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut body =
            format!("server-name {}\nverify {}\n", self.server_name, if self.verify { "yes" } else { "no" });
        for name in &self.alpn {
            body += &format!("alpn {name}\n");
        }
        with_header(body.as_bytes())
    }
}

impl TlsErrorCode {
    fn as_str(self) -> &'static str {
        match self {
            TlsErrorCode::Certificate => "certificate",
            TlsErrorCode::Name => "name",
            TlsErrorCode::Handshake => "handshake",
            TlsErrorCode::Denied => "denied",
            TlsErrorCode::BadRequest => "bad-request",
        }
    }
}

impl TlsAnswer {
    /// Returns the whole record.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut body = String::new();
        match self {
            TlsAnswer::Ok { version, cipher, alpn, certificates } => {
                body += &format!("ok\nversion {version}\ncipher {cipher}\n");
                if let Some(alpn) = alpn {
                    body += &format!("alpn {alpn}\n");
                }
                for certificate in certificates {
                    let line = format!("certificate {}\n", STANDARD.encode(certificate));
                    // A server chooses how many it sends: those that fit, its own first.
                    if body.len() + line.len() > MOST {
                        break;
                    }
                    body += &line;
                }
            }
            TlsAnswer::Error(code, message) => {
                let message: String =
                    message.chars().take(1_000).map(|c| if c.is_control() { ' ' } else { c }).collect();
                body += &format!("error {}\nmessage {message}\n", code.as_str());
            }
        }
        with_header(body.as_bytes())
    }
}

fn with_header(body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_be_bytes();
    [&MAGIC[..], &length, body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn records_are_read_strictly() {
        let asked = TlsRequest {
            server_name: "x.com".into(),
            verify: false,
            alpn: vec!["h2".into(), "http/1.1".into()],
        };
        let bytes = asked.to_bytes();
        let header = bytes[..HEADER].try_into().expect("a header");
        assert_eq!(body_length(header), Ok(bytes.len() - HEADER));
        assert_eq!(TlsRequest::parse(&bytes[HEADER..]), Ok(asked));
        for wrong in [
            "",
            "\n",
            "verify yes\n",
            "server-name x",
            "server-name x\nserver-name y\n",
            "server-name x\nverify maybe\n",
            "server-name x\nclient-key y\n",
            "server-name x\n\n",
            "server-name x\nalpn \n",
            "server-name\n",
        ] {
            assert!(TlsRequest::parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
        assert!(body_length(b"\0WTLS\x01\0\x01\0\x01").is_err());
        assert!(body_length(b"\0WTLS\x02\0\0\0\x01").is_err());
    }

    #[test]
    fn an_answer_never_exceeds_a_record() {
        let certificates = vec![vec![7; 20_000]; 10];
        let answer = TlsAnswer::Ok { version: "TLSv1.3", cipher: "X".into(), alpn: None, certificates };
        assert!(answer.to_bytes().len() <= HEADER + MOST);
        let error = TlsAnswer::Error(TlsErrorCode::Name, "two\nlines".repeat(1_000)).to_bytes();
        assert_eq!(error[HEADER..].iter().filter(|byte| **byte == b'\n').count(), 2);
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_refused(body: Vec<u8>) {
            let _ = TlsRequest::parse(&body);
        }
    }
}
