//! What a client asks for when it creates a sandbox.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use serde_json::{Map, Value};
use wardian::net::Mode;
use wardian::{Builder, NetworkPolicy};

use super::answer::Refused;
use super::hosted::Description;
use crate::ClientNetwork;

/// How long a sandbox lives unless it is told otherwise.
const DEFAULT_TIMEOUT: u64 = 300;
/// How many entries of metadata it may have, and how many bytes together with its variables.
const PAIRS: usize = 256;
const BYTES: usize = 64 << 10;
/// How many bytes the name of a template may have.
const TEMPLATE: usize = 256;
/// All traffic, in lists of what is denied.
const EVERYTHING: [&str; 2] = ["0.0.0.0/0", "::/0"];

/// What to create.
pub(super) struct Wanted {
    pub(super) described: Description,
    pub(super) timeout: Duration,
    pub(super) policy: Option<NetworkPolicy>,
}

impl Wanted {
    pub(super) fn read(
        mut body: Map<String, Value>,
        headers: &HeaderMap,
        granted: ClientNetwork,
    ) -> Result<Wanted, Refused> {
        let template = match body.remove("templateID") {
            Some(Value::String(template)) if (1..=TEMPLATE).contains(&template.len()) => template,
            _ => {
                return Err(Refused::bad(format!("templateID must be a string of at most {TEMPLATE} bytes")));
            }
        };
        let timeout = seconds(body.remove("timeout"))?.unwrap_or(Duration::from_secs(DEFAULT_TIMEOUT));
        let auto_pause = flag(&mut body, "autoPause")?.unwrap_or(false);
        if flag(&mut body, "autoPauseMemory")? == Some(false) {
            return Err(Refused::bad("autoPauseMemory: a pause always keeps the memory here"));
        }
        let auto_resume = match body.remove("autoResume") {
            None | Some(Value::Null) => false,
            Some(Value::Object(resume)) => resume.get("enabled").and_then(Value::as_bool).unwrap_or(false),
            Some(_) => return Err(Refused::bad("autoResume must be an object")),
        };
        // Every sandbox has a token, so every one is secure.
        flag(&mut body, "secure")?;
        let allowed = flag(&mut body, "allow_internet_access")?;
        let network = body.remove("network").unwrap_or(Value::Null);
        if crate::rpc::length(&network) > BYTES {
            return Err(Refused::bad(format!("network may have {BYTES} bytes")));
        }
        let (policy, public) = policy(allowed, &network, granted)?;
        let metadata = pairs(body.remove("metadata"), "metadata")?;
        let env = pairs(body.remove("envVars"), "envVars")?;
        for name in ["mcp", "iam", "volumeMounts"] {
            if body.remove(name).is_some_and(|value| !is_nothing(&value)) {
                return Err(Refused::bad(format!("{name} is not supported: see docs/e2b.md")));
            }
        }
        if let Some(name) = body.keys().next() {
            let shown: String = name.chars().take(64).collect();
            return Err(Refused::bad(format!("{shown} is not known")));
        }
        let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok());
        let described = Description {
            template,
            metadata: metadata.into_iter().map(|(name, value)| (name, value.into())).collect(),
            env,
            auto_pause,
            auto_resume,
            allowed,
            internet: policy.is_some(),
            public,
            network,
            idempotency: key.map(|key| key.chars().take(256).collect()),
        };
        Ok(Wanted { described, timeout, policy })
    }

    /// Gives the builder what is wanted.
    pub(super) fn give(&self, builder: Builder) -> Builder {
        let mut builder = builder;
        for (name, value) in &self.described.env {
            builder = builder.env(name, value);
        }
        with_policy(builder, self.policy.as_ref())
    }
}

/// Gives a builder what a sandbox has whatever it was created with, and its network.
pub(super) fn with_policy(builder: Builder, policy: Option<&NetworkPolicy>) -> Builder {
    // Commands have timeouts of their own, or none.
    let builder = builder.timeout(None);
    match policy {
        Some(policy) => builder.network(policy.clone()),
        None => builder,
    }
}

/// Reads a number of seconds.
pub(super) fn seconds(value: Option<Value>) -> Result<Option<Duration>, Refused> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(seconds) => Ok(Some(Duration::from_secs(seconds))),
            None => Err(Refused::bad("timeout must be a number of seconds")),
        },
    }
}

fn flag(body: &mut Map<String, Value>, name: &str) -> Result<Option<bool>, Refused> {
    match body.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(flag)),
        Some(_) => Err(Refused::bad(format!("{name} must be true or false"))),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.is_empty(),
        Value::Object(values) => values.is_empty(),
        _ => false,
    }
}

fn pairs(value: Option<Value>, name: &str) -> Result<Vec<(String, String)>, Refused> {
    let values = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(values)) => values,
        Some(_) => return Err(Refused::bad(format!("{name} must be an object of strings"))),
    };
    let mut pairs = Vec::with_capacity(values.len().min(PAIRS));
    let mut bytes = 0;
    for (key, value) in values {
        let Value::String(value) = value else {
            return Err(Refused::bad(format!("{name} must be an object of strings")));
        };
        bytes += key.len() + value.len();
        pairs.push((key, value));
        if pairs.len() > PAIRS || bytes > BYTES {
            let status = StatusCode::PAYLOAD_TOO_LARGE;
            let message = format!("{name} may have {PAIRS} entries and {BYTES} bytes");
            return Err(Refused::new(status, message));
        }
    }
    Ok(pairs)
}

/// Returns a snapshot's variables and those that a sandbox from it gets in addition. Together they may be no more than either: a
/// snapshot of that sandbox has all of them, and so on.
pub(super) fn together(
    kept: &[(String, String)],
    new: &[(String, String)],
) -> Result<Vec<(String, String)>, Refused> {
    let all: BTreeMap<&String, &String> = kept.iter().chain(new).map(|(name, value)| (name, value)).collect();
    let bytes: usize = all.iter().map(|(name, value)| name.len() + value.len()).sum();
    if all.len() > PAIRS || bytes > BYTES {
        let message =
            format!("envVars, with those of the snapshot, may have {PAIRS} entries and {BYTES} bytes");
        return Err(Refused::new(StatusCode::PAYLOAD_TOO_LARGE, message));
    }
    Ok(all.into_iter().map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Returns what the sandbox may reach, and whether its ports are open to everybody who knows its id.
pub(super) fn policy(
    allowed: Option<bool>,
    network: &Value,
    granted: ClientNetwork,
) -> Result<(Option<NetworkPolicy>, bool), Refused> {
    let empty = Map::new();
    let given = match network {
        Value::Null => &empty,
        Value::Object(given) => given,
        _ => return Err(Refused::bad("network must be an object")),
    };
    for (name, value) in given {
        let known = matches!(&name[..], "allowOut" | "denyOut" | "allowPublicTraffic");
        if !known && !is_nothing(value) {
            return Err(Refused::bad(format!("network.{name} is not supported: see docs/e2b.md")));
        }
    }
    let public = given.get("allowPublicTraffic").and_then(Value::as_bool).unwrap_or(true);
    let (allow, deny) = (hosts(given, "allowOut")?, hosts(given, "denyOut")?);
    if allowed == Some(false) && allow.is_empty() {
        return Ok((None, public));
    }
    if granted == ClientNetwork::Off {
        return match allowed == Some(true) || !allow.is_empty() {
            true => Err(Refused::bad("this server grants its clients no network (serve --network)")),
            false => Ok((None, public)),
        };
    }
    let (everything, deny): (Vec<String>, Vec<String>) =
        deny.into_iter().partition(|host| EVERYTHING.contains(&host.as_str()));
    if let Some(host) = deny.iter().chain(&allow).find(|host| host.contains('/')) {
        return Err(Refused::bad(format!("network: {host}: only hosts, and 0.0.0.0/0 for everything else")));
    }
    let mode = if everything.is_empty() && allowed != Some(false) { Mode::Full } else { Mode::Hosts };
    if mode == Mode::Full {
        return Ok((
            Some(NetworkPolicy { mode: Some(mode), blocked_hosts: deny, ..NetworkPolicy::default() }),
            public,
        ));
    }
    let policy = NetworkPolicy {
        mode: Some(mode),
        allowed_hosts: allow,
        blocked_hosts: deny,
        ..NetworkPolicy::default()
    };
    Ok((Some(policy), public))
}

fn hosts(given: &Map<String, Value>, name: &str) -> Result<Vec<String>, Refused> {
    let wrong = || Refused::bad(format!("network.{name} must be an array of at most {PAIRS} hosts"));
    match given.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(hosts)) if hosts.len() <= PAIRS => {
            hosts.iter().map(|host| host.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_do_not_grow_from_snapshot_to_snapshot() {
        let some = |letter: char, count: usize, length: usize| -> Vec<(String, String)> {
            (0..count).map(|number| (format!("{letter}{number}"), "x".repeat(length))).collect()
        };
        let mut kept = Vec::new();
        for _ in 0..100 {
            kept =
                together(&kept, &some('a', 100, 100)).unwrap_or_else(|refused| panic!("{}", refused.message));
        }
        assert_eq!(kept.len(), 100, "those with one name are one");
        for more in [some('b', 200, 1), some('b', 1, BYTES)] {
            let refused = together(&kept, &more).expect_err("too many");
            assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE, "{}", refused.message);
        }
    }
}
