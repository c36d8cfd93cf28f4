//! `create`: the root sandbox, and the options of all others.

use std::io::Write;
use std::sync::Arc;

use wardian::{Builder, Limits, OnKill, PersistenceMode, PoolOptions};

use super::named::Origins;
use super::{Job, Prepared, extension, mount, network, ok};
use crate::params::Params;
use crate::rpc::{INVALID_REQUEST, RpcError};
use crate::session::Session;
use crate::tenant::Tenant;

pub(super) fn create(session: &Arc<Session>, params: &mut Params) -> Prepared {
    if session.is_created() {
        return Err(RpcError::new(INVALID_REQUEST, "the sandbox is already created"));
    }
    let (builder, line_limit) = builder(session, params)?;
    let pool = pool(params)?;
    let storage = params.flag("storage")?.unwrap_or(false);
    // Of servers that have to be told where their programs are.
    params.ignore("wasmDir");
    params.ignore("shellWasmPath");
    let tenant = params.string("stateToken")?.map(|token| Tenant::by_token(&token)).transpose()?;
    // First, since names are the tenant's.
    if let Some(tenant) = tenant {
        session.set_tenant(tenant);
    }
    let origins = Origins::read(session, params)?;
    params.done()?;
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
fn builder(session: &Session, params: &mut Params) -> Result<(Builder, Option<usize>), RpcError> {
    let mut builder = session.new_builder().progress(tell);
    let mut limits = Limits::default();
    if let Some(bytes) = params.number("fsLimitBytes")? {
        limits.fs_bytes = bytes;
    }
    let mut given = Given::default();
    if let Some(object) = params.object("limits")? {
        given.read(object, &mut limits)?;
    }
    if let Some(mut security) = params.object("security")? {
        if let Some(tools) = security.strings("toolAllowlist")? {
            builder = builder.tool_allowlist(tools);
        }
        if let Some(object) = security.object("limits")? {
            given.read(object, &mut limits)?;
        }
        security.done()?;
    }
    builder = builder.limits(limits);
    if let Some(timeout) = params.timeout("timeoutMs")? {
        builder = builder.timeout(timeout);
    }
    if let Some(timeout) = params.timeout("backgroundTimeoutMs")? {
        builder = builder.background_timeout(timeout);
    }
    if let Some(env) = params.object("env")? {
        for (name, value) in env.all_strings()? {
            builder = builder.env(name, value);
        }
    }
    if let Some(paths) = params.strings("pythonPath")? {
        builder = builder.python_path(paths);
    }
    builder = network::give(builder, session, params)?;
    for mut given in params.objects("mounts")? {
        let (path, files, writable) = mount::files(&mut given)?;
        given.done()?;
        builder = builder.mount_entries(path, files, writable);
    }
    for spec in params.objects("extensions")? {
        builder = builder.extension(extension::extension(spec, &session.callbacks)?);
    }
    if let Some(nice) = params.number("nice")? {
        let nice = u8::try_from(nice).ok().filter(|nice| *nice <= 19);
        builder = builder.nice(nice.ok_or_else(|| RpcError::params("nice must be from 0 to 19"))?);
    }
    Ok((with_files(builder, params)?, given.line_limit))
}

/// Says on standard error that something takes long. A log that nobody reads any more is no reason to fail.
fn tell(step: &str) {
    let _ = writeln!(std::io::stderr(), "wardian: {step}");
}

/// Where it starts, what it may write to, and what becomes of files when a command is killed.
fn with_files(mut builder: Builder, params: &mut Params) -> Result<Builder, RpcError> {
    if let Some(cwd) = params.string("cwd")? {
        builder = builder.cwd(cwd);
    }
    if let Some(paths) = params.strings("writablePaths")? {
        builder = builder.writable_paths(paths);
    }
    match params.string("onKill")?.as_deref() {
        None => Ok(builder),
        Some("keep") => Ok(builder.on_kill(OnKill::Keep)),
        Some("rollback") => Ok(builder.on_kill(OnKill::Rollback)),
        Some(_) => Err(RpcError::params("onKill must be \"keep\" or \"rollback\"")),
    }
}

/// The limits that were read, which can be given in two places.
#[derive(Default)]
struct Given {
    names: Vec<&'static str>,
    /// The longest line, which is no limit of the sandbox.
    line_limit: Option<usize>,
}

impl Given {
    fn read(&mut self, mut object: Params, limits: &mut Limits) -> Result<(), RpcError> {
        let sizes = [
            ("stdoutBytes", &mut limits.stdout_bytes),
            ("stderrBytes", &mut limits.stderr_bytes),
            ("commandBytes", &mut limits.command_bytes),
            ("processes", &mut limits.processes),
            ("openFiles", &mut limits.open_files),
        ];
        for (name, limit) in sizes {
            if let Some(value) = object.size(name)? {
                *limit = self.once(name, value)?;
            }
        }
        let numbers = [("fileCount", &mut limits.file_count), ("memoryBytes", &mut limits.memory_bytes)];
        for (name, limit) in numbers {
            if let Some(value) = object.number(name)? {
                *limit = self.once(name, value)?;
            }
        }
        if let Some(value) = object.size("rpcBytes")? {
            self.line_limit = Some(self.once("rpcBytes", value)?);
        }
        object.done()
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

fn pool(params: &mut Params) -> Result<Option<PoolOptions>, RpcError> {
    let Some(mut pool) = params.object("pool")? else { return Ok(None) };
    let default = PoolOptions::default();
    // Who names one of the two does not quarrel with the other's default.
    let (min_size, max_size) = match (pool.size("minSize")?, pool.size("maxSize")?) {
        (Some(min), max) => (min, max.unwrap_or(default.max_size.max(min))),
        (None, Some(max)) => (default.min_size.min(max), max),
        (None, None) => (default.min_size, default.max_size),
    };
    pool.done_with(Some(PoolOptions { min_size, max_size }))
}
