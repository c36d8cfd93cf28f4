//! A policy, checked and in the form in which it is asked: may this host, this port, this address, this request?

use std::net::IpAddr;
use std::time::Duration;

use crate::address;
use crate::name::{Host, Pattern};
use crate::policy::{HttpRule, Mode, NetworkPolicy, Roots};
use crate::secrets::Secrets;

/// Most entries of each list of a policy.
const LIST: usize = 10_000;

/// The policy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("network policy: {field}: {why}")]
#[non_exhaustive]
pub struct PolicyError {
    /// The field.
    pub field: &'static str,
    /// What is wrong with it.
    pub why: String,
}

impl PolicyError {
    pub(crate) fn new(field: &'static str, why: impl ToString) -> PolicyError {
        PolicyError { field, why: why.to_string() }
    }
}

/// The policy does not allow it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host}: {why}")]
#[non_exhaustive]
pub struct Denied {
    /// What was asked for.
    pub host: String,
    /// The field of the policy that decided.
    pub rule: &'static str,
    /// The reason, as a sentence for people.
    pub why: String,
}

impl Denied {
    pub(crate) fn new(host: impl ToString, rule: &'static str, why: impl ToString) -> Denied {
        Denied { host: host.to_string(), rule, why: why.to_string() }
    }
}

/// How a connection is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Parsed as HTTP/1.1 and re-emitted.
    Http,
    /// Opaque bytes; TLS on request.
    Opaque,
    /// Opaque bytes, in which the guest may speak TLS itself.
    Raw,
}

/// A policy that was checked.
pub(crate) struct Rules {
    pub(crate) policy: NetworkPolicy,
    pub(crate) secrets: Secrets,
    mode: Mode,
    allowed: Vec<Pattern>,
    blocked: Vec<Pattern>,
    raw: Vec<Pattern>,
    http: Vec<(Pattern, HttpRule)>,
}

impl Rules {
    pub(crate) fn new(policy: NetworkPolicy) -> Result<Rules, PolicyError> {
        let rules = Rules {
            mode: mode(&policy)?,
            allowed: patterns("allowedHosts", &policy.allowed_hosts)?,
            blocked: patterns("blockedHosts", &policy.blocked_hosts)?,
            raw: patterns("rawHosts", &policy.raw_hosts)?,
            http: http_rules(&policy.http_rules)?,
            secrets: Secrets::new(&policy.secrets)?,
            policy,
        };
        rules.check()?;
        Ok(rules)
    }

    fn check(&self) -> Result<(), PolicyError> {
        let policy = &self.policy;
        for (field, ports) in [("ports", &policy.ports), ("httpPorts", &policy.http_ports)] {
            if ports.contains(&0) || ports.len() > 65_535 {
                return Err(PolicyError::new(field, "a port is a number from 1 to 65535"));
            }
        }
        for (field, millis) in [
            ("connectTimeoutMs", policy.connect_timeout_ms),
            ("responseTimeoutMs", policy.response_timeout_ms),
            ("idleTimeoutMs", policy.idle_timeout_ms),
        ] {
            if !(1..=86_400_000).contains(&millis) {
                return Err(PolicyError::new(field, "from 1 ms to a day"));
            }
        }
        if policy.max_connections == 0 || policy.max_connections > 65_536 {
            return Err(PolicyError::new("maxConnections", "from 1 to 65536"));
        }
        if policy.bytes_per_second == Some(0) || policy.requests_per_second == Some(0) {
            return Err(PolicyError::new(
                "bytesPerSecond, requestsPerSecond",
                "0 would never let anything through",
            ));
        }
        if policy.record.is_some() && policy.replay.is_some() {
            return Err(PolicyError::new("record, replay", "only one of them can be used"));
        }
        if policy.roots == Roots::CaFile && policy.ca_file.is_none() {
            return Err(PolicyError::new("roots", "caFile is not given"));
        }
        for (pattern, text) in self.raw.iter().zip(&policy.raw_hosts) {
            if let Pattern::Exactly(host) = pattern
                && self.is_http_only(host)
            {
                let why = format!("{text} has HTTP rules or secrets, which a raw connection would evade");
                return Err(PolicyError::new("rawHosts", why));
            }
        }
        Ok(())
    }

    /// Returns the entry that grants the host.
    pub(crate) fn allow_host(&self, host: &Host) -> Result<&str, Denied> {
        if let Some(at) = self.blocked.iter().position(|pattern| pattern.matches(host)) {
            let why = format!("blocked by '{}'", self.policy.blocked_hosts[at]);
            return Err(Denied::new(host, "blockedHosts", why));
        }
        match self.mode {
            Mode::Off => Err(Denied::new(host, "mode", "the network is off for this sandbox")),
            Mode::Full => Ok("full"),
            Mode::Hosts => match self.allowed.iter().position(|pattern| pattern.matches(host)) {
                Some(at) => Ok(&self.policy.allowed_hosts[at]),
                None => Err(Denied::new(host, "allowedHosts", "not an allowed host")),
            },
        }
    }

    /// Returns how a connection to a host that is granted is treated.
    pub(crate) fn allow_port(&self, host: &Host, port: u16) -> Result<Kind, Denied> {
        let http = port == 80 || port == 443 || self.policy.http_ports.contains(&port);
        let named = self.policy.ports.contains(&port) || self.policy.http_ports.contains(&port);
        if port == 0 || !(named || self.mode == Mode::Full) {
            return Err(Denied::new(host, "ports", format!("port {port} is not allowed")));
        }
        let kind = match self.raw.iter().any(|pattern| pattern.matches(host)) {
            true => Kind::Raw,
            false if http => return Ok(Kind::Http),
            false => Kind::Opaque,
        };
        if self.is_http_only(host) {
            let why = format!("it has HTTP rules or secrets, and port {port} is not parsed as HTTP");
            return Err(Denied::new(host, "httpRules", why));
        }
        Ok(kind)
    }

    /// Tells whether an opaque connection to the host would evade a rule.
    fn is_http_only(&self, host: &Host) -> bool {
        self.http.iter().any(|(pattern, _)| pattern.matches(host)) || self.secrets.any_for(host)
    }

    /// Decides about an address that a granted host has.
    pub(crate) fn allow_address(&self, host: &Host, address: IpAddr) -> Result<(), Denied> {
        let plain = Host::from_ip(address);
        if self.blocked.iter().any(|pattern| pattern.matches(&plain)) {
            return Err(Denied::new(host, "blockedHosts", format!("its address {address} is blocked")));
        }
        match address::refused(address, &self.policy.allow_private) {
            None => Ok(()),
            Some(kind) => Err(Denied::new(
                host,
                "allowPrivate",
                format!("its address {address} is not public ({kind})"),
            )),
        }
    }

    /// Decides about a request to a granted host, and returns the number of the rule that allows it, if there are any.
    pub(crate) fn allow_request(
        &self,
        host: &Host,
        method: &str,
        path: &str,
    ) -> Result<Option<usize>, Denied> {
        let mut named = false;
        for (at, (pattern, rule)) in self.http.iter().enumerate() {
            if !pattern.matches(host) {
                continue;
            }
            named = true;
            let method = rule.methods.is_empty() || rule.methods.iter().any(|allowed| allowed == method);
            if method && allows_path(&rule.path_prefixes, path) {
                return Ok(Some(at));
            }
        }
        match named {
            true => {
                Err(Denied::new(host, "httpRules", format!("no HTTP rule allows {method} {}", short(path))))
            }
            false => Ok(None),
        }
    }

    pub(crate) fn connect_timeout(&self) -> Duration {
        Duration::from_millis(self.policy.connect_timeout_ms)
    }

    pub(crate) fn response_timeout(&self) -> Duration {
        Duration::from_millis(self.policy.response_timeout_ms)
    }

    pub(crate) fn idle_timeout(&self) -> Duration {
        Duration::from_millis(self.policy.idle_timeout_ms)
    }
}

/// Shortens what a guest chose, for messages and records.
pub(crate) fn short(text: &str) -> String {
    match text.char_indices().nth(512) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn mode(policy: &NetworkPolicy) -> Result<Mode, PolicyError> {
    let hosts = !policy.allowed_hosts.is_empty();
    match policy.mode {
        None if hosts => Ok(Mode::Hosts),
        None => Ok(Mode::Off),
        Some(Mode::Off) if hosts => Err(PolicyError::new("mode", "off, although there are allowedHosts")),
        Some(Mode::Full) if hosts && policy.allowed_hosts != ["*"] => {
            Err(PolicyError::new("mode", "full, although allowedHosts names some: use hosts, or [\"*\"]"))
        }
        Some(mode) => Ok(mode),
    }
}

fn patterns(field: &'static str, texts: &[String]) -> Result<Vec<Pattern>, PolicyError> {
    if texts.len() > LIST {
        return Err(PolicyError::new(field, format!("more than {LIST} entries")));
    }
    let pattern = |text: &String| {
        Pattern::parse(text).map_err(|error| PolicyError::new(field, format!("'{}': {error}", short(text))))
    };
    texts.iter().map(pattern).collect()
}

fn http_rules(rules: &[HttpRule]) -> Result<Vec<(Pattern, HttpRule)>, PolicyError> {
    let wrong = |why: String| PolicyError::new("httpRules", why);
    if rules.len() > LIST {
        return Err(wrong(format!("more than {LIST} rules")));
    }
    let compile = |rule: &HttpRule| {
        let pattern = Pattern::parse(&rule.host).map_err(|error| wrong(error.to_string()))?;
        if let Some(method) = rule.methods.iter().find(|method| !is_method(method)) {
            return Err(wrong(format!("'{}' is not a method (they are upper case)", short(method))));
        }
        if let Some(prefix) =
            rule.path_prefixes.iter().find(|prefix| odd_path(prefix).is_some() || prefix.contains('?'))
        {
            return Err(wrong(format!("'{}' is not a plain path", short(prefix))));
        }
        Ok((pattern, rule.clone()))
    };
    rules.iter().map(compile).collect()
}

fn is_method(method: &str) -> bool {
    !method.is_empty()
        && method.len() <= 32
        && method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
}

/// Tells whether the path is one of the prefixes or below one. `path` may have a query.
fn allows_path(prefixes: &[String], path: &str) -> bool {
    if prefixes.is_empty() {
        return true;
    }
    let path = path.split('?').next().unwrap_or_default();
    // A server might read such a path as another one than it looks.
    if odd_path(path).is_some() {
        return false;
    }
    prefixes.iter().any(|prefix| match path.strip_prefix(prefix.as_str()) {
        Some(rest) => prefix.ends_with('/') || rest.is_empty() || rest.starts_with('/'),
        None => false,
    })
}

/// Finds what servers read differently: dot segments, also encoded or with parameters, empty segments, encoded or turned
/// slashes, encoded twice, control characters.
fn odd_path(path: &str) -> Option<&'static str> {
    if !path.starts_with('/') {
        return Some("it does not start with a slash");
    }
    let lower = path.to_ascii_lowercase();
    if ["%2f", "%5c", "\\", "%00", "%0a", "%0d", "%252e", "%252f", "%255c", "%25252e", "%25252f"]
        .iter()
        .any(|odd| lower.contains(odd))
    {
        return Some("it has an encoded slash, a backslash or a control character");
    }
    if lower.contains("//") {
        return Some("it has an empty segment");
    }
    let dots = |segment: &str| {
        let plain = segment.replace("%2e", ".").replace("%3b", ";");
        let plain = plain.split(';').next().unwrap_or_default();
        plain == "." || plain == ".."
    };
    lower.split('/').any(dots).then_some("it has a dot segment")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prefixes_are_whole_segments() {
        let allowed = |prefix: &str, path: &str| allows_path(&[prefix.to_owned()], path);
        for (prefix, path, ok) in [
            ("/v1", "/v1", true),
            ("/v1", "/v1/x?y=/../", true),
            ("/v1", "/v1?x", true),
            ("/v1", "/v1x", false),
            ("/v1/", "/v1/x", true),
            ("/v1/", "/v1", false),
            ("/", "/anything", true),
            ("/v1", "/v1/../admin", false),
            ("/v1", "/v1/%2e%2E/admin", false),
            ("/v1", "/v1/..;/admin", false),
            ("/v1", "/v1/.;x=1/admin", false),
            ("/v1", "/v1//admin", false),
            ("/v1", "//v1/x", false),
            ("/v1", "/v1/..%2fadmin", false),
            ("/v1", "/v1/%5c..%5cadmin", false),
            ("/v1", "/v1/%252e%252e/admin", false),
            ("/v1", "/%76%31/x", false),
            ("/v1", "*", false),
            ("/v1", "/V1/x", false),
            ("/v1", "/v1/..%3b/x", false),
        ] {
            assert_eq!(allowed(prefix, path), ok, "{prefix} {path}");
        }
    }

    proptest! {
        /// However a server decodes and resolves an allowed path, it stays below the prefix.
        #[test]
        fn no_allowed_path_leaves_its_prefix(path in "/v1(/|\\.|%2e|%2E|%2f|%252e|;|\\\\|a|\\?|%5c){0,12}") {
            if allows_path(&["/v1".to_owned()], &path) {
                let mut decoded = path.split('?').next().unwrap_or_default().to_ascii_lowercase();
                for _ in 0..3 {
                    for (code, plain) in [("%25", "%"), ("%2e", "."), ("%2f", "/"), ("%5c", "/"), ("\\", "/")] {
                        decoded = decoded.replace(code, plain);
                    }
                }
                let mut stack: Vec<&str> = Vec::new();
                for segment in decoded.split('/').map(|segment| segment.split(';').next().unwrap_or_default()) {
                    match segment {
                        "" | "." => {}
                        ".." => { stack.pop(); }
                        other => stack.push(other),
                    }
                }
                prop_assert_eq!(stack.first().copied(), Some("v1"), "{}", path);
            }
        }
    }
}
