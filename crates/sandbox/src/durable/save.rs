//! Saving a value: only what differs from the last commit is written.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use wardian_kernel::{AtRest, Page};
use wardian_store::{Batch, CommitId, Hash, Index};
use wardian_vfs::{Chunk, ChunkSink, Errno, Tree};

use super::root::{Role, Root};
use super::store::Store;
use crate::archive::{ArchiveError, Encoder};
use crate::error::Error;
use crate::history::{History, HistoryEntry};
use crate::options::Setup;
use crate::sandbox::RestOfAll;
use crate::snapshot::Value;

/// Where a value's options have the owner's note.
pub(crate) const NOTE: &str = "note";
/// How many commands of the history are in an object.
const COMMANDS: u64 = 16;

/// What is remembered of the last commit.
#[derive(Clone)]
pub(crate) struct Saved {
    pub(crate) commit: Option<CommitId>,
    /// Its files, and the system they are over.
    pub(crate) tree: Tree,
    pub(crate) shape: Option<Hash>,
    pub(crate) files: Index,
    pub(crate) history: Index,
    /// Its resident programs between commands; none before the first commit.
    pub(crate) rest: Option<RestOfAll>,
    pub(crate) sessions: BTreeMap<String, SavedSession>,
    /// What its owner notes with it.
    pub(crate) note: Json,
}

/// What is remembered of a resident program.
#[derive(Clone, Default)]
pub(crate) struct SavedSession {
    pub(crate) index: Index,
    pub(crate) pages: Arc<[(u32, Arc<Page>)]>,
}

impl Saved {
    /// Before the first commit.
    pub(crate) fn nothing(base: &Tree) -> Saved {
        Saved {
            commit: None,
            tree: base.clone(),
            shape: None,
            files: Index::new(),
            history: Index::new(),
            rest: None,
            sessions: BTreeMap::new(),
            note: Json::Null,
        }
    }
}

/// Which programs the residents belong to.
pub(crate) struct Programs {
    pub(crate) shell: String,
    pub(crate) python: String,
}

/// Collects what must be written for a value after `saved`. Returns its root and what to remember of it.
pub(crate) fn save(
    store: &Store,
    setup: &Setup,
    programs: &Programs,
    saved: &Saved,
    value: &Value,
) -> Result<(Hash, Batch, Saved), Error> {
    let mut batch = store.inner.batch();
    let mut next = saved.clone();
    let mut parts = Vec::new();
    let shape = match saved.shape {
        Some(shape) => shape,
        None => batch.put(&[], &setup.base.shape()),
    };
    parts.push((Role::Shape, shape));
    save_files(store, &setup.base, &value.tree, &mut next, &mut batch)?;
    parts.extend(next.files.write(&mut batch).map(|files| (Role::Files, files)));
    parts.push((Role::Rest, batch.put(&[], &value.tree.record_rest())));
    save_history(&value.history, &mut next.history, &mut batch)?;
    parts.extend(next.history.write(&mut batch).map(|history| (Role::History, history)));
    let mut sessions = BTreeMap::new();
    let shell = [(String::new(), &value.rest.shell, &programs.shell)];
    let interpreters = value.rest.interpreters.iter();
    let interpreters = interpreters.map(|(name, rest)| (name.clone(), rest, &programs.python));
    for (name, rest, program) in shell.into_iter().chain(interpreters) {
        let before = next.sessions.remove(&name).unwrap_or_default();
        let saved =
            save_session(store, (&name, rest), &value.tree, program, before, (&mut batch, &mut parts))?;
        sessions.insert(name, saved);
    }
    let last = value.history.parts().0;
    let mut options = setup.saved.clone();
    if !next.note.is_null() {
        options[NOTE] = next.note.clone();
    }
    let root = Root { parts, options, last }.write(&mut batch);
    let (tree, rest) = (value.tree.clone(), Some(value.rest.clone()));
    Ok((root, batch, Saved { tree, shape: Some(shape), rest, sessions, ..next }))
}

struct Sink<'a> {
    batch: &'a mut Batch,
    naming: u64,
    links: Vec<Hash>,
}

impl ChunkSink for Sink<'_> {
    fn chunk(&mut self, chunk: &Chunk, new: bool) -> Result<(), Errno> {
        let batch = &mut *self.batch;
        let hash = Hash(chunk.name(self.naming, |bytes| batch.name(&[], bytes).0)?);
        if new {
            batch.put_named(hash, &[], chunk.bytes()?);
        }
        self.links.push(hash);
        Ok(())
    }
}

fn save_files(
    store: &Store,
    base: &Tree,
    tree: &Tree,
    next: &mut Saved,
    batch: &mut Batch,
) -> Result<(), Error> {
    for group in tree.changed_groups(&next.tree) {
        let mut sink = Sink { batch, naming: store.naming, links: Vec::new() };
        let record = tree
            .record_group(base, &next.tree, group, &mut sink)
            .map_err(|errno| Error::refused(errno, b"a file that the store had"))?;
        let links = sink.links;
        next.files.set(group, record.map(|record| batch.put(&links, &record)));
    }
    Ok(())
}

fn save_history(history: &History, index: &mut Index, batch: &mut Batch) -> Result<(), Error> {
    let (last, entries) = history.parts();
    let entries: Vec<&HistoryEntry> = entries.collect();
    let mut groups: BTreeMap<u64, Vec<HistoryEntry>> = BTreeMap::new();
    let known: Vec<u64> = index.iter().map(|(key, _)| key).collect();
    let oldest = entries.first().map_or(u64::MAX, |entry| entry.index / COMMANDS);
    // Full groups do not change any more, except for the oldest, which loses commands.
    let newest_known = known.last().copied().unwrap_or(0);
    for entry in entries {
        let group = entry.index / COMMANDS;
        if group >= newest_known || group == oldest || index.get(group).is_none() {
            groups.entry(group).or_default().push(entry.clone());
        }
    }
    for gone in known.into_iter().filter(|key| *key < oldest || *key > last / COMMANDS) {
        index.set(gone, None);
    }
    for (group, entries) in groups {
        let mut out = Encoder(Vec::new());
        out.history(&History::from_parts(0, entries)).map_err(ArchiveError::Write)?;
        index.set(group, Some(batch.put(&[], &out.0)));
    }
    Ok(())
}

fn save_session(
    store: &Store,
    (name, rest): (&str, &AtRest),
    tree: &Tree,
    program: &str,
    before: SavedSession,
    (batch, parts): (&mut Batch, &mut Vec<(Role, Hash)>),
) -> Result<SavedSession, Error> {
    let packed = rest.pack_without_memory(tree).map_err(ArchiveError::Write)?;
    let mut out = Encoder(Vec::new());
    out.shell(&packed, program).map_err(ArchiveError::Write)?;
    parts.push((Role::Session(name.to_owned()), batch.put(&[], &out.0)));
    let memory = rest.memory();
    let all;
    let pages: &[(u32, Arc<Page>)] = match memory.template {
        None => &memory.pages,
        // Nothing lies in the open: all of it becomes pages, which are encrypted.
        Some(_) if store.inner.is_encrypted() => {
            all = rest.all_pages().map_err(ArchiveError::Write)?;
            &all
        }
        Some(template) => {
            let known = template.name().map(Hash).filter(|name| store.inner.keep_pages(batch, *name));
            let file = match known {
                Some(file) => file,
                None => store.inner.put_pages(batch, template.end(), template.pages())?,
            };
            template.set_name(file.0);
            let template = batch.put(&[file], &template.describe());
            parts.push((Role::Template(name.to_owned()), template));
            &memory.pages
        }
    };
    let index = save_pages(pages, before, batch);
    let SavedSession { mut index, pages } = index;
    parts.extend(index.write(batch).map(|root| (Role::Pages(name.to_owned()), root)));
    Ok(SavedSession { index, pages })
}

/// Writes the pages that are not the same allocation as before.
fn save_pages(pages: &[(u32, Arc<Page>)], before: SavedSession, batch: &mut Batch) -> SavedSession {
    let SavedSession { mut index, pages: known } = before;
    let mut known = known.iter().peekable();
    for (number, page) in pages {
        while let Some((gone, _)) = known.next_if(|(other, _)| other < number) {
            index.set(u64::from(*gone), None);
        }
        let same = known.next_if(|(other, _)| other == number);
        if same.is_none_or(|(_, theirs)| !Arc::ptr_eq(theirs, page)) {
            index.set(u64::from(*number), Some(batch.put(&[], &page[..])));
        }
    }
    for (gone, _) in known {
        index.set(u64::from(*gone), None);
    }
    SavedSession { index, pages: pages.into() }
}
