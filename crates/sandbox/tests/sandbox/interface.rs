//! The public interface as a whole: what may be named in it, and what may grow.
//!
//! These tests read the sources: a type that slips into the interface compiles, so nothing else would notice.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

/// Structs that callers build with a literal, mostly with `..Default::default()`. A new field may break them.
const BUILT_BY_CALLERS: [&str; 29] = [
    "Answer",
    "Backoff",
    "Commit",
    "Config",
    "Destination",
    "ExecSpec",
    "ExtensionAnswer",
    "ExtensionSpec",
    "FlagRules",
    "GitOptions",
    "HttpRule",
    "LeadingFlags",
    "Limits",
    "NetworkPolicy",
    "Note",
    "Object",
    "Options",
    "PoolConfig",
    "PoolOptions",
    "ProgramLimits",
    "ProgramPolicy",
    "ProxyPolicy",
    "PythonPackage",
    "Retention",
    "Rotation",
    "Secret",
    "StoreOptions",
    "TlsRequest",
    "WriteOptions",
];

/// Enums whose variants are all there will be, and what is only passed between Wardian's own crates.
const COMPLETE: [&str; 17] = [
    "BadRequest",
    "ConnectError",
    "Ended",
    "Ending",
    "Framing",
    "Hash",
    "Host",
    "Kind",
    "Lane",
    "Part",
    "ProcessStream",
    "Prompt",
    "RequestHead",
    "Step",
    "Stream",
    "TlsAnswer",
    "TlsErrorCode",
];

/// The crates whose public types are the library's, besides those that it takes from the kernel by name.
const CRATES: [&str; 5] = ["sandbox", "audit", "net", "store", "hosttools"];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every file of a crate's sources, without its unit tests.
fn sources(name: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut directories = vec![crates().join(name).join("src")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let tests = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
                found.push((path, text[..tests].to_owned()));
            }
        }
    }
    found
}

/// The words of a piece of code that name types.
fn types(code: &str) -> impl Iterator<Item = &str> {
    let words = code.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.filter(|word| {
        word.starts_with(|c: char| c.is_uppercase()) && word.contains(|c: char| c.is_lowercase())
    })
}

/// The name of a public type that a line defines.
fn defined(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub struct ").or_else(|| line.strip_prefix("pub enum "))?;
    rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()
}

#[test]
fn public_types_can_grow_or_are_listed() {
    let listed: BTreeSet<&str> = BUILT_BY_CALLERS.iter().chain(&COMPLETE).copied().collect();
    let mut used = BTreeSet::new();
    let mut wrong = Vec::new();
    for (path, text) in CRATES.iter().flat_map(|name| sources(name)) {
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let Some(name) = defined(line) else { continue };
            let above = lines[..number].iter().rev().take_while(|line| line.starts_with(['#', '/']));
            let can_grow = above.into_iter().any(|line| *line == "#[non_exhaustive]");
            // Nobody else can build or match a struct with a private field.
            let body = lines[number + 1..].iter().take_while(|line| **line != "}");
            let is_struct = line.starts_with("pub struct");
            let private = match line.split_once('(') {
                Some((_, fields)) => !fields.starts_with("pub "),
                None => body.into_iter().any(|field| {
                    let field = field.strip_prefix("    ").unwrap_or_default();
                    field.starts_with(|c: char| c.is_lowercase() || c == '_') && !field.starts_with("pub ")
                        || field.starts_with("pub(")
                }),
            };
            if can_grow || is_struct && private {
                continue;
            }
            match listed.get(name) {
                Some(name) => drop(used.insert(*name)),
                None => wrong.push(format!("{}: {name}", path.display())),
            }
        }
    }
    assert!(wrong.is_empty(), "neither #[non_exhaustive] nor listed here:\n{}", wrong.join("\n"));
    let idle: Vec<_> = listed.difference(&used).filter(|name| **name != "Part").collect();
    assert!(idle.is_empty(), "listed for nothing: {idle:?}");
}

/// Types of the standard library, of `tokio` and of `serde_json` that the interface uses, and the gateway from `wardian::tools`.
const COMMON: [&str; 37] = [
    "BTreeMap",
    "Sender",
    "ToolSandbox",
    "Write",
    "Arc",
    "AsRef",
    "AsyncRead",
    "AsyncWrite",
    "Box",
    "Copy",
    "Default",
    "Display",
    "Duration",
    "FnMut",
    "FnOnce",
    "Fn",
    "From",
    "Future",
    "Instant",
    "Into",
    "IntoIterator",
    "Item",
    "Iterator",
    "Map",
    "Notify",
    "Option",
    "Ord",
    "Output",
    "Path",
    "PathBuf",
    "Result",
    "Self",
    "Send",
    "String",
    "Sync",
    "Value",
    "Vec",
];

#[test]
fn public_signatures_use_exported_types_alone() {
    let library = fs::read_to_string(crates().join("sandbox/src/lib.rs")).unwrap();
    let internals = library.find("pub mod internals").unwrap();
    let exported = library[..internals].split("pub use ").skip(1).filter_map(|text| text.split(';').next());
    let mut known: BTreeSet<&str> = exported.flat_map(types).collect();
    known.extend(COMMON);
    let mut wrong = BTreeSet::new();
    // `lib.rs` itself has only the exports, and what is hidden.
    for (path, text) in sources("sandbox").into_iter().filter(|(path, _)| !path.ends_with("src/lib.rs")) {
        for (at, signature) in signatures(&text) {
            let generics = signature.split_once('<').filter(|(name, _)| name.len() < 40);
            let of_its_own: BTreeSet<&str> = generics.map_or_else(BTreeSet::new, |(_, rest)| {
                types(rest.split('(').next().unwrap_or_default()).collect()
            });
            for name in types(&signature) {
                if !known.contains(name) && !of_its_own.contains(name) && defined(at) != Some(name) {
                    wrong.insert(format!("{}: {name} in: {}", path.display(), at.trim()));
                }
            }
        }
    }
    let wrong: Vec<String> = wrong.into_iter().collect();
    assert!(wrong.is_empty(), "not exported by the library:\n{}", wrong.join("\n"));
}

/// Public functions and fields: the line each begins with, and all of its signature.
fn signatures(text: &str) -> Vec<(&str, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let begins = |line: &str| {
        let line = line.trim_start();
        line.starts_with("pub ") && !line.starts_with("pub use") && !line.starts_with("pub mod")
    };
    let found = lines.iter().enumerate().filter(|(_, line)| begins(line));
    found
        .map(|(number, line)| {
            let is_function = line.contains("fn ");
            let mut signature = String::new();
            for line in &lines[number..] {
                signature.push_str(line);
                signature.push(' ');
                if !is_function || line.ends_with(['{', ';']) {
                    break;
                }
            }
            (*line, signature)
        })
        .collect()
}

#[test]
fn what_the_library_takes_from_the_kernel_can_be_printed() {
    fn debug<T: Debug>() {}
    debug::<wardian::HostInput>();
    debug::<wardian::HostOutput>();
    debug::<wardian::PortStream>();
    debug::<wardian::Input>();
    debug::<wardian::TerminalMode>();
    debug::<wardian::OutputOrder>();
    debug::<wardian::OutputPart<'_>>();
    debug::<wardian::OutputPiece>();
    debug::<wardian::OutputStream>();
    debug::<wardian::Terminal>();
    debug::<wardian::OverlayChange>();
    debug::<wardian::OverlayChangeKind>();
    debug::<wardian::FileKind>();
    debug::<wardian::Errno>();
}
