//! What a sandbox may reach outside, as options.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use wardian::NetworkPolicy;
use wardian::net::{Mode, Secret, SecretPlace};

#[derive(clap::Args)]
pub(crate) struct NetworkOptions {
    /// Let the sandbox connect to this host, on ports 80 and 443: a name, *.NAME for the names below it, * for all, or an
    /// address. Nothing can be reached by default.
    #[arg(long = "allow-host", value_name = "HOST")]
    hosts: Vec<String>,
    /// Let it connect to this port of those hosts, too.
    #[arg(long = "allow-port", value_name = "PORT", requires = "hosts")]
    ports: Vec<u16>,
    /// Let it reach this network although it is not public, as in 192.168.1.0/24 or 127.0.0.1/32.
    #[arg(long = "allow-private", value_name = "NETWORK")]
    private: Vec<String>,
    /// Put a secret into requests to a host without showing it to the sandbox: HOST=ENV:NAME takes it from the environment
    /// variable NAME of this command. The sandbox has a placeholder in its variable NAME.
    #[arg(long = "secret", value_name = "HOST=ENV:NAME")]
    secrets: Vec<String>,
    /// Trust the authorities in this file as well (PEM).
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Let it reach every public host (full), or whatever this JSON file with a policy says (docs/network.md).
    #[arg(long, value_name = "full|FILE")]
    network: Option<String>,
    /// Append every HTTP request and its response to this cassette file.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    record: Option<PathBuf>,
    /// Answer HTTP requests from this cassette file, and connect to nothing.
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
}

impl NetworkOptions {
    /// Returns one that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--allow-host", !self.hosts.is_empty()),
            ("--allow-port", !self.ports.is_empty()),
            ("--allow-private", !self.private.is_empty()),
            ("--secret", !self.secrets.is_empty()),
            ("--ca-file", self.ca_file.is_some()),
            ("--network", self.network.is_some()),
            ("--record", self.record.is_some()),
            ("--replay", self.replay.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }

    /// Returns the policy, if there is any.
    pub(crate) fn policy(&self) -> Result<Option<NetworkPolicy>> {
        let mut policy = match self.network.as_deref() {
            None => NetworkPolicy::default(),
            Some("full") => NetworkPolicy {
                mode: Some(Mode::Full),
                allowed_hosts: vec!["*".into()],
                ..Default::default()
            },
            Some(file) => {
                let text = std::fs::read(file).with_context(|| format!("--network {file}"))?;
                serde_json::from_slice(&text).with_context(|| format!("--network {file}"))?
            }
        };
        policy.allowed_hosts.extend(self.hosts.iter().cloned());
        policy.ports.extend(&self.ports);
        for network in &self.private {
            let network = network.parse().with_context(|| format!("--allow-private {network}"))?;
            policy.allow_private.push(network);
        }
        for secret in &self.secrets {
            policy.secrets.push(read_secret(secret)?);
        }
        for (own, field) in [
            (&self.ca_file, &mut policy.ca_file),
            (&self.record, &mut policy.record),
            (&self.replay, &mut policy.replay),
        ] {
            if own.is_some() {
                field.clone_from(own);
            }
        }
        Ok((policy != NetworkPolicy::default()).then_some(policy))
    }
}

fn read_secret(option: &str) -> Result<Secret> {
    let Some((host, name)) = option.split_once("=ENV:") else {
        bail!("--secret {option}: not HOST=ENV:NAME");
    };
    let value = std::env::var(name).ok().filter(|value| !value.is_empty());
    let value = value.with_context(|| format!("--secret {option}: the variable {name} is not set"))?;
    Ok(Secret { name: name.to_owned(), host: host.to_owned(), value, place: SecretPlace::Placeholder })
}
