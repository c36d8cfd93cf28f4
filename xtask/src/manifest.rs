//! What a built program was made from: the hash of its sources, and MANIFEST, which keeps it beside the result.
//!
//! A MANIFEST is lines of `key value`; a line `program NAME` opens a program's block:
//!
//! ```text
//! program sh
//! sources 5ab1…           sha256 over the files and locked crates that make it
//! compiler rustc 1.96.0   for the record
//! wasm 812345 77e0…       size and sha256 of the module
//! zstd 301234 90cc…       size and sha256 of the compressed file NAME.wasm.zst
//! links bash sh           the names under /bin that run it
//! library 4512345 61aa…   size and sha256 of NAME.lib, the files that it reads, where it has such
//! packages 512345 0b4c…   size and sha256 of NAME-packages.lib, more of them
//! science 512345 9e21…    size and sha256 of NAME-science.lib, more of them
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

/// One program's block.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Entry {
    pub sources: String,
    pub compiler: String,
    pub wasm: Artifact,
    pub zstd: Artifact,
    pub links: Vec<String>,
    pub library: Option<Artifact>,
    pub packages: Option<Artifact>,
    pub science: Option<Artifact>,
}

/// A file's size and hash.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Artifact {
    pub size: usize,
    pub sha256: String,
}

impl Artifact {
    pub fn of(bytes: &[u8]) -> Artifact {
        Artifact { size: bytes.len(), sha256: hex(&Sha256::digest(bytes)) }
    }

    fn parse(text: &str) -> Option<Artifact> {
        let (size, sha256) = text.split_once(' ')?;
        Some(Artifact { size: size.parse().ok()?, sha256: sha256.to_owned() })
    }
}

/// The programs of one `dist` directory, by name.
#[derive(Default)]
pub struct Manifest(pub BTreeMap<String, Entry>);

impl Manifest {
    /// Reads a directory's MANIFEST; one that is not there yet has no programs.
    pub fn read(dist: &Path) -> Result<Manifest> {
        let path = dist.join("MANIFEST");
        match fs::read_to_string(&path) {
            Ok(text) => Manifest::parse(&text).with_context(|| format!("{} is damaged", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Manifest::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    fn parse(text: &str) -> Result<Manifest> {
        let mut programs = BTreeMap::new();
        let mut current: Option<&mut Entry> = None;
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            if key == "program" {
                current = Some(programs.entry(value.to_owned()).or_default());
                continue;
            }
            let entry = current.as_mut().context("a line before the first program")?;
            let artifact =
                || Artifact::parse(value).with_context(|| format!("not a size and a hash: {value}"));
            match key {
                "sources" => entry.sources = value.to_owned(),
                "compiler" => entry.compiler = value.to_owned(),
                "wasm" => entry.wasm = artifact()?,
                "zstd" => entry.zstd = artifact()?,
                "links" => entry.links = value.split_whitespace().map(str::to_owned).collect(),
                "library" => entry.library = Some(artifact()?),
                "packages" => entry.packages = Some(artifact()?),
                "science" => entry.science = Some(artifact()?),
                other => bail!("unknown key '{other}'"),
            }
        }
        Ok(Manifest(programs))
    }

    pub fn write(&self, dist: &Path) -> Result<()> {
        let mut text = String::from(
            "# Written by `cargo xtask guests`; xtask/src/manifest.rs says what the lines mean.\n",
        );
        for (name, entry) in &self.0 {
            text += &format!("\nprogram {name}\nsources {}\ncompiler {}\n", entry.sources, entry.compiler);
            text += &format!("wasm {} {}\n", entry.wasm.size, entry.wasm.sha256);
            text += &format!("zstd {} {}\n", entry.zstd.size, entry.zstd.sha256);
            if !entry.links.is_empty() {
                text += &format!("links {}\n", entry.links.join(" "));
            }
            let files =
                [("library", &entry.library), ("packages", &entry.packages), ("science", &entry.science)];
            for (key, packed) in files {
                if let Some(packed) = packed {
                    text += &format!("{key} {} {}\n", packed.size, packed.sha256);
                }
            }
        }
        fs::write(dist.join("MANIFEST"), text).with_context(|| format!("cannot write to {}", dist.display()))
    }
}

/// The hash of everything that decides what a package compiles to: its files, those of the packages in the workspace
/// that it depends on, the locked versions of all the others, the workspace's profile, and `settings`.
pub fn source_hash(guests: &Path, package: &str, settings: &str) -> Result<String> {
    let lock = Lock::read(&guests.join("Cargo.lock"))?;
    let directories = package_directories(guests)?;
    let mut hash = Sha256::new();
    let mut add = |name: &str, content: &[u8]| {
        hash.update(format!("{} {name}\n{}\n", name.len(), content.len()));
        hash.update(content);
    };
    add("settings", settings.as_bytes());
    let closure = lock.closure(package)?;
    let workspace = fs::read_to_string(guests.join("Cargo.toml")).context("cannot read guests/Cargo.toml")?;
    add("Cargo.toml", concerning(&closure, &workspace).as_bytes());
    let config = guests.join(".cargo/config.toml");
    if config.exists() {
        add(".cargo/config.toml", &fs::read(config)?);
    }
    for locked in closure {
        let Some(directory) = locked.is_local.then(|| directories.get(&locked.name)).flatten() else {
            add(&format!("{} {}", locked.name, locked.version), locked.checksum.as_bytes());
            continue;
        };
        for file in source_files(directory)? {
            let name = file.strip_prefix(guests).expect("a package lies under guests");
            add(&name.to_string_lossy(), &fs::read(&file)?);
        }
    }
    Ok(hex(&hash.finalize()))
}

/// The workspace file without what concerns only other programs: its members, and the lines `NAME = { … }`, for the
/// profile or the place of a package, where the package is none of these.
fn concerning(packages: &[&Locked], workspace: &str) -> String {
    let concerns = |line: &&str| {
        let (name, value) = line.split_once(" = ").unwrap_or((line, ""));
        let is_about_package = value.starts_with('{') && !line.contains("level = \"deny\"");
        !line.starts_with("members")
            && (!is_about_package || packages.iter().any(|package| package.name == name))
    };
    workspace.lines().filter(concerns).collect::<Vec<_>>().join("\n")
}

/// The files that decide what a package compiles to, in a fixed order. Tests and prose do not, nor do packages
/// that merely lie inside this one's directory.
pub fn source_files(package: &Path) -> Result<Vec<PathBuf>> {
    const IGNORED: &[&str] = &["target", "dist", "tests", "benches", "examples", "fuzz"];
    let mut files = Vec::new();
    let mut directories = vec![package.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in
            fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))?
        {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with('.') || IGNORED.contains(&name.as_str()) || path.join("Cargo.toml").exists() {
                continue;
            }
            if path.is_dir() {
                directories.push(path);
            } else if !name.ends_with(".md") && !name.ends_with('~') {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Where each package of the workspace lies, by its name: up to three levels below `guests`.
fn package_directories(guests: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![(guests.to_owned(), 0)];
    while let Some((directory, depth)) = pending.pop() {
        if let Some(name) = package_name(&directory.join("Cargo.toml")) {
            found.insert(name, directory.clone());
        }
        if depth == 3 {
            continue;
        }
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                pending.push((path, depth + 1));
            }
        }
    }
    Ok(found)
}

fn package_name(cargo_toml: &Path) -> Option<String> {
    let text = fs::read_to_string(cargo_toml).ok()?;
    let package = text.split("[package]").nth(1)?;
    let name = package.lines().find_map(|line| line.strip_prefix("name"))?;
    Some(name.trim_matches([' ', '=', '"']).to_owned())
}

/// The workspace's Cargo.lock: which package depends on which, at which version.
struct Lock(Vec<Locked>);

struct Locked {
    name: String,
    version: String,
    checksum: String,
    is_local: bool,
    /// `name`, or `name version` where there are several.
    dependencies: Vec<String>,
}

impl Lock {
    fn read(path: &Path) -> Result<Lock> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Lock(text.split("[[package]]\n").skip(1).map(Locked::parse).collect()))
    }

    /// The package and all it depends on, directly or not, in a fixed order.
    fn closure(&self, package: &str) -> Result<Vec<&Locked>> {
        let mut reached = BTreeSet::new();
        let mut pending = vec![package];
        while let Some(wanted) = pending.pop() {
            let is_wanted = |locked: &Locked| match wanted.split_once(' ') {
                Some((name, version)) => locked.name == name && locked.version == version,
                None => locked.name == wanted,
            };
            let index = self.0.iter().position(is_wanted);
            let index = index.with_context(|| format!("guests/Cargo.lock does not know '{wanted}'"))?;
            if reached.insert(index) {
                pending.extend(self.0[index].dependencies.iter().map(String::as_str));
            }
        }
        Ok(reached.into_iter().map(|index| &self.0[index]).collect())
    }
}

impl Locked {
    fn parse(block: &str) -> Locked {
        let field = |key: &str| {
            let value = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
            value.map(|value| value.trim_matches('"').to_owned())
        };
        let dependencies = block.lines().filter_map(|line| line.strip_prefix(" \"")?.strip_suffix("\","));
        // A third word, the source, appears only where two sources have the same version; we use one source.
        let name_and_version =
            |dependency: &str| dependency.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" ");
        Locked {
            name: field("name").unwrap_or_default(),
            version: field("version").unwrap_or_default(),
            checksum: field("checksum").unwrap_or_default(),
            is_local: field("source").is_none(),
            dependencies: dependencies.map(name_and_version).collect(),
        }
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_reads_back_as_it_was_written() {
        let entry = Entry {
            sources: "aa".into(),
            compiler: "rustc 1.96.0 (x)".into(),
            wasm: Artifact::of(b"module"),
            zstd: Artifact::of(b"packed"),
            links: vec!["[".into(), "test".into()],
            library: Some(Artifact::of(b"files")),
            packages: Some(Artifact::of(b"more files")),
            science: Some(Artifact::of(b"still more")),
        };
        let dist = std::env::temp_dir().join(format!("xtask-manifest-{}", std::process::id()));
        fs::create_dir_all(&dist).unwrap();
        Manifest([("tools".to_owned(), entry.clone())].into()).write(&dist).unwrap();
        let read = Manifest::read(&dist).unwrap();
        fs::remove_dir_all(&dist).unwrap();
        assert_eq!(read.0["tools"], entry);
    }

    #[test]
    fn a_lock_yields_only_what_a_package_depends_on() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1\"\ndependencies = [\n \"b 2\",\n]\n\n\
            [[package]]\nname = \"b\"\nversion = \"1\"\nsource = \"r\"\nchecksum = \"x\"\n\n\
            [[package]]\nname = \"b\"\nversion = \"2\"\nsource = \"r\"\nchecksum = \"y\"\n";
        let lock = Lock(lock.split("[[package]]\n").skip(1).map(Locked::parse).collect());
        let names: Vec<_> =
            lock.closure("a").unwrap().iter().map(|p| (p.name.clone(), p.checksum.clone())).collect();
        assert_eq!(names, [("a".into(), String::new()), ("b".into(), "y".into())]);
        assert!(lock.closure("c").is_err());
    }
}
