//! `cargo xtask pages`: the two pages of the documentation that are made from tables: every command there is, and where
//! the shell and the tools differ from the programs they were recorded from.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail, ensure};

use crate::manifest::Manifest;

/// A line for every command: its name, a colon, and what it does.
const DESCRIPTIONS: &str = include_str!("commands.txt");

const COMMANDS: &str = "docs/commands.md";
const DIFFERENCES: &str = "docs/differences.md";

/// Writes the pages, or with `--check` only says which are out of date.
pub fn main(arguments: &[String]) -> Result<()> {
    let check = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        other => bail!("pages takes --check or nothing, got {other:?}"),
    };
    for (path, text) in [(COMMANDS, commands()?), (DIFFERENCES, differences()?)] {
        let file = crate::root().join(path);
        if fs::read_to_string(&file).unwrap_or_default() == text {
            continue;
        }
        ensure!(!check, "{path} is out of date: run `cargo xtask pages` and commit the result");
        fs::write(&file, text).with_context(|| format!("cannot write {path}"))?;
        println!("pages: wrote {path}");
    }
    Ok(())
}

/// The command that every sandbox has without a program: it lists what the host added.
const LISTING: &str = "extensions";

/// The names of all commands: the links to programs, the commands of Python's packages, and the listing.
fn command_names() -> Result<Vec<String>> {
    let dist = crate::root().join("guests/dist");
    let mut names: Vec<String> =
        Manifest::read(&dist)?.0.into_values().flat_map(|entry| entry.links).collect();
    let packages = fs::read(dist.join("python3-packages.lib")).context("cannot read Python's packages")?;
    names.extend(package_commands(&packages).context("the commands of Python's packages are damaged")?);
    names.push(LISTING.to_owned());
    Ok(names)
}

/// The files of the pack that Python's packages begin with; `cpython/library.rs` says how it is written.
fn package_commands(packages: &[u8]) -> Option<Vec<String>> {
    let (_, commands) = packages.split_first_chunk::<4>()?;
    let (length, rest) = commands.split_first_chunk()?;
    let index = rest.get(..u32::from_le_bytes(*length) as usize)?;
    let index = String::from_utf8(zstd::decode_all(index).ok()?).ok()?;
    let paths = index.lines().filter(|line| !line.starts_with("group "));
    paths.map(|line| Some(line.split_once(' ')?.1.strip_prefix("bin/")?.to_owned())).collect()
}

fn commands() -> Result<String> {
    let names = command_names()?;
    let mut known = BTreeMap::new();
    for line in DESCRIPTIONS.lines() {
        let (name, text) = line.split_once(": ").with_context(|| format!("not NAME: TEXT: '{line}'"))?;
        ensure!(known.insert(name, text).is_none(), "{name} is described twice");
    }
    let mut rows = BTreeMap::new();
    for name in names {
        let text =
            known.remove(&*name).with_context(|| format!("xtask/src/commands.txt does not have {name}"))?;
        rows.insert(name, text);
    }
    ensure!(known.is_empty(), "xtask/src/commands.txt describes what is not there: {known:?}");

    let mut page = format!(
        "# Commands

<!-- Written by `cargo xtask pages`. -->

A sandbox has these {} commands in its `PATH`, and those that the shell has built in. Run `NAME --help` for the options
of a command and `help NAME` for those of a built-in one. The shell is compatible with bash 5.2;
[differences.md](differences.md) lists the exceptions, [userland.md](userland.md) has details about jq and yq, and
[cpython.md](cpython.md) about Python.

The host can add commands: functions of the embedding program ([library.md](library.md), [python.md](python.md)) and native
programs under a policy ([tools.md](tools.md)). A program built for `wasm32-wasip1` runs from any executable file.

## Programs

| command | what it does |
|---|---|
",
        rows.len()
    );
    for (name, text) in &rows {
        page += &format!("| `{name}` | {text} |\n");
    }
    page += "\n## Built into the shell\n\n```text\n";
    page += &synopses()?.join("\n");
    page += "\n```\n";
    Ok(page)
}

/// How each built-in command is written.
fn synopses() -> Result<Vec<String>> {
    let text = fs::read_to_string(crate::root().join("guests/sh/src/builtins/synopses.txt"))
        .context("cannot read the shell's synopses")?;
    let lines = text.lines().filter_map(|line| match line.strip_prefix(":: ") {
        Some(synopsis) => Some(synopsis.to_owned()),
        None => line.split_once(": ").map(|(_, synopsis)| synopsis.to_owned()),
    });
    Ok(lines.collect())
}

const SHELL: &str = "The shell";

/// What the recorded cases of the shell do not show.
const BEYOND_CASES: &str = "\
Bash's own test scripts show more: [bash-suite.md](../bench/results/bash-suite.md) counts, for each of them, the lines that still
differ.

";

/// Lists of recorded cases that come out differently in a sandbox: what they are of, the test that has the list, and the
/// words after which it begins.
const LISTS: [(&str, &str, &str); 3] = [
    (SHELL, "cases.rs", "const MISSING: Missing = &["),
    ("The tools", "tools.rs", "const MISSING: cases::Missing = &["),
    ("tar and the other archivers", "tools.rs", "let missing =\n        &["),
];

const INTRODUCTION: &str = "\
# Differences from bash and GNU

<!-- Written by `cargo xtask pages`. -->

The shell behaves like bash 5.2, and the tools like those of Debian 12. Both are checked against recorded output of the real
programs: every case in `guests/*/tests/cases` runs natively and in a sandbox. What differs on purpose:

- **Missing commands.** For a well-known program that does not exist in a sandbox, a second line after `command not found` says
  what is available instead.
- **Network.** `/dev/tcp` and `/dev/udp` reach the sandbox's own network, and outside only what was granted: the look-up of any
  other name fails with `Non-recoverable failure in name resolution`.
- **Users.** There is one user, `user`. Permissions apply to it; `chown` to another user fails.
- **Locale.** Text is UTF-8 or bytes, by `LC_ALL`, `LC_CTYPE` and `LANG`; sorting is by bytes. Messages are in English. `\\u` and
  `\\U` in `printf`, `echo -e` and `$'…'` give UTF-8 also with `LC_ALL=C`, where bash prints the escape itself.
- **Loadable built-in commands** (`enable -f`) do not exist, and `help` shows the synopsis of a command only.
- **Depth.** Nesting and recursion end with a message where bash would end with a crash. Traps on signals from other
  processes run at most 8 deep; further signals wait.
- **Size.** `printf` refuses fields wider than 32 MiB, and `seq -f`, `numfmt` and `date` those wider than 16 MiB.
- **Editing.** In `wardian shell`, lines are edited by the host: Emacs and vi keys, history and completion work, `bind` changes
  no keys. `fc` runs `$FCEDIT`, `$EDITOR` or `editor`, which is nano.
- **Prompt.** Output without a final newline is followed by a marked `%` and a new line, so that the prompt does not hide it.
  What is typed while a command runs is shown when somebody reads it.

The recorded cases that come out differently in a sandbox, and why:
";

fn differences() -> Result<String> {
    let mut page = INTRODUCTION.to_owned();
    for (title, file, start) in LISTS {
        let path = format!("crates/sandbox/tests/sandbox/{file}");
        let source =
            fs::read_to_string(crate::root().join(&path)).with_context(|| format!("cannot read {path}"))?;
        page += &format!("\n## {title}\n\n");
        let cases = listed(&source, start).with_context(|| format!("{path} has no list after '{start}'"))?;
        if title == SHELL {
            page += BEYOND_CASES;
        }
        if cases.is_empty() {
            page += "No recorded case differs.\n";
            continue;
        }
        page += "| sheet | case | why |\n|---|---|---|\n";
        for [sheet, case, why] in cases {
            page += &format!("| {sheet} | {case} | {why} |\n");
        }
    }
    Ok(page)
}

/// The three texts of each entry of a list in Rust.
fn listed(source: &str, start: &str) -> Option<Vec<[String; 3]>> {
    let list = source.split_once(start)?.1.split_once("];")?.0;
    // Texts are at the odd places between quotes: none of them has a quote inside.
    let texts: Vec<String> = list.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    let mut cases = Vec::new();
    for entry in texts.chunks(3) {
        cases.push(<[String; 3]>::try_from(entry.to_vec()).ok()?);
    }
    Some(cases)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_pages_are_current() {
        super::main(&["--check".to_owned()]).unwrap();
    }

    #[test]
    fn lists_are_found_in_tests() {
        let source =
            "x; const LIST: X = &[\n (\"a\", \"b c\", \"d\"),\n (\n \"e\",\n \"f\", \"g\", ),\n]; more \"";
        let found = super::listed(source, "LIST: X = &[").unwrap();
        assert_eq!(found, [["a", "b c", "d"], ["e", "f", "g"]].map(|entry| entry.map(str::to_owned)));
        assert_eq!(super::listed("LIST: X = &[];", "LIST: X = &[").unwrap().len(), 0);
        assert!(super::listed(source, "other").is_none());
    }
}
