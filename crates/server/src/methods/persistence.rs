//! `persistence.export` and `persistence.import`: a whole sandbox as bytes, in a line or in a file on the server.

use std::fs::File;
use std::io::{Error, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine;
use tempfile::NamedTempFile;
use wardian::{ArchiveError, Error as SandboxError, Sandbox};

use super::{Answer, Job, Prepared, Written, entry, ok};
use crate::budget::{ANSWER_MAX, LARGE};
use crate::params::{BASE64, Params};
use crate::rpc::RpcError;
use crate::session::Session;
use crate::tenant::create_private;

pub(super) fn export(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let entry = entry(session, params)?;
    let file = state_file(session, params)?;
    params.done()?;
    let (mut turn, session) = (entry.in_turn(), session.clone());
    Job::answered_in_turn(turn.hold(), async move {
        let sandbox = turn.sandbox().await?;
        let Some(file) = file else { return Ok(Answer::Written(export_line(&session, &sandbox).await?)) };
        let _turn = session.heavy().await;
        file.write(sandbox.export().await?).await?;
        ok().map(Answer::Value)
    })
}

/// How long a state may be, as bytes, that goes into a line.
const IN_LINE: usize = ANSWER_MAX / 4 * 3 - 1024;

/// Exports a state for a line: at most so many bytes that it fits into one. What packs well takes long for its length,
/// so even a short one takes its turn.
pub(super) async fn export_for_line(session: &Session, sandbox: &Sandbox) -> Result<Vec<u8>, RpcError> {
    let _turn = session.heavy().await;
    Ok(sandbox.export_within(IN_LINE).await?)
}

/// Exports a state as an answer. How long that is shows when it is there, so room for the longest comes first, unless
/// it is short.
async fn export_line(session: &Session, sandbox: &Sandbox) -> Result<Written, RpcError> {
    let gone = || RpcError::internal("the client is gone");
    let budget = &session.outbox.budget;
    let turn = session.heavy().await;
    let short = sandbox.export_within(LARGE).await;
    drop(turn);
    let (state, mut room) = match short {
        Err(SandboxError::Archive(ArchiveError::TooLong(_))) => {
            let room = budget.room(ANSWER_MAX).await.ok_or_else(gone)?;
            (export_for_line(session, sandbox).await?, room)
        }
        other => {
            let state = other?;
            let room = budget.room(state.len() / 3 * 4 + 1024).await.ok_or_else(gone)?;
            (state, room)
        }
    };
    let json = session.aside(move || in_line(&state)).await?;
    room.shrink(json.len() + 1024);
    Ok(Written { json, room })
}

pub(super) fn import(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let entry = entry(session, params)?;
    let file = state_file(session, params)?;
    let data = params.bytes("data")?;
    params.done()?;
    if file.is_some() && data.is_some() {
        return Err(RpcError::params("data and file cannot both be given"));
    }
    let data = if file.is_none() { Some(params.required("data", data)?) } else { data };
    let (mut turn, session) = (entry.in_turn(), session.clone());
    Job::in_turn(turn.hold(), async move {
        let sandbox = turn.sandbox().await?;
        // A short archive can unpack to much, and a file is read only when it is its turn.
        let _turn = session.heavy().await;
        let state = match (data, file) {
            (Some(data), _) => data,
            (None, Some(file)) => file.read(state_max(&sandbox)).await?,
            (None, None) => return Err(RpcError::params("Missing required param: data")),
        };
        sandbox.import(state).await?;
        ok()
    })
}

/// How long the file of a state may be that this sandbox could have.
fn state_max(sandbox: &Sandbox) -> u64 {
    let limits = sandbox.limits();
    limits.fs_bytes.saturating_add(limits.memory_bytes).saturating_add(STATE_FRAME)
}

/// What an archive may take beside files and memory.
const STATE_FRAME: u64 = 16 << 20;

fn in_line(state: &[u8]) -> Vec<u8> {
    let mut json = String::with_capacity(state.len() / 3 * 4 + 64);
    json.push_str("{\"data\":\"");
    BASE64.encode_string(state, &mut json);
    json.push_str("\"}");
    json.into_bytes()
}

/// A file in the server's state directory.
struct StateFile {
    directory: PathBuf,
    name: String,
}

/// The file that `file` names, if any.
fn state_file(session: &Session, params: &mut Params) -> Result<Option<StateFile>, RpcError> {
    let Some(name) = params.string("file")? else { return Ok(None) };
    let Some(directory) = &session.shared.state_dir else {
        return Err(RpcError::params("file: the server was started without --state-dir"));
    };
    let directory = session.tenant().directory(directory)?;
    // One name, and not a hidden one: those are for files being written.
    if name.is_empty() || name.starts_with('.') || name.len() > 255 || name.contains(['/', '\0']) {
        return Err(RpcError::params("file must be a plain file name"));
    }
    Ok(Some(StateFile { directory, name }))
}

impl StateFile {
    /// Writes all of it or nothing; only this user can read it.
    async fn write(self, state: Vec<u8>) -> Result<(), RpcError> {
        self.aside(move |file| {
            create_private(&file.directory)?;
            let mut written = NamedTempFile::new_in(&file.directory)?;
            written.write_all(&state)?;
            // Before it has its name: a power failure leaves the old state or the new one.
            written.as_file().sync_all()?;
            written.persist(file.directory.join(&file.name))?;
            Ok(())
        })
        .await
    }

    async fn read(self, max: u64) -> Result<Vec<u8>, RpcError> {
        self.aside(move |file| {
            let opened = File::open(file.directory.join(&file.name))?;
            if opened.metadata()?.len() > max {
                let limits = "what fsLimitBytes and memoryBytes of this sandbox allow";
                return Err(Error::other(format!("it is longer than {limits}, {max}")));
            }
            let mut state = Vec::new();
            opened.take(max).read_to_end(&mut state)?;
            Ok(state)
        })
        .await
    }

    /// Runs disk access where it may block.
    async fn aside<T: Send + 'static>(
        self,
        work: impl FnOnce(&StateFile) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, RpcError> {
        let name = self.name.clone();
        let done = tokio::task::spawn_blocking(move || work(&self)).await;
        match done.map_err(Error::other).flatten() {
            Ok(done) => Ok(done),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(RpcError::params(format!("file: state {name} not found")))
            }
            Err(error) => Err(RpcError::internal(format!("the state {name}: {error}"))),
        }
    }
}
