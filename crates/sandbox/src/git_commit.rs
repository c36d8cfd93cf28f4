//! `git commit` without a message: the editor is a program of the sandbox, since a host tool cannot start one.
//!
//! The call becomes a script in the sandbox, which opens the editor on a file and then calls `git commit -m`.

use crate::extension::ExtensionCall;

/// The options of `git commit` that have a value, as letters: what follows in a group is the value.
const WITH_VALUE: &str = "mFCctSu";
/// The long options after which git needs no editor.
const NO_EDITOR: [&str; 11] = [
    "--message",
    "--file",
    "--reuse-message",
    "--no-edit",
    "--fixup",
    "--dry-run",
    "--short",
    "--porcelain",
    "--long",
    "--null",
    "--help",
];
/// The options with which it opens the editor whatever else there is.
const EDITS_ANYWAY: [&str; 3] = ["--edit", "--reedit-message", "--template"];

/// What to say if there is no way to edit a message.
const ADVICE: &str =
    "git commit: give the message with -m or -F: a host tool cannot open the sandbox's editor\n";

/// Called with the editor's command, the repository's directory, and the arguments after `commit`.
const SCRIPT: &str = r#"
editor=$1 repository=$2
shift 2
file=$(mktemp -t COMMIT_EDITMSG.XXXXXX) || exit
trap 'rm -f "$file"' EXIT
{
    case " $* " in
    *' --amend '*) git log -1 --format=%B ;;
    *) cat "$repository/.git/MERGE_MSG" 2> /dev/null || echo ;;
    esac
    echo '# Enter the message of the commit. Lines that begin with # are ignored; without others, nothing is committed.'
    echo '#'
    git status | sed 's/^/# /; s/ *$//'
} > "$file"
eval "$editor \"\$file\"" || { echo 'git commit: the editor failed; nothing was committed' >&2; exit 1; }
git commit --cleanup=strip -m "$(cat "$file")" "$@"
"#;

/// What a call of git is.
#[derive(Debug, PartialEq, Eq)]
enum Need {
    /// It works without an editor.
    Nothing,
    /// A message must be edited first.
    Message,
    /// It would open the editor itself.
    Impossible,
}

/// Handles a call that needs an editor, and returns its exit code; `None` for all others.
pub(crate) async fn edited(call: &mut ExtensionCall, mount: &str) -> Option<u8> {
    let arguments = match call.args.split_first() {
        Some((first, arguments)) if first == "commit" => arguments,
        _ => return None,
    };
    let need = need(arguments);
    if need == Need::Nothing {
        return None;
    }
    if let (Need::Message, Some(editor)) = (need, editor(call)) {
        let words = ["sh", "-c", SCRIPT, "git commit", &editor, mount].map(str::to_owned);
        let argv: Vec<Vec<u8>> =
            words.iter().chain(arguments).map(|word| word.clone().into_bytes()).collect();
        let env: Vec<Vec<u8>> =
            call.env.iter().map(|(name, value)| format!("{name}={value}").into_bytes()).collect();
        if let Ok(code) = call.process.run(b"/bin/sh", &argv, &env).await {
            return Some(code);
        }
    }
    let _ = call.stderr.write_all(ADVICE.as_bytes()).await;
    Some(1)
}

/// The command of the editor: the one that the sandbox's user chose, or the default at a terminal.
fn editor(call: &ExtensionCall) -> Option<String> {
    let chosen = ["GIT_EDITOR", "VISUAL", "EDITOR"].iter().find_map(|name| call.env.get(*name));
    let chosen = chosen.filter(|editor| !editor.trim().is_empty()).cloned();
    chosen.or_else(|| call.process.has_terminal().then(|| "editor".to_owned()))
}

fn need(arguments: &[String]) -> Need {
    let mut found = Need::Message;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        if word == "--" {
            break;
        } else if EDITS_ANYWAY.contains(&name) {
            return Need::Impossible;
        } else if NO_EDITOR.contains(&name) {
            found = Need::Nothing;
        } else if let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')) {
            let place = letters.find(|letter| WITH_VALUE.contains(letter));
            let flags = &letters[..place.unwrap_or(letters.len())];
            let valued = place.and_then(|place| letters[place..].chars().next());
            if flags.contains('e') || matches!(valued, Some('c' | 't')) {
                return Need::Impossible;
            }
            if matches!(valued, Some('m' | 'F' | 'C')) || flags.contains(['h', 'z']) {
                found = Need::Nothing;
            }
            // The value is the next word, except for those whose value is optional.
            if place.is_some_and(|place| place + 1 == letters.len()) && !matches!(valued, Some('S' | 'u')) {
                words.next();
            }
        } else if matches!(word.as_str(), "--author" | "--date" | "--cleanup" | "--trailer" | "--squash") {
            words.next();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_editor_is_needed_if_there_is_no_message() {
        for (line, expected) in [
            ("", Need::Message),
            ("-a", Need::Message),
            ("-av --amend", Need::Message),
            ("--author -m file", Need::Message),
            ("-- -m", Need::Message),
            ("-uno", Need::Message),
            ("-S file", Need::Message),
            ("-m text", Need::Nothing),
            ("-am text", Need::Nothing),
            ("-mtext", Need::Nothing),
            ("--message=text", Need::Nothing),
            ("-F file", Need::Nothing),
            ("-C HEAD", Need::Nothing),
            ("--amend --no-edit", Need::Nothing),
            ("--dry-run", Need::Nothing),
            ("-e -m text", Need::Impossible),
            ("-m text --edit", Need::Impossible),
            ("-c HEAD", Need::Impossible),
        ] {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(need(&words), expected, "{line}");
        }
    }
}
