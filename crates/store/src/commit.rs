//! Commits: a root, what led to it, and the head that moves to it.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use crate::batch::Sealed;
use crate::remote::tables;
use crate::seal::IN_FILE;
use crate::writer::Answer;
use crate::{Batch, Hash, Lease, Store, StoreError, full_name, schema};

/// A commit's number, rising in the order of commits.
pub type CommitId = i64;

/// The longest command that is noted.
pub(crate) const COMMAND: usize = 4096;

/// How long a tag waits for its commit to be uploaded.
const PATIENCE: Duration = Duration::from_secs(60);

/// What led to a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// The command, or what else was done; cut after 4096 bytes.
    pub command: Vec<u8>,
    /// Its exit code, if it was a command.
    pub exit_code: Option<i32>,
}

/// A commit to make.
#[derive(Debug)]
pub struct Commit<'a> {
    /// The right to change the name.
    pub lease: &'a Lease,
    /// The commit that the head must be at.
    pub parent: Option<CommitId>,
    /// The new root.
    pub root: Hash,
    /// The objects below it that may be new. All others must be below the parent.
    pub batch: Batch,
    /// What led to it.
    pub note: Note,
}

/// A commit that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommitInfo {
    /// Its number.
    pub id: CommitId,
    /// The one before.
    pub parent: Option<CommitId>,
    /// Its root.
    pub root: Hash,
    /// When it was made, in milliseconds since 1970; never before its parent, whatever the clock does.
    pub time_ms: u64,
    /// What led to it.
    pub note: Note,
    /// How many bytes were new, before compression.
    pub bytes: u64,
    /// Its names.
    pub tags: Vec<String>,
}

/// A commit that waits to be written.
pub(crate) struct Pending {
    sandbox: i64,
    name: String,
    token: i64,
    parent: Option<CommitId>,
    root: Hash,
    note: Note,
    bytes: i64,
    sealed: Sealed,
    /// It is to be uploaded.
    to_upload: bool,
}

impl Store {
    /// Makes a commit and waits until it is durable.
    pub fn commit(&self, commit: Commit<'_>) -> Result<CommitId, StoreError> {
        let (sender, answer) = std::sync::mpsc::channel();
        self.submit(commit, move |result| {
            let _ = sender.send(result);
        })?;
        answer.recv().unwrap_or_else(|_| Err(StoreError::Io("the writer has ended".to_owned())))
    }

    /// Makes a commit and calls `done` once it is durable, or failed. Compresses and encrypts on this thread.
    pub fn submit(
        &self,
        commit: Commit<'_>,
        done: impl FnOnce(Result<CommitId, StoreError>) + Send + 'static,
    ) -> Result<(), StoreError> {
        let Commit { lease, parent, root, batch, mut note } = commit;
        note.command.truncate(COMMAND);
        let bytes = batch.bytes() as i64;
        let (sandbox, token, name) = (lease.sandbox, lease.token, lease.name.to_string());
        let to_upload = self.0.remote.is_some();
        let sealed = batch.seal()?;
        let pending = Pending { sandbox, name, token, parent, root, note, bytes, sealed, to_upload };
        let Some(remote) = &self.0.remote else { return self.0.writer.commit(pending, Box::new(done)) };
        remote.check_room(self.0.options.most_waiting)?;
        let wake = remote.waker();
        let answer: Answer = Box::new(move |result| {
            if result.is_ok() {
                wake();
            }
            done(result);
        });
        self.0.writer.commit(pending, answer)
    }

    /// Returns the commits of a name, newest first: at most `most`, those before `before`.
    pub fn log(
        &self,
        name: &str,
        before: Option<CommitId>,
        most: usize,
    ) -> Result<Vec<CommitInfo>, StoreError> {
        let name = full_name(name)?;
        self.head(&name)?;
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT commits.id, commits.parent, root, time, command, exit_code, bytes,
                        (SELECT group_concat(tag.name, char(10)) FROM tag WHERE tag.commit_id = commits.id)
                 FROM commits JOIN sandbox ON sandbox.id = commits.sandbox
                 WHERE sandbox.name = ?1 AND commits.id < ?2 ORDER BY commits.id DESC LIMIT ?3",
            )?;
            let rows = statement.query_map(params![name, before.unwrap_or(i64::MAX), most], info)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Returns one commit of a name, given by its number or tag.
    pub fn find_commit(&self, name: &str, which: &str) -> Result<CommitInfo, StoreError> {
        let full = full_name(name)?;
        let missing =
            StoreError::Missing(format!("{full}: commit {}", which.chars().take(80).collect::<String>()));
        let (name, which) = (full, which.to_owned());
        let found = self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT commits.id, commits.parent, root, time, command, exit_code, bytes,
                        (SELECT group_concat(tag.name, char(10)) FROM tag WHERE tag.commit_id = commits.id)
                 FROM commits JOIN sandbox ON sandbox.id = commits.sandbox
                 WHERE sandbox.name = ?1 AND commits.id = coalesce(
                    (SELECT commit_id FROM tag WHERE tag.sandbox = sandbox.id AND tag.name = ?2), ?3)",
            )?;
            let number: i64 = which.parse().unwrap_or(-1);
            Ok(statement.query_row(params![name, which, number], info).optional()?)
        })?;
        found.ok_or(missing)
    }

    /// Gives a commit of a name a tag, which keeps it from being collected. An existing tag moves.
    pub fn tag(&self, name: &str, tag: &str, commit: CommitId) -> Result<(), StoreError> {
        if tag.is_empty()
            || tag.len() > 200
            || tag.chars().any(char::is_control)
            || tag.parse::<i64>().is_ok()
        {
            return Err(StoreError::Name(tag.chars().take(80).collect()));
        }
        self.find_commit(name, &commit.to_string())?;
        let (name, tag) = (full_name(name)?, tag.to_owned());
        if let Some(remote) = &self.0.remote {
            // Others see the tag, so its commit has to be there.
            self.flush(Some(PATIENCE))?;
            remote.tag(&name, &tag, Some(commit))?;
        }
        self.0.writer.perform(move |connection| {
            connection.execute(
                "INSERT OR REPLACE INTO tag SELECT id, ?2, ?3 FROM sandbox WHERE name = ?1",
                params![name, tag, commit],
            )?;
            Ok(())
        })
    }

    /// Removes a tag; returns whether there was one.
    pub fn untag(&self, name: &str, tag: &str) -> Result<bool, StoreError> {
        let (name, tag) = (full_name(name)?, tag.to_owned());
        if let Some(remote) = &self.0.remote {
            self.head(&name)?;
            remote.tag(&name, &tag, None)?;
        }
        self.0.writer.perform(move |connection| {
            let removed = connection.execute(
                "DELETE FROM tag WHERE name = ?2 AND sandbox = (SELECT id FROM sandbox WHERE name = ?1)",
                params![name, tag],
            )?;
            Ok(removed > 0)
        })
    }

    /// Returns the tags of a name with their commits, sorted.
    pub fn tags(&self, name: &str) -> Result<Vec<(String, CommitId)>, StoreError> {
        let name = full_name(name)?;
        self.read(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT tag.name, commit_id FROM tag JOIN sandbox ON sandbox.id = tag.sandbox
                 WHERE sandbox.name = ? ORDER BY tag.name",
            )?;
            let rows = statement.query_map([name], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

fn info(row: &rusqlite::Row<'_>) -> rusqlite::Result<CommitInfo> {
    let tags: Option<String> = row.get(7)?;
    Ok(CommitInfo {
        id: row.get(0)?,
        parent: row.get(1)?,
        root: Hash(row.get(2)?),
        time_ms: row.get::<_, i64>(3)?.max(0) as u64,
        note: Note { command: row.get(4)?, exit_code: row.get(5)? },
        bytes: row.get::<_, i64>(6)?.max(0) as u64,
        tags: tags.map_or_else(Vec::new, |tags| tags.split('\n').map(str::to_owned).collect()),
    })
}

/// Writes a commit, inside a transaction.
pub(crate) fn apply(connection: &Connection, pending: &Pending) -> Result<CommitId, StoreError> {
    let mut held = connection.prepare_cached("SELECT token FROM lease WHERE sandbox = ?")?;
    let token: Option<i64> = held.query_row([pending.sandbox], |row| row.get(0)).optional()?;
    if token != Some(pending.token) {
        if pending.to_upload
            && let Some(taken) = tables::who_took(connection, &pending.name, pending.token)?
        {
            return Err(taken);
        }
        return Err(StoreError::Lost(pending.name.clone()));
    }
    let mut head = connection.prepare_cached(
        "SELECT sandbox.head, commits.time FROM sandbox LEFT JOIN commits ON commits.id = sandbox.head
         WHERE sandbox.id = ?",
    )?;
    let found = head
        .query_row([pending.sandbox], |row| {
            Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?))
        })
        .optional()?;
    let Some((head, time)) = found else { return Err(StoreError::Missing(pending.name.clone())) };
    if head != pending.parent {
        return Err(StoreError::Conflict(pending.name.clone()));
    }
    let new = write_objects(connection, &pending.sealed)?;
    let time = schema::now_ms().max(time.unwrap_or(0));
    let mut insert = connection.prepare_cached(
        "INSERT INTO commits (sandbox, parent, root, time, command, exit_code, bytes) VALUES (?, ?, ?, ?, ?, ?, ?)",
    )?;
    let Note { command, exit_code } = &pending.note;
    let (root, bytes) = (&pending.root.0[..], pending.bytes);
    let id =
        insert.insert(params![pending.sandbox, pending.parent, root, time, command, exit_code, bytes])?;
    connection.prepare_cached("UPDATE sandbox SET head = ? WHERE id = ?")?.execute([id, pending.sandbox])?;
    if pending.to_upload {
        let is_new_value = !pending.sealed.objects.is_empty();
        tables::note_commit(connection, (id, pending.sandbox), &pending.root, &new, is_new_value)?;
    }
    Ok(id)
}

/// Writes objects, and returns which of them were not there.
fn write_objects(connection: &Connection, sealed: &Sealed) -> Result<Vec<Hash>, StoreError> {
    let mut new = Vec::new();
    let mut insert =
        connection.prepare_cached("INSERT OR IGNORE INTO object (hash, kind, body) VALUES (?, ?, ?)")?;
    for (hash, kind, body) in &sealed.objects {
        if insert.execute(params![&hash.0[..], kind, body])? > 0 {
            new.push(*hash);
        }
    }
    for (hash, path) in &sealed.files {
        // Somebody may have collected it since it was written.
        if !path.exists() {
            return Err(StoreError::Damaged { hash: *hash, why: "its file is gone".to_owned() });
        }
        if insert.execute(params![&hash.0[..], IN_FILE, &b""[..]])? > 0 {
            new.push(*hash);
        }
    }
    Ok(new)
}
