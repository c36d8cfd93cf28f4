//! `create`: the root sandbox, and the options of all others.

use std::io::Write;
use std::sync::Arc;

use wardian::{Builder, Limits, PersistenceMode, PoolOptions};
use wardian_contract::params::{self, Create};

use super::named::Origins;
use super::run::kept;
use super::{Job, Prepared, extension, mount, network, ok};
use crate::params::Params;
use crate::rpc::{INVALID_REQUEST, RpcError};
use crate::session::Session;
use crate::tenant::Tenant;

pub(super) fn create(session: &Arc<Session>, params: &mut Params) -> Prepared {
    if session.is_created() {
        return Err(RpcError::new(INVALID_REQUEST, "the sandbox is already created"));
    }
    let mut origins = params.apart(&["image", "persistence"]);
    let mut asked: Create = params.read()?;
    let (pool, storage) = (asked.pool.take().map(pool), asked.storage.unwrap_or(false));
    let tenant = asked.state_token.take().map(|token| Tenant::by_token(&token)).transpose()?;
    if tenant.is_some() && session.quota.is_some() {
        return Err(RpcError::params("stateToken: the bearer token stands for what is yours"));
    }
    // Other servers have to be told where their programs are.
    (asked.wasm_dir, asked.shell_wasm_path) = (None, None);
    let (builder, line_limit) = builder(session, asked)?;
    // First, since names are the tenant's.
    if let Some(tenant) = tenant {
        session.set_tenant(tenant);
    }
    let origins = Origins::read(session, &mut origins)?;
    let root = session.begin_root(&builder, line_limit, storage)?;
    let (builder, idle) = (origins.give(builder), origins.idle);
    // Whatever comes next waits until it is there.
    let (session, mut commands, mut calls) = (session.clone(), root.in_turn(), root.at_once());
    Job::in_turn(None, async move {
        commands.come().await;
        calls.come().await;
        match session.room(1).await.map(|mut room| room.pop()) {
            Ok(room) => room.into_iter().for_each(|room| root.takes(room)),
            Err(error) => {
                session.forget_root();
                return Err(error);
            }
        }
        // The pool is the server's: all its sandboxes are of one engine.
        let built = builder.build().await.and_then(|sandbox| match pool {
            Some(pool) => session.set_pool(&sandbox.engine(), Some(pool)).map(|()| sandbox),
            None => Ok(sandbox),
        });
        match built {
            Ok(sandbox) => {
                let saved = sandbox.persistence_mode() == Some(PersistenceMode::Persistent);
                root.fill(sandbox);
                if saved {
                    root.sleeps_in(session.bed(idle));
                }
                ok()
            }
            Err(error) => {
                session.forget_root();
                Err(error.into())
            }
        }
    })
}

/// Reads the options of a sandbox, and the longest line to accept.
fn builder(session: &Session, asked: Create) -> Result<(Builder, Option<usize>), RpcError> {
    let mut builder = session.new_builder().progress(tell);
    let mut limits = Limits::default();
    if let Some(bytes) = asked.fs_limit_bytes {
        limits.fs_bytes = bytes;
    }
    let mut given = Given::default();
    if let Some(wanted) = asked.limits {
        given.take(wanted, &mut limits)?;
    }
    if let Some(security) = asked.security {
        if let Some(tools) = security.tool_allowlist {
            builder = builder.tool_allowlist(tools);
        }
        if let Some(wanted) = security.limits {
            given.take(wanted, &mut limits)?;
        }
    }
    builder = builder.limits(limits);
    if let Some(timeout) = asked.timeout_ms {
        builder = builder.timeout(timeout.0);
    }
    if let Some(timeout) = asked.background_timeout_ms {
        builder = builder.background_timeout(timeout.0);
    }
    for (name, value) in asked.env.unwrap_or_default() {
        builder = builder.env(name, value);
    }
    if let Some(paths) = asked.python_path {
        builder = builder.python_path(paths);
    }
    if let Some(policy) = asked.network {
        builder = network::give(builder, session, policy.0)?;
    }
    for (number, mount) in asked.mounts.into_iter().flatten().enumerate() {
        let files = mount::entries(mount.files, &format!("mounts[{number}].files"))?;
        builder = builder.mount_entries(mount.path, files, mount.writable.unwrap_or(false));
    }
    for mount in mount::hosts(session, asked.host_mounts.unwrap_or_default())? {
        builder = builder.mount(mount.host, mount.path, mount.mode);
    }
    for given in asked.extensions.into_iter().flatten() {
        builder = builder.extension(extension::extension(given, &session.callbacks));
    }
    if let Some(nice) = asked.nice {
        builder = builder.nice(nice.0);
    }
    if let Some(cwd) = asked.cwd {
        builder = builder.cwd(cwd);
    }
    if let Some(paths) = asked.writable_paths {
        builder = builder.writable_paths(paths);
    }
    if let Some(on_kill) = asked.on_kill {
        builder = builder.on_kill(kept(on_kill));
    }
    Ok((builder, given.line_limit))
}

/// Says on standard error that something takes long. A log that nobody reads any more is no reason to fail.
fn tell(step: &str) {
    let _ = writeln!(std::io::stderr(), "wardian: {step}");
}

/// The limits that were read, which can be given in two places.
#[derive(Default)]
struct Given {
    names: Vec<&'static str>,
    /// The longest line, which is no limit of the sandbox.
    line_limit: Option<usize>,
}

impl Given {
    fn take(&mut self, wanted: params::Limits, limits: &mut Limits) -> Result<(), RpcError> {
        let sizes = [
            ("stdoutBytes", wanted.stdout_bytes, &mut limits.stdout_bytes),
            ("stderrBytes", wanted.stderr_bytes, &mut limits.stderr_bytes),
            ("commandBytes", wanted.command_bytes, &mut limits.command_bytes),
            ("processes", wanted.processes, &mut limits.processes),
            ("openFiles", wanted.open_files, &mut limits.open_files),
        ];
        for (name, value, limit) in sizes {
            if let Some(value) = value {
                *limit = self.once(name, size(value))?;
            }
        }
        let numbers = [
            ("fileCount", wanted.file_count, &mut limits.file_count),
            ("memoryBytes", wanted.memory_bytes, &mut limits.memory_bytes),
        ];
        for (name, value, limit) in numbers {
            if let Some(value) = value {
                *limit = self.once(name, value)?;
            }
        }
        if let Some(value) = wanted.rpc_bytes {
            self.line_limit = Some(self.once("rpcBytes", size(value))?);
        }
        Ok(())
    }

    fn once<T>(&mut self, name: &'static str, value: T) -> Result<T, RpcError> {
        if self.names.contains(&name) {
            let message = format!("{name} is given twice: in limits and in security.limits");
            return Err(RpcError::params(message));
        }
        self.names.push(name);
        Ok(value)
    }
}

/// Returns a number as a size in memory.
fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn pool(wanted: params::Pool) -> PoolOptions {
    let default = PoolOptions::default();
    // Who names one of the two does not quarrel with the other's default.
    let (min_size, max_size) = match (wanted.min_size.map(size), wanted.max_size.map(size)) {
        (Some(min), max) => (min, max.unwrap_or(default.max_size.max(min))),
        (None, Some(max)) => (default.min_size.min(max), max),
        (None, None) => (default.min_size, default.max_size),
    };
    PoolOptions { min_size, max_size }
}
