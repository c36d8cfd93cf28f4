//! Files: reading, writing, editing, listing and searching.

use std::time::Duration;

use serde_json::{Value, json};
use similar::TextDiff;
use wardian::{Errno, Error, FileKind, Run, Sandbox, WriteOptions};

use crate::answer::{Answer, Mistake, halves};
use crate::arguments::Arguments;
use crate::run::{shown, watched};
use crate::server::Call;

/// How long a file may be that is read or edited as a whole.
const LONGEST_FILE: u64 = 16 << 20;
/// How much a file may be written with.
const LONGEST_CONTENT: usize = 4 << 20;
/// How many entries of a directory are told.
const MOST_ENTRIES: usize = 1000;
/// How much memory a listing may take.
const LISTING: usize = 4 << 20;
/// How long a search pattern may be.
const LONGEST_PATTERN: usize = 4096;
/// How many lines a search finds.
const MOST_FOUND: u64 = 1000;
/// How long a difference may be looked for before it is shown in a simpler way.
const DIFF_TIME: Duration = Duration::from_millis(500);

/// `read_file`.
pub(crate) async fn read(call: &Call<'_>, mut arguments: Arguments) -> Result<Answer, Mistake> {
    let path = arguments.path("path", None)?;
    let first = arguments.number("first_line", 1, u64::MAX / 2)?;
    let count = arguments.number("line_count", 1, u64::MAX / 2)?;
    let name = arguments.name("sandbox")?;
    arguments.finish()?;
    let (sandbox, name) = call.boxes.get(name.as_deref()).await?;
    let whole = text_of(&sandbox, &path).await?;
    let lines = whole.lines().count();
    let text: String = if first.is_none() && count.is_none() {
        whole
    } else {
        let skip = usize::try_from(first.unwrap_or(1) - 1).unwrap_or(usize::MAX);
        let take = count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
        whole.split_inclusive('\n').skip(skip).take(take).collect()
    };
    let cut = halves(&text, call.options.max_output).map(|(head, tail, missing)| {
        let hint = "read it in parts with first_line and line_count";
        format!("{head}\n[… {missing} characters left out of {lines} lines; {hint} …]\n{tail}")
    });
    let data = json!({"sandbox": name, "path": path, "lines": lines, "cut": cut.is_some()});
    Ok(Answer::new(cut.unwrap_or(text), data))
}

/// A file that is text, or what to do with one that is not.
async fn text_of(sandbox: &Sandbox, path: &str) -> Result<String, Mistake> {
    let bytes = sandbox.read_file_within(path, LONGEST_FILE).await.map_err(|error| match error.errno() {
        Some(Errno::EFBIG) => {
            Mistake::new(format!("{path} is longer than {LONGEST_FILE} bytes; look at parts of it with run_command (head, sed -n, grep)"))
        }
        Some(Errno::EISDIR) => Mistake::new(format!("{path} is a directory; list_directory lists it")),
        _ => error.into(),
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let length = error.as_bytes().len();
        Mistake::new(format!(
            "{path} is not text ({length} bytes); run_command can look at it (file, xxd, python3)"
        ))
    })
}

/// `write_file`.
pub(crate) async fn write(call: &Call<'_>, mut arguments: Arguments) -> Result<Answer, Mistake> {
    let path = arguments.path("path", None)?;
    let content = arguments.text("content", LONGEST_CONTENT)?;
    let name = arguments.name("sandbox")?;
    arguments.finish()?;
    let (sandbox, name) = call.boxes.get(name.as_deref()).await?;
    let length = content.len();
    put(&sandbox, &path, content).await?;
    Ok(Answer::new(
        format!("wrote {length} bytes to {path}"),
        json!({"sandbox": name, "path": path, "bytes": length}),
    ))
}

async fn put(sandbox: &Sandbox, path: &str, content: String) -> Result<(), Error> {
    let options = WriteOptions { parents: true, ..WriteOptions::default() };
    sandbox.write_file_with(path, content.into_bytes(), options).await
}

/// `edit_file`.
pub(crate) async fn edit(call: &Call<'_>, mut arguments: Arguments) -> Result<Answer, Mistake> {
    let path = arguments.path("path", None)?;
    let old = arguments.text("old_text", LONGEST_CONTENT)?;
    let new = arguments.text("new_text", LONGEST_CONTENT)?;
    let all = arguments.flag("replace_all")?;
    let name = arguments.name("sandbox")?;
    arguments.finish()?;
    let (sandbox, name) = call.boxes.get(name.as_deref()).await?;
    let before = text_of(&sandbox, &path).await?;
    let (after, count) = replaced(&path, &before, &old, &new, all)?;
    put(&sandbox, &path, after.clone()).await?;
    let title = path.clone();
    let diff =
        tokio::task::spawn_blocking(move || difference(&title, &before, &after)).await.unwrap_or_default();
    let cut = halves(&diff, call.options.max_output)
        .map(|(head, tail, missing)| format!("{head}\n[… {missing} characters left out …]\n{tail}"));
    let data = json!({"sandbox": name, "path": path, "replaced": count});
    Ok(Answer::new(cut.unwrap_or(diff), data))
}

/// The text with the replacement, and how many there were: one, unless all are wanted.
fn replaced(path: &str, text: &str, old: &str, new: &str, all: bool) -> Result<(String, usize), Mistake> {
    if old.is_empty() {
        return Err(Mistake::new("old_text must not be empty; write_file writes a whole file"));
    }
    if old == new {
        return Err(Mistake::new("old_text and new_text are the same"));
    }
    let count = text.matches(old).count();
    match count {
        0 => Err(Mistake::new(format!(
            "old_text is not in {path}; it must match exactly, with all spaces and line ends (read_file shows them)"
        ))),
        1 => Ok((text.replacen(old, new, 1), 1)),
        _ if !all => Err(Mistake::new(format!(
            "old_text is in {path} {count} times; make it longer until it is unique, or set replace_all"
        ))),
        _ => {
            // What a replacement makes of a file is not bounded by what it is given.
            let length = text.len() as u128 + count as u128 * new.len() as u128;
            if length > u128::from(LONGEST_FILE) + LONGEST_CONTENT as u128 {
                return Err(Mistake::new(format!("the file would be longer than {LONGEST_FILE} bytes")));
            }
            Ok((text.replace(old, new), count))
        }
    }
}

/// A unified diff.
fn difference(path: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(before, after);
    let path = path.trim_start_matches('/');
    diff.unified_diff().context_radius(3).header(&format!("a/{path}"), &format!("b/{path}")).to_string()
}

/// `list_directory`.
pub(crate) async fn list(call: &Call<'_>, mut arguments: Arguments) -> Result<Answer, Mistake> {
    let path = arguments.path("path", Some("."))?;
    let recursive = arguments.flag("recursive")?;
    let name = arguments.name("sandbox")?;
    arguments.finish()?;
    let (sandbox, name) = call.boxes.get(name.as_deref()).await?;
    let listed = if recursive {
        sandbox.list_all_within(&path, LISTING).await
    } else {
        sandbox.list_within(&path, LISTING).await
    };
    let listing = listed.map_err(|error| match error.errno() {
        Some(Errno::EFBIG) => Mistake::new(format!(
            "{path} has too many entries to list; narrow it down, or use run_command with find"
        )),
        _ => error.into(),
    })?;
    let mut text = String::new();
    let mut entries = Vec::new();
    let total = listing.iter().count();
    for (entry, kind, size) in listing.iter().take(MOST_ENTRIES) {
        let entry = String::from_utf8_lossy(entry);
        let mark = match kind {
            FileKind::Dir => "/",
            FileKind::Symlink => "@",
            _ => "",
        };
        text.push_str(&format!("{size:>10}  {entry}{mark}\n"));
        entries.push(json!({"name": entry, "type": kind_name(kind), "size": size}));
    }
    if total > MOST_ENTRIES {
        text.push_str(&format!("[… {} more entries …]\n", total - MOST_ENTRIES));
    }
    if total == 0 {
        text.push_str("(empty)\n");
    }
    Ok(Answer::new(text, json!({"sandbox": name, "path": path, "entries": entries, "total": total})))
}

fn kind_name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Dir => "dir",
        FileKind::Symlink => "symlink",
        _ => "other",
    }
}

/// `search_files`. It runs the sandbox's own programs, under its limits and the call's timeout.
pub(crate) async fn search(call: &Call<'_>, mut arguments: Arguments) -> Result<Answer, Mistake> {
    let pattern = arguments.optional_text("pattern", LONGEST_PATTERN)?.unwrap_or_default();
    let path = arguments.path("path", Some("."))?;
    let glob = arguments.optional_text("glob", LONGEST_PATTERN)?.unwrap_or_default();
    let most = arguments.number("max_results", 1, MOST_FOUND)?.unwrap_or(200);
    let name = arguments.name("sandbox")?;
    arguments.finish()?;
    let script = match (pattern.is_empty(), glob.is_empty()) {
        (true, true) => {
            return Err(Mistake::new(
                "give a 'pattern' to search for in files, a 'glob' for their names, or both",
            ));
        }
        (true, false) => "find \"$_path\" -type f -name \"$_glob\" | sort",
        (false, true) => "grep -rnIE -e \"$_pattern\" -- \"$_path\"",
        (false, false) => "grep -rnIE --include=\"$_glob\" -e \"$_pattern\" -- \"$_path\"",
    };
    let (sandbox, name) = call.boxes.get(name.as_deref()).await?;
    let run = Run::new(format!("{script} | head -n {}", most + 1))
        .timeout(Some(call.options.timeout))
        .contained(true);
    let run = run.env("_pattern", pattern).env("_path", path).env("_glob", glob);
    let result = watched(call, sandbox.run_with(run)).await?;
    if result.error_class.is_some() || (!result.stderr.is_empty() && result.stdout.is_empty()) {
        let said = String::from_utf8_lossy(&result.stderr);
        return Err(Mistake::new(format!("the search failed: {}", said.trim())));
    }
    let found = String::from_utf8_lossy(&result.stdout);
    let lines: Vec<&str> = found.lines().collect();
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let more = lines.len() > most;
    let lines = &lines[..lines.len().min(most)];
    let mut text = lines.join("\n");
    if lines.is_empty() {
        text.push_str("nothing found");
    }
    if more {
        text.push_str(&format!("\n[… more than {most} results; narrow the search …]"));
    }
    let shown = shown(call, &sandbox, text).await;
    let data: Value = json!({"sandbox": name, "count": lines.len(), "more": more, "output_file": shown.file});
    Ok(Answer::new(shown.text, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replacement_must_be_unique_unless_all_are_wanted() {
        let edit = |old, new, all| replaced("/f", "one two one", old, new, all);
        assert_eq!(edit("two", "2", false).unwrap(), ("one 2 one".to_owned(), 1));
        assert_eq!(edit("one", "1", true).unwrap(), ("1 two 1".to_owned(), 2));
        assert!(edit("one", "1", false).unwrap_err().sentence().contains("2 times"));
        assert!(edit("three", "3", false).unwrap_err().sentence().contains("not in /f"));
        assert!(edit("", "x", false).is_err() && edit("one", "one", true).is_err());
        let many = "x".repeat(1 << 20);
        assert!(replaced("/f", &many, "x", &"y".repeat(1 << 20), true).is_err());
    }

    #[test]
    fn a_difference_shows_what_changed() {
        let text = difference("/tmp/f", "a\nb\nc\n", "a\nB\nc\n");
        assert_eq!(text, "--- a/tmp/f\n+++ b/tmp/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
    }
}
