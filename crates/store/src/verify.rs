//! Finding damage, and what can still be had.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, TransactionBehavior, params};

use crate::remote::tables;
use crate::seal::{IN_FILE, Sealer};
use crate::{CommitId, Hash, Store, StoreError, pages};

/// A name that is not whole.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// The name.
    pub name: String,
    /// The commits that need something damaged or missing, newest first.
    pub commits: Vec<CommitId>,
    /// The newest commit that is whole, if there is one.
    pub whole: Option<CommitId>,
    /// Whether the head is among those that are not.
    pub head: bool,
    /// The first damaged object that was found.
    pub object: Hash,
}

/// What verifying a store has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// How many objects were read.
    pub objects: u64,
    /// How many commits were checked.
    pub commits: u64,
    /// Objects whose content is not what their name says.
    pub damaged: Vec<(Hash, String)>,
    /// The names that need one of them, or one that is missing.
    pub names: Vec<Damage>,
    /// Files that belong to no object: what a crash can leave behind. They are harmless.
    pub stray_files: u64,
}

impl Verified {
    /// Returns whether everything is as it should be.
    pub fn is_whole(&self) -> bool {
        self.damaged.is_empty() && self.names.is_empty()
    }
}

/// What was repaired.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// Names that are back at an earlier commit.
    pub set_back: Vec<(String, CommitId)>,
    /// Names that cannot be had any more; they are left as they are.
    pub lost: Vec<String>,
    /// Damaged objects that were removed, so that they can be stored again.
    pub removed: u64,
    /// Stray files that were removed.
    pub files: u64,
}

impl Store {
    /// Reads everything that is local and checks it against its hash. What is only in an object store is checked when it is
    /// fetched; commits that need it count as whole.
    pub fn verify(&self) -> Result<Verified, StoreError> {
        let (sealer, is_part) = (self.0.sealer.clone(), self.0.remote.is_some());
        if let Some(remote) = &self.0.remote {
            remote.read_tables()?;
        }
        let (mut found, mut state) =
            self.read(move |connection| check_objects(connection, &sealer, is_part))?;
        let mut known_files = HashSet::new();
        for hash in std::mem::take(&mut state.files) {
            if let Err(error) = pages::check(self, &hash) {
                found.damaged.push((hash, error.to_string()));
                state.links.remove(&hash);
            }
            known_files.insert(hash);
        }
        found.stray_files =
            self.0.pages.list().iter().filter(|hash| !known_files.contains(hash)).count() as u64;
        self.read(move |connection| check_commits(connection, &state, found))
    }

    /// Verifies, sets names whose head is damaged back to their newest whole commit, and removes damaged objects. Nothing
    /// that is whole is touched.
    pub fn repair(&self) -> Result<Repaired, StoreError> {
        let found = self.verify()?;
        let known: HashSet<Hash> = self.read(|connection| {
            let mut statement = connection.prepare("SELECT hash FROM object WHERE kind & 2")?;
            let rows = statement.query_map([], |row| row.get(0).map(Hash))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })?;
        let is_part = self.0.remote.is_some();
        let mut repaired = self.0.writer.perform(move |connection| repair(connection, &found, is_part))?;
        for stray in self.0.pages.list().iter().filter(|hash| !known.contains(hash)) {
            repaired.files += u64::from(self.0.pages.remove(stray).is_ok());
        }
        Ok(repaired)
    }
}

/// What every whole object leads to, and which of them are files.
struct State {
    links: HashMap<Hash, Vec<Hash>>,
    files: Vec<Hash>,
    is_part: bool,
}

impl State {
    /// Returns what an object leads to, if it can be had.
    fn links(&self, connection: &Connection, hash: &Hash) -> Result<Option<&[Hash]>, StoreError> {
        match self.links.get(hash) {
            Some(links) => Ok(Some(links)),
            None if self.is_part && tables::is_uploaded(connection, hash)? => Ok(Some(&[])),
            None => Ok(None),
        }
    }
}

fn check_objects(
    connection: &Connection,
    sealer: &Sealer,
    is_part: bool,
) -> Result<(Verified, State), StoreError> {
    let sound: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if sound != "ok" {
        return Err(StoreError::Index(format!("the database is damaged: {sound}")));
    }
    let mut found = Verified::default();
    let mut state = State { links: HashMap::new(), files: Vec::new(), is_part };
    let mut all = connection.prepare("SELECT hash, kind, body FROM object")?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        let (hash, kind, body): (_, i64, Vec<u8>) = (Hash(row.get(0)?), row.get(1)?, row.get(2)?);
        found.objects += 1;
        if kind & IN_FILE != 0 {
            state.files.push(hash);
            state.links.insert(hash, Vec::new());
            continue;
        }
        match sealer.open(&hash, kind, &body) {
            Ok(object) => {
                state.links.insert(hash, object.links);
            }
            Err(error) => found.damaged.push((hash, error.to_string())),
        }
    }
    Ok((found, state))
}

fn check_commits(
    connection: &Connection,
    state: &State,
    mut found: Verified,
) -> Result<Verified, StoreError> {
    let mut whole: HashMap<Hash, Option<Hash>> = HashMap::new();
    let mut names = connection.prepare("SELECT id, name, head FROM sandbox ORDER BY name")?;
    let names: Vec<(i64, String, Option<CommitId>)> =
        names.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect::<Result<_, _>>()?;
    for (sandbox, name, head) in names {
        let mut commits =
            connection.prepare_cached("SELECT id, root FROM commits WHERE sandbox = ? ORDER BY id DESC")?;
        let commits: Vec<(CommitId, Hash)> = commits
            .query_map([sandbox], |row| Ok((row.get(0)?, Hash(row.get(1)?))))?
            .collect::<Result<_, _>>()?;
        let mut damage =
            Damage { name, commits: Vec::new(), whole: None, head: false, object: Hash([0; 32]) };
        for (id, root) in commits {
            found.commits += 1;
            match first_damage(connection, state, root, &mut whole)? {
                None => damage.whole = damage.whole.or(Some(id)),
                Some(object) => {
                    if damage.commits.is_empty() {
                        damage.object = object;
                    }
                    damage.commits.push(id);
                    damage.head |= Some(id) == head;
                }
            }
        }
        if !damage.commits.is_empty() {
            found.names.push(damage);
        }
    }
    Ok(found)
}

/// Returns the first object below `root` that is damaged or missing. What was found of others is remembered.
fn first_damage(
    connection: &Connection,
    state: &State,
    root: Hash,
    known: &mut HashMap<Hash, Option<Hash>>,
) -> Result<Option<Hash>, StoreError> {
    let mut pending = vec![(root, false)];
    while let Some((hash, visited)) = pending.pop() {
        if visited {
            let bad = state.links.get(&hash).into_iter().flatten().find_map(|link| *known.get(link)?);
            known.insert(hash, bad);
        } else if let Entry::Vacant(unknown) = known.entry(hash) {
            match state.links(connection, &hash)? {
                None => {
                    unknown.insert(Some(hash));
                }
                Some(links) => {
                    pending.push((hash, true));
                    pending.extend(links.iter().map(|link| (*link, false)));
                }
            }
        }
    }
    Ok(known.get(&root).copied().flatten())
}

fn repair(connection: &mut Connection, found: &Verified, is_part: bool) -> Result<Repaired, StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut repaired = Repaired::default();
    for damage in found.names.iter().filter(|damage| damage.head) {
        match damage.whole {
            Some(whole) => {
                transaction
                    .execute("UPDATE sandbox SET head = ? WHERE name = ?", params![whole, damage.name])?;
                repaired.set_back.push((damage.name.clone(), whole));
            }
            None => repaired.lost.push(damage.name.clone()),
        }
    }
    for (hash, _) in &found.damaged {
        repaired.removed += transaction.execute("DELETE FROM object WHERE hash = ?", [&hash.0[..]])? as u64;
    }
    // Of a name that is whole again, commits that are not can only be in the way of collecting.
    for damage in found.names.iter().filter(|damage| damage.whole.is_some()) {
        for id in &damage.commits {
            transaction.execute("DELETE FROM commits WHERE id = ?", [id])?;
            transaction.execute("DELETE FROM tag WHERE commit_id = ?", [id])?;
        }
    }
    if is_part {
        tables::forget_repaired(&transaction)?;
    }
    transaction.commit()?;
    Ok(repaired)
}
