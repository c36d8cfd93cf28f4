//! `persistence.export` and `persistence.import`: a whole sandbox as bytes, in a line or in a file on the server.

use std::io::{Error, Write};
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use tempfile::NamedTempFile;

use super::{Job, Prepared, entry, ok};
use crate::params::{Params, encode};
use crate::rpc::RpcError;
use crate::session::Session;

pub(super) fn export(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let entry = entry(session, params)?;
    let file = state_file(session, params)?;
    let mut turn = entry.in_turn();
    Job::in_turn(turn.hold(), async move {
        let state = turn.sandbox().await?.export().await?;
        let Some(file) = file else { return Ok(json!({ "data": encode(&state) })) };
        file.write(state).await?;
        ok()
    })
}

pub(super) fn import(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let entry = entry(session, params)?;
    let file = state_file(session, params)?;
    let data = params.bytes("data")?;
    if file.is_some() && data.is_some() {
        return Err(RpcError::params("data and file cannot both be given"));
    }
    let data = if file.is_none() { Some(params.required("data", data)?) } else { data };
    let mut turn = entry.in_turn();
    Job::in_turn(turn.hold(), async move {
        let sandbox = turn.sandbox().await?;
        let state = match (data, file) {
            (Some(data), _) => data,
            (None, Some(file)) => file.read().await?,
            (None, None) => return Err(RpcError::params("Missing required param: data")),
        };
        sandbox.import(state).await?;
        ok()
    })
}

/// A file in the server's state directory.
struct StateFile {
    directory: PathBuf,
    name: String,
}

/// The file that `file` names, if any.
fn state_file(session: &Session, params: &mut Params) -> Result<Option<StateFile>, RpcError> {
    let Some(name) = params.string("file")? else { return Ok(None) };
    let Some(directory) = session.shared.state_dir.clone() else {
        return Err(RpcError::params("file: the server was started without --state-dir"));
    };
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
            let mut written = NamedTempFile::new_in(&file.directory)?;
            written.write_all(&state)?;
            // Before it has its name: a power failure leaves the old state or the new one.
            written.as_file().sync_all()?;
            written.persist(file.directory.join(&file.name))?;
            Ok(())
        })
        .await
    }

    async fn read(self) -> Result<Vec<u8>, RpcError> {
        self.aside(|file| std::fs::read(file.directory.join(&file.name))).await
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
