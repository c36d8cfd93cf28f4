//! A thousand command lines that try to get out: those that are let through are run, and nothing gets out.

use std::process::{Command, Stdio};
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config as Settings, RngAlgorithm, TestRng, TestRunner};
use wardian_hosttools::{ExecSpec, Request};

use crate::yard::{SONG, UNSEEN, Yard};

const LINES: usize = 1000;

/// Ways to say where the canary is, and ways that only look like it. `ABS` stands for the directory the jail lies in.
const PATHS: &[&str] = &[
    "../outside/canary",
    "../../outside/canary",
    "sub/../../outside/canary",
    "sub/..//.././outside/./canary",
    "sub/up/../outside/canary",
    "missing/../../outside/canary",
    "file/../../outside/canary",
    "ABS/outside/canary",
    "/ABS/outside/canary",
    "ABS/jail/../outside/canary",
    "ABS/jail/../jail/sub/up/../outside/canary",
    "ABS/./jail/../outside/canary",
    "/proc/self/cwd/../outside/canary",
    "/proc/self/rootABS/outside/canary",
    "/proc/thread-self/cwd/../outside",
    "/dev/fd/../cwd/../outside/canary",
    "/dev/null/../..ABS/outside/canary",
    "out/canary",
    "out",
    "song",
    "abs/canary",
    "abs",
    "./song",
    "sub/up/song",
    "sub/up/out/./canary",
    "..",
    "../",
    "../outside",
    "/",
    "ABS/outside",
    "~/../outside/canary",
    "$HOME/../outside/canary",
    "@../outside/canary",
    "@ABS/outside/canary",
    "@song",
    "file,song",
    "x=song",
    "x=../outside/canary",
    "HEAD:../outside/canary",
    "HEAD:song",
    ":(top)../outside/canary",
    ":(exclude)song",
    ":/../outside/canary",
    ":!../outside/canary",
    "file://ABS/outside/canary",
    "..\\outside\\canary",
    "..\u{2215}outside\u{2215}canary",
    "\u{2025}/outside/canary",
    "\u{ff0e}\u{ff0e}/outside/canary",
    "%2e%2e/outside/canary",
    "..%2foutside%2fcanary",
    "../outside/cana\u{0301}ry",
    "../outside/canary\n",
    " ../outside/canary",
    "../outside/canary ",
    "\t../outside/canary",
    "*",
    "../*",
    "../outside/c?nary",
    "{..,.}/outside/canary",
    "file",
    "sub",
    ".",
    "words",
    "",
    "-",
    "--",
];

const PROGRAMS: &[(&str, &[&str])] = &[
    ("cat", &["-n", "-A", "--show-all", "--x", "-C"]),
    ("head", &["-n", "-c", "--lines", "--bytes", "-q", "-1"]),
    ("tail", &["-n", "-c", "-f", "-F", "--follow", "--retry", "--pid", "-n1f", "--lines"]),
    ("wc", &["-l", "-c", "--files0-from", "--files", "--total", "-L"]),
    (
        "ls",
        &[
            "-l",
            "-a",
            "-R",
            "-L",
            "-H",
            "-laRL",
            "--dereference",
            "--deref",
            "-I",
            "--hide",
            "-d",
            "--dereference-command-line",
        ],
    ),
    (
        "grep",
        &[
            "-r",
            "-R",
            "-e",
            "-f",
            "-rf",
            "-ef",
            "-fe",
            "--file",
            "--fil",
            "--regexp",
            "--include",
            "--exclude-from",
            "-A",
            "-d",
            "-D",
            "--dereference-recursive",
            "--deref",
            "-h",
            "sings",
            "-rh",
            ".",
            "canary",
            "-c",
            "-z",
            "-a",
            "-L",
        ],
    ),
    (
        "find",
        &[
            "-L",
            "-H",
            "-P",
            "-D",
            "-O3",
            "-follow",
            "-name",
            "-path",
            "-newer",
            "-samefile",
            "-exec",
            "-execdir",
            "-ok",
            "-delete",
            "-fprint",
            "-fprintf",
            "-fls",
            "-files0-from",
            "--exec",
            "-type",
            "f",
            "-printf",
            "%p",
            "-newermt",
            "-o",
            "-anewer",
            "cat",
            ";",
            "{}",
            "+",
            "-maxdepth",
            "3",
            "-ls",
            "-newerat",
            "-lname",
            "-regex",
        ],
    ),
    (
        "git",
        &[
            "log",
            "diff",
            "show",
            "status",
            "blame",
            "ls-files",
            "rev-parse",
            "branch",
            "-c",
            "-C",
            "--git-dir",
            "--work-tree",
            "--exec-path",
            "--no-index",
            "--no-ind",
            "--output",
            "--outp",
            "--ext-diff",
            "--textconv",
            "-p",
            "-O",
            "-S",
            "-G",
            "-L",
            "-X",
            "--contents",
            "--exclude-from",
            "--ignore-revs-file",
            "--pathspec-from-file",
            "--resolve-git-dir",
            "--git-path",
            "-n",
            "HEAD",
            "--grep",
            "--format",
            "-m",
            "-D",
            "--relative",
            "--raw",
            "-u",
            "alias.x=!cat",
            "core.pager=cat",
            "--no-pager",
            "push",
            "config",
            "--others",
            "-o",
            "--show-prefix",
            "file",
        ],
    ),
];

#[derive(Clone, Debug)]
enum Piece {
    Flag(usize),
    Path(usize),
    /// `FLAG=PATH`, `FLAGPATH`, `-xFLAGPATH`, an abbreviation.
    Joined(usize, usize, usize),
    Long(usize),
}

fn pieces() -> impl Strategy<Value = (usize, Vec<Piece>, bool)> {
    let number = || any::<u16>().prop_map(usize::from);
    let piece = prop_oneof![
        3 => number().prop_map(Piece::Flag),
        3 => number().prop_map(Piece::Path),
        2 => (number(), number(), number()).prop_map(|(flag, path, form)| Piece::Joined(flag, path, form)),
        1 => number().prop_map(Piece::Long),
    ];
    (number(), prop::collection::vec(piece, 1..6), any::<bool>())
}

/// The words that the pieces stand for.
fn words(parent: &str, program: usize, pieces: &[Piece]) -> Vec<String> {
    let (name, flags) = PROGRAMS[program % PROGRAMS.len()];
    let flag = |number: usize| flags[number % flags.len()];
    let path = |number: usize| PATHS[number % PATHS.len()].replace("ABS", parent);
    let word = |piece: &Piece| match *piece {
        Piece::Flag(number) => flag(number).to_owned(),
        Piece::Path(number) => path(number),
        Piece::Joined(number, place, form) => {
            let (flag, path) = (flag(number), path(place));
            match form % 4 {
                0 => format!("{flag}={path}"),
                1 => format!("{flag}{path}"),
                2 => format!("-xn{}{path}", flag.trim_start_matches('-')),
                _ => {
                    let end = flag.char_indices().nth(2 + form % 7).map_or(flag.len(), |(at, _)| at);
                    format!("{}={path}", &flag[..end])
                }
            }
        }
        // As long as a path can be, seen from here; longer, seen from the jail.
        Piece::Long(number) => format!("{}../outside/canary", "./".repeat(2030 + number % 20)),
    };
    std::iter::once(name.to_owned()).chain(pieces.iter().map(word)).collect()
}

/// The same words as a line for the tokenizer.
fn quoted(words: &[String]) -> String {
    let quote = |word: &String| format!("'{}'", word.replace('\'', "'\\''"));
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// The lines are the same in every run, and all different.
static LINES_TO_TRY: LazyLock<Vec<(usize, Vec<Piece>, bool)>> = LazyLock::new(|| {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Settings::default(), rng);
    (0..LINES).map(|_| pieces().new_tree(&mut runner).unwrap().current()).collect()
});

fn requests(yard: &Yard) -> Vec<(Vec<String>, Request)> {
    let parent = yard.root();
    let parent = parent.to_str().unwrap();
    let request = |(program, pieces, in_sub): &(usize, Vec<Piece>, bool)| {
        let words = words(parent, *program, pieces);
        let request =
            if pieces.len() % 2 == 0 { Request::words(&words) } else { Request::line(quoted(&words)) };
        (words, request.cwd(if *in_sub { "sub" } else { "" }))
    };
    LINES_TO_TRY.iter().map(request).collect()
}

fn assert_nothing_got_out(yard: &Yard, words: &[String], stdout: &[u8], stderr: &[u8]) {
    for stream in [stdout, stderr] {
        let text = String::from_utf8_lossy(stream);
        assert!(!text.contains(SONG) && !text.contains(UNSEEN), "{words:?}: {text}");
    }
    yard.assert_untouched(&words);
}

/// Without any help from the system: the policy alone lets nothing out.
fn run_bare(spec: &ExecSpec) -> std::process::Output {
    let mut program = Command::new("timeout");
    program.arg("20").arg(&spec.program).args(&spec.args).current_dir(spec.cwd.path());
    program.env_clear().envs(spec.env.iter().cloned()).stdin(Stdio::null()).output().unwrap()
}

#[tokio::test]
async fn a_thousand_lines_and_the_policy_alone() {
    let yard = Yard::with_repository();
    let door = yard.door();
    let mut let_through = 0;
    for (words, request) in requests(&yard) {
        if let Ok(spec) = door.check(&request) {
            let_through += 1;
            let output = run_bare(&spec);
            assert_nothing_got_out(&yard, &words, &output.stdout, &output.stderr);
        }
    }
    // Were all refused, nothing would have been tried.
    assert!((50..LINES - 300).contains(&let_through), "{let_through}");
}

#[tokio::test]
async fn a_thousand_lines_through_the_door() {
    let yard = Yard::with_repository();
    let door = yard.door();
    for (words, request) in requests(&yard) {
        if let Ok(finished) = door.run(request).await {
            assert_nothing_got_out(&yard, &words, &finished.stdout, &finished.stderr);
        }
    }
    let events = yard.events();
    let count = |event: &str| events.iter().filter(|found| **found == event).count();
    assert_eq!(count("tool.refused") + count("tool.start"), LINES);
    assert_eq!(count("tool.start"), count("tool.complete"));
}

/// The thousand have teeth: were every one of them run as it is, many would see the canary.
#[test]
fn without_the_door_many_of_them_get_out() {
    let yard = Yard::with_repository();
    let parent = yard.root();
    let mut out = 0;
    for (program, pieces, _) in LINES_TO_TRY.iter().take(300) {
        let words = words(parent.to_str().unwrap(), *program, pieces);
        // These would change or hang something.
        let harmful = [
            "-delete", "-f", "-F", "--follow", "-exec", "-ok", "-fprint", "-fls", "--output", "--outp", "-L",
            "-R", "/",
        ];
        if words[0] == "git"
            || words.iter().any(|word| {
                harmful.iter().any(|flag| word == flag || (flag.len() > 2 && word.starts_with(flag)))
            })
        {
            continue;
        }
        let mut program = Command::new("timeout");
        program.arg("5").args(&words).current_dir(yard.jail()).stdin(Stdio::null());
        let Ok(output) = program.output() else { continue };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        out += usize::from(text.contains(SONG) || text.contains(UNSEEN));
    }
    assert!(out > 10, "{out}");
}
