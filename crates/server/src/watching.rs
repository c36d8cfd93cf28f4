//! What changes below a directory, for whoever watches it. Changes are found by looking again and comparing, so one that is undone in
//! between is not seen, and a watcher that is slow to tell of them has no more waiting: it looks less often.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use wardian::{Error, FileInfo, FileKind, HeldMemory, Sandbox};

/// The most files below a directory that is watched.
pub(crate) const ENTRIES: usize = 10_000;
/// How often one looks that is not asked.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

/// The most of the time that all watchers of a sandbox together look: one part in so many and one.
const RESTS: u32 = 4;
/// The longest that one look keeps the others waiting.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// When the next of a sandbox's watchers may look: they do it one after the other.
#[derive(Default)]
pub(crate) struct Pace(tokio::sync::Mutex<Option<Instant>>);

/// What a look found. The sandbox is charged for it.
pub(crate) struct Seen {
    files: Files,
    _held: HeldMemory,
}

type Files = BTreeMap<Box<[u8]>, Mark>;

/// What of a file is compared.
#[derive(Clone, Copy)]
struct Mark {
    inode: (u64, u64),
    mtime: i64,
    size: u64,
    mode: u32,
    kind: FileKind,
}

/// What a file takes beside its path: a mark, its share of the map, and of the sets of inodes while two looks are compared.
pub(crate) const EACH: usize = 192;

impl Seen {
    fn new(sandbox: &Sandbox, infos: Vec<FileInfo>) -> Result<Arc<Seen>, Error> {
        let bytes = infos.iter().map(|info| info.path.len() + EACH).sum();
        let _held = sandbox.hold_memory(bytes)?;
        let mark = |info: FileInfo| {
            let FileInfo { path, kind, size, mode, mtime, inode, .. } = info;
            (path.into_boxed_slice(), Mark { inode, mtime, size, mode, kind })
        };
        Ok(Arc::new(Seen { files: infos.into_iter().map(mark).collect(), _held }))
    }

    /// Returns how many files there were.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }
}

impl Pace {
    /// Looks at everything below a directory, up to so many levels, when it is time to.
    pub(crate) async fn look(
        &self,
        sandbox: &Sandbox,
        path: &[u8],
        depth: usize,
    ) -> Result<Arc<Seen>, Error> {
        let mut next = self.0.lock().await;
        if let Some(next) = *next {
            tokio::time::sleep_until(next).await;
        }
        let since = Instant::now();
        let infos = sandbox.file_infos(path, depth, ENTRIES).await;
        let seen = infos.and_then(|infos| Seen::new(sandbox, infos));
        let now = Instant::now();
        *next = Some(now + ((now - since) * RESTS).min(LONGEST_REST));
        seen
    }
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Create,
    Write,
    Remove,
    Rename,
    Chmod,
}

/// Something that happened to a file.
#[derive(Clone, Copy)]
pub(crate) struct Event<'s> {
    /// Its whole path, as it was listed.
    pub(crate) path: &'s [u8],
    pub(crate) what: What,
    pub(crate) kind: FileKind,
}

impl<'s> Event<'s> {
    /// Returns its path below the directory that is watched.
    pub(crate) fn below(&self, directory: &[u8]) -> &'s [u8] {
        let slashes = directory.iter().rev().take_while(|byte| **byte == b'/').count();
        self.path.get(directory.len() - slashes + 1..).unwrap_or(self.path)
    }
}

/// The events between two looks: first of files that were there, then of those that are, each in the order of their paths.
pub(crate) fn compare<'s>(before: &'s Seen, now: &'s Seen) -> impl Iterator<Item = Event<'s>> {
    compare_files(&before.files, &now.files)
}

fn compare_files<'s>(before: &'s Files, now: &'s Files) -> impl Iterator<Item = Event<'s>> {
    let inodes = |files: &Files| files.values().map(|mark| mark.inode).collect::<HashSet<(u64, u64)>>();
    let (known, inodes) = (inodes(before), inodes(now));
    let gone = before.iter().filter_map(move |(path, old)| {
        let what = match now.get(path) {
            Some(new) if new.inode == old.inode => return None,
            _ if inodes.contains(&old.inode) => What::Rename,
            _ => What::Remove,
        };
        Some(Event { path, what, kind: old.kind })
    });
    let there = now.iter().flat_map(move |(path, new)| {
        let whats = match before.get(path) {
            Some(old) if old.inode == new.inode => {
                let wrote = (old.mtime, old.size) != (new.mtime, new.size) && new.kind != FileKind::Dir;
                [wrote.then_some(What::Write), (old.mode != new.mode).then_some(What::Chmod)]
            }
            _ => {
                let has_content = new.kind == FileKind::File && new.size > 0;
                [Some(What::Create), (has_content && !known.contains(&new.inode)).then_some(What::Write)]
            }
        };
        whats.into_iter().flatten().map(move |what| Event { path, what, kind: new.kind })
    });
    gone.chain(there)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many files: their paths begin with a letter, and their inodes with a number.
    fn files(letter: char, count: u64, inode: u64) -> Files {
        let file = |number: u64| {
            let (kind, inode) = (FileKind::File, (0, inode + number));
            let mark = Mark { inode, mtime: 1, size: 7, mode: 0o644, kind };
            (format!("/w/{letter}{number}").into_bytes().into_boxed_slice(), mark)
        };
        (0..count).map(file).collect()
    }

    fn events(before: &Files, now: &Files) -> Vec<(String, What)> {
        let shown = |event: Event<'_>| (crate::params::text(event.below(b"/w/")), event.what);
        compare_files(before, now).map(shown).collect()
    }

    #[tokio::test]
    async fn what_a_watcher_remembers_is_charged_and_refused_if_it_does_not_fit() {
        let limits = wardian::Limits { memory_bytes: 4 << 20, ..wardian::Limits::default() };
        let sandbox = Sandbox::builder().limits(limits).build().await.unwrap();
        let like = sandbox.file_info("/tmp").await.unwrap();
        let infos = |count: usize| {
            let named = |number| {
                let mut info = like.clone();
                info.path = format!("/tmp/{number:0250}").into_bytes();
                info
            };
            (0..count).map(named).collect::<Vec<_>>()
        };
        let before = sandbox.usage_now().memory_bytes;
        let seen = Seen::new(&sandbox, infos(4000)).unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(sandbox.usage_now().memory_bytes, before + 4000 * (255 + EACH as u64));
        let refused = Seen::new(&sandbox, infos(9000)).err().expect("it does not fit");
        assert_eq!(refused.errno(), Some(wardian::Errno::ENOMEM));
        drop(seen);
        assert_eq!(sandbox.usage_now().memory_bytes, before);
    }

    #[test]
    fn a_file_that_was_known_by_another_name_is_not_a_new_one() {
        let event = |path: &str, what| (path.to_owned(), what);
        let (old, new) = (files('a', 1, 7), files('b', 1, 7));
        assert_eq!(events(&old, &new), [event("a0", What::Rename), event("b0", What::Create)]);
        let other = files('b', 1, 8);
        assert_eq!(
            events(&old, &other),
            [event("a0", What::Remove), event("b0", What::Create), event("b0", What::Write)]
        );
    }

    #[test]
    fn comparing_takes_as_long_as_there_are_files_not_as_their_square() {
        let (done, wait) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let (before, now) = (files('a', 500_000, 0), files('b', 500_000, 1_000_000));
            let _ = done.send(compare_files(&before, &now).count());
        });
        // The square would take many times as long.
        let events = wait.recv_timeout(Duration::from_secs(60));
        assert_eq!(events, Ok(1_500_000));
    }
}
