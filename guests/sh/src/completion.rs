//! How a word may go on: what `complete` was told, and what is there without being told.

mod line;

use crate::expand::quote;
use crate::pattern::{Pattern, Style};
use crate::shell::Shell;
use crate::vars::{Attrs, Indexed, Value, Var};
use std::collections::BTreeMap;
use std::rc::Rc;
use wardian_abi as abi;

/// Names of `-A`, with the letter that says the same.
pub const ACTIONS: [(&str, u8); 24] = [
    ("alias", b'a'),
    ("builtin", b'b'),
    ("command", b'c'),
    ("directory", b'd'),
    ("export", b'e'),
    ("file", b'f'),
    ("group", b'g'),
    ("job", b'j'),
    ("keyword", b'k'),
    ("service", b's'),
    ("user", b'u'),
    ("variable", b'v'),
    ("arrayvar", 0),
    ("binding", 0),
    ("disabled", 0),
    ("enabled", 0),
    ("function", 0),
    ("helptopic", 0),
    ("hostname", 0),
    ("running", 0),
    ("setopt", 0),
    ("shopt", 0),
    ("signal", 0),
    ("stopped", 0),
];

/// Names of `-o`.
pub const OPTIONS: [&str; 8] =
    ["bashdefault", "default", "dirnames", "filenames", "noquote", "nosort", "nospace", "plusdirs"];

/// What `complete` was told about a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    pub actions: Vec<&'static str>,
    pub options: Vec<&'static str>,
    pub words: Option<Vec<u8>>,
    pub glob: Option<Vec<u8>>,
    pub function: Option<Vec<u8>>,
    pub command: Option<Vec<u8>>,
    pub filter: Option<Vec<u8>>,
    pub prefix: Option<Vec<u8>>,
    pub suffix: Option<Vec<u8>>,
}

/// Every specification, and the one whose function is being asked.
#[derive(Default)]
pub struct Completions {
    pub of: BTreeMap<Vec<u8>, Rc<Spec>>,
    /// Whether there ever was one: until then none is missed.
    pub declared: bool,
    /// The options of the completion in progress, which `compopt` may change.
    pub current: Option<Vec<&'static str>>,
}

/// The name that stands for commands without a specification of their own.
pub const DEFAULT: &[u8] = b"_DefaultCmD_";
/// For an empty line.
pub const EMPTY: &[u8] = b"_EmptycmD_";
/// For the first word.
pub const INITIAL: &[u8] = b"_InitialWorD_";

/// What is known of the line when a function or command is asked.
#[derive(Clone, Default)]
pub struct Asked {
    pub line: Vec<u8>,
    pub cursor: usize,
    pub words: Vec<Vec<u8>>,
    /// Which of the words is being completed.
    pub at: usize,
}

impl Spec {
    pub fn has(&self, option: &str) -> bool {
        self.options.contains(&option)
    }

    /// The command line that would say the same.
    pub fn arguments(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for option in OPTIONS.iter().filter(|option| self.has(option)) {
            text.extend_from_slice(format!("-o {option} ").as_bytes());
        }
        for (name, letter) in ACTIONS.iter().filter(|(name, _)| self.actions.contains(name)) {
            let shown = if *letter == 0 { format!("-A {name} ") } else { format!("-{} ", *letter as char) };
            text.extend_from_slice(shown.as_bytes());
        }
        let values = [
            (b'G', &self.glob),
            (b'W', &self.words),
            (b'P', &self.prefix),
            (b'S', &self.suffix),
            (b'X', &self.filter),
            (b'C', &self.command),
        ];
        for (letter, value) in values {
            if let Some(value) = value {
                text.extend([&[b'-', letter, b' '], quote::single(value).as_slice(), b" "].concat());
            }
        }
        if let Some(function) = &self.function {
            text.extend([b"-F ", quote::if_needed(function).as_slice(), b" "].concat());
        }
        text
    }
}

impl Shell {
    /// The words a specification gives for `word`.
    pub fn generate(&mut self, spec: &Spec, name: &[u8], word: &[u8], asked: &Asked) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        for (action, _) in ACTIONS.iter().filter(|(action, _)| spec.actions.contains(action)) {
            found.extend(self.of_action(action, word));
        }
        if let Some(glob) = &spec.glob {
            found.extend(self.glob(glob));
        }
        if let Some(words) = &spec.words {
            let words = self.listed_words(words);
            found.extend(words.into_iter().filter(|candidate| candidate.starts_with(word)));
        }
        if let Some(function) = &spec.function {
            found.extend(self.ask_function(function, name, word, asked));
        }
        if let Some(command) = &spec.command {
            found.extend(self.ask_command(command, name, word, asked));
        }
        if let Some(filter) = &spec.filter {
            self.filter_out(&mut found, filter, word);
        }
        let (before, after) =
            (spec.prefix.clone().unwrap_or_default(), spec.suffix.clone().unwrap_or_default());
        if !before.is_empty() || !after.is_empty() {
            found = found.into_iter().map(|word| [before.as_slice(), &word, &after].concat()).collect();
        }
        if (found.is_empty() && spec.has("dirnames")) || spec.has("plusdirs") {
            found.extend(self.of_action("directory", word));
        }
        found
    }

    /// `-X`: takes out what matches, or with `!` what does not; `&` is the word.
    fn filter_out(&self, found: &mut Vec<Vec<u8>>, filter: &[u8], word: &[u8]) {
        // `!(…)` is a pattern, where there are such.
        let extended = filter.starts_with(b"!(") && self.shopt.get("extglob");
        let (negated, pattern) = match filter.strip_prefix(b"!") {
            Some(rest) if !extended => (true, rest),
            _ => (false, filter),
        };
        let mut text = Vec::new();
        let mut at = 0;
        while at < pattern.len() {
            match pattern[at] {
                b'\\' if pattern.get(at + 1) == Some(&b'&') => {
                    text.push(b'&');
                    at += 1;
                }
                b'&' => text.extend_from_slice(word),
                byte => text.push(byte),
            }
            at += 1;
        }
        let pattern = Pattern::new(&text, Style { extended: true, fold: false, utf8: self.utf8() });
        found.retain(|candidate| pattern.matches(candidate) == negated);
    }

    /// The words of `-W`: split by IFS outside quotes, then expanded.
    fn listed_words(&mut self, text: &[u8]) -> Vec<Vec<u8>> {
        let ifs = self.ifs();
        let (mut words, mut start, mut quote, mut at) = (Vec::new(), 0, None, 0);
        while at < text.len() {
            match (quote, text[at]) {
                (None | Some(b'"'), b'\\') => at += 1,
                (None, open @ (b'\'' | b'"')) => quote = Some(open),
                (Some(open), byte) if open == byte => quote = None,
                (_, b'$') if text.get(at + 1) == Some(&b'(') => at = after_substitution(text, at) - 1,
                (None, byte) if ifs.contains(&byte) => {
                    words.push(&text[start..at]);
                    start = at + 1;
                }
                _ => {}
            }
            at += 1;
        }
        words.push(&text[start.min(text.len())..]);
        let words: Vec<Vec<u8>> =
            words.into_iter().filter(|word| !word.is_empty()).map(<[u8]>::to_vec).collect();
        words.iter().flat_map(|word| self.expand_listed(word, &ifs)).collect()
    }

    /// One word of a list, expanded: what is not quoted may become several.
    fn expand_listed(&mut self, raw: &[u8], ifs: &[u8]) -> Vec<Vec<u8>> {
        let mut fields = vec![Vec::new()];
        for (text, quoting) in pieces(raw) {
            if quoting == Quoting::Literal || !text.iter().any(|byte| b"$`".contains(byte)) {
                fields.last_mut().expect("never empty").extend(text);
                continue;
            }
            let parsed = crate::parser::parse_quoted(text.clone(), &self.dialect()).ok();
            let expanded = parsed.and_then(|word| self.expand_string(&word).ok()).unwrap_or(text);
            if quoting == Quoting::Double {
                fields.last_mut().expect("never empty").extend(expanded);
                continue;
            }
            let mut parts = expanded.split(|byte| ifs.contains(byte));
            fields.last_mut().expect("never empty").extend_from_slice(parts.next().unwrap_or_default());
            fields.extend(parts.map(<[u8]>::to_vec));
        }
        fields.retain(|field| !field.is_empty());
        fields
    }

    /// `-F`: calls a function, which leaves its answer in `COMPREPLY`.
    fn ask_function(&mut self, function: &[u8], name: &[u8], word: &[u8], asked: &Asked) -> Vec<Vec<u8>> {
        let Some(function) = self.functions.get(function).cloned() else { return Vec::new() };
        self.set_asked(asked);
        let words: Indexed = asked.words.iter().cloned().collect();
        self.vars.insert(b"COMP_WORDS", Var { value: Value::Indexed(words), attrs: Attrs::default() });
        self.vars.set_raw(b"COMP_CWORD", asked.at.to_string().as_bytes());
        self.vars.remove(b"COMPREPLY");
        let previous =
            asked.at.checked_sub(1).and_then(|at| asked.words.get(at)).cloned().unwrap_or_default();
        let status = self.status;
        let _ = self.call_function(&function, vec![name.to_vec(), word.to_vec(), previous]);
        self.status = status;
        let answer = match self.vars.get(b"COMPREPLY").map(|var| &var.value) {
            Some(Value::Indexed(list)) => list.iter().map(|(_, text)| text.clone()).collect(),
            Some(Value::Scalar(text)) => vec![text.clone()],
            _ => Vec::new(),
        };
        for name in [
            &b"COMP_WORDS"[..],
            b"COMP_CWORD",
            b"COMPREPLY",
            b"COMP_LINE",
            b"COMP_POINT",
            b"COMP_TYPE",
            b"COMP_KEY",
        ] {
            self.vars.remove(name);
        }
        answer
    }

    fn set_asked(&mut self, asked: &Asked) {
        self.vars.set_raw(b"COMP_LINE", &asked.line);
        self.vars.set_raw(b"COMP_POINT", asked.cursor.to_string().as_bytes());
        self.vars.set_raw(b"COMP_TYPE", b"9");
        self.vars.set_raw(b"COMP_KEY", b"9");
    }

    /// `-C`: runs a command, whose output is one candidate a line.
    fn ask_command(&mut self, command: &[u8], name: &[u8], word: &[u8], asked: &Asked) -> Vec<Vec<u8>> {
        let previous =
            asked.at.checked_sub(1).and_then(|at| asked.words.get(at)).cloned().unwrap_or_default();
        let arguments = [name, word, &previous].map(quote::single).join(&b' ');
        let text = [b"$(", command, b" ", &arguments, b")"].concat();
        self.set_asked(asked);
        let parsed = crate::parser::parse_quoted(text, &self.dialect()).ok();
        let output = parsed.and_then(|word| self.expand_string(&word).ok()).unwrap_or_default();
        for name in [&b"COMP_LINE"[..], b"COMP_POINT", b"COMP_TYPE", b"COMP_KEY"] {
            self.vars.remove(name);
        }
        output.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
    }

    /// What an action of `-A` gives for `word`, in order.
    pub fn of_action(&self, action: &str, word: &[u8]) -> Vec<Vec<u8>> {
        let owned = |names: &[&str]| names.iter().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>();
        let mut found: Vec<Vec<u8>> = match action {
            "alias" => self.aliases.keys().cloned().collect(),
            "arrayvar" => {
                let is_array = |var: &Var| match &var.value {
                    Value::Indexed(list) => list.iter().next().is_some(),
                    Value::Assoc(map) => map.len() > 0,
                    _ => false,
                };
                self.vars.iter().filter(|(_, var)| is_array(var)).map(|(name, _)| name.clone()).collect()
            }
            "builtin" | "helptopic" => {
                crate::builtins::names().map(|name| name.as_bytes().to_vec()).collect()
            }
            "enabled" => {
                let names = crate::builtins::names().map(|name| name.as_bytes().to_vec());
                names.filter(|name| !self.disabled_builtins.contains(name)).collect()
            }
            "disabled" => self.disabled_builtins.clone(),
            "command" => self.commands(word),
            "directory" => self.paths(word, true),
            "file" => self.paths(word, false),
            "export" => {
                let exported = |(_, var): &(&Vec<u8>, &Var)| var.attrs.has(Attrs::EXPORT);
                self.vars.iter().filter(exported).map(|(name, _)| name.clone()).collect()
            }
            "function" => self.functions.keys().cloned().collect(),
            "group" => first_fields(b"/etc/group"),
            "user" => first_fields(b"/etc/passwd"),
            "hostname" => host_names(),
            "job" | "running" | "stopped" => {
                let wanted = |job: &&crate::jobs::Job| match action {
                    "running" => job.status.is_none() && job.stopped.is_none(),
                    "stopped" => job.stopped.is_some(),
                    _ => true,
                };
                let first_word = |job: &crate::jobs::Job| {
                    job.text.split(|&byte| byte == b' ').next().unwrap_or_default().to_vec()
                };
                self.jobs.list.iter().filter(wanted).map(first_word).collect()
            }
            "keyword" => {
                let words = crate::parser::KEYWORDS.iter().filter(|word| !word.starts_with(b"-"));
                words.map(|word| word.to_vec()).collect()
            }
            "setopt" => owned(crate::options::Options::NAMES),
            "shopt" => crate::options::SHOPT.iter().map(|(name, _)| name.as_bytes().to_vec()).collect(),
            "signal" => abi::SIGNALS.iter().map(|(_, name)| format!("SIG{name}").into_bytes()).collect(),
            "variable" => self.vars.names().into_iter().cloned().collect(),
            _ => Vec::new(),
        };
        found.retain(|candidate| candidate.starts_with(word));
        if action != "signal" {
            found.sort_unstable();
        }
        found.dedup();
        found
    }

    /// Whatever can stand as the first word.
    fn commands(&self, word: &[u8]) -> Vec<Vec<u8>> {
        if word.contains(&b'/') {
            let runs = |path: &Vec<u8>| abi::access(abi::Dir::CWD, path, 1).is_ok();
            return self.paths(word, false).into_iter().filter(runs).collect();
        }
        let mut names: Vec<Vec<u8>> = ["alias", "function", "builtin", "keyword"]
            .iter()
            .flat_map(|action| self.of_action(action, word))
            .collect();
        let path = self.vars.text(b"PATH").cloned().unwrap_or_default();
        for directory in path.split(|&byte| byte == b':').filter(|directory| !directory.is_empty()) {
            let runs = |name: &Vec<u8>| {
                abi::access(abi::Dir::CWD, &[directory, b"/", name.as_slice()].concat(), 1).is_ok()
            };
            let here =
                crate::expand::list_directory(directory).into_iter().filter(|name| name.starts_with(word));
            names.extend(here.filter(runs));
        }
        names
    }

    /// Files, or only directories, whose path begins with `word`.
    fn paths(&self, word: &[u8], only_directories: bool) -> Vec<Vec<u8>> {
        let cut = word.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
        let (directory, name) = word.split_at(cut);
        let home = self.text(b"HOME").map(|home| home.to_vec()).unwrap_or_default();
        let real = match directory.strip_prefix(b"~/") {
            Some(rest) => [home.as_slice(), b"/", rest].concat(),
            None => directory.to_vec(),
        };
        let mut found = Vec::new();
        for entry in crate::expand::list_directory(&real) {
            if !entry.starts_with(name) {
                continue;
            }
            let is_directory = || {
                abi::stat(abi::Dir::CWD, &[real.as_slice(), &entry].concat(), true)
                    .is_ok_and(|stat| stat.is_dir())
            };
            if !only_directories || is_directory() {
                found.push([directory, &entry].concat());
            }
        }
        found
    }
}

/// The first field of each line of a file such as `/etc/passwd`.
fn first_fields(path: &[u8]) -> Vec<Vec<u8>> {
    let flags = abi::open_flags::RDONLY | abi::open_flags::CLOEXEC;
    let Ok(fd) = abi::open(abi::Dir::CWD, path, flags, 0) else { return Vec::new() };
    let text = crate::builtins::read_file(fd);
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| line.split(|&byte| byte == b':').next().unwrap_or_default().to_vec()).collect()
}

fn host_names() -> Vec<Vec<u8>> {
    let flags = abi::open_flags::RDONLY | abi::open_flags::CLOEXEC;
    let Ok(fd) = abi::open(abi::Dir::CWD, b"/etc/hosts", flags, 0) else { return Vec::new() };
    let text = crate::builtins::read_file(fd);
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.starts_with(b"#"));
    let names =
        lines.flat_map(|line| line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).skip(1));
    names.map(<[u8]>::to_vec).collect()
}

/// How a piece of a word was quoted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    Plain,
    Double,
    /// Nothing in it means anything.
    Literal,
}

/// A word cut at its quotes: each piece without them.
fn pieces(raw: &[u8]) -> Vec<(Vec<u8>, Quoting)> {
    let mut out: Vec<(Vec<u8>, Quoting)> = Vec::new();
    let mut put = |bytes: &[u8], quoting: Quoting| match out.last_mut() {
        Some((text, same)) if *same == quoting => text.extend_from_slice(bytes),
        _ => out.push((bytes.to_vec(), quoting)),
    };
    let (mut quote, mut at) = (None, 0);
    while at < raw.len() {
        let inside = if quote == Some(b'"') { Quoting::Double } else { Quoting::Plain };
        match (quote, raw[at]) {
            (None, b'\\') => {
                at += 1;
                put(raw.get(at..at + 1).unwrap_or_default(), Quoting::Literal);
            }
            (Some(b'"'), b'\\') if raw.get(at + 1).is_some_and(|byte| b"$`\"\\".contains(byte)) => {
                at += 1;
                put(&raw[at..=at], Quoting::Literal);
            }
            (None | Some(b'"'), b'$') if raw.get(at + 1) == Some(&b'(') => {
                let end = after_substitution(raw, at);
                put(&raw[at..end], inside);
                at = end;
                continue;
            }
            (None, open @ (b'\'' | b'"')) => quote = Some(open),
            (Some(open), byte) if open == byte => quote = None,
            (Some(b'\''), _) => put(&raw[at..=at], Quoting::Literal),
            _ => put(&raw[at..=at], inside),
        }
        at += 1;
    }
    out
}

/// Where the substitution that begins at `at` ends: past its closing parenthesis.
fn after_substitution(text: &[u8], at: usize) -> usize {
    let mut depth = 0;
    for (offset, &byte) in text[at..].iter().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return at + offset + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}
