//! Whose states these are.
//!
//! A client's states are in a directory that only those find who know its token. The only client of a server, the program
//! that started it, needs none: the state directory is its own.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::quota::Quota;
use crate::rpc::RpcError;

/// Where tenants have their directories. No state can be called so: a name does not begin with a dot.
const TENANTS: &str = ".tenants";
/// Shorter tokens can be guessed; longer ones serve no purpose.
const TOKEN: std::ops::RangeInclusive<usize> = 16..=256;

/// Whom a connection's states belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tenant {
    /// The process that started the server.
    Owner,
    /// One of many clients, who has not said which.
    Nobody,
    /// Those who know a token, of which this is the hash.
    Token(String),
}

/// A client: whose states it has, and what it may take together with others of its tenant.
#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) tenant: Tenant,
    pub(crate) quota: Option<Arc<Quota>>,
    /// Whether it is one of several tenants of the server.
    pub(crate) is_tenant: bool,
}

impl From<Tenant> for Member {
    fn from(tenant: Tenant) -> Member {
        Member { tenant, quota: None, is_tenant: false }
    }
}

impl Tenant {
    /// Returns the tenant that a token of the server's stands for.
    pub(crate) fn of_token(token: &str) -> Tenant {
        Tenant::Token(hash(token))
    }

    /// Returns the tenant of a name, which the server gave to those who showed a token. No token stands for it.
    pub(crate) fn named(name: &str) -> Tenant {
        Tenant::Token(format!("n-{}", hash(name)))
    }

    /// Returns the tenant that a token stands for.
    pub(crate) fn by_token(token: &str) -> Result<Tenant, RpcError> {
        if !TOKEN.contains(&token.len()) {
            let (least, most) = (TOKEN.start(), TOKEN.end());
            return Err(RpcError::params(format!("stateToken must have from {least} to {most} bytes")));
        }
        Ok(Tenant::of_token(token))
    }

    /// Returns the directory of its states.
    pub(crate) fn directory(&self, states: &Path) -> Result<PathBuf, RpcError> {
        match self {
            Tenant::Owner => Ok(states.to_owned()),
            Tenant::Token(hash) => Ok(states.join(TENANTS).join(hash)),
            Tenant::Nobody => Err(RpcError::params(
                "file: this server has many clients: pass a stateToken to create, so that your states stay yours",
            )),
        }
    }
}

fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns what an owner or a key is known by where it is not kept itself.
pub(crate) fn hashed(owner: &str) -> String {
    let mut hash = hash(owner);
    hash.truncate(32);
    hash
}

/// Returns the directories that tenants have there.
pub(crate) fn tenants(states: &Path) -> io::Result<Vec<PathBuf>> {
    match std::fs::read_dir(states.join(TENANTS)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|entry| Ok(entry?.path())).collect(),
    }
}

/// Creates a directory that only this user can open, if it does not exist.
pub(crate) fn create_private(directory: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}
