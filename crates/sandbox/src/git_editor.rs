//! Calls of git that would open an editor: it is a program of the sandbox, since a host tool cannot start one.
//!
//! `git commit` and `git tag -a` without a message become a script in the sandbox, which opens the editor on a file and then calls git
//! with the message. What cannot be done that way is refused by name.

use crate::extension::ExtensionCall;

/// The flags before a subcommand that change nothing about its message.
const LEADING: [&str; 7] = [
    "--no-pager",
    "--no-optional-locks",
    "--no-replace-objects",
    "--literal-pathspecs",
    "--glob-pathspecs",
    "--noglob-pathspecs",
    "--icase-pathspecs",
];

/// A subcommand that can open an editor.
struct Editing {
    name: &'static str,
    /// Whether it takes a message.
    message: bool,
    /// The letters of options that have a value: what follows in a group is the value.
    with_value: &'static str,
    /// Those of them whose value is never the next word.
    attached: &'static str,
    /// Long options whose value is the next word.
    long_with_value: &'static [&'static str],
    /// With one of these it needs a message; if there are none, it always does.
    wants: &'static [&'static str],
    /// With one of these it needs no editor.
    settled: &'static [&'static str],
    /// With one of these it opens the editor whatever else there is.
    anyway: &'static [&'static str],
}

const EDITING: [Editing; 7] = [
    Editing {
        name: "commit",
        message: true,
        with_value: "mFCctSu",
        attached: "Su",
        long_with_value: &[
            "--author",
            "--date",
            "--cleanup",
            "--trailer",
            "--squash",
            "--pathspec-from-file",
        ],
        wants: &[],
        settled: &[
            "-m",
            "-F",
            "-C",
            "-h",
            "-z",
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
        ],
        anyway: &["-e", "-c", "-t", "--edit", "--reedit-message", "--template"],
    },
    Editing {
        name: "tag",
        message: true,
        with_value: "mFun",
        attached: "n",
        long_with_value: &["--cleanup", "--format", "--sort", "--contains", "--merged", "--points-at"],
        wants: &["-a", "-s", "-u", "--annotate", "--sign", "--local-user"],
        settled: &[
            "-m",
            "-F",
            "-l",
            "-d",
            "-v",
            "-h",
            "--message",
            "--file",
            "--list",
            "--delete",
            "--verify",
        ],
        anyway: &["-e", "--edit"],
    },
    Editing { anyway: &["-e", "--edit"], ..Editing::of("add") },
    Editing { anyway: &["-e", "--edit"], with_value: "mXsSF", ..Editing::of("merge") },
    Editing { anyway: &["-e", "--edit"], with_value: "mXS", ..Editing::of("cherry-pick") },
    Editing { anyway: &["-e", "--edit"], with_value: "mXS", ..Editing::of("revert") },
    Editing { anyway: &["-i", "--interactive", "--edit-todo"], with_value: "sSXxC", ..Editing::of("rebase") },
];

impl Editing {
    const fn of(name: &'static str) -> Editing {
        Editing {
            name,
            message: false,
            with_value: "",
            attached: "S",
            long_with_value: &[],
            wants: &[],
            settled: &[],
            anyway: &[],
        }
    }
}

/// Called as `git commit` or `git tag`, with the editor's command, the directory, the flags before the subcommand, the subcommand, and its
/// arguments.
const SCRIPT: &str = r##"
editor=$1 flags=$3 subcommand=$4
cd -- "$2" || exit 128
shift 4
top=$PWD
until [ -e "$top/.git" ] || [ -z "$top" ]; do top=${top%/*}; done
file=$(mktemp -t COMMIT_EDITMSG.XXXXXX) || exit
trap 'rm -f "$file"' EXIT
{
    case "$subcommand: $* " in
    'commit: '*' --amend '* | 'commit: --amend '*) git log -1 --format=%B ;;
    commit:*) cat "$top/.git/MERGE_MSG" 2> /dev/null || echo ;;
    *) echo ;;
    esac
    echo "# Enter the message of the $subcommand. Lines that begin with # are ignored; without others, nothing is done."
    echo '#'
    [ "$subcommand" = tag ] || git status | sed 's/^/# /; s/ *$//'
} > "$file"
eval "$editor \"\$file\"" || { echo "$0: the editor failed; nothing was done" >&2; exit 1; }
if [ "$subcommand" = tag ] && ! grep -v '^#' "$file" | grep -q '[^[:space:]]'; then
    echo "$0: the message is empty; nothing was done" >&2
    exit 1
fi
git $flags "$subcommand" --cleanup=strip -m "$(cat "$file")" "$@"
"##;

/// What a call of git is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need<'a> {
    /// It works without an editor.
    Nothing,
    /// A message must be edited first.
    Message,
    /// It would open the editor itself, because of this option.
    Impossible(&'a str),
}

/// Takes `-C DIRECTORY` from the beginning of the arguments: the call is made there. What follows it is checked as always.
pub(crate) fn change_directory(call: &mut ExtensionCall) {
    let (cwd, taken) = directory(&call.cwd, &call.args);
    call.cwd = cwd;
    call.args.drain(..taken);
}

/// Returns the directory of the call, and how many of its arguments name it.
fn directory(cwd: &str, args: &[String]) -> (String, usize) {
    let (mut cwd, mut taken) = (cwd.to_owned(), 0);
    while let [flag, directory, ..] = &args[taken..]
        && flag == "-C"
    {
        match directory.strip_prefix('/') {
            Some(_) => cwd.clone_from(directory),
            // Git stays where it is.
            None if directory.is_empty() => {}
            None => cwd = format!("{}/{directory}", cwd.trim_end_matches('/')),
        }
        taken += 2;
    }
    (cwd, taken)
}

/// Handles a call that needs an editor, and returns its exit code; `None` for all others.
pub(crate) async fn edited(call: &mut ExtensionCall) -> Option<u8> {
    let flags = call.args.iter().take_while(|word| LEADING.contains(&word.as_str())).count();
    let (flags, rest) = call.args.split_at(flags);
    let (subcommand, arguments) = rest.split_first()?;
    let editing = EDITING.iter().find(|editing| editing.name == subcommand)?;
    let need = need(editing, arguments);
    let advice = match need {
        Need::Nothing => return None,
        Need::Message => "give the message with -m or -F".to_owned(),
        Need::Impossible(option) if editing.message => {
            format!("give the message with -m or -F, without {option}")
        }
        Need::Impossible(option) => format!("leave out {option}"),
    };
    let name = format!("git {subcommand}");
    if let (Need::Message, Some(editor)) = (need, editor(call)) {
        let words =
            ["sh", "-c", SCRIPT, &name, &editor, &call.cwd, &flags.join(" "), subcommand].map(str::to_owned);
        let argv: Vec<Vec<u8>> =
            words.iter().chain(arguments).map(|word| word.clone().into_bytes()).collect();
        let env: Vec<Vec<u8>> =
            call.env.iter().map(|(name, value)| format!("{name}={value}").into_bytes()).collect();
        if let Ok(code) = call.process.run(b"/bin/sh", &argv, &env).await {
            return Some(code);
        }
    }
    let told = format!("{name}: {advice}: a host tool cannot open the sandbox's editor\n");
    let _ = call.stderr.write_all(told.as_bytes()).await;
    Some(1)
}

/// The command of the editor: the one that the sandbox's user chose, or the default at a terminal.
fn editor(call: &ExtensionCall) -> Option<String> {
    let chosen = ["GIT_EDITOR", "VISUAL", "EDITOR"].iter().find_map(|name| call.env.get(*name));
    let chosen = chosen.filter(|editor| !editor.trim().is_empty()).cloned();
    chosen.or_else(|| call.process.has_terminal().then(|| "editor".to_owned()))
}

/// Whether a long option, which may be shortened, is one of these.
fn is_one(name: &str, options: &[&str]) -> bool {
    let shortened = name.len() > "--xx".len();
    options.iter().any(|option| *option == name || (shortened && option.starts_with(name)))
}

fn need<'a>(editing: &Editing, arguments: &'a [String]) -> Need<'a> {
    let (mut wanted, mut settled) = (editing.message && editing.wants.is_empty(), !editing.message);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            break;
        } else if word.starts_with("--") {
            let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
            if is_one(name, editing.settled) {
                settled = true;
            } else if is_one(name, editing.anyway) {
                return Need::Impossible(word);
            }
            wanted |= is_one(name, editing.wants);
            if editing.long_with_value.contains(&word.as_str()) {
                words.next();
            }
        } else if let Some(letters) = word.strip_prefix('-') {
            let place = letters.find(|letter| editing.with_value.contains(letter));
            let end = place.map_or(letters.len(), |place| place + 1);
            for letter in letters[..end].chars() {
                let has = |options: &[&str]| options.contains(&format!("-{letter}").as_str());
                if has(editing.anyway) {
                    return Need::Impossible(word);
                }
                settled |= has(editing.settled);
                wanted |= has(editing.wants);
            }
            // The value is the next word, if nothing follows.
            if end == letters.len()
                && place.is_some_and(|place| !editing.attached.contains(&letters[place..]))
            {
                words.next();
            }
        }
    }
    if wanted && !settled { Need::Message } else { Need::Nothing }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn an_editor_is_needed_if_there_is_no_message() {
        for (line, expected) in [
            ("commit", Need::Message),
            ("commit -a", Need::Message),
            ("commit -av --amend", Need::Message),
            ("commit --author -m file", Need::Message),
            ("commit -- -m", Need::Message),
            ("commit -uno", Need::Message),
            ("commit -S file", Need::Message),
            ("commit -m text", Need::Nothing),
            ("commit -am text", Need::Nothing),
            ("commit -mtext", Need::Nothing),
            ("commit --message=text", Need::Nothing),
            ("commit --mess text", Need::Nothing),
            ("commit -F file", Need::Nothing),
            ("commit -C HEAD", Need::Nothing),
            ("commit --amend --no-edit", Need::Nothing),
            ("commit --dry-run", Need::Nothing),
            ("commit -e -m text", Need::Impossible("-e")),
            ("commit -m text --edit", Need::Impossible("--edit")),
            ("commit -c HEAD", Need::Impossible("-c")),
            ("commit -m -e", Need::Nothing),
            ("tag", Need::Nothing),
            ("tag v1", Need::Nothing),
            ("tag -a v1", Need::Message),
            ("tag --annotate v1 HEAD", Need::Message),
            ("tag -s v1", Need::Message),
            ("tag -a -m text v1", Need::Nothing),
            ("tag -am text v1", Need::Nothing),
            ("tag -n5", Need::Nothing),
            ("tag -l -n a", Need::Nothing),
            ("tag -e -m x v1", Need::Impossible("-e")),
            ("rebase main", Need::Nothing),
            ("rebase -i main", Need::Impossible("-i")),
            ("rebase --interactive main", Need::Impossible("--interactive")),
            ("revert -e HEAD", Need::Impossible("-e")),
            ("revert HEAD", Need::Nothing),
            ("merge --edit x", Need::Impossible("--edit")),
            ("merge -m -e x", Need::Nothing),
            ("add -e", Need::Impossible("-e")),
            ("add -A", Need::Nothing),
        ] {
            let words = words(line);
            let editing = EDITING.iter().find(|editing| editing.name == words[0]).expect("a subcommand");
            assert_eq!(need(editing, &words[1..]), expected, "{line}");
        }
    }

    #[test]
    fn a_directory_is_relative_to_the_one_before_it() {
        for (line, cwd, taken) in [
            ("commit -C HEAD", "/repo", 0),
            ("-C a commit", "/repo/a", 2),
            ("-C a -C b/c status", "/repo/a/b/c", 4),
            ("-C a -C /repo/d status", "/repo/d", 4),
            ("-C", "/repo", 0),
        ] {
            assert_eq!(directory("/repo", &words(line)), (cwd.to_owned(), taken), "{line}");
        }
        assert_eq!(directory("/", &["-C".to_owned(), String::new()]), ("/".to_owned(), 2));
    }
}
