//! What a sandbox has changed in an overlay, as a list and as a patch.
//!
//! The overlay's view is compared with the host directory as it is now, path by path. Names that were never touched are
//! known to be equal and are skipped.

use crate::dir::Target;
use crate::handle::OpenFlags;
use crate::host::HostDir;
use crate::mount::Source;
use crate::name::join;
use crate::place::{MountId, MountSpot, RelPath, Spot};
use crate::{Caller, Errno, FileKind, Place, Result, Tree};
use cap_std::fs::FileExt;
use similar::{Algorithm, TextDiff};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// One difference between an overlay and the directory below it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The path below the mount.
    pub path: Vec<u8>,
    /// What happened to it.
    pub what: What,
    /// The kind of file, or of the deleted file.
    pub kind: FileKind,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It was added, with these permission bits.
    Added {
        /// Permission bits.
        mode: u32,
    },
    /// Its content (of a file) or target (of a link) changed.
    Modified,
    /// It was deleted, with everything below it.
    Deleted {
        /// The permission bits it had.
        mode: u32,
    },
    /// Its permission bits changed. A file may be `Modified` as well.
    Mode {
        /// The bits below.
        from: u32,
        /// The bits now.
        to: u32,
    },
}

/// How much a comparison may find, and until when.
#[derive(Clone, Copy, Debug)]
pub struct DiffBounds<'b> {
    /// The most changes.
    pub changes: usize,
    /// The most bytes of their paths, and of a patch.
    pub bytes: usize,
    /// How long it may look for the shortest patch; after that, for texts with many changes it is a longer one.
    pub patience: Duration,
    /// It is given up as soon as this is true.
    pub stop: &'b AtomicBool,
}

static NEVER: AtomicBool = AtomicBool::new(false);

impl DiffBounds<'_> {
    /// As much as there is.
    const NONE: DiffBounds<'static> =
        DiffBounds { changes: usize::MAX, bytes: usize::MAX, patience: Duration::MAX, stop: &NEVER };

    fn go_on(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) { Err(Errno::ECANCELED) } else { Ok(()) }
    }
}

/// Longer texts are reported as different without details.
const TEXT_MAX: u64 = 4 << 20;
/// After this much time, the comparison of two texts may return a result that is not the shortest.
const PATIENCE: Duration = Duration::from_millis(500);

impl Tree {
    /// Returns what has changed in the overlay mounted at `path`, ordered by path, or `EINVAL` if no overlay is mounted
    /// there.
    pub fn diff(&self, path: &[u8]) -> Result<Vec<Change>> {
        self.diff_within(path, DiffBounds::NONE)
    }

    /// Does the same within bounds: `EFBIG` if there is more, `ECANCELED` if it was stopped.
    pub fn diff_within(&self, path: &[u8], bounds: DiffBounds<'_>) -> Result<Vec<Change>> {
        let mut diff = Diff::new(self, path, bounds)?;
        diff.run()?;
        diff.changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(diff.changes)
    }

    /// Returns the same as a patch for `git apply`. Files that are not text are only named.
    pub fn diff_text(&self, path: &[u8]) -> Result<Vec<u8>> {
        self.diff_text_within(path, DiffBounds::NONE)
    }

    /// Does the same within bounds, as [`Tree::diff_within`].
    pub fn diff_text_within(&self, path: &[u8], bounds: DiffBounds<'_>) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let diff = Diff::new(self, path, bounds)?;
        let changes = self.diff_within(path, bounds)?;
        let mut changes = changes.iter().peekable();
        while let Some(change) = changes.next() {
            bounds.go_on()?;
            // A file with new content and new mode makes two changes but one patch.
            let second = changes.next_if(|next| next.path == change.path && !starts_anew(change, next));
            diff.patch(change, second, &mut out)?;
            if out.len() > bounds.bytes {
                return Err(Errno::EFBIG);
            }
        }
        Ok(out)
    }
}

/// Returns whether these are the deletion of one file and the addition of another under its name.
fn starts_anew(first: &Change, second: &Change) -> bool {
    matches!((first.what, second.what), (What::Deleted { .. }, What::Added { .. }))
}

/// A pair to compare: what the sandbox sees, and what is below, under one path.
struct Pair {
    path: Vec<u8>,
    ours: Option<Place>,
    below: bool,
}

struct Diff<'t> {
    tree: &'t Tree,
    mount: MountId,
    host: Arc<HostDir>,
    top: Place,
    bounds: DiffBounds<'t>,
    /// When it has looked for long enough for the shortest patch.
    hurry: Option<Instant>,
    changes: Vec<Change>,
    /// How much their paths have.
    bytes: usize,
    pending: Vec<Pair>,
}

impl<'t> Diff<'t> {
    fn new(tree: &'t Tree, path: &[u8], bounds: DiffBounds<'t>) -> Result<Diff<'t>> {
        let top = tree.lookup(&Caller::ROOT, &tree.root(), path, true)?;
        let (mount, point) = tree.mount_with_root(&top).ok_or(Errno::EINVAL)?;
        let Source::Overlay { dir: host, .. } = point.source else { return Err(Errno::EINVAL) };
        let hurry = Instant::now().checked_add(bounds.patience);
        Ok(Diff { tree, mount, host, top, bounds, hurry, changes: Vec::new(), bytes: 0, pending: Vec::new() })
    }

    fn run(&mut self) -> Result<()> {
        self.pending.push(Pair { path: Vec::new(), ours: Some(self.top.clone()), below: true });
        while let Some(pair) = self.pending.pop() {
            self.bounds.go_on()?;
            self.compare(pair)?;
        }
        Ok(())
    }

    fn compare(&mut self, pair: Pair) -> Result<()> {
        let ours = match &pair.ours {
            Some(place) => Some(self.tree.stat_place(&Caller::ROOT, place)?),
            None => None,
        };
        let below = if pair.below { Some(self.host.stat(&pair.path)?) } else { None };
        let (ours, below) = match (ours, below) {
            (None, None) => return Ok(()),
            (Some(ours), Some(below)) if ours.kind == below.kind => (ours, below),
            (Some(_), Some(_)) => {
                // Another kind of file under the old name: one goes, one comes.
                let gone = Pair { path: pair.path.clone(), ours: None, below: true };
                self.pending.push(Pair { below: false, ..pair });
                self.pending.push(gone);
                return Ok(());
            }
            (Some(ours), None) => {
                self.note(&pair.path, What::Added { mode: ours.mode }, ours.kind)?;
                return if ours.kind == FileKind::Dir { self.descend(&pair) } else { Ok(()) };
            }
            (None, Some(below)) => {
                self.note(&pair.path, What::Deleted { mode: below.mode }, below.kind)?;
                return if below.kind == FileKind::Dir { self.descend(&pair) } else { Ok(()) };
            }
        };
        if let Some(place) = &pair.ours
            && self.content_differs(&pair.path, place, ours.kind, ours.size == below.size)?
        {
            self.note(&pair.path, What::Modified, ours.kind)?;
        }
        if ours.mode != below.mode {
            self.note(&pair.path, What::Mode { from: below.mode, to: ours.mode }, ours.kind)?;
        }
        if ours.kind == FileKind::Dir { self.descend(&pair) } else { Ok(()) }
    }

    fn note(&mut self, path: &[u8], what: What, kind: FileKind) -> Result<()> {
        self.bytes += path.len();
        if self.changes.len() >= self.bounds.changes || self.bytes > self.bounds.bytes {
            return Err(Errno::EFBIG);
        }
        self.changes.push(Change { path: path.to_vec(), what, kind });
        Ok(())
    }

    /// Lines up a directory's names on both sides.
    fn descend(&mut self, pair: &Pair) -> Result<()> {
        let mut names = std::collections::BTreeMap::<Vec<u8>, (bool, bool)>::new();
        let untouched = self.names_to_compare(pair, &mut names)?;
        if pair.below && !untouched {
            for (name, ..) in self.host.list(&pair.path)? {
                names.entry(name).or_default().1 = true;
            }
        }
        for (name, (ours, mut below)) in names {
            let path = join(&pair.path, &name);
            if untouched {
                below = self.host.stat(&path).is_ok();
            }
            let ours = match &pair.ours {
                Some(dir) if ours => Some(self.tree.child(&Caller::ROOT, dir, &name)?),
                _ => None,
            };
            self.pending.push(Pair { path, ours, below });
        }
        Ok(())
    }

    /// Collects the names in the sandbox. Returns true if the directory still shows the one below it at the same path:
    /// then only names that have their own entry can differ, and only those are collected.
    fn names_to_compare(
        &self,
        pair: &Pair,
        names: &mut std::collections::BTreeMap<Vec<u8>, (bool, bool)>,
    ) -> Result<bool> {
        let Some(place) = &pair.ours else { return Ok(false) };
        let spot = MountSpot { mount: self.mount, path: RelPath::from(&pair.path[..]) };
        let in_place = match &place.0 {
            // Never touched: the same on both sides, all the way down.
            Spot::Mount(lower) if *lower == spot => return Ok(true),
            Spot::Mount(_) => false,
            Spot::Inode(ino) => self.tree.dir(*ino)?.lower.as_ref() == Some(&spot),
        };
        if let (true, Spot::Inode(ino)) = (in_place && pair.below, &place.0) {
            for (_, entry) in self.tree.dir(*ino)?.entries_from(0) {
                names.insert(entry.name.to_vec(), (entry.target != Target::Whiteout, false));
            }
            return Ok(true);
        }
        for (name, ..) in self.tree.list_names(&Caller::ROOT, place)? {
            names.insert(name, (true, false));
        }
        Ok(false)
    }

    fn content_differs(&self, path: &[u8], ours: &Place, kind: FileKind, same_size: bool) -> Result<bool> {
        let spot = MountSpot { mount: self.mount, path: path.into() };
        match kind {
            FileKind::File if self.tree.shows(ours, &spot) => Ok(false),
            FileKind::File if !same_size => Ok(true),
            FileKind::File => {
                let mut tree = self.tree.clone();
                let file = tree.open_place(ours)?;
                let lower = self.host.open_file(path, OpenFlags::READ)?;
                let (mut here, mut there) = (vec![0; 64 << 10], vec![0; 64 << 10]);
                let mut offset = 0;
                loop {
                    self.bounds.go_on()?;
                    let count = tree.pread(&file, &mut here, offset)?;
                    if count == 0 {
                        return Ok(false);
                    }
                    match lower.read_exact_at(&mut there[..count], offset) {
                        Ok(()) if here[..count] == there[..count] => offset += count as u64,
                        _ => return Ok(true),
                    }
                }
            }
            FileKind::Symlink => {
                let target = self.tree.link_target(&Caller::ROOT, ours)?;
                Ok(target != Some(self.host.read_link(path)?))
            }
            _ => Ok(false),
        }
    }

    /// Writes the patch for one file.
    fn patch(&self, change: &Change, second: Option<&Change>, out: &mut Vec<u8>) -> Result<()> {
        if !matches!(change.kind, FileKind::File | FileKind::Symlink) {
            return Ok(()); // a patch knows nothing of directories
        }
        let (a, b) = (quoted(b"a/", &change.path), quoted(b"b/", &change.path));
        out.extend_from_slice(&[b"diff --git ", &a[..], b" ", &b[..], b"\n"].concat());
        let type_bits = if change.kind == FileKind::Symlink { "120" } else { "100" };
        for what in [Some(change.what), second.map(|change| change.what)].into_iter().flatten() {
            let lines = match what {
                What::Added { mode } => format!("new file mode {}\n", git_mode(type_bits, mode)),
                What::Deleted { mode } => format!("deleted file mode {}\n", git_mode(type_bits, mode)),
                What::Mode { from, to } => {
                    let (from, to) = (git_mode(type_bits, from), git_mode(type_bits, to));
                    format!("old mode {from}\nnew mode {to}\n")
                }
                What::Modified => String::new(),
            };
            out.extend_from_slice(lines.as_bytes());
        }
        if matches!(change.what, What::Mode { .. }) && second.is_none() {
            return Ok(());
        }
        let before = if matches!(change.what, What::Added { .. }) { None } else { Some(self.old(change)?) };
        let after =
            if matches!(change.what, What::Deleted { .. }) { None } else { Some(self.new_text(change)?) };
        let from = before.as_ref().map_or(b"/dev/null".to_vec(), |_| a);
        let to = after.as_ref().map_or(b"/dev/null".to_vec(), |_| b);
        match (before.unwrap_or(Some(String::new())), after.unwrap_or(Some(String::new()))) {
            (Some(before), Some(after)) => {
                let left = self.hurry.map_or(PATIENCE, |at| at.saturating_duration_since(Instant::now()));
                unified((&before, &after), (&from, &to), left.min(PATIENCE), out);
            }
            _ => out
                .extend_from_slice(&[b"Binary files ", &from[..], b" and ", &to[..], b" differ\n"].concat()),
        }
        Ok(())
    }

    /// Returns a file's or link's text below; `None` if it is not text.
    fn old(&self, change: &Change) -> Result<Option<String>> {
        if change.kind == FileKind::Symlink {
            return Ok(String::from_utf8(self.host.read_link(&change.path)?).ok());
        }
        let file = self.host.open_file(&change.path, OpenFlags::READ)?;
        let len = file.metadata()?.len();
        if len > TEXT_MAX {
            return Ok(None);
        }
        let mut bytes = vec![0; len as usize];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(text(bytes))
    }

    /// Returns the same in the sandbox.
    fn new_text(&self, change: &Change) -> Result<Option<String>> {
        let place = self.tree.lookup(&Caller::ROOT, &self.top, &change.path, false)?;
        if change.kind == FileKind::Symlink {
            let target = self.tree.link_target(&Caller::ROOT, &place)?;
            return Ok(target.and_then(|target| String::from_utf8(target).ok()));
        }
        let size = self.tree.stat_place(&Caller::ROOT, &place)?.size;
        if size > TEXT_MAX {
            return Ok(None);
        }
        let mut tree = self.tree.clone();
        let mut file = tree.open_place(&place)?;
        let mut bytes = vec![0; size as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            match tree.read(&mut file, &mut bytes[filled..])? {
                0 => return Err(Errno::EIO),
                count => filled += count,
            }
        }
        Ok(text(bytes))
    }
}

impl Tree {
    /// Returns whether the content of the file at `place` is still the one below, at `spot`.
    fn shows(&self, place: &Place, spot: &MountSpot) -> bool {
        match &place.0 {
            Spot::Mount(lower) => lower == spot,
            Spot::Inode(ino) => {
                let file = self.inode(*ino).ok().and_then(|inode| inode.file());
                file.and_then(|file| file.lower_spot()) == Some(spot)
            }
        }
    }
}

fn git_mode(type_bits: &str, mode: u32) -> String {
    if type_bits == "120" { "120000".to_string() } else { format!("{type_bits}{:03o}", mode & 0o777) }
}

/// Text is UTF-8 without NUL.
fn text(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

fn unified((before, after): (&str, &str), (from, to): (&[u8], &[u8]), patience: Duration, out: &mut Vec<u8>) {
    if before == after {
        return; // an empty file comes or goes: the header has said so
    }
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).timeout(patience).diff_lines(before, after);
    out.extend_from_slice(&[b"--- ", from, b"\n+++ ", to, b"\n"].concat());
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        out.extend_from_slice(hunk.to_string().as_bytes());
    }
}

/// A name as git writes it: in quotes, with escapes, if it has unusual bytes.
fn quoted(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    let name = [prefix, path].concat();
    if name.iter().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')) {
        return name;
    }
    let mut out = vec![b'"'];
    for byte in name {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b' '..=b'~' => out.push(byte),
            _ => out.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
        }
    }
    out.push(b'"');
    out
}
