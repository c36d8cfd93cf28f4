//! The standard library, packed: sources and compiled modules, in groups that are unpacked when one of their files is read.
//!
//! ```text
//! pack    length of the index (32 bits, little endian), index, groups
//! index   zstd; lines `group BYTES` (its length in the pack), each followed by a line `BYTES PATH` for each of its files
//! group   zstd; its files, one after the other
//! ```
//! Paths are relative to `/usr`. A source stands before its compiled module: they share most words.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{Place, interpreter, sources};

/// A group of the standard library is closed when it has this many bytes: unpacking one takes about a millisecond.
const GROUP: usize = 768 << 10;
const LEVEL: i32 = 19;

/// What every start of the interpreter reads that is not part of the program itself.
const FIRST: &[&str] = &["encodings/__init__", "encodings/aliases", "encodings/utf_8"];

/// What must go with the program: package, text, and where it is shown. Python's own is part of its library.
const LICENCES: &[(&str, &str, &str)] = &[
    (sources::MUSL, "COPYRIGHT", "share/doc/musl/copyright"),
    ("zlib", "LICENSE", "share/doc/zlib/copyright"),
    ("bzip2", "LICENSE", "share/doc/bzip2/copyright"),
    ("xz-utils", "COPYING.0BSD", "share/doc/xz/copyright"),
];

pub(super) fn pack(place: &Place) -> Result<Vec<u8>> {
    println!("cpython: packing its library");
    let staged = place.work.join("library");
    if staged.exists() {
        fs::remove_dir_all(&staged)?;
    }
    let mut compile = Command::new(interpreter::native(place));
    compile.args(["-I", "-B"]).arg(place.guests.join("python/library.py"));
    compile.arg(place.patched().join("Lib")).arg(place.guests.join("python/modules"));
    compile.arg(sources::zones(place)).arg(&staged);
    compile.env("PYTHONHASHSEED", "0");
    crate::run(&mut compile)?;

    for (package, text, to) in LICENCES {
        let to = staged.join(to);
        fs::create_dir_all(to.parent().context("a text lies in a directory")?)?;
        fs::copy(place.source(package).join(text), to).with_context(|| format!("{package} has no {text}"))?;
    }

    pack_directory(&staged, |_| true, GROUP, |path, next, _| is_first(path) && !is_first(next))
}

/// Packs the wanted files of a directory, in groups of at least `group` bytes. `parts` tells where one must end before: between
/// these two files, with this length.
pub(super) fn pack_directory(
    staged: &Path,
    wanted: impl Fn(&Path) -> bool,
    group: usize,
    parts: impl Fn(&Path, &Path, usize) -> bool,
) -> Result<Vec<u8>> {
    let mut files = Vec::new();
    list(staged, staged, &mut files)?;
    files.retain(|path| wanted(path));
    files.sort_by_key(|path| order(path));
    let mut index = String::new();
    let mut groups = Vec::new();
    let (mut raw, mut lines) = (Vec::new(), String::new());
    for (at, path) in files.iter().enumerate() {
        let bytes = fs::read(staged.join(path)).with_context(|| format!("cannot read {}", path.display()))?;
        writeln!(lines, "{} {}", bytes.len(), path.display())?;
        raw.extend(bytes);
        let closes = files.get(at + 1).is_none_or(|next| parts(path, next, raw.len()));
        if closes || raw.len() >= group {
            let packed = zstd::encode_all(raw.as_slice(), LEVEL).context("cannot compress")?;
            write!(index, "group {}\n{lines}", packed.len())?;
            groups.extend(packed);
            raw.clear();
            lines.clear();
        }
    }
    let index = zstd::encode_all(index.as_bytes(), LEVEL).context("cannot compress")?;
    let length = u32::try_from(index.len()).context("an index of more than 4 GiB")?;
    Ok([&length.to_le_bytes(), index.as_slice(), &groups].concat())
}

fn list(root: &Path, directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            list(root, &path, files)?;
        } else {
            files.push(path.strip_prefix(root).expect("it lies there").to_owned());
        }
    }
    Ok(())
}

/// The module a file is of: its path without `__pycache__` and endings.
fn module(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.split('.').next().unwrap_or_default().to_owned();
    let directory = path.parent().unwrap_or(Path::new("")).display().to_string();
    format!("{}/{name}", directory.trim_end_matches("/__pycache__"))
}

fn is_first(path: &Path) -> bool {
    let module = module(path);
    FIRST.iter().any(|first| module.strip_prefix("lib/") == Some(&format!("{}/{first}", sources::CPYTHON)))
}

fn order(path: &Path) -> (bool, String, bool) {
    let is_compiled = path.extension().is_some_and(|extension| extension == "pyc");
    (!is_first(path), module(path), is_compiled)
}
