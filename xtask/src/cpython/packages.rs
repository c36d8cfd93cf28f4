//! The packages that are ready in the sandbox: wheels at fixed versions, by their hashes (`guests/python/packages.txt`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use super::{Place, interpreter, library};
use crate::manifest;

/// A group is closed when it has this many bytes, or this many at the end of a package.
const GROUP: usize = 2 << 20;
const SMALL: usize = 256 << 10;

/// Fetches them, lays them out and packs them as the standard library is packed: first their commands, with the length of
/// that pack before it, then all else.
pub(super) fn pack(place: &Place) -> Result<Vec<u8>> {
    let (stamp, packed) = (place.work.join("packages.stamp"), place.work.join("packages.lib"));
    let basis = basis(place)?;
    // Compressing takes minutes.
    if fs::read_to_string(&stamp).is_ok_and(|is| is == basis) {
        return fs::read(&packed).with_context(|| format!("cannot read {}", packed.display()));
    }
    let pack = pack_anew(place)?;
    fs::write(packed, &pack)?;
    fs::write(stamp, basis)?;
    Ok(pack)
}

/// A text that changes with what decides how they are laid out.
fn basis(place: &Place) -> Result<String> {
    let ours = place.guests.join("python");
    let mut files = vec![ours.join("packages.txt"), ours.join("packages.py"), ours.join("library.py")];
    files.extend(fs::read_dir(ours.join("package-patches"))?.flatten().map(|entry| entry.path()));
    files[3..].sort();
    let mut hash = Sha256::new();
    for file in files {
        hash.update(fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?);
    }
    Ok(format!("{} {GROUP} {SMALL} {}", super::sources::CPYTHON, manifest::hex(&hash.finalize())))
}

fn pack_anew(place: &Place) -> Result<Vec<u8>> {
    let downloads = fetch(place)?;
    println!("cpython: packing its packages");
    let staged = place.work.join("packages");
    if staged.exists() {
        fs::remove_dir_all(&staged)?;
    }
    let ours = place.guests.join("python");
    let mut layout = Command::new(interpreter::native(place));
    layout
        .args(["-I", "-B"])
        .arg(ours.join("packages.py"))
        .arg(downloads)
        .arg(ours.join("package-patches"))
        .arg(&staged);
    layout.env("PYTHONHASHSEED", "0");
    crate::run(&mut layout)?;
    let is_command = |path: &Path| path.starts_with("bin");
    let commands = library::pack_directory(&staged, is_command, GROUP, |_, _, _| false)?;
    // Who imports one package need not unpack all others; very small ones share a group.
    let others = library::pack_directory(
        &staged,
        |path| !is_command(path),
        2 << 20,
        |path, next, length| package(path) != package(next) && length >= SMALL,
    )?;
    let length = u32::try_from(commands.len()).context("more than 4 GiB of commands")?;
    Ok([&length.to_le_bytes(), commands.as_slice(), &others].concat())
}

/// The package that a file is of, as far as paths tell.
fn package(path: &Path) -> PathBuf {
    path.iter().take(4).collect()
}

fn fetch(place: &Place) -> Result<PathBuf> {
    let list = place.guests.join("python/packages.txt");
    let wanted = fs::read_to_string(&list).context("cannot read packages.txt")?;
    let (downloads, done) = (place.work.join("download/packages"), place.work.join("packages.version"));
    if fs::read_to_string(&done).is_ok_and(|is| is == wanted) {
        return Ok(downloads);
    }
    println!("cpython: fetching packages");
    if downloads.exists() {
        fs::remove_dir_all(&downloads)?;
    }
    let mut pip = Command::new("/usr/bin/python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--requirement"])
        .arg(&list);
    // Wheels for any machine; of two packages the sources.
    pip.args([
        "--no-binary",
        "pyyaml,markupsafe",
        "--platform",
        "any",
        "--implementation",
        "py",
        "--abi",
        "none",
    ]);
    pip.args(["--python-version", &super::version().replace('.', ""), "--dest"]).arg(&downloads);
    crate::run(&mut pip)?;
    fs::write(done, wanted)?;
    Ok(downloads)
}
