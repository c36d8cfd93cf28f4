//! Programs and texts that nobody would write end in a result or a message, never in a crash.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Runs jq or yq; the exit code, `None` if a signal ended it.
fn run(name: &str, arguments: &[&str], input: &[u8]) -> Option<i32> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jq"));
    command.arg0(name).args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    // It need not read what it is given.
    let writer = std::thread::spawn(move || stdin.write_all(&input).ok());
    let code = child.wait().expect("it ends").code();
    writer.join().expect("the writer ends");
    code
}

/// The same numbers each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    /// A text with some of its bytes gone, doubled, or replaced by those of another.
    fn garbled(&mut self, text: &str, other: &str) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..1 + self.roll(4) {
            let at = self.roll(bytes.len() + 1);
            match self.roll(3) {
                0 => drop(bytes.drain(at.min(bytes.len())..(at + 2).min(bytes.len()))),
                1 => bytes.insert(at, other.as_bytes()[self.roll(other.len())]),
                _ => {
                    let from = self.roll(other.len());
                    let part = other.as_bytes()[from..(from + 6).min(other.len())].to_vec();
                    bytes.splice(at..at, part);
                }
            }
        }
        bytes.retain(|byte| *byte != 0);
        bytes
    }
}

const PROGRAMS: &[&str] = &[
    ".a[1:2]?|..|.b//\"x\\(1+2)y\"",
    "reduce .[] as [$a,{b:$c}] (0;.+$a*$c)",
    "def f(g;$x):g|.+$x;[f(.;1,2)]|map(select(.>1))",
    "label $out|foreach .[] as $i (0;.+$i;if .>3 then .,break $out else empty end)",
    "try error({a:1}) catch .a|@base64 \"\\(.)\"",
    ". as [$a] ?// {$a} | $a |= 5",
    "{a,\"b\":1,(\"c\"):2,$__loc__,@text \"d\":3}|to_entries|from_entries",
    "test(\"a(?<n>b)?\";\"gx\"),sub(\"a\";\"b\"),[splits(\",\")]",
    "[limit(3;range(1;10;2))],first(empty),path(..),del(.[0],.a)",
    "1e5,-.5,1.0e-3,nan,infinite|floor,tojson,strftime(\"%Y-%j\")",
    "import \"a\" as x;include \"b\";.",
];

const TEXTS: &[&str] = &[
    "{\"a\":[1,2.50,{\"b\":null}],\"c\":\"x\\u00e9\\ud83d\\ude00\\n\"} [true,false] 1e400 \"\"",
    "a: &x [1, 'two', \"three\"]\nb: *x\nc:\n  <<: {d: 1}\n  e: |\n    text\n  f: >-\n    folded\n# end\n---\n- !t x\n- ? k\n  : v\n",
];

#[test]
fn garbled_programs() {
    let mut dice = Dice(7);
    for round in 0..400 {
        let (one, two) = (PROGRAMS[dice.roll(PROGRAMS.len())], PROGRAMS[dice.roll(PROGRAMS.len())]);
        let program = String::from_utf8_lossy(&dice.garbled(one, two)).into_owned();
        let code = run("jq", &["-c", "--", &program], b"{\"a\":[1,2],\"b\":\"abab\"} [1,2] \"x\" 5");
        assert!(matches!(code, Some(0 | 2 | 3 | 5)), "{round}: {code:?}: {program}");
    }
}

#[test]
fn garbled_texts() {
    let mut dice = Dice(11);
    for round in 0..300 {
        let text = dice.garbled(TEXTS[0], TEXTS[dice.0 as usize % 2]);
        for arguments in
            [&["-c", "."][..], &["-c", "--stream", "."][..], &["--seq", "."][..], &["-R", "fromjson?"][..]]
        {
            let code = run("jq", arguments, &text);
            assert!(matches!(code, Some(0 | 5)), "{round}: {code:?}: {}", String::from_utf8_lossy(&text));
        }
    }
}

#[test]
fn garbled_documents() {
    let mut dice = Dice(13);
    for round in 0..300 {
        let text = dice.garbled(TEXTS[1], TEXTS[1]);
        for arguments in [&["."][..], &["-o", "json"][..], &[".a = 1 | .c.d = 2"][..]] {
            let code = run("yq", arguments, &text);
            assert!(matches!(code, Some(0 | 1)), "{round}: {code:?}: {}", String::from_utf8_lossy(&text));
        }
    }
}

#[test]
fn nesting_of_anything_ends() {
    let repeated = |part: &str, count: usize| part.repeat(count);
    let programs = [
        repeated("(", 100_000),
        repeated("[", 100_000),
        repeated("{a:", 100_000),
        repeated("-", 100_000) + "1",
        repeated(".a", 100_000),
        repeated(".[", 100_000),
        repeated("1+", 100_000) + "1",
        repeated("1|", 100_000) + "1",
        repeated("1,", 100_000) + "1",
        repeated("1//", 100_000) + "1",
        repeated("\"\\(", 10_000),
        repeated("if 1 then ", 100_000),
        repeated("try ", 100_000) + "1",
        repeated("def f: ", 100_000),
        repeated(". as [", 1) + &repeated("[", 100_000),
        repeated("reduce ", 100_000),
        repeated("1 as $x|", 100_000) + "1",
        repeated(".?", 1) + &repeated("?", 100_000),
    ];
    for program in &programs {
        let code = std::fs::write(scratch(), program).map(|()| run("jq", &["-n", "-f", &scratch()], b""));
        let code = code.expect("a file");
        assert!(matches!(code, Some(0 | 3 | 5)), "{code:?}: {}…", &program[..20]);
    }
    std::fs::remove_file(scratch()).expect("it goes");
    for program in [
        "reduce range(300000) as $i (null;[.])|length",
        "reduce range(100000) as $i (null;{a:.})|[.,.]|length",
        "def f: 1+f; [limit(1;first(range(3)))]",
        "[range(200000)]|map(.+1)|length",
        "def f(g): if . > 50000 then g else .+1|f(g|.+1) end; 0|f(.)",
        "reduce range(100000) as $i (null;[.])|. as $x|$x==($x|.)",
    ] {
        assert!(matches!(run("jq", &["-n", program], b""), Some(0 | 5)), "{program}");
    }
}

fn scratch() -> String {
    std::env::temp_dir().join(format!("wardian-jq-{}.jq", std::process::id())).display().to_string()
}
