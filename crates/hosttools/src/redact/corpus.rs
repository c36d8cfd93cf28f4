//! Ordinary source code comes through as it is, but for lines that are named here: this repository's, and where they are
//! on this machine those of the crates it is built of.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::Redactor;

/// Lines that look like secrets, and are meant to: in which file, and what of them.
const OURS: &[(&str, &str)] = &[
    ("hosttools/src/redact/", ""),
    ("hosttools/tests/hosttools/door.rs", "hunter2"),
    ("hosttools/tests/hosttools/door.rs", "let token = "),
    ("guests/js/tests/cases/library.sheet", "pa%20ss"),
    ("guests/net/src/http/", "user:pa"),
    ("guests/net/tests/cases/curl.sheet", "user:p%40ss@"),
    ("net/src/proxy.rs", "me:p%40ss@"),
    ("net/tests/net/policy.rs", "hunter2"),
    ("net/tests/net/proxies.rs", "http://me:p%40ss@"),
    ("server/tests/server/rest.rs", "Bearer fedcba9876543210"),
    ("python/tests/test_network.py", "http://me:"),
    ("kernel/tests/kernel/memory.rs", "const SECRET"),
    ("kernel/tests/kernel/spares.rs", "const SECRET"),
    ("kernel/tests/kernel/stock.rs", "const SECRET"),
];
const CRATES: &[(&str, &str)] = &[
    ("hybrid-array-", "badge.svg?token="),
    ("hyper-util-", "Aladdin:opensesame@"),
    ("hyper-util-", "Basic QWxhZGRpbjpvcGVuc2VzYW1l"),
    ("object_store-", ", Signature="),
    ("pem-", "PRIVATE KEY-----"),
    ("rcgen-", "PRIVATE KEY-----"),
    ("s3s-", "&X-Amz-Signature="),
    ("s3s-", "session_token: \"FwoG"),
    ("s3s-", "continuation-token=abc123"),
    // Passwords in addresses are what its tests are about.
    ("url-2.", "@"),
    ("url-2.", "\"password\": \""),
];
/// No source file of Wardian's is larger; of others, no more than this is read.
const LARGEST: u64 = 4 << 20;
const MOST_BYTES: usize = 600 << 20;
/// The crates of the workspace alone have several times as much.
const LEAST_BYTES: usize = 50 << 20;

/// The text files below a directory, in order, or a file itself.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    if directory.is_file() {
        found.push(directory.to_owned());
    }
    let mut entries: Vec<_> = fs::read_dir(directory).into_iter().flatten().flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let Ok(kind) = entry.file_type() else { continue };
        let name = entry.file_name();
        if kind.is_dir()
            && !["target", ".git", "node_modules", "__pycache__"].iter().any(|other| name == *other)
        {
            files(&entry.path(), found);
        } else if kind.is_file() && entry.metadata().is_ok_and(|file| file.len() <= LARGEST) {
            found.push(entry.path());
        }
    }
}

/// Lines of a text that do not come through as they are, each by itself.
fn changed(text: &[u8]) -> Vec<String> {
    let redactor = Redactor::new(Vec::<Vec<u8>>::new()).unwrap();
    if redactor.bytes(text) == text {
        return Vec::new();
    }
    let found = redactor.found(text, super::Reading { from: 0, at_line_start: true, eager: false }).secrets;
    let line = |at: usize| {
        let start = text[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let end = text[at..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |end| at + end);
        String::from_utf8_lossy(&text[start..end]).into_owned()
    };
    found.iter().map(|secret| line(secret.start)).collect()
}

/// What does not come through and is not named, and how much was looked at.
fn unexpected(directories: &[PathBuf], named: &[(&str, &str)]) -> (Vec<String>, usize) {
    let (mut paths, mut strange, mut bytes) = (Vec::new(), Vec::new(), 0);
    directories.iter().for_each(|directory| files(directory, &mut paths));
    for path in paths {
        let Ok(text) = fs::read(&path) else { continue };
        // Binaries are not what anyone edits by.
        if text.contains(&0) || bytes > MOST_BYTES {
            continue;
        }
        bytes += text.len();
        let shown = path.display().to_string();
        for line in changed(&text) {
            if !named.iter().any(|(file, part)| shown.contains(file) && line.contains(part)) {
                strange.push(format!("{shown}: {line}"));
            }
        }
    }
    (strange, bytes)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn this_repository_comes_through_as_it_is() {
    let parts = ["crates", "docs", "guests", "sdk", "xtask", "bench", "fuzz", "torture"];
    let mut parts: Vec<PathBuf> = parts.iter().map(|part| root().join(part)).collect();
    let pages = fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path());
    parts.extend(pages.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    assert!(parts.len() > 10 && parts.iter().all(|part| part.exists()), "{parts:?}");
    let (strange, bytes) = unexpected(&parts, OURS);
    assert!(bytes > 1 << 20, "{bytes}");
    assert!(strange.is_empty(), "{}", strange.join("\n"));
}

/// Names and versions of the crates in a lock file.
fn locked(file: &str) -> BTreeSet<String> {
    let lock: toml::Table = fs::read_to_string(root().join(file)).unwrap().parse().unwrap();
    let text = |package: &toml::Value, key: &str| package[key].as_str().unwrap().to_owned();
    let packages = lock["package"].as_array().unwrap();
    packages.iter().map(|package| format!("{}-{}", text(package, "name"), text(package, "version"))).collect()
}

/// Those of both lock files, where cargo keeps their sources: the guests' only where somebody has built those.
#[test]
fn the_crates_it_is_built_of_come_through_as_they_are() {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")));
    let registries: Vec<_> = home
        .into_iter()
        .flat_map(|home| fs::read_dir(home.join("registry/src")).into_iter().flatten().flatten())
        .collect();
    let names = &locked("Cargo.lock") | &locked("guests/Cargo.lock");
    let crates: Vec<PathBuf> = names
        .iter()
        .flat_map(|name| registries.iter().map(move |registry| registry.path().join(name)))
        .filter(|path| path.is_dir())
        .collect();
    let (strange, bytes) = unexpected(&crates, CRATES);
    eprintln!("{} crates, {bytes} bytes", crates.len());
    assert!(strange.is_empty(), "{}", strange.join("\n"));
    // What this very test is built of is there.
    assert!(bytes > LEAST_BYTES, "only {bytes} bytes of {} crates in {registries:?}", crates.len());
}
