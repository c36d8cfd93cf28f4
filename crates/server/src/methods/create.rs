//! `create`: the root sandbox, and the options of all others.

use std::sync::Arc;

use wardian::{Builder, Limits, PoolOptions, Sandbox};

use super::{Job, Prepared, extension, mount, ok};
use crate::params::Params;
use crate::rpc::{INVALID_REQUEST, RpcError};
use crate::session::Session;

pub(super) fn create(session: &Arc<Session>, params: &mut Params) -> Prepared {
    if session.is_created() {
        return Err(RpcError::new(INVALID_REQUEST, "the sandbox is already created"));
    }
    let mut limits = params.object("limits")?;
    let line_limit = match &mut limits {
        Some(limits) => limits.size("rpcBytes")?,
        None => None,
    };
    let builder = builder(session, params, limits)?;
    let storage = params.flag("storage")?.unwrap_or(false);
    let root = session.begin_root(&builder, line_limit, storage);
    // Whatever comes next waits until it is there.
    let (session, mut commands, mut calls) = (session.clone(), root.in_turn(), root.at_once());
    Job::in_turn(None, async move {
        commands.come().await;
        calls.come().await;
        match builder.build().await {
            Ok(sandbox) => {
                root.fill(sandbox);
                ok()
            }
            Err(error) => {
                session.forget_root();
                Err(error.into())
            }
        }
    })
}

fn builder(session: &Session, params: &mut Params, limits: Option<Params>) -> Result<Builder, RpcError> {
    refuse_what_is_missing(params)?;
    let mut builder =
        Sandbox::builder().limits(read_limits(params, limits)?).progress(|step| eprintln!("wardian: {step}"));
    if let Some(timeout) = params.timeout("timeoutMs")? {
        builder = builder.timeout(timeout);
    }
    if let Some(env) = params.object("env")? {
        for (name, value) in env.all_strings()? {
            builder = builder.env(name, value);
        }
    }
    if let Some(paths) = params.strings("pythonPath")? {
        builder = builder.python_path(paths);
    }
    for mut given in params.objects("mounts")? {
        let (path, files, writable) = mount::files(&mut given)?;
        builder = builder.mount_files(path, files, writable);
    }
    for mut spec in params.objects("extensions")? {
        builder = builder.extension(extension::extension(&mut spec, &session.callbacks)?);
    }
    if let Some(mut security) = params.object("security")?
        && let Some(tools) = security.strings("toolAllowlist")?
    {
        builder = builder.tool_allowlist(tools);
    }
    if let Some(nice) = params.number("nice")? {
        let nice = u8::try_from(nice).ok().filter(|nice| *nice <= 19);
        builder = builder.nice(nice.ok_or_else(|| RpcError::params("nice must be from 0 to 19"))?);
    }
    if let Some(pool) = pool(params)? {
        builder = builder.pool(pool);
    }
    Ok(builder)
}

/// Refuses options that this version does not support, instead of ignoring them.
fn refuse_what_is_missing(params: &mut Params) -> Result<(), RpcError> {
    if params.has("network") {
        return Err(RpcError::params("network is not supported yet: no host can be reached"));
    }
    Ok(())
}

fn read_limits(params: &mut Params, limits: Option<Params>) -> Result<Limits, RpcError> {
    let mut read = Limits::default();
    if let Some(bytes) = params.number("fsLimitBytes")? {
        read.fs_bytes = bytes;
    }
    let Some(mut limits) = limits else { return Ok(read) };
    let sizes = [
        ("stdoutBytes", &mut read.stdout_bytes),
        ("stderrBytes", &mut read.stderr_bytes),
        ("commandBytes", &mut read.command_bytes),
        ("processes", &mut read.processes),
        ("openFiles", &mut read.open_files),
    ];
    for (name, limit) in sizes {
        *limit = limits.size(name)?.unwrap_or(*limit);
    }
    for (name, limit) in [("fileCount", &mut read.file_count), ("memoryBytes", &mut read.memory_bytes)] {
        *limit = limits.number(name)?.unwrap_or(*limit);
    }
    Ok(read)
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
    Ok(Some(PoolOptions { min_size, max_size }))
}
