//! Small scripts out of a grammar, the same for the same seed.
//!
//! A script is a list of statements, each a tree whose parts can be left out: that is how a disagreement is shrunk.
//! The grammar keeps to what has one answer: nothing of times, of process numbers, of the order in which processes
//! happen to run.

/// A statement: text, with places for the statements inside it.
#[derive(Clone, Debug)]
pub enum Statement {
    /// One line that stands for itself.
    Line(String),
    /// What comes before, the statements inside, what comes after.
    Block(String, Vec<Statement>, String),
}

/// The text of statements.
pub fn text(statements: &[Statement]) -> String {
    let mut out = String::new();
    for statement in statements {
        match statement {
            Statement::Line(line) => out.push_str(line),
            Statement::Block(before, inside, after) => {
                out.push_str(before);
                out.push('\n');
                // A block needs something in it.
                out.push_str(if inside.is_empty() { ":\n" } else { "" });
                out.push_str(&text(inside));
                out.push_str(after);
            }
        }
        out.push('\n');
    }
    out
}

/// Numbers to go by (splitmix64).
pub struct Random(u64);

const NAMES: &[&str] = &["a", "b", "c", "x"];
const ARRAYS: &[&str] = &["v", "w"];
const TEXTS: &[&str] = &[
    "",
    "1",
    "7",
    "-3",
    "foo",
    "a b",
    " lead",
    "trail ",
    "a:b:c",
    "x*y",
    "Hello World",
    "éa",
    "a\\tb",
    "[ab]",
    "~",
    "00",
];
const PATTERNS: &[&str] =
    &["*", "?", "a*", "*b", "[a-f]", "[!a]*", "*o*", "?o", "foo", "[[:upper:]]*", "'*'", "a\\*", "*[0-9]"];
const FORMATS: &[&str] = &["%s|", "%5s|", "%-4s|", "%q ", "%b", "%.2s,", "%%", "%c"];

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }

    /// A whole script: some values to work with, some statements, and what became of the values.
    pub fn script(&mut self) -> Vec<Statement> {
        let mut statements = Vec::new();
        for name in NAMES {
            let text = self.pick(TEXTS);
            statements.push(Statement::Line(format!("{name}={}", quote(text))));
        }
        let elements: Vec<String> = (0..self.below(5)).map(|_| quote(self.pick(TEXTS))).collect();
        statements.push(Statement::Line(format!("v=({}) w=([2]=two [5]='f ive')", elements.join(" "))));
        statements.push(Statement::Line("declare -A m=([k]=val [two]='a b')".to_owned()));
        statements.push(Statement::Line("set -- one 'two 2' ''".to_owned()));
        for _ in 0..2 + self.below(5) {
            let statement = self.statement(3);
            statements.push(statement);
        }
        statements
            .push(Statement::Line("declare -p a b c x v w m 2>/dev/null; echo \"$?:$#:$*\"".to_owned()));
        statements
    }

    fn statements(&mut self, depth: usize) -> Vec<Statement> {
        (0..1 + self.below(3)).map(|_| self.statement(depth)).collect()
    }

    fn statement(&mut self, depth: usize) -> Statement {
        if depth == 0 || self.below(3) > 0 {
            return Statement::Line(self.line(depth));
        }
        let mut inside = self.statements(depth - 1);
        let (before, after) = self.block(depth);
        if before.ends_with("$(") {
            // After a here-document there, bash 5.2 loses its way.
            leave_out(&mut inside, "<<E");
        }
        if before.starts_with("(trap") {
            // Whether a stage of a pipeline runs its parent's trap depends on what it is.
            leave_out(&mut inside, "|");
        }
        Statement::Block(before, inside, after)
    }

    fn block(&mut self, depth: usize) -> (String, String) {
        let pair = |before: &str, after: &str| (before.to_owned(), after.to_owned());
        match self.below(14) {
            0 => (format!("if {}; then", self.condition(depth)), format!("else\n{}\nfi", self.simple(1))),
            1 => (format!("for x in {} {}; do", self.word(2), self.word(2)), "done".to_owned()),
            2 => (format!("for ((i=0; i<{}; i++)); do", 1 + self.below(3)), "done".to_owned()),
            3 => {
                let counter = format!("n{depth}");
                (format!("{counter}=0; while ((++{counter} < {})); do", 2 + self.below(3)), "done".to_owned())
            }
            4 => (
                format!(
                    "case {} in {}) {};; {})",
                    self.word(2),
                    self.pick(PATTERNS),
                    self.simple(1),
                    self.pick(PATTERNS)
                ),
                format!("{}\nesac", self.pick(&[";;", ";&", ";;&"])),
            ),
            5 => pair("(", ")"),
            6 => pair("{", "} | while IFS= read -r l; do echo \"<$l>\"; done"),
            7 => (
                format!("f{depth}() {{ local a={}", self.word(1)),
                format!("}}\nf{depth} {} {}", self.word(2), self.word(2)),
            ),
            8 => ("{".to_owned(), format!("}} > file{depth}; cat file{depth}")),
            9 => pair("x=$(", ")\necho \"[$x]\""),
            10 => pair("{", "} 2>/dev/null && echo yes || echo no"),
            11 => (
                format!("(trap {} EXIT", quote(&format!("echo bye {}", self.pick(&["$?", "$a", "\"$x\""])))),
                ")".to_owned(),
            ),
            12 => (
                format!("( set {}", self.pick(&["-e", "-u", "-f", "-eu", "-o pipefail", "-ef"])),
                "); echo \"st $?\"".to_owned(),
            ),
            _ => (
                format!("{{ IFS={}", quote(self.pick(&[":", "", " :", "o", "ab"]))),
                "IFS=$' \\t\\n'; }".to_owned(),
            ),
        }
    }

    fn line(&mut self, depth: usize) -> String {
        match self.below(12) {
            0 => format!("{} && {} || {}", self.condition(depth), self.simple(depth), self.simple(depth)),
            1 => format!("! {}; echo $?", self.condition(depth)),
            2 => format!("{} | cat", self.simple(depth)),
            3 => format!("{} >> file; wc -l < file", self.simple(depth)),
            4 => format!("cat <<E\n{} and {}\nE", self.single(0), self.single(0)),
            5 => format!("read -r {} {} <<< {}", self.pick(NAMES), self.pick(NAMES), self.word(depth)),
            6 => format!("printf '[%s]' {} {}; echo", self.word(depth), self.word(depth)),
            _ => self.simple(depth),
        }
    }

    fn simple(&mut self, depth: usize) -> String {
        match self.below(16) {
            0..=3 => format!("echo {} {}", self.word(depth), self.word(depth)),
            4 => format!(
                "printf {} {} {}; echo",
                quote(self.pick(FORMATS)),
                self.word(depth),
                self.word(depth)
            ),
            5 => format!("{}={}", self.pick(NAMES), self.value(depth)),
            6 => format!("{}+={}", self.pick(NAMES), self.value(depth)),
            7 => format!("{}[{}]={}", self.pick(ARRAYS), self.arith(1), self.value(depth)),
            8 => format!("{}+=({} {})", self.pick(ARRAYS), self.word(depth), self.word(depth)),
            9 => format!("(({}))", self.arith_statement()),
            10 => format!("echo $(({}))", self.arith(3)),
            11 => format!("m[{}]={}", self.pick(&["k", "$a", "'x y'", "$x$x."]), self.value(depth)),
            12 => format!("unset {}", self.pick(&["a", "'v[0]'", "'m[k]'", "b", "v"])),
            13 => format!("set -- {} {}", self.word(depth), self.word(depth)),
            14 => "shift; echo $# \"$1\"".to_owned(),
            _ => format!("for e in {}; do printf '<%s>' \"$e\"; done; echo", self.list()),
        }
    }

    fn list(&mut self) -> String {
        self.pick(&[
            "\"$@\"",
            "$*",
            "\"$*\"",
            "$@",
            "\"${v[@]}\"",
            "${v[@]}",
            "\"${w[*]}\"",
            "\"${!w[@]}\"",
            "\"${v[@]:1}\"",
            "\"${@:2:1}\"",
            "\"${w[@]: -1}\"",
            "\"${v[@]/a/_}\"",
            "\"${v[@]#?}\"",
            "\"x${v[@]}y\"",
            "${w[@]^}",
            "\"${v[@]@Q}\"",
            "${a}{1,2}",
            "{a..e..2}$b",
            "\"${v[@]:-none}\"",
            "\"${#v[@]}\"",
        ])
        .to_owned()
    }

    fn condition(&mut self, depth: usize) -> String {
        let name = self.pick(NAMES);
        match self.below(8) {
            0 => format!("[[ {} == {} ]]", self.word(1), self.pick(PATTERNS)),
            1 => format!("[[ ${name} =~ {} ]]", self.pick(&["^a", "o+", "[0-9]", "(.)o", "b$"])),
            2 => format!("(({}))", self.arith(2)),
            3 => format!(
                "[ \"${name}\" {} {} ]",
                self.pick(&["=", "!=", "<", ">"]).replace(['<', '>'], "="),
                quote(self.pick(TEXTS))
            ),
            4 => format!("[ {} \"${name}\" ]", self.pick(&["-n", "-z", "-e", "-d"])),
            5 => format!("[[ -v {} ]]", self.pick(&["a", "v[1]", "m[k]", "nope", "w[2]"])),
            6 => format!("[[ ${name} < {} && -n ${name} ]]", quote(self.pick(&["b", "foo", "1"]))),
            _ => format!("{{ {}; }}", self.simple(depth.min(1))),
        }
    }

    /// A word as scripts write it.
    fn word(&mut self, depth: usize) -> String {
        match self.below(8) {
            0 => quote(self.pick(TEXTS)),
            1 => self
                .pick(&[
                    "plain", "a{b,c}d", "{1..3}", "x=y", "w\\ s", "'s q'", "\"d q\"", "$'t\\tx'", "-n",
                    "no*match",
                ])
                .to_owned(),
            2 | 3 => self.expansion(depth),
            4 | 5 => format!("\"{}\"", self.expansion(depth)),
            6 => format!("\"{} {}\"", self.single(depth), self.single(depth)),
            _ => format!("p{}s", self.expansion(depth)),
        }
    }

    /// A word that is assigned. With `$*` and `$@` bash joins by rules that depend on what else is in the word.
    fn value(&mut self, depth: usize) -> String {
        loop {
            let word = self.word(depth);
            if !word.contains(['@', '*']) {
                return word;
            }
        }
    }

    /// An expansion that is no list; beside a list in the same quotes, bash 5.2 splits what it should not.
    fn single(&mut self, depth: usize) -> String {
        loop {
            let expansion = self.expansion(depth);
            if !expansion.contains(['@', '*']) {
                return expansion;
            }
        }
    }

    /// Something that begins with a dollar sign.
    fn expansion(&mut self, depth: usize) -> String {
        let name =
            self.pick(&["a", "b", "c", "x", "nope", "v[1]", "w[2]", "m[k]", "1", "2", "v[@]", "*", "@"]);
        let operand = if depth > 0 && self.below(4) == 0 {
            self.expansion(depth - 1)
        } else {
            self.pick(&["D", "o", "*", "?", "a b", ""]).to_owned()
        };
        let pattern = self.pick(PATTERNS);
        match self.below(20) {
            0..=4 => format!("${}", self.pick(&["a", "b", "c", "x", "1", "#", "?", "*", "@"])),
            5 => format!("${{{name}}}"),
            6 => format!("${{{name}{}{operand}}}", self.pick(&[":-", "-", ":+", "+"])),
            7 => format!("${{{}:={operand}}}", self.pick(NAMES)),
            8 => format!("${{{name}{}{pattern}}}", self.pick(&["#", "##", "%", "%%"])),
            9 => format!("${{{name}{}{pattern}/{operand}}}", self.pick(&["/", "//", "/#", "/%"])),
            10 => format!("${{#{}}}", self.pick(&["a", "x", "v[@]", "w[*]", "m[k]", "1", "@"])),
            11 => {
                format!("${{{name}:{}}}", self.pick(&["1", " -2", "0:2", "1:1", " -1:1", "0: -1", "3", "a"]))
            }
            12 => format!("${{{name}{}}}", self.pick(&["^", "^^", ",", ",,", "^^[a-f]", "~~"])),
            13 => format!("${{{name}@{}}}", self.pick(&["Q", "U", "u", "L", "E"])),
            14 => format!("$(({}))", self.arith(2)),
            15 if depth > 0 => format!("$({})", self.simple(depth - 1)),
            16 => format!("${{!{}}}", self.pick(&["r", "m[@]", "w[@]", "a*"]).replace('r', "x:-X")),
            17 if depth > 0 => format!("`echo {}`", self.pick(TEXTS).replace(['\\', '[', '*', '~'], "")),
            _ => format!("${{{}[{}]}}", self.pick(ARRAYS), self.arith(1)),
        }
    }

    fn arith(&mut self, depth: usize) -> String {
        if depth == 0 || self.below(3) == 0 {
            return self
                .pick(&["0", "1", "2", "7", "10", "0x1f", "017", "2#101", "n", "#", "i"])
                .replace('#', "${#a}")
                .replace("2${#a}", "2#");
        }
        let (left, right) = (self.arith(depth - 1), self.arith(depth - 1));
        match self.below(12) {
            0..=6 => {
                let op = self.pick(&[
                    "+", "-", "*", "<", "<=", "==", "!=", "&", "|", "^", "<<", ">>", "&&", "||", ",",
                ]);
                format!("({left} {op} {right} % 63)")
            }
            7 => format!("({left} / ({right} | 1))"),
            8 => format!("({left} ? {right} : 3)"),
            9 => format!("-({left})"),
            10 => format!("!{left}"),
            _ => format!("({left} % 5) ** 3"),
        }
    }

    fn arith_statement(&mut self) -> String {
        let target = self.pick(&["n", "i", "w[2]", "m[n]", "w[i]"]);
        match self.below(4) {
            0 => format!("{target}{}{}", self.pick(&["=", "+=", "-=", "*=", "|=", "^="]), self.arith(2)),
            1 => format!("{target}{}", self.pick(&["++", "--"])),
            2 => format!("{}{target}", self.pick(&["++", "--"])),
            _ => self.arith(2),
        }
    }
}

fn leave_out(statements: &mut Vec<Statement>, what: &str) {
    statements.retain_mut(|statement| match statement {
        Statement::Line(line) => !line.contains(what),
        Statement::Block(before, inside, after) => {
            leave_out(inside, what);
            !before.contains(what) && !after.contains(what)
        }
    });
}

/// Text in single quotes.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
