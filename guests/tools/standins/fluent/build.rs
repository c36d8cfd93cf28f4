//! Collects the English messages of the crates in Cargo.lock into one table, sorted by identifier.
//!
//! The crates carry them as `locales/en-US.ftl`; their own build script would embed every language's, of whatever
//! crates happen to lie in the registry, and each tool would parse its share whenever it starts.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use fluent_syntax::ast::{Entry, Expression, InlineExpression, Pattern, PatternElement, VariantKey};
use fluent_syntax::unicode::unescape_unicode_to_string;

/// A piece of a message, as `src/lib.rs` has it.
#[derive(Clone)]
enum Piece {
    Text(String),
    Argument(String),
    Select {
        argument: String,
        variants: Vec<(String, Vec<Piece>)>,
        default: Vec<Piece>,
    },
    /// Another message, put in its place once all are known.
    Message(String),
}

fn main() {
    let mut messages = BTreeMap::new();
    for file in message_files() {
        println!("cargo:rerun-if-changed={}", file.display());
        let text =
            std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        collect(&text, &mut messages);
    }
    let resolved: BTreeMap<_, _> =
        messages.iter().map(|(id, pieces)| (id, resolve(pieces, &messages))).collect();
    let mut table = String::from("&[\n");
    for (id, pieces) in resolved {
        writeln!(table, "({id:?}, {}),", literal(&pieces)).expect("a string takes what is written to it");
    }
    table.push(']');
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    std::fs::write(out.join("messages.rs"), table).expect("OUT_DIR is writable");
}

/// The message files of uutils' crates: the common ones first, since a tool's own messages replace them.
fn message_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for (name, directory) in packages() {
        let locales = directory.join("locales");
        let own = if name == "uucore" { vec!["errors/en-US.ftl", "en-US.ftl"] } else { vec!["en-US.ftl"] };
        if name == "uucore" || name.starts_with("uu_") {
            files.extend(own.into_iter().map(|file| (name != "uucore", locales.join(file))));
        }
    }
    files.retain(|(_, file)| file.exists());
    files.sort();
    files.into_iter().map(|(_, file)| file).collect()
}

/// The packages of the workspace's lock file and where their sources lie.
fn packages() -> Vec<(String, PathBuf)> {
    let lock = Path::new("../../../Cargo.lock");
    println!("cargo:rerun-if-changed={}", lock.display());
    println!("cargo:rerun-if-changed=build.rs");
    let cargo = std::env::var_os("CARGO").expect("cargo sets CARGO");
    let arguments = ["metadata", "--format-version=1", "--locked", "--filter-platform=wasm32-wasip1"];
    let done = Command::new(cargo).args(arguments).output().expect("cargo runs");
    assert!(done.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&done.stderr));
    let metadata: serde_json::Value =
        serde_json::from_slice(&done.stdout).expect("cargo metadata answers JSON");
    let packages = metadata["packages"].as_array().expect("it has packages");
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let directory =
        |manifest: String| Path::new(&manifest).parent().expect("a manifest is in a directory").to_owned();
    packages
        .iter()
        .map(|package| (text(&package["name"]), directory(text(&package["manifest_path"]))))
        .collect()
}

fn collect(text: &str, messages: &mut BTreeMap<String, Vec<Piece>>) {
    // Like fluent itself: what can be parsed is used.
    let resource = fluent_syntax::parser::parse(text).unwrap_or_else(|(partial, _)| partial);
    for entry in resource.body {
        if let Entry::Message(message) = entry
            && let Some(pattern) = message.value
        {
            messages.insert(message.id.name.to_owned(), pieces(&pattern));
        }
    }
}

fn pieces(pattern: &Pattern<&str>) -> Vec<Piece> {
    let piece = |element: &PatternElement<&str>| match element {
        PatternElement::TextElement { value } => Piece::Text((*value).to_owned()),
        PatternElement::Placeable { expression: Expression::Inline(inline) } => inline_piece(inline),
        PatternElement::Placeable { expression: Expression::Select { selector, variants } } => {
            let InlineExpression::VariableReference { id } = selector else {
                panic!("a selector that is no argument")
            };
            let key = |key: &VariantKey<&str>| match key {
                VariantKey::Identifier { name } => (*name).to_owned(),
                VariantKey::NumberLiteral { value } => (*value).to_owned(),
            };
            let default = variants.iter().find(|variant| variant.default).expect("fluent demands a default");
            let others = variants.iter().filter(|variant| !variant.default);
            Piece::Select {
                argument: id.name.to_owned(),
                variants: others.map(|variant| (key(&variant.key), pieces(&variant.value))).collect(),
                default: pieces(&default.value),
            }
        }
    };
    pattern.elements.iter().map(piece).collect()
}

fn inline_piece(expression: &InlineExpression<&str>) -> Piece {
    match expression {
        InlineExpression::StringLiteral { value } => {
            Piece::Text(unescape_unicode_to_string(value).into_owned())
        }
        InlineExpression::NumberLiteral { value } => Piece::Text((*value).to_owned()),
        InlineExpression::VariableReference { id } => Piece::Argument(id.name.to_owned()),
        InlineExpression::MessageReference { id, attribute: None } => Piece::Message(id.name.to_owned()),
        other => panic!("a message uses what this stand-in does not know: {other:?}"),
    }
}

/// Puts messages in the place of references to them, and joins neighbouring texts.
fn resolve(unresolved: &[Piece], messages: &BTreeMap<String, Vec<Piece>>) -> Vec<Piece> {
    let mut resolved: Vec<Piece> = Vec::new();
    for piece in unresolved {
        let expanded = match piece {
            Piece::Message(id) => {
                resolve(messages.get(id).unwrap_or_else(|| panic!("no message {id}")), messages)
            }
            Piece::Select { argument, variants, default } => vec![Piece::Select {
                argument: argument.clone(),
                variants: variants
                    .iter()
                    .map(|(key, pieces)| (key.clone(), resolve(pieces, messages)))
                    .collect(),
                default: resolve(default, messages),
            }],
            other => vec![other.clone()],
        };
        for piece in expanded {
            match (resolved.last_mut(), piece) {
                (Some(Piece::Text(before)), Piece::Text(text)) => before.push_str(&text),
                (_, piece) => resolved.push(piece),
            }
        }
    }
    resolved
}

/// The pieces as Rust source.
fn literal(pieces: &[Piece]) -> String {
    let one = |piece: &Piece| match piece {
        Piece::Text(text) => format!("Text({text:?})"),
        Piece::Argument(name) => format!("Argument({name:?})"),
        Piece::Select { argument, variants, default } => {
            let variants: Vec<_> =
                variants.iter().map(|(key, pieces)| format!("({key:?}, {})", literal(pieces))).collect();
            let variants = variants.join(", ");
            format!(
                "Select {{ argument: {argument:?}, variants: &[{variants}], default: {} }}",
                literal(default)
            )
        }
        Piece::Message(_) => unreachable!("resolved before"),
    };
    format!("&[{}]", pieces.iter().map(one).collect::<Vec<_>>().join(", "))
}
