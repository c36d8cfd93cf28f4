//! `cargo xtask contract`: everything that is made of the protocol's types: tables and schemas in the documentation, and the
//! types of the TypeScript package.

use std::fs;

use anyhow::{Context, Result, bail, ensure};

/// Writes them, or with `--check` only says which are out of date.
pub fn main(arguments: &[String]) -> Result<()> {
    let check = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        other => bail!("contract takes --check or nothing, got {other:?}"),
    };
    let root = crate::root();
    let files =
        wardian_contract::pages::files(&root).context("docs/protocol.md has no place for the table")?;
    for (path, text) in files {
        let file = root.join(path);
        if fs::read_to_string(&file).unwrap_or_default() == text {
            continue;
        }
        ensure!(!check, "{path} is out of date: run `cargo xtask contract` and commit the result");
        fs::write(&file, text).with_context(|| format!("cannot write {path}"))?;
        println!("contract: wrote {path}");
    }
    Ok(())
}
