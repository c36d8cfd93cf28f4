//! What the shell's cases are made of, wherever they run: natively, in a sandbox, or in bash to be recorded.
//!
//! A case is a script, what it reads, and what bash 5.2 wrote to standard output and exited with. A *sheet* holds
//! many, one after the other, as bytes:
//!
//! ```text
//! Words about the sheet, if any.
//! #### name of the case
//! script lines…
//! .... stdin
//! what it reads (this part may be left out: then it reads nothing)
//! ---- 0
//! what it wrote…
//! ```
//!
//! `---- 0 no newline` says that the output's last line lacks its newline, `---- ?` that nobody recorded it yet. A case
//! that cannot be written so (a script that ends within a line) is `NAME.sh`, `NAME.out`, `NAME.rc` and, if it reads
//! something, `NAME.in`.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What a script did.
#[derive(Clone, PartialEq)]
pub struct Outcome {
    /// What it wrote to standard output.
    pub out: Vec<u8>,
    /// Its exit code; 128 and the signal's number if one ended it.
    pub code: i32,
}

/// A script and what bash made of it.
pub struct Case {
    /// Its name within its file; empty for a case that is a file of its own.
    pub name: String,
    /// The script.
    pub script: Vec<u8>,
    /// What it reads.
    pub stdin: Vec<u8>,
    /// What bash made of it, if that is recorded.
    pub recorded: Option<Outcome>,
}

/// Reads the text of a sheet.
pub fn parse(text: &[u8]) -> Result<Vec<Case>, String> {
    let (_preamble, mut next) = cut(text, b"#### ");
    let (mut cases, mut names) = (Vec::new(), HashSet::new());
    while let Some((title, rest)) = next {
        let name = String::from_utf8_lossy(title).into_owned();
        let (case, following) = cut(rest, b"#### ");
        cases.push(Case::parse(&name, case).map_err(|error| format!("'{name}': {error}"))?);
        if !names.insert(name.clone()) {
            return Err(format!("two cases are called '{name}'"));
        }
        next = following;
    }
    Ok(cases)
}

/// Reads a sheet, or the one case that is `NAME.sh` with the files beside it.
pub fn read(path: &Path) -> Result<Vec<Case>, String> {
    let within = |error: String| format!("{}: {error}", path.display());
    let text = fs::read(path).map_err(|error| within(error.to_string()))?;
    if path.extension().is_some_and(|extension| extension == "sheet") {
        return parse(&text).map_err(within);
    }
    let beside = |extension| fs::read(path.with_extension(extension)).ok();
    let code = beside("rc").and_then(|code| String::from_utf8_lossy(&code).trim().parse().ok());
    let recorded = beside("out").zip(code).map(|(out, code)| Outcome { out, code });
    Ok(vec![Case { name: String::new(), script: text, stdin: beside("in").unwrap_or_default(), recorded }])
}

impl Case {
    /// Reads what stands below a case's name.
    fn parse(name: &str, text: &[u8]) -> Result<Case, String> {
        let (input, output) = cut(text, b"---- ");
        let (status, out) = output.ok_or("it has no '---- STATUS' line")?;
        let (script, stdin) = cut(input, b".... stdin");
        let recorded = recorded(&String::from_utf8_lossy(status), out)?;
        let stdin = stdin.map_or(Vec::new(), |(_, stdin)| stdin.to_vec());
        Ok(Case { name: name.into(), script: script.to_vec(), stdin, recorded })
    }

    /// The listing of what bash did and this run did not, if there is such a thing.
    pub fn difference(&self, file: &str, got: Result<Outcome, String>) -> Option<String> {
        let title = format!("#### {file}: {}\n{}", self.name, String::from_utf8_lossy(&self.script));
        let Some(expected) = &self.recorded else {
            return Some(format!("{title}---- not recorded: cargo xtask shell-record\n"));
        };
        match got {
            Ok(got) if got == *expected => None,
            Ok(got) => Some(format!(
                "{title}---- status {}, bash {}\n{}",
                got.code,
                expected.code,
                listing(&expected.out, &got.out)
            )),
            Err(error) => Some(format!("{title}---- {error}\n")),
        }
    }
}

/// A line without what it begins with and its newline, and what stands after it.
type LineAndRest<'a> = (&'a [u8], &'a [u8]);

/// Cuts a text at the first line that begins so: what stands before it, the rest of that line, what stands after it.
pub fn cut<'a>(text: &'a [u8], begins: &[u8]) -> (&'a [u8], Option<LineAndRest<'a>>) {
    let mut start = 0;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        if let Some(rest) = line.strip_prefix(begins) {
            let rest = rest.strip_suffix(b"\n").unwrap_or(rest);
            return (&text[..start], Some((rest, &text[start + line.len()..])));
        }
        start += line.len();
    }
    (text, None)
}

/// What a status line and the output below it record.
fn recorded(status: &str, out: &[u8]) -> Result<Option<Outcome>, String> {
    let (code, out) = match status.strip_suffix(" no newline") {
        Some(code) => (code, out.strip_suffix(b"\n").unwrap_or(out)),
        None => (status, out),
    };
    match code.parse() {
        Ok(code) => Ok(Some(Outcome { out: out.to_vec(), code })),
        Err(_) if code == "?" && out.is_empty() => Ok(None),
        Err(_) => Err(format!("'---- {status}' is no status")),
    }
}

/// Every file of cases at or below a path, in order.
pub fn files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.into()]);
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        let is_case = path.extension().is_some_and(|extension| extension == "sh" || extension == "sheet");
        if path.is_dir() || is_case {
            found.extend(files(&path)?);
        }
    }
    found.sort();
    Ok(found)
}

/// Two outputs, line by line: what only the first has behind a minus, what only the second has behind a plus, and
/// of what they share at both ends only the line before and the line after.
fn listing(expected: &[u8], got: &[u8]) -> String {
    let lines = |text: &[u8]| -> Vec<String> {
        let shown = |line: &[u8]| match line.strip_suffix(b"\n") {
            Some(line) => {
                format!("{}\n", line.escape_ascii().to_string().replace("\\\"", "\"").replace("\\'", "'"))
            }
            None => format!("{} (no newline)\n", line.escape_ascii()),
        };
        text.split_inclusive(|&byte| byte == b'\n').map(shown).collect()
    };
    let (expected, got) = (lines(expected), lines(got));
    let same = expected.iter().zip(&got).take_while(|(a, b)| a == b).count();
    let (old, new) = (&expected[same..], &got[same..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old, new, after) = (&old[..old.len() - end], &new[..new.len() - end], &old[old.len() - end..]);
    let mut shown = String::new();
    shown.extend(expected[..same].last().map(|line| format!("  {line}")));
    shown.extend(old.iter().take(40).map(|line| format!("- {line}")));
    shown.extend(new.iter().take(40).map(|line| format!("+ {line}")));
    shown.extend(after.first().map(|line| format!("  {line}")));
    shown
}

/// How many cases differ, and some of the listings.
pub fn report(differences: &[String], total: usize) -> String {
    let shown = differences.iter().take(10).map(String::as_str).collect::<Vec<_>>().join("\n");
    format!("{} of {total} cases differ:\n\n{shown}", differences.len())
}
