//! From the command line to a command.

use wardian_abi as abi;

use crate::commands::{self, Command};
use crate::fail::{Fail, Res, fatal};
use crate::files::text;
use crate::out;
use crate::repo::{self, Global, Repo};

/// The version whose behaviour this is.
pub const VERSION: &str = "2.39.5";

const USAGE: &str = "usage: git [-v | --version] [-h | --help] [-C <path>] [-c <name>=<value>]
           [--git-dir=<path>] [--work-tree=<path>] [--bare] [--no-pager]
           <command> [<args>]";

/// What native git has and this one lacks.
const ABSENT: &[&str] = &[
    "annotate",
    "archimport",
    "archive",
    "backfill",
    "bisect",
    "bugreport",
    "bundle",
    "check-attr",
    "check-mailmap",
    "check-ref-format",
    "checkout-index",
    "cherry",
    "citool",
    "column",
    "commit-graph",
    "count-objects",
    "credential",
    "credential-cache",
    "credential-store",
    "cvsexportcommit",
    "cvsimport",
    "daemon",
    "diagnose",
    "diff-files",
    "diff-index",
    "diff-tree",
    "difftool",
    "fast-export",
    "fast-import",
    "fetch-pack",
    "filter-branch",
    "fmt-merge-msg",
    "for-each-repo",
    "fsmonitor--daemon",
    "gc",
    "get-tar-commit-id",
    "gitk",
    "gui",
    "help",
    "hook",
    "http-backend",
    "imap-send",
    "index-pack",
    "instaweb",
    "interpret-trailers",
    "mailinfo",
    "mailsplit",
    "maintenance",
    "merge-file",
    "merge-index",
    "merge-one-file",
    "merge-tree",
    "mergetool",
    "mktag",
    "mktree",
    "multi-pack-index",
    "name-rev",
    "notes",
    "p4",
    "pack-objects",
    "pack-redundant",
    "pack-refs",
    "patch-id",
    "prune",
    "prune-packed",
    "quiltimport",
    "range-diff",
    "read-tree",
    "receive-pack",
    "repack",
    "replace",
    "request-pull",
    "rerere",
    "scalar",
    "send-email",
    "send-pack",
    "sh-setup",
    "shell",
    "show-branch",
    "show-index",
    "sparse-checkout",
    "stripspace",
    "submodule",
    "subtree",
    "svn",
    "unpack-file",
    "unpack-objects",
    "update-index",
    "update-server-info",
    "upload-archive",
    "upload-pack",
    "var",
    "verify-commit",
    "verify-pack",
    "verify-tag",
    "web--browse",
    "whatchanged",
    "worktree",
];

pub fn run() -> i32 {
    let arguments: Vec<Vec<u8>> = abi::args().into_iter().skip(1).collect();
    let code = match start(&arguments) {
        Ok(code) => code,
        Err(fail) => fail.report(),
    };
    crate::http::clean_up();
    code
}

fn start(arguments: &[Vec<u8>]) -> Res<i32> {
    let mut global = Global::default();
    let mut rest = arguments;
    while let [first, after @ ..] = rest {
        let first = text(first);
        let value = |name: &str| -> Res<(Vec<u8>, &[Vec<u8>])> {
            match (first.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')), after) {
                (Some(value), _) => Ok((value.as_bytes().to_vec(), after)),
                (None, [value, after @ ..]) => Ok((value.clone(), after)),
                (None, []) => Err(Fail::Usage(format!("no value given for '{name}'\n{USAGE}"))),
            }
        };
        match first.as_str() {
            "-C" => {
                let (place, after) = value("-C")?;
                if let Err(error) = abi::chdir(abi::Dir::CWD, &place) {
                    fatal!("cannot change to '{}': {}", text(&place), error.message());
                }
                rest = after;
            }
            "-c" => {
                let (setting, after) = value("-c")?;
                let equals = setting.iter().position(|&byte| byte == b'=');
                let name = setting[..equals.unwrap_or(setting.len())].to_vec();
                global.settings.push((name, equals.map(|at| setting[at + 1..].to_vec())));
                rest = after;
            }
            name if name == "--git-dir" || name.starts_with("--git-dir=") => {
                let (place, after) = value("--git-dir")?;
                (global.git_dir, rest) = (Some(place), after);
            }
            name if name == "--work-tree" || name.starts_with("--work-tree=") => {
                let (place, after) = value("--work-tree")?;
                (global.work_tree, rest) = (Some(place), after);
            }
            "--bare" => (global.bare, rest) = (true, after),
            "--no-pager" | "-P" | "-p" | "--paginate" | "--no-optional-locks" | "--no-replace-objects" => {
                rest = after
            }
            "--literal-pathspecs" => (global.literal_pathspecs, rest) = (true, after),
            "--version" | "-v" => {
                out::line(format_args!("git version {VERSION}"));
                return Ok(0);
            }
            "--help" | "-h" => {
                out::line(USAGE);
                return Ok(0);
            }
            "--exec-path" | "--html-path" | "--man-path" | "--info-path" => {
                out::line("/usr/lib/git-core");
                return Ok(0);
            }
            name if name.starts_with('-') => {
                return Err(Fail::Usage(format!("unknown option: {name}\n{USAGE}")));
            }
            _ => return dispatch(&first, after, &global, 0),
        }
    }
    out::line(USAGE);
    Ok(1)
}

fn dispatch(name: &str, arguments: &[Vec<u8>], global: &Global, depth: usize) -> Res<i32> {
    match commands::find(name) {
        Some(Command::Anywhere(command)) => command(global, arguments),
        Some(Command::InRepo(command)) => {
            let Some(repo) = Repo::find(global)? else {
                fatal!("not a git repository (or any of the parent directories): .git");
            };
            command(&repo, arguments)
        }
        None => alias(name, arguments, global, depth),
    }
}

/// A name that the settings explain.
fn alias(name: &str, arguments: &[Vec<u8>], global: &Global, depth: usize) -> Res<i32> {
    let config = match Repo::find(global) {
        Ok(Some(repo)) => repo.config,
        _ => repo::outer_config(global, true)?,
    };
    let Some(meaning) = config.text(&format!("alias.{name}")) else {
        if ABSENT.contains(&name) {
            out::complain(format!("git: '{name}' is not supported here"));
        } else {
            out::complain(format!("git: '{name}' is not a git command. See 'git --help'."));
        }
        return Ok(1);
    };
    if depth > 16 {
        fatal!("alias loop detected: expansion of '{name}' does not terminate");
    }
    if let Some(script) = meaning.strip_prefix('!') {
        return shell_alias(script, arguments, global);
    }
    let Some(mut words) = split_words(&meaning) else { fatal!("bad alias.{name} string: unclosed quote") };
    if words.is_empty() {
        fatal!("empty alias for {name}");
    }
    let first = text(&words.remove(0));
    words.extend(arguments.iter().cloned());
    dispatch(&first, &words, global, depth + 1)
}

fn shell_alias(script: &str, arguments: &[Vec<u8>], global: &Global) -> Res<i32> {
    let place = Repo::find(global)?.and_then(|repo| repo.work_tree);
    if let Some(place) = place
        && let Err(error) = abi::chdir(abi::Dir::CWD, &place)
    {
        fatal!("cannot change to '{}': {}", text(&place), error.message());
    }
    let with_arguments = if arguments.is_empty() { script.to_owned() } else { format!("{script} \"$@\"") };
    let mut command =
        vec![b"sh".to_vec(), b"-c".to_vec(), with_arguments.into_bytes(), script.as_bytes().to_vec()];
    command.extend(arguments.iter().cloned());
    commands::program::run(&command)
}

/// Words as a shell would split them, quotes included.
pub fn split_words(line: &str) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = line.bytes();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (Some(open), byte) if byte == open => quote = None,
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (None | Some(b'"'), b'\\') => word.get_or_insert_default().push(bytes.next()?),
            (None, b' ' | b'\t' | b'\n') => words.extend(word.take()),
            (_, byte) => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}
