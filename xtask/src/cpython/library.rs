//! The standard library, packed: sources and compiled modules, in groups that are unpacked when one of their files is read.
//!
//! ```text
//! pack    length of the index (32 bits, little endian), index, groups
//! index   zstd; lines `group BYTES` (its length in the pack), each followed by a line `BYTES PATH` for each of its files
//! group   zstd; its files, one after the other
//! ```
//! Paths are relative to the directory of the library. A source stands before its compiled module: they share most words.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{Place, interpreter};

/// A group is closed when it has this many bytes: unpacking one takes about a millisecond.
const GROUP: usize = 768 << 10;
const LEVEL: i32 = 19;

/// What every start of the interpreter reads that is not part of the program itself.
const FIRST: &[&str] = &["encodings/__init__", "encodings/aliases", "encodings/utf_8"];

pub(super) fn pack(place: &Place) -> Result<Vec<u8>> {
    println!("cpython: packing its library");
    let staged = place.work.join("library");
    if staged.exists() {
        fs::remove_dir_all(&staged)?;
    }
    let mut compile = Command::new(interpreter::native(place));
    compile.args(["-I", "-B"]).arg(place.guests.join("python/library.py"));
    compile.arg(place.patched().join("Lib")).arg(place.work.join("build-wasm")).arg(&staged);
    compile.env("PYTHONHASHSEED", "0");
    crate::run(&mut compile)?;

    let mut files = Vec::new();
    list(&staged, &staged, &mut files)?;
    files.sort_by_key(|path| order(path));
    let mut index = String::new();
    let mut groups = Vec::new();
    let (mut raw, mut lines, mut first) = (Vec::new(), String::new(), true);
    for (at, path) in files.iter().enumerate() {
        let bytes = fs::read(staged.join(path)).with_context(|| format!("cannot read {}", path.display()))?;
        writeln!(lines, "{} {}", bytes.len(), path.display())?;
        raw.extend(bytes);
        let next = files.get(at + 1);
        // What every start reads is a group of its own.
        let closes = first && next.is_some_and(|next| !is_first(next));
        if next.is_none() || raw.len() >= GROUP || closes {
            first = first && !closes;
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
    let text = path.display().to_string().replace("__pycache__/", "");
    text.split_once('.').map_or(text.clone(), |(module, _)| module.to_owned())
}

fn is_first(path: &Path) -> bool {
    FIRST.contains(&module(path).as_str())
}

fn order(path: &Path) -> (bool, String, bool) {
    let is_compiled = path.extension().is_some_and(|extension| extension == "pyc");
    (!is_first(path), module(path), is_compiled)
}
