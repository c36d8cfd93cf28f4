//! Values that the gateway puts into requests, and takes out of responses.
//!
//! A guest sees a placeholder. On a request to the secret's host, over TLS whose certificate was verified, the placeholder is
//! replaced in header values and in the query, and the secret is put where the policy says. The guest's own value for that
//! place is dropped in any case, so that it cannot use other credentials with the host.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use http::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, HeaderValue};
use sha2::{Digest, Sha256};

use crate::mask::Mask;
use crate::name::{Host, Pattern};
use crate::policy::{Secret, SecretPlace};
use crate::rules::PolicyError;

/// Most secrets of a policy: every one is looked for in every response.
const MOST: usize = 64;

/// Lengths of a secret. A shorter one would be found, and masked, all over ordinary text.
const LENGTH: std::ops::RangeInclusive<usize> = 8..=8_192;

/// The secrets of a policy.
#[derive(Default)]
pub(crate) struct Secrets {
    all: Vec<Known>,
    /// What must not reach a guest: the values, and the forms in which the gateway itself sends them.
    forms: Vec<Vec<u8>>,
}

struct Known {
    name: String,
    host: Pattern,
    value: String,
    place: SecretPlace,
    placeholder: String,
    forms: Vec<Vec<u8>>,
}

impl Secrets {
    pub(crate) fn new(secrets: &[Secret]) -> Result<Secrets, PolicyError> {
        let wrong =
            |secret: &Secret, why: &str| PolicyError::new("secrets", format!("{}: {why}", secret.name));
        if secrets.len() > MOST {
            return Err(PolicyError::new("secrets", format!("more than {MOST}")));
        }
        let mut all: Vec<Known> = Vec::new();
        for secret in secrets {
            let host = Pattern::parse(&secret.host).map_err(|error| wrong(secret, &error.to_string()))?;
            let variable = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if secret.name.is_empty() || secret.name.len() > 128 || !secret.name.bytes().all(variable) {
                return Err(wrong(secret, "the name must be that of a variable"));
            }
            if all.iter().any(|known| known.name == secret.name) {
                return Err(wrong(secret, "two secrets have this name"));
            }
            if !LENGTH.contains(&secret.value.len())
                || !secret.value.bytes().all(|byte| (0x20..0x7f).contains(&byte))
            {
                return Err(wrong(secret, "the value must be 8 to 8,192 printable ASCII characters"));
            }
            if let Err(why) = check_place(&secret.place) {
                return Err(wrong(secret, why));
            }
            all.push(Known {
                forms: forms(&secret.value, &secret.place),
                placeholder: placeholder(&secret.name, &secret.host),
                name: secret.name.clone(),
                host,
                value: secret.value.clone(),
                place: secret.place.clone(),
            });
        }
        let mut forms: Vec<Vec<u8>> = all.iter().flat_map(|known| known.forms.clone()).collect();
        forms.sort();
        forms.dedup();
        Ok(Secrets { all, forms })
    }

    /// Returns the variables for the guest and their values.
    pub(crate) fn placeholders(&self) -> Vec<(String, String)> {
        self.all.iter().map(|known| (known.name.clone(), known.placeholder.clone())).collect()
    }

    pub(crate) fn any_for(&self, host: &Host) -> bool {
        self.all.iter().any(|known| known.host.matches(host))
    }

    /// Prepares a request. `target` is a path with a query, or `*`. `verified`: the server is who it claims to be.
    pub(crate) fn apply(&self, host: &Host, verified: bool, headers: &mut HeaderMap, target: &mut String) {
        let here: Vec<&Known> = self.all.iter().filter(|known| known.host.matches(host)).collect();
        for known in &here {
            known.drop_own(headers, target);
        }
        if !verified {
            return;
        }
        for known in &here {
            known.replace(headers, target);
        }
        for known in &here {
            known.insert(headers, target);
        }
    }

    /// Tells whether a header is for the gateway alone to set.
    pub(crate) fn owns_header(&self, host: &Host, name: &str) -> bool {
        let same = |known: &&Known| known.header().is_some_and(|own| same_header(&own, name));
        self.all.iter().filter(|known| known.host.matches(host)).any(|known| same(&known))
    }

    /// Returns a filter for what comes from the server of a host.
    pub(crate) fn mask(&self, host: &Host) -> Mask<'_> {
        let here = self.all.iter().filter(|known| known.host.matches(host));
        Mask::new(&self.forms, here.flat_map(|known| &known.forms).map(Vec::as_slice).collect())
    }

    /// Masks the secrets in a text that is complete.
    pub(crate) fn mask_whole(&self, bytes: &[u8]) -> Vec<u8> {
        Mask::new(&self.forms, Vec::new()).push(bytes).unwrap_or_else(|| bytes.to_vec())
    }
}

fn check_place(place: &SecretPlace) -> Result<(), &'static str> {
    match place {
        SecretPlace::Header(name) => {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| "not the name of a header")?;
            let framing = [
                "host",
                "content-length",
                "transfer-encoding",
                "connection",
                "upgrade",
                "te",
                "trailer",
                "expect",
            ];
            if framing.contains(&name.as_str()) { Err("this header is the gateway's own") } else { Ok(()) }
        }
        SecretPlace::Basic(user)
            if user.contains(':') || !user.bytes().all(|byte| (0x20..0x7f).contains(&byte)) =>
        {
            Err("not a user name")
        }
        SecretPlace::Query(name) if name.is_empty() || !name.bytes().all(is_unreserved) => {
            Err("not a plain name of a parameter")
        }
        _ => Ok(()),
    }
}

/// Returns what stands for a secret in the guest. It depends on the name and the host alone, so that it stays the same for
/// forks and for a sandbox that comes back from a file.
fn placeholder(name: &str, host: &str) -> String {
    let digest = Sha256::digest(format!("wardian placeholder\n{name}\n{host}"));
    let digits: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("wardian-secret-{digits}")
}

impl Known {
    fn header(&self) -> Option<HeaderName> {
        match &self.place {
            SecretPlace::Bearer | SecretPlace::Basic(_) => Some(AUTHORIZATION),
            SecretPlace::Header(name) => HeaderName::from_bytes(name.as_bytes()).ok(),
            SecretPlace::Placeholder | SecretPlace::Query(_) => None,
        }
    }

    fn drop_own(&self, headers: &mut HeaderMap, target: &mut String) {
        if let Some(own) = self.header() {
            let same: Vec<HeaderName> =
                headers.keys().filter(|name| same_header(&own, name.as_str())).cloned().collect();
            for name in same {
                headers.remove(name);
            }
        }
        if let SecretPlace::Query(own) = &self.place
            && let Some((path, query)) = target.split_once('?')
        {
            let name = |parameter: &str| percent_decoded(parameter.split('=').next().unwrap_or_default());
            let kept: Vec<&str> =
                query.split(['&', ';']).filter(|part| name(part) != own.as_bytes()).collect();
            if kept.len() != query.split(['&', ';']).count() {
                let sign = if kept.is_empty() { "" } else { "?" };
                *target = format!("{path}{sign}{}", kept.join("&"));
            }
        }
    }

    fn replace(&self, headers: &mut HeaderMap, target: &mut String) {
        for (name, value) in headers.iter_mut() {
            if name == HOST {
                continue;
            }
            if let Some(replaced) = self.replaced(name, value) {
                *value = replaced;
            }
        }
        if let Some((path, query)) = target.split_once('?')
            && query.contains(&self.placeholder)
        {
            *target =
                format!("{path}?{}", query.replace(&self.placeholder, &percent_encoded(&self.value, true)));
        }
    }

    fn replaced(&self, name: &HeaderName, value: &HeaderValue) -> Option<HeaderValue> {
        let text = std::str::from_utf8(value.as_bytes()).ok()?;
        let replaced = if text.contains(&self.placeholder) {
            text.replace(&self.placeholder, &self.value)
        } else if name == AUTHORIZATION {
            // `curl -u user:$PLACEHOLDER` encodes it.
            let (scheme, encoded) =
                text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"))?;
            let decoded = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
            let decoded = decoded
                .contains(&self.placeholder)
                .then(|| decoded.replace(&self.placeholder, &self.value))?;
            format!("{scheme} {}", STANDARD.encode(decoded))
        } else {
            return None;
        };
        sensitive(&replaced)
    }

    fn insert(&self, headers: &mut HeaderMap, target: &mut String) {
        let value = match &self.place {
            SecretPlace::Placeholder => return,
            SecretPlace::Bearer => format!("Bearer {}", self.value),
            SecretPlace::Basic(user) => {
                format!("Basic {}", STANDARD.encode(format!("{user}:{}", self.value)))
            }
            SecretPlace::Header(_) => self.value.clone(),
            SecretPlace::Query(name) if target.starts_with('/') => {
                let sign = if target.contains('?') { '&' } else { '?' };
                *target += &format!("{sign}{name}={}", percent_encoded(&self.value, true));
                return;
            }
            SecretPlace::Query(_) => return,
        };
        if let (Some(name), Some(value)) = (self.header(), sensitive(&value)) {
            headers.insert(name, value);
        }
    }
}

/// A value as it is, and as servers commonly echo it: in URLs, in JSON (some write `\/`), in base64.
fn forms(value: &str, place: &SecretPlace) -> Vec<Vec<u8>> {
    let json = value.replace('\\', "\\\\").replace('"', "\\\"");
    let slashes = json.replace('/', "\\/");
    let mut forms: Vec<Vec<u8>> = [value.to_owned(), json, slashes].map(String::into_bytes).into();
    forms.extend([percent_encoded(value, true), percent_encoded(value, false)].map(String::into_bytes));
    if let SecretPlace::Basic(user) = place {
        forms.push(STANDARD.encode(format!("{user}:{value}")).into_bytes());
    }
    forms.extend((0..3).flat_map(|before| in_base64(value, before)));
    forms.sort();
    forms.dedup();
    forms
}

/// Returns what of a value is the same in every base64 text that has it after so many bytes, modulo three: Basic credentials, and
/// whatever else a server may echo of them.
fn in_base64(value: &str, before: usize) -> [Vec<u8>; 2] {
    let padded = [&[0; 2][..before], value.as_bytes()].concat();
    // Characters that also depend on the bytes before and after.
    let from = [0, 2, 3][before];
    let to = padded.len() / 3 * 4 + [0, 1, 2][padded.len() % 3];
    [STANDARD.encode(&padded), URL_SAFE.encode(&padded)].map(|text| text.as_bytes()[from..to].to_vec())
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Some servers read `_` in the name of a header as `-`.
fn same_header(own: &HeaderName, name: &str) -> bool {
    own.as_str().replace('_', "-") == name.to_ascii_lowercase().replace('_', "-")
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn percent_encoded(text: &str, upper: bool) -> String {
    let encoded = |byte: u8| match upper {
        _ if is_unreserved(byte) => char::from(byte).to_string(),
        true => format!("%{byte:02X}"),
        false => format!("%{byte:02x}"),
    };
    text.bytes().map(encoded).collect()
}

pub(crate) fn percent_decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let code = bytes.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        match code.and_then(|pair| u8::from_str_radix(pair, 16).ok()).filter(|_| bytes[at] == b'%') {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(place: SecretPlace) -> Secrets {
        let secret = Secret { name: "KEY".into(), host: "x.com".into(), value: "s3cret/value".into(), place };
        Secrets::new(&[secret]).expect("secrets")
    }

    fn applied(
        place: SecretPlace,
        verified: bool,
        header: (&str, &str),
        target: &str,
    ) -> (HeaderMap, String) {
        let (mut headers, mut target) = (HeaderMap::new(), target.to_owned());
        let name = HeaderName::from_bytes(header.0.as_bytes()).expect("a name");
        let known = secrets(place);
        let text = header.1.replace("KEY", &known.all[0].placeholder);
        target = target.replace("KEY", &known.all[0].placeholder);
        headers.insert(name, text.parse().expect("a value"));
        known.apply(&Host::Name("x.com".into()), verified, &mut headers, &mut target);
        (headers, target)
    }

    #[test]
    fn placeholders_are_replaced_over_verified_tls_alone() {
        let (headers, target) = applied(SecretPlace::Placeholder, true, ("x-key", "a KEY b"), "/KEY?q=KEY");
        assert_eq!(headers["x-key"], "a s3cret/value b");
        assert!(target.ends_with("?q=s3cret%2Fvalue") && target.starts_with("/wardian-secret-"), "{target}");
        let basic = format!("Basic {}", STANDARD.encode(format!("me:{}", placeholder("KEY", "x.com"))));
        let (headers, _) = applied(SecretPlace::Placeholder, true, ("authorization", &basic), "/");
        assert_eq!(headers["authorization"], format!("Basic {}", STANDARD.encode("me:s3cret/value")));
        let (headers, target) = applied(SecretPlace::Placeholder, false, ("x-key", "KEY"), "/?q=KEY");
        assert!(
            headers["x-key"].to_str().expect("text").starts_with("wardian-secret-")
                && target.contains("wardian-secret-")
        );
    }

    #[test]
    fn a_guests_own_value_is_dropped_verified_or_not() {
        let (headers, _) = applied(SecretPlace::Bearer, true, ("authorization", "Bearer own"), "/");
        assert_eq!(headers["authorization"], "Bearer s3cret/value");
        let (headers, _) = applied(SecretPlace::Bearer, false, ("authorization", "Bearer own"), "/");
        assert!(headers.is_empty());
        let (headers, _) = applied(SecretPlace::Header("X-Api-Key".into()), true, ("x_api_key", "own"), "/");
        assert_eq!(headers.len(), 1);
        assert_eq!(headers["x-api-key"], "s3cret/value");
        let (_, target) =
            applied(SecretPlace::Query("key".into()), true, ("a", "b"), "/p?a=1&k%65y=own;key=x&b=2");
        assert_eq!(target, "/p?a=1&b=2&key=s3cret%2Fvalue");
        let (_, target) = applied(SecretPlace::Query("key".into()), false, ("a", "b"), "/p?key=own");
        assert_eq!(target, "/p");
    }

    #[test]
    fn base64_of_a_secret_is_masked_whatever_surrounds_it() {
        let known = secrets(SecretPlace::Placeholder);
        for before in ["", "a", "me:", "user:", "12345678"] {
            for after in ["", "x", "yz", "more"] {
                for engine in [&STANDARD, &URL_SAFE] {
                    let encoded = engine.encode(format!("{before}s3cret/value{after}"));
                    let masked = known.mask_whole(format!("Basic {encoded}\n").as_bytes());
                    let text = String::from_utf8(masked).expect("text");
                    assert!(
                        text.contains("*************") && text.len() == encoded.len() + 7,
                        "{encoded} {text}"
                    );
                    // At most a byte at either end can be told from what is left.
                    let left = text.trim_start_matches("Basic ").split('*').map(str::len).max();
                    assert!(left <= Some(before.len().max(after.len()) * 4 / 3 + 6), "{encoded} {text}");
                }
            }
        }
    }

    #[test]
    fn what_urls_and_json_make_of_a_secret_is_masked() {
        let value = "s\\cr\"t/value";
        let secret = Secret {
            name: "KEY".into(),
            host: "x.com".into(),
            value: value.into(),
            place: SecretPlace::Bearer,
        };
        let known = Secrets::new(&[secret]).expect("secrets");
        let json = serde_json::to_string(value).expect("JSON");
        let json = json.trim_matches('"');
        for echoed in [value, json, &json.replace('/', "\\/"), "s%5Ccr%22t%2Fvalue", "s%5ccr%22t%2fvalue"] {
            let masked = known.mask_whole(format!("<{echoed}>").as_bytes());
            assert_eq!(String::from_utf8_lossy(&masked), format!("<{}>", "*".repeat(echoed.len())));
        }
    }

    #[test]
    fn secrets_that_cannot_be_kept_are_refused() {
        let new = |value: &str, place| {
            let (name, host) = ("KEY".to_owned(), "x.com".to_owned());
            Secrets::new(&[Secret { name, host, value: value.to_owned(), place }]).is_ok()
        };
        assert!(new("12345678", SecretPlace::Bearer));
        assert!(!new("short", SecretPlace::Bearer) && !new("with\r\nX: 1", SecretPlace::Bearer));
        assert!(
            !new("12345678", SecretPlace::Header("Host".into()))
                && !new("12345678", SecretPlace::Header("a b".into()))
        );
        assert!(
            !new("12345678", SecretPlace::Query("a&b".into()))
                && !new("12345678", SecretPlace::Basic("a:b".into()))
        );
    }
}
