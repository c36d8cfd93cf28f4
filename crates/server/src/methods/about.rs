//! `capabilities`, `usage` and `isRunning`: what the server can do, and what a sandbox is doing.

use std::sync::Arc;

use serde_json::json;
use wardian::Limits;

use super::{Job, METHODS, Prepared, alone};
use crate::budget::ANSWER_MAX;
use crate::params::Params;
use crate::session::Session;
use crate::{processes, streams};

/// Answers also before `create`.
pub(super) fn capabilities(session: &Arc<Session>, params: &mut Params) -> Prepared {
    params.ignore("sandboxId");
    params.done()?;
    let limits = Limits::default();
    let answer = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "methods": &METHODS[..],
        "http": session.shared.doors.place().is_some(),
        "stateDirectory": session.shared.states.is_some(),
        "maxSandboxes": session.shared.max_sandboxes,
        "processes": processes::PROCESSES,
        "connections": streams::CONNECTIONS,
        "answerBytes": ANSWER_MAX,
        "limits": {
            "stdoutBytes": limits.stdout_bytes,
            "stderrBytes": limits.stderr_bytes,
            "commandBytes": limits.command_bytes,
            "fsLimitBytes": limits.fs_bytes,
            "fileCount": limits.file_count,
            "memoryBytes": limits.memory_bytes,
            "processes": limits.processes,
            "openFiles": limits.open_files,
        },
    });
    Job::at_once(None, async move { Ok(answer) })
}

pub(super) fn usage(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let mut turn = alone(session, params)?.at_once();
    Job::at_once(turn.hold(), async move {
        let sandbox = turn.sandbox().await?;
        let (now, disk) = (sandbox.usage_now(), sandbox.disk_usage().await);
        Ok(json!({ "processes": now.processes, "memoryBytes": now.memory_bytes, "fsBytes": disk }))
    })
}

pub(super) fn is_running(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let running = alone(session, params)?.is_running();
    Job::at_once(None, async move { Ok(json!({ "running": running })) })
}
