//! Reading a value.

use std::collections::BTreeMap;
use std::sync::Arc;

use wardian_kernel::{AtRest, Page, StoredTemplate};
use wardian_store::{Hash, Index, StoreError};
use wardian_vfs::{Caller, ChunkName, RecordError, Records, TarFormat, TarOptions, Tree};

use super::root::{Role, Root};
use super::save::{NOTE, Programs, Saved, SavedSession};
use super::store::Store;
use crate::archive::{ArchiveError, Decoder, unusable};
use crate::error::Error;
use crate::history::History;
use crate::options::Setup;
use crate::sandbox::RestOfAll;
use crate::snapshot::Value;

/// A value, and what to remember of it for the next commit.
pub(crate) struct Loaded {
    pub(crate) value: Value,
    pub(crate) saved: Saved,
}

fn damaged(what: impl Into<String>) -> Error {
    Error::Store(StoreError::Malformed(what.into()))
}

/// Reads the root of a value, once all of it is local: what files have is read later, on threads that must not wait for an
/// object store.
pub(crate) fn read_root(store: &Store, root: &Hash) -> Result<Root, Error> {
    store.inner.prefetch(root)?;
    Ok(Root::read(&store.inner.get(root)?)?)
}

/// The files of a value: groups of inodes with the names of their chunks.
pub(crate) struct Files {
    pub(crate) index: Index,
    pub(crate) groups: Vec<(Vec<u8>, Vec<ChunkName>)>,
    pub(crate) rest: Vec<u8>,
}

impl Files {
    pub(crate) fn read(store: &Store, root: &Root) -> Result<Files, Error> {
        let index = Index::read(&store.inner, root.get(&Role::Files))?;
        let hashes: Vec<Hash> = index.iter().map(|(_, hash)| hash).collect();
        let names = |links: Vec<Hash>| links.into_iter().map(|hash| hash.0).collect();
        let groups = store.inner.get_all(&hashes)?;
        let groups = groups.into_iter().map(|group| (group.bytes, names(group.links))).collect();
        let rest = root.get(&Role::Rest).ok_or_else(|| damaged("a value without files"))?;
        Ok(Files { index, groups, rest: store.inner.get(&rest)?.bytes })
    }

    pub(crate) fn records<'a>(&'a self, store: &'a Store, setup: Option<&'a Setup>) -> Records<'a> {
        Records {
            groups: &self.groups,
            rest: &self.rest,
            source: &store.chunks,
            state: setup.and_then(|setup| setup.state.as_deref()),
            roots: setup.and_then(|setup| setup.roots.as_ref()),
        }
    }
}

pub(crate) fn cannot_read(error: RecordError) -> Error {
    match error {
        RecordError::Damaged(what) => damaged(format!("files of a value: {what}")),
        RecordError::Mount(host, why) => {
            Error::Option(format!("cannot mount {} again: {why}", host.display()))
        }
    }
}

/// Returns whether a value was saved over a system of this shape.
pub(crate) fn fits(store: &Store, setup: &Setup, root: &Root) -> bool {
    root.get(&Role::Shape) == Some(store.inner.batch().name(&[], &setup.base.shape()))
}

/// Reads a value over the system that a setup has, which must be of the shape that it was saved over. `Err` with the programs
/// if its residents belong to others.
pub(crate) fn load(store: &Store, setup: &Setup, programs: &Programs, root: &Root) -> Result<Loaded, Error> {
    let files = Files::read(store, root)?;
    let mut tree =
        Tree::from_records(&setup.base, &files.records(store, Some(setup))).map_err(cannot_read)?;
    tree.set_quota(setup.limits.quota());
    let before = tree.clone();
    let (mut rest, mut sessions) = (BTreeMap::new(), BTreeMap::new());
    for name in root.sessions() {
        let program = if name.is_empty() { &programs.shell } else { &programs.python };
        let (session, saved) = load_session(store, setup, (root, name, program), &mut tree)?;
        rest.insert(name.clone(), session);
        sessions.insert(name.clone(), saved);
    }
    let shell = rest.remove("").ok_or_else(|| damaged("a value without a shell"))?;
    let (history, index) = load_history(store, setup, root)?;
    let rest = RestOfAll { shell, interpreters: rest };
    let saved = Saved {
        commit: None,
        tree: before,
        shape: root.get(&Role::Shape),
        files: files.index,
        history: index,
        rest: Some(rest.clone()),
        sessions,
        note: root.options[NOTE].clone(),
    };
    Ok(Loaded { value: Value { tree, rest, history }, saved })
}

fn load_session(
    store: &Store,
    setup: &Setup,
    (root, name, program): (&Root, &str, &str),
    tree: &mut Tree,
) -> Result<(AtRest, SavedSession), Error> {
    let missing = || damaged("a resident program without its state");
    let session = root.get(&Role::Session(name.to_owned())).ok_or_else(missing)?;
    let session = store.inner.get(&session)?;
    let found = Decoder::of_bytes(&session.bytes, &setup.limits).shell(&setup.limits)?;
    if found.programs != program {
        let (theirs, ours) = (found.programs, program.to_owned());
        return Err(ArchiveError::OtherPrograms { theirs, ours }.into());
    }
    let index = Index::read(&store.inner, root.get(&Role::Pages(name.to_owned())))?;
    let (numbers, hashes): (Vec<u64>, Vec<Hash>) = index.iter().unzip();
    let mut pages = Vec::with_capacity(numbers.len());
    for (number, object) in numbers.into_iter().zip(store.inner.get_all(&hashes)?) {
        let page: Box<Page> =
            object.bytes.into_boxed_slice().try_into().map_err(|_| damaged("half a page"))?;
        let number = u32::try_from(number).map_err(|_| damaged("a page beyond any memory"))?;
        pages.push((number, Arc::from(page)));
    }
    let template = match root.get(&Role::Template(name.to_owned())) {
        None => None,
        Some(template) => {
            let template = store.inner.get(&template)?;
            let file = *template.links.first().ok_or_else(|| damaged("a memory without its file"))?;
            let (name, described) = (file.0, template.bytes);
            Some(StoredTemplate { name, file: store.inner.open_pages(&file)?, described })
        }
    };
    let mut packed = found.packed;
    packed.pages.clone_from(&pages);
    let session = AtRest::unpack_over(packed, template, tree)
        .map_err(|errno| damaged(format!("a resident program cannot be put together: {errno}")))?;
    Ok((session, SavedSession { index, pages: pages.into() }))
}

fn load_history(store: &Store, setup: &Setup, root: &Root) -> Result<(History, Index), Error> {
    let index = Index::read(&store.inner, root.get(&Role::History))?;
    let hashes: Vec<Hash> = index.iter().map(|(_, hash)| hash).collect();
    let mut entries = Vec::new();
    for object in store.inner.get_all(&hashes)? {
        let part = Decoder::of_bytes(&object.bytes, &setup.limits).history()?;
        entries.extend(part.parts().1.cloned());
    }
    Ok((History::from_parts(root.last.min(History::LAST_MAX), entries), index))
}

/// Takes the files of a value that was saved over another system, as an archive's are: into the files that a sandbox starts
/// with, by their paths.
pub(crate) fn load_files(store: &Store, setup: &Setup, root: &Root) -> Result<Tree, Error> {
    let shape = root.get(&Role::Shape).ok_or_else(|| damaged("a value without a shape"))?;
    let shape = store.inner.get(&shape)?.bytes;
    let files = Files::read(store, root)?;
    let old = Tree::from_records_alone(&shape, &files.records(store, Some(setup))).map_err(cannot_read)?;
    let mut tar = Vec::new();
    let options = TarOptions { format: TarFormat::Pax, own_only: true };
    old.export_tar(b"/", options, &mut tar).map_err(unusable)?;
    let mut tree = setup.fresh.clone();
    tree.import_tar(&Caller::USER, b"/", &mut &tar[..]).map_err(unusable)?;
    Ok(tree)
}
