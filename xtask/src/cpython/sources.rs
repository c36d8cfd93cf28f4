//! Fetching: Debian's source packages, unpacked and patched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Place;
use crate::toolchain::PrivateApt;

/// Debian's release. Its packages stay where they are for years.
const SUITE: &str = "trixie";

/// The package of CPython. Its name and its version below are what decides which CPython it is.
pub(super) const CPYTHON: &str = "python3.13";
pub(super) const MUSL: &str = "musl";

/// A source package.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) name: &'static str,
    version: &'static str,
    patches: Patches,
}

/// Which of Debian's patches are applied.
#[derive(Debug)]
enum Patches {
    None,
    /// The one of this name in the list and all after it: security fixes. What comes before is about Debian's own ways.
    From(&'static str),
    /// All but this one.
    Except(&'static str),
}

pub(super) const PACKAGES: &[Package] = &[
    Package { name: CPYTHON, version: "3.13.5-2+deb13u5", patches: Patches::From("CVE-2025-11468.patch") },
    Package { name: MUSL, version: "1.2.5-3.1~deb13u1", patches: Patches::Except("static-pie.patch") },
    Package { name: "zlib", version: "1:1.3.dfsg+really1.3.1-1", patches: Patches::None },
    Package { name: "bzip2", version: "1.0.8-6", patches: Patches::None },
    Package { name: "xz-utils", version: "5.8.1-1+deb13u1", patches: Patches::None },
];

/// The package with the time zones, as it is installed.
pub(super) const ZONES: (&str, &str) = ("tzdata", "2026c-0+deb13u1");

/// The directory of the time zones.
pub(super) fn zones(place: &Place) -> PathBuf {
    place.work.join("tzdata/usr/share/zoneinfo")
}

fn fetch_zones(place: &Place) -> Result<()> {
    let (name, version) = ZONES;
    let (done, to) = (place.work.join("tzdata.version"), place.work.join(name));
    if fs::read_to_string(&done).is_ok_and(|is| is == version) {
        return Ok(());
    }
    println!("cpython: fetching {name} {version}");
    let downloads = place.work.join("download").join(name);
    fs::create_dir_all(&downloads)?;
    let apt = PrivateApt::new(&place.work.join("apt-packages"), SUITE, "deb")?;
    apt.run(&downloads, &["download", &format!("{name}={version}")])?;
    let found = fs::read_dir(&downloads)?.flatten().map(|entry| entry.path());
    let found = found.max().context("apt has downloaded no package")?;
    crate::run(Command::new("dpkg-deb").arg("-x").arg(found).arg(to))?;
    fs::write(done, version)?;
    Ok(())
}

/// Fetches, unpacks and patches what is not there yet.
pub(super) fn fetch(place: &Place) -> Result<()> {
    PACKAGES.iter().try_for_each(|package| fetch_package(place, package))?;
    fetch_zones(place)?;
    apply_own(place)
}

/// The same for CPython alone, without the patches of ours.
pub(super) fn fetch_cpython(place: &Place) -> Result<()> {
    let cpython = PACKAGES.iter().find(|package| package.name == CPYTHON);
    fetch_package(place, cpython.context("CPython is among the packages")?)
}

/// The name of a directory that is complete is put down last.
fn fetch_package(place: &Place, package: &Package) -> Result<()> {
    let done = place.work.join(format!("{}.version", package.name));
    let wanted = format!("{package:?}");
    if fs::read_to_string(&done).is_ok_and(|is| is == wanted) {
        return Ok(());
    }
    println!("cpython: fetching {} {}", package.name, package.version);
    let apt = PrivateApt::new(&place.work.join("apt"), SUITE, "deb-src")?;
    let downloads = place.work.join("download").join(package.name);
    fs::create_dir_all(&downloads)?;
    let exact = format!("{}={}", package.name, package.version);
    apt.run(&downloads, &["source", "--download-only", &exact])?;
    unpack(package, &downloads, &place.source(package.name))?;
    patch(package, &place.source(package.name))?;
    fs::write(done, wanted)?;
    Ok(())
}

/// Copies CPython's sources and applies the patches of ours, in the order of their names. A file that comes out as it was
/// stays untouched, so that make need not compile what includes it.
fn apply_own(place: &Place) -> Result<()> {
    let (patched, new) = (place.patched(), place.work.join("patched.new"));
    if new.exists() {
        fs::remove_dir_all(&new)?;
    }
    crate::run(Command::new("cp").arg("-a").arg(place.cpython()).arg(&new))?;
    patch_own(place, &new)?;
    if !patched.exists() {
        return fs::rename(&new, &patched).context("cannot rename the patched sources");
    }
    update(&new, &patched)?;
    fs::remove_dir_all(&new).context("cannot remove the patched sources")
}

/// Makes the files of one directory those of another.
pub(super) fn update(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() && !path.is_symlink() {
            update(&path, &target)?;
        } else if !path.is_symlink() && fs::read(&target).ok() != fs::read(&path).ok() {
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

fn patch_own(place: &Place, patched: &Path) -> Result<()> {
    let mut patches: Vec<_> =
        fs::read_dir(place.guests.join("python/patches"))?.flatten().map(|entry| entry.path()).collect();
    patches.sort();
    patches.iter().try_for_each(|file| apply(file, patched))
}

fn apply(patch: &Path, directory: &Path) -> Result<()> {
    crate::run(Command::new("patch").args(["-p1", "-s", "-i"]).arg(patch).current_dir(directory))
}

fn unpack(package: &Package, downloads: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    // An upstream archive has one directory, Debian's has `debian`.
    for (kind, strip) in [(".orig.tar.", "--strip-components=1"), (".debian.tar.", "--strip-components=0")] {
        let found = fs::read_dir(downloads)?.flatten().map(|entry| entry.path()).find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.contains(kind) && !name.ends_with(".asc")
        });
        let found = found.with_context(|| format!("{} has no {kind}", package.name))?;
        crate::run(Command::new("tar").arg("-xf").arg(&found).arg("-C").arg(to).arg(strip))?;
    }
    Ok(())
}

/// Applies Debian's patches.
fn patch(package: &Package, directory: &Path) -> Result<()> {
    let debian = directory.join("debian/patches");
    let series = fs::read_to_string(debian.join("series")).unwrap_or_default();
    let names = series.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let chosen: Vec<&str> = match package.patches {
        Patches::None => vec![],
        Patches::From(first) => names.skip_while(|name| *name != first).collect(),
        Patches::Except(one) => names.filter(|name| *name != one).collect(),
    };
    if chosen.is_empty() && !matches!(package.patches, Patches::None) {
        bail!("{} {} has none of the patches that are wanted", package.name, package.version);
    }
    chosen.iter().try_for_each(|name| apply(&debian.join(name), directory))
}
