//! Scripts for the shell's parser: out of its own tokens, and out of its recorded cases.

use crate::random::Random;
use std::path::Path;
use std::sync::OnceLock;

/// What the syntax is made of.
const TOKENS: &[&str] = &[
    "$(",
    "${",
    "$((",
    "((",
    "))",
    ")",
    "}",
    "{",
    "(",
    "`",
    "\"",
    "'",
    "$'",
    "$\"",
    "<<E\n",
    "E\n",
    "<<-'E F'\n",
    "<<<",
    "<(",
    ">(",
    "[[ ",
    " ]]",
    "[",
    "]",
    "if ",
    "then ",
    "elif ",
    "else ",
    "fi",
    "while ",
    "do ",
    "done",
    "for ",
    "in ",
    "case ",
    "esac",
    ";;",
    ";&",
    ";;&",
    "function ",
    "f() ",
    "select ",
    "until ",
    "coproc ",
    "time ",
    "! ",
    "&&",
    "||",
    "|",
    "|&",
    "&",
    ";",
    "\n",
    " ",
    "\t",
    "\\",
    "\\\n",
    "$",
    "x",
    "x=",
    "x+=",
    "a[",
    "=(",
    "${x",
    ":-",
    "##",
    "%%",
    "//",
    "^^",
    "@Q",
    "!",
    "#",
    "*",
    "?",
    "+(",
    "@(",
    "!(",
    "|",
    "{1..3}",
    "{a,b",
    ",",
    "..",
    "~",
    "1",
    "0x",
    "2#",
    "<<",
    ">>",
    "<",
    ">",
    ">&",
    "&>",
    "{fd}>",
    "2>&1",
    "=~ ",
    "==",
    "-f ",
    "echo ",
    "\u{e9}",
    "\u{80}",
    "#c\n",
    "declare -A ",
    "eval ",
    "alias ",
    "9999999999",
    "-",
    "--",
    "++",
    "**",
];

/// A row of tokens; now and then one of them many times over, as nesting too deep for any stack.
pub fn tokens(random: &mut Random) -> Vec<u8> {
    let mut script = Vec::new();
    for _ in 0..=random.below(60) {
        let token = TOKENS[random.below(TOKENS.len())];
        let times = if random.below(200) == 0 { 1 + random.below(3000) } else { 1 };
        script.extend_from_slice(token.repeat(times).as_bytes());
    }
    script
}

/// A recorded case with some of it left out, doubled, replaced by tokens or by bytes.
pub fn mutated_case(random: &mut Random) -> Vec<u8> {
    let cases = cases();
    let mut script = cases[random.below(cases.len())].clone();
    for _ in 0..=random.below(5) {
        mutate(&mut script, random);
    }
    script
}

fn mutate(script: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(script.len() + 1);
    let end = (at + random.below(20)).min(script.len());
    match random.below(6) {
        0 => script.truncate(at),
        1 => drop(script.drain(at..end)),
        2 => {
            let copy = script[at..end].to_vec();
            let to = random.below(script.len() + 1);
            script.splice(to..to, copy);
        }
        3 => script.insert(at, random.next() as u8),
        4 => {
            let cases = cases();
            let other = &cases[random.below(cases.len())];
            let from = random.below(other.len());
            script.splice(at..end, other[from..(from + 40).min(other.len())].iter().copied());
        }
        _ => drop(script.splice(at..at, TOKENS[random.below(TOKENS.len())].bytes())),
    }
}

/// The scripts of all sheets.
fn cases() -> &'static [Vec<u8>] {
    static CASES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    CASES.get_or_init(|| {
        let mut found = Vec::new();
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../guests/sh/tests/cases"), &mut found);
        assert!(!found.is_empty(), "there are no cases to start from");
        found
    })
}

fn collect(directory: &Path, found: &mut Vec<Vec<u8>>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "sheet") {
            let sheet = std::fs::read_to_string(&path).unwrap_or_default();
            let scripts = sheet.split("\n#### ").skip(1).filter_map(|case| case.split_once('\n'));
            found.extend(scripts.map(|(_, case)| case.split("\n---- ").next().unwrap_or(case).into()));
        }
    }
}

/// Runs something with the stack the kernel gives the shell.
pub fn on_a_deep_stack(run: impl FnOnce() + Send) {
    const STACK: usize = 8 << 20;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run);
        let ended = thread.expect("a thread starts").join();
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
}
