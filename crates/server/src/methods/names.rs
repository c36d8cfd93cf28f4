//! `files.rename`, `files.copy`, `files.chmod` and `files.symlink`.

use std::sync::Arc;

use wardian::{Sandbox, WriteOptions};
use wardian_contract::params::{Chmod, FromTo, Symlink};

use super::{Job, Prepared, asked, ok};
use crate::params::Params;
use crate::session::Session;

/// How much is copied at once.
const PIECE: u64 = 1 << 20;

pub(super) fn rename(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, FromTo { path, to, .. }) = asked(session, params)?;
    let mut turn = entry.at_once();
    Job::at_once(turn.hold(), async move {
        turn.sandbox().await?.rename(path, to).await?;
        ok()
    })
}

pub(super) fn copy(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, FromTo { path, to, .. }) = asked(session, params)?;
    let mut turn = entry.at_once();
    Job::at_once(turn.hold(), async move {
        let sandbox = turn.sandbox().await?;
        copy_file(&sandbox, &path, &to).await?;
        ok()
    })
}

/// Copies a file with its permissions, piece by piece.
async fn copy_file(sandbox: &Sandbox, path: &str, to: &str) -> Result<(), wardian::Error> {
    let mode = sandbox.stat(path).await?.mode;
    let mut offset = 0;
    loop {
        let (piece, size) = sandbox.read_range_into(path, offset, PIECE, Vec::new()).await?;
        let length = piece.len() as u64;
        let options = WriteOptions { parents: false, mode: Some(mode), offset: Some(offset) };
        if length > 0 || offset == 0 {
            sandbox.write_file_with(to, piece, options).await?;
        }
        offset += length;
        if length == 0 || offset >= size {
            return Ok(());
        }
    }
}

pub(super) fn chmod(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, Chmod { path, mode, .. }) = asked(session, params)?;
    let mut turn = entry.at_once();
    Job::at_once(turn.hold(), async move {
        turn.sandbox().await?.chmod(path, mode.0).await?;
        ok()
    })
}

pub(super) fn symlink(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, Symlink { path, target, .. }) = asked(session, params)?;
    let mut turn = entry.at_once();
    Job::at_once(turn.hold(), async move {
        turn.sandbox().await?.symlink(target, path).await?;
        ok()
    })
}
