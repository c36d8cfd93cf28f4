//! Whatever a program is, reading it ends, with an answer.

use proptest::prelude::*;
use wardian_awk::{Source, compile, parse};

/// Reads and compiles a text, with the stack that a program has and a test has not.
fn read(text: Vec<u8>) -> bool {
    let reader = std::thread::Builder::new().stack_size(8 << 20).spawn(move || {
        let source = Source { name: None, text };
        let parsed = parse(vec![source], &|_| Err("there are no files here".into()));
        parsed.and_then(|(program, names)| compile(&program, names)).is_ok()
    });
    reader.expect("a thread").join().expect("it does not panic")
}

/// Pieces of programs, to be put together in ways nobody meant.
const PIECES: &[&str] = &[
    "BEGIN",
    "END",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    "\n",
    ",",
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "**",
    "!",
    ">",
    ">>",
    "<",
    "|",
    "|&",
    "?",
    ":",
    "~",
    "!~",
    "$",
    "=",
    "+=",
    "/=",
    "==",
    "++",
    "--",
    "&&",
    "||",
    "in",
    "getline",
    "print",
    "printf",
    "if",
    "else",
    "while",
    "for",
    "do",
    "break",
    "continue",
    "next",
    "exit",
    "return",
    "delete",
    "function",
    "switch",
    "case",
    "default",
    "x",
    "a[1]",
    "f(",
    "length",
    "substr(",
    "gsub(",
    "split(",
    "\"s\"",
    "\"",
    "/re/",
    "/(/",
    "/[",
    "1",
    "0x",
    "1e",
    ".5",
    "@",
    "@include \"x\"",
    "#c",
    "\\\n",
    "NF",
    "$0",
    "BEGINFILE",
    "\u{e9}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes(text in proptest::collection::vec(any::<u8>(), 0..200)) {
        read(text);
    }

    #[test]
    fn any_pieces(picks in proptest::collection::vec(0..PIECES.len(), 0..40), blanks in any::<bool>()) {
        let pieces: Vec<&str> = picks.into_iter().map(|pick| PIECES[pick]).collect();
        read(pieces.join(if blanks { " " } else { "" }).into_bytes());
    }

    #[test]
    fn any_pattern(pattern in r"[\[\]a-c(){}|*+?.^$\\:0-9,é-]{0,30}") {
        read(format!("/{pattern}/").into_bytes());
        read(format!("BEGIN {{ x ~ \"{}\" }}", pattern.replace('\\', "\\\\")).into_bytes());
    }
}

#[test]
fn nesting_of_anything_ends_in_a_message() {
    const DEEP: usize = 100_000;
    let nested = [
        ("BEGIN { x = ", "(", "1", ")", " }"),
        ("BEGIN ", "{ ", "", "}", ""),
        ("BEGIN { x = ", "- ", "1", "", " }"),
        ("BEGIN { x = ", "!", "1", "", " }"),
        ("BEGIN { x = ", "$", "1", "", " }"),
        ("BEGIN { x = ", "a[", "1", "]", " }"),
        ("BEGIN { x = ", "f(", "1", ")", " } function f(x) { }"),
        ("BEGIN { x = ", "1 ? 2 : ", "3", "", " }"),
        ("BEGIN { ", "x = ", "3", "", " }"),
        ("BEGIN { x = ", "2 ^ ", "3", "", " }"),
        ("BEGIN { ", "if (1) ", ";", "", " }"),
        ("BEGIN { ", "if (1) ; else ", ";", "", " }"),
        ("BEGIN { ", "while (1) ", ";", "", " }"),
        ("BEGIN { ", "do ", ";", " while (1);", " }"),
        ("BEGIN { x = ", "1 + ", "3", "", " }"),
        ("BEGIN { x = ", "1 && ", "3", "", " }"),
        ("BEGIN { x = ", "getline < ", "3", "", " }"),
        ("BEGIN { x = ", "++", "y", "", " }"),
        ("", "/(", "x", ")/", ""),
        ("/", "(", "x", ")", "/"),
        ("BEGIN { x", "[1]", "", "", " }"),
    ];
    for (before, open, middle, close, after) in nested {
        let text = [before, &open.repeat(DEEP), middle, &close.repeat(DEEP), after].concat();
        assert!(!read(text.into_bytes()), "{before}{open}… was read");
    }
}

#[test]
fn long_is_not_deep() {
    let joined = format!("BEGIN {{ x = {} }}", "\"a\" ".repeat(100_000));
    let statements = format!("BEGIN {{ {} }}", "x = 1; ".repeat(100_000));
    let rules = "/x/ { y++ }\n".repeat(10_000);
    for text in [joined, statements, rules] {
        assert!(read(text.into_bytes()));
    }
}
