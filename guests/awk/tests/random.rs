//! Random programs, run by this awk and by gawk 5.2: both must write the same and exit alike.
//!
//! `cargo xtask fuzz awk_random --seconds N` runs new ones for as long as asked, where gawk is installed.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What the programs read.
const INPUT: &str = "10 apple 3.5\n9 banana -2\nx y z\n\n  lead  trail  \n1e3 0x10 +7\na,b;c d\n";

const PATTERNS: &[&str] = &[
    "/a/",
    "/[0-9]+/",
    "/^x/",
    "/b|bc/",
    "/(a|ab)(c|bcd)?/",
    "/\\./",
    "/[[:alpha:]]+/",
    "/z*/",
    "/an?/",
    "/$/",
    "/[^a-z ]/",
    "/(p+)l/",
    "\"a.\"",
    "/\\<./",
    "/e{1,2}/",
];

const TEXTS: &[&str] = &[
    "abc", "", "3x", " 7 ", "a.b", "x y z", "10", "1e2", "0", "abcabc", "é", "A-B", "+5", ".5", "bcd", "0x1f",
];

const NUMBERS: &[&str] = &["0", "1", "2", "3", "10", "0.5", "1e3", "7", "100", "2.25"];

/// A generator of programs.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn pick(&mut self, from: &[&str]) -> String {
        from[self.below(from.len())].to_owned()
    }

    fn target(&mut self) -> String {
        match self.below(6) {
            0..=2 => self.pick(&["a", "b", "c"]),
            3 => format!("m[{}]", self.expression(1)),
            4 => self.pick(&["$1", "$2", "$4", "$NF"]),
            _ => self.pick(&["d", "e", "$0"]),
        }
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return match self.below(6) {
                0 => self.pick(NUMBERS),
                1 => format!("\"{}\"", self.pick(TEXTS)),
                2 => self.pick(&["$1", "$2", "$3", "$0", "$NF", "$9"]),
                3 => self.pick(&["NF", "NR", "FNR"]),
                _ => self.pick(&["a", "b", "c", "d"]),
            };
        }
        let below = depth - 1;
        let (one, two) = (self.expression(below), self.expression(below));
        match self.below(20) {
            0..=2 => format!("{one} {} {two}", self.pick(&["+", "-", "*"])),
            3 => format!("({one}) {} {}", self.pick(&["/", "%"]), self.pick(&["3", "7", "0.5", "2"])),
            4 => format!("({one}) ^ {}", self.pick(&["2", "0", "3", "0.5"])),
            5..=6 => format!("({one}) ({two})"),
            7 => format!("({one} {} {two})", self.pick(&["<", "<=", "==", "!=", ">", ">="])),
            8 => format!("({one} ? {two} : {})", self.expression(below)),
            9 => format!("({one} {} {two})", self.pick(&["&&", "||"])),
            10 => format!("{}({one})", self.pick(&["!", "-", "+"])),
            11 => format!("(({one}) {} {})", self.pick(&["~", "!~"]), self.pick(PATTERNS)),
            12 => format!("length({one})"),
            13 => format!("substr({one}, {}, {})", self.pick(NUMBERS), self.pick(NUMBERS)),
            14 => format!("index({one}, {two})"),
            15 => format!("{}({one})", self.pick(&["toupper", "tolower", "int"])),
            16 => {
                let format =
                    self.pick(&["%d|%s", "%5.2f|%-4s", "%g|%c", "%x|%3s", "%e|%.2s", "%05d|%s", "%i|%5s"]);
                format!("sprintf(\"{format}\", {one}, {two})")
            }
            // gawk 5.2 answers rubbish for a number.
            17 => format!(
                "gensub({}, \"<&\\\\1>\", {}, ({one}) \"\")",
                self.pick(PATTERNS),
                self.pick(&["\"g\"", "1", "2"])
            ),
            18 => format!("(({one}) in m)"),
            _ => format!("match({one}, {}) RSTART RLENGTH", self.pick(PATTERNS)),
        }
    }

    fn statement(&mut self, depth: usize) -> String {
        match self.below(if depth == 0 { 9 } else { 13 }) {
            0..=1 => format!("print {}", self.expression(2)),
            2 => format!("print {}, {}", self.expression(1), self.expression(2)),
            3..=4 => {
                format!("{} {} {}", self.target(), self.pick(&["=", "+=", "-=", "*="]), self.expression(2))
            }
            5 => format!("{}{}", self.target(), self.pick(&["++", "--"])),
            6 => {
                // Naming a field there makes it exist for gawk, match or no match.
                let (function, target) = (self.pick(&["sub", "gsub"]), self.pick(&["a", "b", "$0", "m[1]"]));
                format!("print {function}({}, \"[&]\", {target}); print {target}", self.pick(PATTERNS))
            }
            7 => {
                let separator = self.pick(&["", ", \",\"", ", /[a-c]/", ", \"\"", ", \" \"", ", /b*/"]);
                format!("n = split({}, p{separator}); print n, p[1], p[n]", self.expression(1))
            }
            8 => self.pick(&[
                "NF = 2",
                "$3 = \"q\"",
                "print $0",
                "$0 = a",
                "OFS = \"-\"",
                "print NF",
                "delete m",
            ]),
            9 => {
                let (test, body) = (self.expression(2), self.statement(depth - 1));
                format!("if ({test}) {{ {body} }} else {{ {} }}", self.statement(depth - 1))
            }
            10 => format!("for (i{depth} = 0; i{depth} < 3; i{depth}++) {{ {} }}", self.statement(depth - 1)),
            11 => format!("if ({}) next", self.expression(1)),
            _ => format!(
                "printf \"%s %d %s\\n\", {}, {}, f({})",
                self.expression(1),
                self.expression(1),
                self.expression(1)
            ),
        }
    }

    fn program(&mut self) -> String {
        let mut program = format!("function f(a, b) {{ b = a; return {} }}\n", self.expression(2));
        if self.below(3) == 0 {
            program += &format!("BEGIN {{ FS = {} }}\n", self.pick(&["\",\"", "\" \"", "\"[ae]\"", "\"a\""]));
        }
        for _ in 0..1 + self.below(3) {
            let pattern = match self.below(4) {
                0 => self.pick(PATTERNS),
                1 => format!("{}, {}", self.expression(1), self.pick(PATTERNS)),
                2 => self.expression(2),
                _ => String::new(),
            };
            let statements: Vec<String> = (0..1 + self.below(4)).map(|_| self.statement(2)).collect();
            program += &format!("{pattern} {{ {} }}\n", statements.join("; "));
        }
        program
            + "END { print a, b, c, d, NR, NF, $0; PROCINFO[\"sorted_in\"] = \"@ind_str_asc\"; for (k in m) print k, m[k] }"
    }
}

/// What a program writes, and its exit code.
fn outcome(awk: &str, program: &str) -> (Vec<u8>, Option<i32>) {
    let mut child = Command::new(awk)
        .arg(program)
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    // A program need not read what it is given.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(INPUT.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    (output.stdout, output.status.code())
}

#[test]
#[ignore = "needs gawk 5.2: cargo xtask fuzz awk_random"]
fn random_programs_agree_with_gawk() {
    let seconds = std::env::var("WARDIAN_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    let first = std::env::var("WARDIAN_SEED").ok().and_then(|text| text.parse().ok());
    let first: u64 = first.unwrap_or(since.as_nanos() as u64);
    let (start, mut tried) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_secs(seconds) {
        let seed = first.wrapping_add(tried);
        tried += 1;
        let program = Random(seed).program();
        let (theirs, code) = outcome("gawk", &program);
        // What gawk does not take for a program says nothing.
        if code == Some(1) {
            continue;
        }
        let (ours, our_code) = outcome(env!("CARGO_BIN_EXE_awk"), &program);
        let agree = ours == theirs && our_code == code;
        let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        assert!(
            agree,
            "seed {seed}:\n{program}\n---- gawk {code:?}\n{}\n---- ours {our_code:?}\n{}",
            shown(&theirs),
            shown(&ours)
        );
    }
    println!("{tried} programs");
}
