//! `files.…`: access to a sandbox's files from outside. These calls act immediately, even while a command runs.

use std::io::Write;
use std::sync::Arc;

use base64::write::EncoderWriter;
use serde_json::json;
use wardian::{DirectoryListing as Listing, Errno, Error, FileKind, Sandbox, WriteOptions};
use wardian_contract::params::{ListFiles, Path, ReadFile, WriteFile};

use super::{Job, Prepared, Written, asked, ok};
use crate::budget::{ANSWER_MAX, LARGE, Room, check_length, too_long};
use crate::params::{BASE64, Params, text};
use crate::rpc::RpcError;
use crate::session::Session;

/// What an answer takes beside its content.
const FRAME: usize = 64;
/// How long a file may be that does not say how long it is, as in `/proc`, at the first attempt.
const UNSIZED: u64 = 64 << 10;
/// How much of a file is read from an offset if nobody says how much.
const PART: u64 = 1 << 20;
/// How often a file may grow, or a directory, while there is no room yet for the answer.
const ATTEMPTS: u32 = 8;

pub(super) fn read(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, ReadFile { path, offset, length, .. }) = asked(session, params)?;
    let (mut turn, session) = (entry.at_once(), session.clone());
    Job::written_at_once(turn.hold(), async move {
        let sandbox = turn.sandbox().await?;
        if offset.is_some() || length.is_some() {
            return read_part(&session, &sandbox, &path, offset.unwrap_or(0), length.unwrap_or(PART)).await;
        }
        let mut attempt = 0;
        loop {
            let size = sandbox.file_size(&path).await?.max(UNSIZED << (2 * attempt));
            attempt += 1;
            let need = usize::try_from(size).unwrap_or(usize::MAX / 2) / 3 * 4 + FRAME;
            if need >= ANSWER_MAX {
                // One that only claims to be that long is read no further than it may be.
                check_length("files.read", encoded(sandbox.file_size(&path).await?))?;
            }
            let size = size.min((ANSWER_MAX - FRAME) as u64 / 4 * 3);
            let Some(room) = session.outbox.budget.room(encoded(size)).await else {
                return Err(RpcError::internal("the client is gone"));
            };
            let _turn = if size > LARGE as u64 { Some(session.line_turn().await?) } else { None };
            match read_into(&sandbox, &path, size, room).await {
                Err(error) if error.errno() == Some(Errno::EFBIG) && attempt < ATTEMPTS => {}
                other => return Ok(other?),
            }
        }
    })
}

/// How long the answer is for a file of this size.
fn encoded(size: u64) -> usize {
    usize::try_from(size).map_or(usize::MAX, |size| (size / 3 + 1).saturating_mul(4).saturating_add(FRAME))
}

/// Reads a file of at most `size` bytes straight into the answer.
async fn read_into(sandbox: &Sandbox, path: &str, size: u64, mut room: Room) -> Result<Written, Error> {
    // Only what is there takes memory: a small file has a small answer.
    let mut json = Vec::with_capacity(encoded(sandbox.file_size(path).await?.min(size)));
    json.extend_from_slice(b"{\"data\":\"");
    let encoder = EncoderWriter::new(json, &BASE64);
    let mut encoder = sandbox.read_file_into(path, size, encoder).await?;
    // Writing to memory does not fail.
    let mut json = encoder.finish().unwrap_or_default();
    json.extend_from_slice(b"\"}");
    room.shrink(json.len() + FRAME);
    Ok(Written { json, room })
}

/// Reads part of a file. Room is reserved for what was asked for, as far as the file goes.
async fn read_part(
    session: &Session,
    sandbox: &Sandbox,
    path: &str,
    offset: u64,
    length: u64,
) -> Result<Written, RpcError> {
    let left = sandbox.file_size(path).await?.saturating_sub(offset).max(UNSIZED);
    let length = length.min(left);
    check_length("files.read", encoded(length))?;
    let Some(mut room) = session.outbox.budget.room(encoded(length)).await else {
        return Err(RpcError::internal("the client is gone"));
    };
    let _turn = if length > LARGE as u64 { Some(session.line_turn().await?) } else { None };
    let encoder = EncoderWriter::new(b"{\"data\":\"".to_vec(), &BASE64);
    let (mut encoder, size) = sandbox.read_range_into(path, offset, length, encoder).await?;
    // Writing to memory does not fail.
    let mut json = encoder.finish().unwrap_or_default();
    json.extend_from_slice(format!("\",\"size\":{size}}}").as_bytes());
    room.shrink(json.len() + FRAME);
    Ok(Written { json, room })
}

pub(super) fn write(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, WriteFile { path, data, parents, mode, offset, .. }) = asked(session, params)?;
    let mode = mode.map(|mode| mode.0);
    let options = WriteOptions { parents: parents.unwrap_or(false), mode, offset };
    let mut turn = entry.at_once();
    Job::at_once(turn.hold(), async move {
        turn.sandbox().await?.write_file_with(path, data.0, options).await?;
        ok()
    })
}

/// What to list.
struct Listed {
    path: String,
    /// Everything below it, by path.
    recursive: bool,
}

impl Listed {
    async fn within(&self, sandbox: &Sandbox, max: usize) -> Result<Listing, Error> {
        if self.recursive {
            sandbox.list_all_within(&self.path, max).await
        } else {
            sandbox.list_within(&self.path, max).await
        }
    }
}

pub(super) fn list(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, ListFiles { path, recursive, .. }) = asked(session, params)?;
    let what = Listed { path, recursive: recursive.unwrap_or(false) };
    let (mut turn, session) = (entry.at_once(), session.clone());
    Job::written_at_once(turn.hold(), async move {
        let sandbox = turn.sandbox().await?;
        match what.within(&sandbox, LARGE / 4).await {
            Ok(listing) => {
                let need = listing_size(&listing);
                let room = session.outbox.budget.room(need).await;
                let room = room.ok_or_else(|| RpcError::internal("the client is gone"))?;
                Ok(Written { json: write_listing(&listing, need), room })
            }
            Err(error) if error.errno() == Some(Errno::EFBIG) => list_large(&session, &sandbox, &what).await,
            Err(error) => Err(error.into()),
        }
    })
}

/// Lists a large directory. How long the answer is shows when it is listed; if there is no room for it then, the listing
/// is dropped and made again once there is.
async fn list_large(session: &Arc<Session>, sandbox: &Sandbox, what: &Listed) -> Result<Written, RpcError> {
    let mut room: Option<Room> = None;
    for _ in 0..ATTEMPTS {
        let turn = session.heavy().await?;
        let listing = match what.within(sandbox, ANSWER_MAX).await {
            Err(error) if error.errno() == Some(Errno::EFBIG) => return Err(too_long("files.list")),
            other => other?,
        };
        let (budget, had) = (session.outbox.budget.clone(), room.take());
        let written = turn.run(move || {
            let need = listing_size(&listing);
            let room = had.filter(|room| room.covers(need)).or_else(|| budget.try_room(need));
            match room {
                _ if need >= ANSWER_MAX => Err(need),
                Some(mut room) => {
                    room.shrink(need);
                    Ok(Written { json: write_listing(&listing, need), room })
                }
                None => Err(need),
            }
        });
        let written = written.await?;
        drop(turn);
        match written {
            Ok(written) => return Ok(written),
            Err(need) => {
                check_length("files.list", need)?;
                room = session.outbox.budget.room(need).await;
            }
        }
    }
    let path = &what.path;
    Err(RpcError::refused("EAGAIN", format!("EAGAIN: {path}: the directory grows all the time")))
}

/// Counts what is written.
struct Count(usize);

impl Write for Count {
    fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
        self.0 += piece.len();
        Ok(piece.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// How long the answer is for this listing.
fn listing_size(listing: &Listing) -> usize {
    let mut count = Count(FRAME);
    // Counting does not fail.
    let _ = put_listing(listing, &mut count);
    count.0
}

fn write_listing(listing: &Listing, size: usize) -> Vec<u8> {
    let mut json = Vec::with_capacity(size);
    // Writing to memory does not fail.
    let _ = put_listing(listing, &mut json);
    json
}

fn put_listing(listing: &Listing, out: &mut impl Write) -> std::io::Result<()> {
    out.write_all(b"{\"entries\":[")?;
    for (number, (name, kind_of, size)) in listing.iter().enumerate() {
        out.write_all(if number == 0 { b"{\"name\":" } else { b",{\"name\":" })?;
        serde_json::to_writer(&mut *out, &String::from_utf8_lossy(name))?;
        write!(out, ",\"size\":{size},\"type\":\"{}\"}}", kind(kind_of))?;
    }
    out.write_all(b"]}")
}

pub(super) fn mkdir(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, Path { path, .. }) = asked(session, params)?;
    let mut turn = entry.at_once();
    Job::at_once(turn.hold(), async move {
        turn.sandbox().await?.mkdir(path).await?;
        ok()
    })
}

pub(super) fn rm(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, Path { path, .. }) = asked(session, params)?;
    let (mut turn, session) = (entry.at_once(), session.clone());
    Job::at_once(turn.hold(), async move {
        let sandbox = turn.sandbox().await?;
        let is_dir = sandbox.stat(&path).await?.kind == FileKind::Dir;
        let _turn = if is_dir { Some(session.heavy().await?) } else { None };
        sandbox.rm(path).await?;
        ok()
    })
}

pub(super) fn stat(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, Path { path, .. }) = asked(session, params)?;
    let mut turn = entry.at_once();
    Job::at_once(turn.hold(), async move {
        let file = turn.sandbox().await?.stat(path).await?;
        Ok(json!({
            "name": text(&file.name),
            "type": kind(file.kind),
            "size": file.size,
            "mode": file.mode,
            "mtimeMs": file.mtime_ms,
        }))
    })
}

/// Devices and pipes are reported as files: the protocol has three kinds.
pub(crate) fn kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Dir => "dir",
        FileKind::Symlink => "symlink",
        _ => "file",
    }
}
