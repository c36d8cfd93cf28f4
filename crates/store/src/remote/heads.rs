//! Heads and their commits, from the object store into the local part.

use futures_util::{StreamExt, TryStreamExt, stream};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::Inner;
use super::bucket::Version;
use super::tables::{self, KnownHead};
use super::wire::{self, CommitRecord, Head, Name, Record};
use crate::{CommitId, StoreError, schema};

/// How many records of one head are followed.
const RECORDS: usize = 200_000;
/// How many requests are on their way at the same time.
pub(super) const AT_ONCE: usize = 8;

pub(super) fn head_path(name: &str) -> String {
    format!("heads/{name}")
}

fn record_path(name: &Name) -> String {
    format!("records/{}", crate::Hash(*name))
}

impl Inner {
    /// Reads a head. One that was removed is there, and says so.
    pub(super) async fn read_head(&self, name: &str) -> Result<Option<(Head, Version)>, StoreError> {
        let path = head_path(name);
        // As it was before the request: another task of this machine may change the head meanwhile.
        let known = self.known(name)?;
        let Some((bytes, version)) = self.bucket.read(&path, wire::MOST_HEAD).await? else { return Ok(None) };
        let head = wire::open_head(&self.sealer, name, &bytes).map_err(|error| self.at(&path, error))?;
        if let Some(known) = known.filter(|known| known.id == head.id && head.generation < known.generation) {
            let (now, before) = (head.generation, known.generation);
            let why =
                format!("it went back from generation {before} to {now}: the server returned an old one");
            return Err(self.bucket.damaged(&path, &why));
        }
        Ok(Some((head, version)))
    }

    /// Says where something is damaged.
    pub(super) fn at(&self, path: &str, error: StoreError) -> StoreError {
        match error {
            StoreError::Malformed(why) => self.bucket.damaged(path, &why),
            StoreError::Damaged { why, .. } => self.bucket.damaged(path, &why),
            other => other,
        }
    }

    /// Reads a head and what is new below it, and brings the local part up to date. Returns it unless it was removed.
    pub(super) async fn pull(&self, name: &str) -> Result<Option<(Head, Version)>, StoreError> {
        let found = self.read_head(name).await?;
        self.take_in(name, found.as_ref()).await?;
        Ok(found.filter(|(head, _)| !head.removed))
    }

    /// Brings the local part up to date with a head that was read.
    pub(super) async fn take_in(
        &self,
        name: &str,
        found: Option<&(Head, Version)>,
    ) -> Result<(), StoreError> {
        let Some((head, version)) = found.filter(|(head, _)| !head.removed) else {
            let holder = "nobody: it was removed";
            return self.transact(|transaction| forget(transaction, name, holder));
        };
        let known = self.known(name)?.filter(|known| known.id == head.id);
        if known.as_ref().is_some_and(|known| known.version == *version) {
            return Ok(());
        }
        let records = self.new_records(known.as_ref(), head).await?;
        self.transact(|transaction| self.import(transaction, (head, version), &records))
    }

    pub(super) fn known(&self, name: &str) -> Result<Option<KnownHead>, StoreError> {
        let database = self.database.lock();
        match tables::sandbox_of(&database, name)? {
            Some(sandbox) => tables::known_head(&database, sandbox),
            None => Ok(None),
        }
    }

    /// Returns the records that the local part does not know, newest first.
    async fn new_records(
        &self,
        known: Option<&KnownHead>,
        head: &Head,
    ) -> Result<Vec<(Name, Record)>, StoreError> {
        let mut all: Vec<(Name, Record)> = Vec::new();
        let mut next: Vec<Name> = head.record.into_iter().collect();
        while !next.is_empty() {
            let unknown: Vec<Name> = {
                let database = self.database.lock();
                let mut is_known =
                    database.prepare_cached("SELECT 1 FROM remote_record WHERE sandbox = ? AND name = ?")?;
                let sandbox = known.map_or(-1, |known| known.sandbox);
                let mut unknown = Vec::new();
                for name in &next {
                    if is_known.exists(params![sandbox, &name[..]])? {
                        break;
                    }
                    unknown.push(*name);
                }
                unknown
            };
            let is_end = unknown.len() < next.len();
            let reading = unknown.into_iter().map(|name| async move {
                let path = record_path(&name);
                let found = self.bucket.read(&path, wire::MOST_RECORD).await?;
                let (bytes, _) = found.ok_or_else(|| self.bucket.damaged(&path, "it is missing"))?;
                let record = wire::open_record(&self.sealer, &name, &bytes);
                Ok::<_, StoreError>((name, record.map_err(|error| self.at(&path, error))?))
            });
            let read: Vec<(Name, Record)> = stream::iter(reading).buffered(AT_ONCE).try_collect().await?;
            next = match read.last() {
                Some((_, record)) if !is_end => record.previous.clone(),
                _ => Vec::new(),
            };
            all.extend(read);
            if all.len() > RECORDS {
                return Err(self.bucket.damaged(&head_path(&head.name), "it leads to too many records"));
            }
        }
        Ok(all)
    }

    /// Puts a head with its new records into the local part: all of it, or nothing.
    pub(super) fn import(
        &self,
        transaction: &Transaction<'_>,
        (head, version): (&Head, &Version),
        records: &[(Name, Record)],
    ) -> Result<(), StoreError> {
        let holder = head.lease.as_ref().filter(|lease| lease.node != self.node);
        let held = head.lease.is_some() && holder.is_none();
        let holder = holder.map(|lease| lease.holder.clone());
        let by = holder.as_deref().unwrap_or("nobody any more");
        let sandbox = match tables::sandbox_of(transaction, &head.name)? {
            Some(sandbox) => {
                let known = tables::known_head(transaction, sandbox)?;
                if known.is_some_and(|known| known.id == head.id && known.generation > head.generation) {
                    // Somebody on this machine was quicker: what was read is old already.
                    return Ok(());
                }
                if tables::id_of(transaction, sandbox)? != Some(head.id) {
                    // Another one has the name now.
                    set_aside(transaction, sandbox, &head.name, by)?;
                    drop_commits(transaction, sandbox)?;
                    describe(transaction, sandbox, head)?;
                }
                sandbox
            }
            None => {
                transaction.execute(
                    "INSERT INTO sandbox (name, kind, created, meta) VALUES (?, ?, ?, ?)",
                    params![head.name, head.kind, head.created, head.meta],
                )?;
                transaction.last_insert_rowid()
            }
        };
        let commits: Vec<(Name, &CommitRecord)> = self.commits_of(head, records)?;
        let mut unknown = Vec::new();
        for (name, commit) in commits {
            match tables::number_of(transaction, &name)? {
                // It was uploaded, and this machine did not come to hear of it.
                Some(number) => {
                    transaction.execute("DELETE FROM remote_queue WHERE number = ?", [number])?;
                }
                None => unknown.push((name, commit)),
            }
        }
        if !unknown.is_empty() {
            set_aside(transaction, sandbox, &head.name, by)?;
        }
        for (name, commit) in unknown {
            insert_commit(transaction, sandbox, &name, commit)?;
        }
        for (name, _) in records {
            transaction
                .prepare_cached("INSERT OR IGNORE INTO remote_record VALUES (?, ?)")?
                .execute(params![sandbox, &name[..]])?;
        }
        self.move_head(transaction, sandbox, head, !records.is_empty())?;
        let trail = trail_of(transaction, sandbox, head, records)?;
        let (id, generation, version) = (head.id, head.generation, version.clone());
        tables::note_head(transaction, &KnownHead { sandbox, id, generation, version, trail, held, holder })
    }

    /// Returns the commits in records, oldest first.
    fn commits_of<'a>(
        &self,
        head: &Head,
        records: &'a [(Name, Record)],
    ) -> Result<Vec<(Name, &'a CommitRecord)>, StoreError> {
        let all = records.iter().rev().flat_map(|(_, record)| &record.commits);
        all.map(|commit| {
            if commit.head != head.id {
                return Err(self.bucket.damaged(&head_path(&head.name), "a commit of another sandbox"));
            }
            Ok((commit.name(&self.sealer.namer)?, commit))
        })
        .collect()
    }

    /// Sets the local head and the tags.
    fn move_head(
        &self,
        transaction: &Transaction<'_>,
        sandbox: i64,
        head: &Head,
        has_moved: bool,
    ) -> Result<(), StoreError> {
        let unknown = || self.bucket.damaged(&head_path(&head.name), "its commit is in none of its records");
        if has_moved && tables::queued(transaction, sandbox)? == 0 {
            let commit = head.commit.ok_or_else(unknown)?;
            let number = tables::number_of(transaction, &commit)?.ok_or_else(unknown)?;
            transaction.execute("UPDATE sandbox SET head = ? WHERE id = ?", [number, sandbox])?;
        }
        transaction.execute("DELETE FROM tag WHERE sandbox = ?", [sandbox])?;
        for (tag, commit) in &head.tags {
            // One that was forgotten here has no number.
            if let Some(number) = tables::number_of(transaction, commit)? {
                transaction.execute("INSERT INTO tag VALUES (?, ?, ?)", params![sandbox, tag, number])?;
            }
        }
        Ok(())
    }
}

/// Returns the newest records of a head.
fn trail_of(
    connection: &Connection,
    sandbox: i64,
    head: &Head,
    records: &[(Name, Record)],
) -> Result<Vec<Name>, StoreError> {
    let mut trail: Vec<Name> = match (head.record, records.first()) {
        (Some(newest), Some((_, record))) => std::iter::once(newest).chain(record.previous.clone()).collect(),
        (Some(_), None) => tables::known_head(connection, sandbox)?.map_or(Vec::new(), |known| known.trail),
        (None, _) => Vec::new(),
    };
    trail.truncate(wire::PREVIOUS);
    Ok(trail)
}

fn insert_commit(
    connection: &Connection,
    sandbox: i64,
    name: &Name,
    commit: &CommitRecord,
) -> Result<(), StoreError> {
    let parent = match &commit.parent {
        Some(parent) => tables::number_of(connection, parent)?,
        None => None,
    };
    // Numbers rise along the log. The one it has elsewhere is taken unless it is in use.
    let newest: Option<CommitId> = connection
        .prepare_cached("SELECT max(id) FROM commits WHERE sandbox = ?")?
        .query_row([sandbox], |row| row.get(0))?;
    let is_taken = connection
        .prepare_cached(
            "SELECT 1 FROM commits WHERE id = ?1 UNION SELECT 1 FROM remote_commit WHERE number = ?1",
        )?
        .exists([commit.number])?;
    let number = (!is_taken && newest.is_none_or(|newest| newest < commit.number)).then_some(commit.number);
    let mut insert = connection.prepare_cached(
        "INSERT INTO commits (id, sandbox, parent, root, time, command, exit_code, bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    let CommitRecord { root, time, command, exit_code, bytes, .. } = commit;
    let number =
        insert.insert(params![number, sandbox, parent, &root[..], time, command, exit_code, bytes])?;
    connection
        .prepare_cached("INSERT INTO remote_commit VALUES (?, ?)")?
        .execute(params![&name[..], number])?;
    Ok(())
}

fn describe(connection: &Connection, sandbox: i64, head: &Head) -> Result<(), StoreError> {
    connection.execute(
        "UPDATE sandbox SET kind = ?, created = ?, meta = ?, head = NULL WHERE id = ?",
        params![head.kind, head.created, head.meta, sandbox],
    )?;
    Ok(())
}

fn drop_commits(connection: &Connection, sandbox: i64) -> Result<(), StoreError> {
    tables::forget_sandbox(connection, sandbox)?;
    for table in ["commits", "tag"] {
        connection.execute(&format!("DELETE FROM {table} WHERE sandbox = ?"), [sandbox])?;
    }
    Ok(())
}

/// Ends what is known of a name that nothing has any more. One that was never uploaded stays.
fn forget(transaction: &Transaction<'_>, name: &str, holder: &str) -> Result<(), StoreError> {
    let Some(sandbox) = tables::sandbox_of(transaction, name)? else { return Ok(()) };
    if tables::known_head(transaction, sandbox)?.is_none() {
        return Ok(());
    }
    set_aside(transaction, sandbox, name, holder)?;
    drop_commits(transaction, sandbox)?;
    transaction.execute("DELETE FROM lease WHERE sandbox = ?", [sandbox])?;
    transaction.execute("DELETE FROM sandbox WHERE id = ?", [sandbox])?;
    Ok(())
}

/// Gives the commits that were not uploaded a name of their own, because somebody else has moved the head: nothing that
/// was acknowledged is thrown away. Whoever has the sandbox open here loses the lease, and is told who has it.
pub(super) fn set_aside(
    transaction: &Transaction<'_>,
    sandbox: i64,
    name: &str,
    holder: &str,
) -> Result<(), StoreError> {
    let mut aside = None;
    if tables::queued(transaction, sandbox)? > 0 {
        let number = transaction.query_row(
            "SELECT min(number) FROM remote_queue WHERE sandbox = ?",
            [sandbox],
            |row| row.get::<_, i64>(0),
        )?;
        let new = aside_name(name, number)?;
        transaction.execute(
            "INSERT INTO sandbox (name, kind, head, created, meta)
             SELECT ?2, kind, head, ?3, meta FROM sandbox WHERE id = ?1",
            params![sandbox, new, schema::now_ms()],
        )?;
        let into = transaction.last_insert_rowid();
        transaction.execute(
            "UPDATE commits SET sandbox = ?2 WHERE id IN (SELECT number FROM remote_queue WHERE sandbox = ?1)",
            [sandbox, into],
        )?;
        // They get other names: those are of the head that they are below.
        transaction.execute(
            "DELETE FROM remote_commit WHERE number IN (SELECT number FROM remote_queue WHERE sandbox = ?)",
            [sandbox],
        )?;
        transaction.execute("UPDATE remote_queue SET sandbox = ?2 WHERE sandbox = ?1", [sandbox, into])?;
        tracing::warn!("{name} is held by {holder}: commits that were not uploaded are kept as {new}");
        aside = Some(new);
    }
    let token: Option<i64> = transaction
        .query_row("SELECT token FROM lease WHERE sandbox = ?", [sandbox], |row| row.get(0))
        .optional()?;
    if let Some(token) = token {
        transaction.execute("DELETE FROM lease WHERE sandbox = ?", [sandbox])?;
        transaction
            .execute("INSERT OR REPLACE INTO remote_moved VALUES (?, ?, ?)", params![token, holder, aside])?;
    }
    Ok(())
}

/// Returns a name for what is set aside, of a machine's own: others may do the same at the same time.
fn aside_name(name: &str, number: CommitId) -> Result<String, StoreError> {
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(|error| StoreError::Io(format!("no randomness: {error}")))?;
    let short: String = name.chars().take(150).collect();
    Ok(format!("{short}.aside-{number}-{:08x}", u32::from_le_bytes(random)))
}
