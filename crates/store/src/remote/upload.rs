//! Uploading: objects in packs, then records of commits, then heads.
//!
//! In this order, so that whatever a head leads to is there: wherever this stops, each head is at a commit that was
//! uploaded whole. What was uploaded is noted in the local part after each request, so after a crash uploading goes on
//! where it was; a request whose answer was lost is sent again, and changes nothing.

use std::collections::{BTreeMap, HashSet};

use futures_util::{StreamExt, stream};
use rusqlite::{Connection, params};

use super::Inner;
use super::bucket::Version;
use super::heads::{AT_ONCE, head_path, set_aside};
use super::pack::{self, Packed};
use super::regions::{self, REGION, REGIONS_AT_ONCE};
use super::tables::{self, KnownHead};
use super::wire::{self, CommitRecord, Head, Holder, Name, Record};
use crate::seal::IN_FILE;
use crate::{Hash, StoreError};

/// How many objects are looked at together.
const STEP: usize = 4096;
/// How often heads that somebody else changes at the same time are tried again before a pause.
const ATTEMPTS: usize = 8;

/// The commits of one sandbox that are to be in one record.
struct Round {
    sandbox: i64,
    name: String,
    commits: Vec<(i64, Name, CommitRecord)>,
}

impl Inner {
    /// Uploads everything that is not uploaded yet, and lets go of the leases that nobody needs.
    pub(super) async fn upload(&self) -> Result<(), StoreError> {
        let mut attempt = 0;
        loop {
            self.send_objects().await?;
            let before = self.queue_length()?;
            let rounds = self.rounds()?;
            if rounds.is_empty() {
                break;
            }
            if attempt >= ATTEMPTS {
                return Err(StoreError::Conflict(rounds[0].name.clone()));
            }
            let sent = stream::iter(rounds).map(|round| self.send_round(round)).buffer_unordered(AT_ONCE);
            let results: Vec<Result<(), StoreError>> = sent.collect().await;
            results.into_iter().collect::<Result<(), _>>()?;
            attempt = if self.queue_length()? < before { 0 } else { attempt + 1 };
        }
        for name in self.abandoned()? {
            self.let_go(&name).await?;
        }
        Ok(())
    }

    fn queue_length(&self) -> Result<i64, StoreError> {
        let count = "SELECT count(*) FROM remote_queue";
        Ok(self.database.lock().query_row(count, [], |row| row.get(0))?)
    }

    /// Uploads all objects that are waiting, those of the earliest commits first.
    async fn send_objects(&self) -> Result<(), StoreError> {
        loop {
            let waiting = self.waiting_objects()?;
            if waiting.is_empty() {
                return Ok(());
            }
            let mut packing = Packing::default();
            for (hash, kind) in waiting {
                if kind & IN_FILE != 0 {
                    self.send_file(&hash, &mut packing).await?;
                } else {
                    let packed = self.packed(&hash)?;
                    self.add(&mut packing, packed, true).await?;
                }
            }
            self.close_pack(&mut packing).await?;
        }
    }

    /// Returns some objects that are not uploaded. Those that turn out to be are noted.
    fn waiting_objects(&self) -> Result<Vec<(Hash, i64)>, StoreError> {
        self.transact(|transaction| {
            transaction
                .execute("DELETE FROM remote_unsent WHERE hash IN (SELECT hash FROM remote_object)", [])?;
            let mut waiting = transaction.prepare_cached(
                "SELECT remote_unsent.hash, kind FROM remote_unsent LEFT JOIN object USING (hash)
                 ORDER BY number LIMIT ?",
            )?;
            let rows = waiting
                .query_map([STEP as i64], |row| Ok((Hash(row.get(0)?), row.get::<_, Option<i64>>(1)?)))?;
            let (mut all, mut seen) = (Vec::new(), HashSet::new());
            for row in rows {
                let (hash, kind) = row?;
                let missing =
                    || StoreError::Damaged { hash, why: "it is gone before it was uploaded".to_owned() };
                if seen.insert(hash) {
                    all.push((hash, kind.ok_or_else(missing)?));
                }
            }
            Ok(all)
        })
    }

    /// Returns an object as it is stored, if it is whole: damage is not spread.
    fn packed(&self, hash: &Hash) -> Result<Packed, StoreError> {
        let database = self.database.lock();
        let mut statement = database.prepare_cached("SELECT kind, body FROM object WHERE hash = ?")?;
        let (kind, body): (i64, Vec<u8>) =
            statement.query_row([&hash.0[..]], |row| Ok((row.get(0)?, row.get(1)?)))?;
        self.sealer.open(hash, kind, &body)?;
        Ok(Packed { hash: *hash, kind, body })
    }

    /// Adds the regions of a memory that are not uploaded, and what stands for the file.
    async fn send_file(&self, hash: &Hash, packing: &mut Packing) -> Result<(), StoreError> {
        let mut file = regions::Reader::open(&self.pages.path(hash), &self.sealer)?;
        loop {
            let step = file.next(REGIONS_AT_ONCE)?;
            if step.is_empty() {
                break;
            }
            for (region, bytes) in step {
                let is_there = {
                    let database = self.database.lock();
                    tables::pack_of(&database, &region)?.is_some()
                };
                if !is_there {
                    let (kind, body) = self.sealer.seal(&region, &[], &bytes)?;
                    self.add(packing, Packed { hash: region, kind: kind | REGION, body }, false).await?;
                }
            }
        }
        let (kind, body) = file.finish()?;
        self.add(packing, Packed { hash: *hash, kind, body }, true).await
    }

    async fn add(&self, packing: &mut Packing, packed: Packed, is_waiting: bool) -> Result<(), StoreError> {
        if !packing.known.insert(packed.hash) {
            return Ok(());
        }
        if packing.bytes > 0 && packing.bytes + packed.body.len() > pack::FULL {
            self.close_pack(packing).await?;
            packing.known.insert(packed.hash);
        }
        packing.bytes += packed.body.len();
        if is_waiting {
            packing.waiting.push(packed.hash);
        }
        packing.objects.push(packed);
        if packing.bytes >= pack::FULL || packing.objects.len() >= pack::OBJECTS {
            self.close_pack(packing).await?;
        }
        Ok(())
    }

    /// Uploads a pack and notes what is in it.
    async fn close_pack(&self, packing: &mut Packing) -> Result<(), StoreError> {
        let Packing { objects, waiting, .. } = std::mem::take(packing);
        if objects.is_empty() {
            return Ok(());
        }
        let (name, bytes) = pack::build(&self.sealer.namer, &objects)?;
        let hashes: Vec<Hash> = objects.iter().map(|object| object.hash).collect();
        drop(objects);
        self.bucket.write(&pack_path(&name), bytes).await?;
        self.transact(|transaction| {
            tables::note_pack(transaction, &name, &hashes)?;
            let mut sent = transaction.prepare_cached("DELETE FROM remote_unsent WHERE hash = ?")?;
            waiting.iter().try_for_each(|hash| sent.execute([&hash.0[..]]).map(drop))?;
            Ok(())
        })
    }

    /// Returns the commits that can be recorded: those all of whose objects, and all before them, are uploaded. They get
    /// their names here, before anybody else can know them.
    fn rounds(&self) -> Result<Vec<Round>, StoreError> {
        self.transact(|transaction| {
            let mut ready = transaction.prepare_cached(
                "SELECT number, remote_queue.sandbox, sandbox.name FROM remote_queue
                 JOIN sandbox ON sandbox.id = remote_queue.sandbox
                 WHERE number < coalesce((SELECT min(number) FROM remote_unsent), number + 1)
                 ORDER BY number LIMIT ?",
            )?;
            let rows = ready.query_map([STEP as i64], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?))
            })?;
            let mut rounds: BTreeMap<i64, Round> = BTreeMap::new();
            for row in rows {
                let (number, sandbox, name) = row?;
                let round = rounds.entry(sandbox).or_insert(Round { sandbox, name, commits: Vec::new() });
                if round.commits.len() < wire::TOGETHER {
                    let id = identify(transaction, sandbox)?;
                    let commit = read_commit(transaction, number, id)?;
                    let name = commit.name(&self.sealer.namer)?;
                    transaction.execute("DELETE FROM remote_commit WHERE number = ?", [number])?;
                    transaction
                        .execute("INSERT INTO remote_commit VALUES (?, ?)", params![&name[..], number])?;
                    round.commits.push((number, name, commit));
                }
            }
            Ok(rounds.into_values().collect())
        })
    }

    /// Uploads a record and moves the head to it.
    async fn send_round(&self, round: Round) -> Result<(), StoreError> {
        let found = self.read_head(&round.name).await?;
        let known = tables::known_head(&self.database.lock(), round.sandbox)?;
        let Some((head, version)) = found.filter(|(head, _)| !head.removed || known.is_some()) else {
            return self.send_first(round, known).await;
        };
        let trail = known.as_ref().map_or(&[][..], |known| &known.trail);
        let is_expected =
            known.as_ref().is_some_and(|known| known.id == head.id) && head.record == trail.first().copied();
        if head.removed || !is_expected {
            // Either it was this machine and it did not come to hear of it, or somebody else has moved it.
            return self.take_in(&round.name, Some(&(head, version))).await;
        }
        if let Some(holder) = head.lease.as_ref().filter(|lease| lease.node != self.node) {
            return self.give_up(&round, &head, &holder.holder);
        }
        let record = self.send_record(&round, trail).await?;
        let next = Head {
            generation: head.generation + 1,
            record: Some(record),
            commit: round.commits.last().map(|(_, name, _)| *name),
            lease: self.lease_of(round.sandbox)?,
            ..head
        };
        let (_, bytes) = wire::seal(&self.sealer, &next)?;
        match self.bucket.replace(&head_path(&round.name), bytes, &version).await? {
            Some(version) => self.note_round(&round, (&next, version), record, trail),
            // Somebody was quicker: the next pass looks at what is there.
            None => Ok(()),
        }
    }

    /// Uploads the first record of a sandbox that has no head yet: one that was set aside.
    async fn send_first(&self, round: Round, known: Option<KnownHead>) -> Result<(), StoreError> {
        if known.is_some() {
            return self.take_in(&round.name, None).await;
        }
        let (kind, created, meta, id) = self.transact(|transaction| {
            let id = identify(transaction, round.sandbox)?;
            let about = "SELECT kind, created, meta FROM sandbox WHERE id = ?";
            Ok(transaction.query_row(about, [round.sandbox], |row| {
                Ok((row.get::<_, u8>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?, id))
            })?)
        })?;
        let record = self.send_record(&round, &[]).await?;
        let head = Head {
            record: Some(record),
            commit: round.commits.last().map(|(_, name, _)| *name),
            lease: self.lease_of(round.sandbox)?,
            ..Head::new(&round.name, id, (kind, created, meta))
        };
        let (_, bytes) = wire::seal(&self.sealer, &head)?;
        match self.bucket.create(&head_path(&round.name), bytes).await? {
            Some(version) => self.note_round(&round, (&head, version), record, &[]),
            None => match self.read_head(&round.name).await? {
                // The answer was lost.
                Some((found, version)) if found == head => {
                    self.note_round(&round, (&head, version), record, &[])
                }
                found => self.take_in(&round.name, found.as_ref()).await,
            },
        }
    }

    async fn send_record(&self, round: &Round, trail: &[Name]) -> Result<Name, StoreError> {
        let commits = round.commits.iter().map(|(_, _, commit)| commit.clone()).collect();
        let (name, bytes) = wire::seal(&self.sealer, &Record::new(trail.to_vec(), commits))?;
        self.bucket.write(&format!("records/{name}"), bytes).await?;
        Ok(name.0)
    }

    /// Returns the lease that a head is to have: this node's as long as somebody on it has the sandbox open.
    fn lease_of(&self, sandbox: i64) -> Result<Option<Holder>, StoreError> {
        let is_open = tables::is_open(&self.database.lock(), sandbox)?;
        Ok(is_open.then(|| Holder { node: self.node, holder: self.holder.clone() }))
    }

    /// Notes that a record is uploaded and the head leads to it.
    fn note_round(
        &self,
        round: &Round,
        (head, version): (&Head, Version),
        record: Name,
        trail: &[Name],
    ) -> Result<(), StoreError> {
        let sandbox = round.sandbox;
        self.transact(|transaction| {
            for (number, _, _) in &round.commits {
                transaction.execute("DELETE FROM remote_queue WHERE number = ?", [number])?;
            }
            transaction.execute(
                "INSERT OR IGNORE INTO remote_record VALUES (?, ?)",
                params![sandbox, &record[..]],
            )?;
            let mut trail: Vec<Name> = std::iter::once(record).chain(trail.iter().copied()).collect();
            trail.truncate(wire::PREVIOUS);
            let (id, generation, held) = (head.id, head.generation, head.lease.is_some());
            tables::note_head(
                transaction,
                &KnownHead { sandbox, id, generation, version, trail, held, holder: None },
            )
        })
    }

    /// Sets what somebody else went on without aside, and the local head to the one in the object store.
    fn give_up(&self, round: &Round, head: &Head, holder: &str) -> Result<(), StoreError> {
        self.transact(|transaction| {
            set_aside(transaction, round.sandbox, &round.name, holder)?;
            let number = match &head.commit {
                Some(commit) => tables::number_of(transaction, commit)?,
                None => None,
            };
            transaction
                .execute("UPDATE sandbox SET head = ? WHERE id = ?", params![number, round.sandbox])?;
            transaction.execute(
                "UPDATE remote_head SET held = 0, holder = ? WHERE sandbox = ?",
                params![holder, round.sandbox],
            )?;
            Ok(())
        })
    }
}

pub(super) fn pack_path(name: &Hash) -> String {
    format!("packs/{name}")
}

/// A pack that is being filled.
#[derive(Default)]
struct Packing {
    objects: Vec<Packed>,
    bytes: usize,
    /// Those that a commit is waiting for.
    waiting: Vec<Hash>,
    known: HashSet<Hash>,
}

/// Returns the id of a sandbox everywhere. One that has none yet gets one, which is kept for the next try.
fn identify(connection: &Connection, sandbox: i64) -> Result<[u8; 16], StoreError> {
    if let Some(known) = tables::id_of(connection, sandbox)? {
        return Ok(known);
    }
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|error| StoreError::Io(format!("no randomness: {error}")))?;
    let (version, trail) = (Version(String::new()), Vec::new());
    tables::note_head(
        connection,
        &KnownHead { sandbox, id, generation: 0, version, trail, held: false, holder: None },
    )?;
    Ok(id)
}

fn read_commit(connection: &Connection, number: i64, head: [u8; 16]) -> Result<CommitRecord, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT parent, root, time, command, exit_code, bytes FROM commits WHERE id = ?")?;
    let (parent, commit) = statement.query_row([number], |row| {
        let commit = CommitRecord {
            head,
            number,
            parent: None,
            root: row.get(1)?,
            time: row.get(2)?,
            command: row.get(3)?,
            exit_code: row.get(4)?,
            bytes: row.get(5)?,
        };
        Ok((row.get::<_, Option<i64>>(0)?, commit))
    })?;
    let parent = match parent {
        Some(parent) => tables::name_of(connection, parent)?,
        None => None,
    };
    Ok(CommitRecord { parent, ..commit })
}
