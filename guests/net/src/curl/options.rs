//! The command line: operations, each with its URLs.

use super::operation::{Operation, Target};
use super::table::{self, Known, Takes};
use super::values::{number, text};
use super::{config, data, form};

/// What counts for all operations.
#[derive(Clone)]
pub struct Global {
    pub silent: bool,
    pub show_error: bool,
    pub no_meter: bool,
    pub bar: bool,
    pub verbose: bool,
    pub parallel: bool,
    pub parallel_max: usize,
    pub parallel_immediate: bool,
    pub fail_early: bool,
    pub stderr: Option<Vec<u8>>,
}

impl Default for Global {
    fn default() -> Global {
        Global {
            silent: false,
            show_error: false,
            no_meter: false,
            bar: false,
            verbose: false,
            parallel: false,
            parallel_max: PARALLEL,
            parallel_immediate: false,
            fail_early: false,
            stderr: None,
        }
    }
}

/// What is wrong with a command line.
pub enum Wrong {
    /// An option and the words about it.
    Option(String, &'static str),
    /// An option of curl that is not supported, and why.
    Refused(String, &'static str),
    /// The words have been said, with this code.
    Said(String, i32),
    Help,
    Version,
}

/// A command line, taken apart.
pub struct Parsed {
    pub global: Global,
    pub operations: Vec<Operation>,
    pub warnings: Vec<String>,
    /// How deep configuration files name each other.
    pub depth: usize,
    reads_standard_input: bool,
}

pub const UNKNOWN: &str = "is unknown";
pub const NUMBER: &str = "expected a proper numerical parameter";
pub const MISUSED: &str = "is badly used here";
const DEEPEST: usize = 10;
/// Transfers at once, if nothing or nonsense is said, and the most that may be asked for.
const PARALLEL: usize = 50;
const PARALLEL_MOST: u64 = 300;

impl Parsed {
    pub fn new() -> Parsed {
        Parsed {
            global: Global::default(),
            operations: vec![Operation::default()],
            warnings: Vec::new(),
            depth: 0,
            reads_standard_input: false,
        }
    }

    /// Takes the words of a command line.
    pub fn arguments(&mut self, words: Vec<Vec<u8>>) -> Result<(), Wrong> {
        let mut words = words.into_iter();
        let mut options = true;
        while let Some(word) = words.next() {
            if !options || word.first() != Some(&b'-') || word == b"-" {
                self.url(text(&word));
            } else if word == b"--" {
                options = false;
            } else if word.starts_with(b"--") {
                let name = text(&word[2..]);
                let shown = text(&word);
                let known = self.find(&name, &shown)?;
                let (known, on) = known;
                let value = match known.takes {
                    Takes::Value => words.next().ok_or(Wrong::Option(shown.clone(), "requires parameter"))?,
                    Takes::Nothing => Vec::new(),
                };
                self.apply(known.name, on, value, &shown)?;
            } else {
                self.letters(&text(&word), &word, &mut words)?;
            }
        }
        Ok(())
    }

    fn letters(
        &mut self,
        word: &str,
        bytes: &[u8],
        words: &mut std::vec::IntoIter<Vec<u8>>,
    ) -> Result<(), Wrong> {
        for (at, letter) in word.char_indices().skip(1) {
            let shown = format!("-{letter}");
            let known = table::by_letter(letter).ok_or(Wrong::Option(shown.clone(), UNKNOWN))?;
            if let Some(reason) = known.refused {
                return Err(Wrong::Refused(shown, reason));
            }
            if known.takes == Takes::Nothing {
                self.apply(known.name, letter != 'N', Vec::new(), &shown)?;
                continue;
            }
            let rest = &bytes[(at + 1).min(bytes.len())..];
            let value = match rest {
                [] => words.next().ok_or(Wrong::Option(shown.clone(), "requires parameter"))?,
                rest => rest.to_vec(),
            };
            return self.apply(known.name, true, value, &shown);
        }
        Ok(())
    }

    /// Finds a long option; whether it is switched on or, with `no-`, off.
    pub fn find(&self, name: &str, shown: &str) -> Result<(Known, bool), Wrong> {
        let ambiguous = |()| Wrong::Option(shown.to_owned(), "is ambiguous");
        let (found, on) = match name.strip_prefix("no-") {
            Some(rest) => (table::by_name(rest).map_err(ambiguous)?, false),
            None => (table::by_name(name).map_err(ambiguous)?, true),
        };
        let known = found.ok_or(Wrong::Option(shown.to_owned(), UNKNOWN))?;
        if let Some(reason) = known.refused {
            return Err(Wrong::Refused(shown.to_owned(), reason));
        }
        if !on && known.takes == Takes::Value {
            let words = "used '--no-' for option that isn't a boolean";
            return Err(Wrong::Option(shown.to_owned(), words));
        }
        Ok((known, on))
    }

    fn operation(&mut self) -> &mut Operation {
        if self.operations.is_empty() {
            self.operations.push(Operation::default());
        }
        let last = self.operations.len() - 1;
        &mut self.operations[last]
    }

    fn url(&mut self, url: String) {
        let operation = self.operation();
        let remote_name = operation.remote_name_all;
        let targets = &mut operation.targets;
        match targets.iter_mut().find(|target| target.url.is_none()) {
            Some(target) => target.url = Some(url),
            None => targets.push(Target { url: Some(url), ..Target::default() }),
        }
        if remote_name && let Some(target) = targets.last_mut().filter(|target| target.output.is_none()) {
            target.remote_name = true;
        }
    }

    fn output(&mut self, output: Option<Vec<u8>>) {
        let targets = &mut self.operation().targets;
        let free = targets.iter().position(|target| target.output.is_none() && !target.remote_name);
        let at = free.unwrap_or_else(|| {
            targets.push(Target::default());
            targets.len() - 1
        });
        targets[at].remote_name = output.is_none();
        targets[at].output = output;
    }

    fn upload(&mut self, file: Vec<u8>) {
        let targets = &mut self.operation().targets;
        match targets.iter_mut().find(|target| target.upload.is_none()) {
            Some(target) => target.upload = Some(file),
            None => targets.push(Target { upload: Some(file), ..Target::default() }),
        }
    }

    /// Applies an option of this name.
    pub fn apply(&mut self, name: &str, on: bool, value: Vec<u8>, shown: &str) -> Result<(), Wrong> {
        match name {
            "url" => self.url(text(&value)),
            "output" => self.output(Some(value)),
            "remote-name" => {
                if on {
                    self.output(None);
                }
            }
            "upload-file" => self.upload(value),
            "next" => {
                if self.operation().targets.iter().any(|target| target.url.is_some()) {
                    self.operations.push(Operation::default());
                }
            }
            "config" => {
                if self.depth >= DEEPEST {
                    return Err(Wrong::Option(shown.to_owned(), MISUSED));
                }
                config::read(self, &value, shown)?;
            }
            "help" => return Err(Wrong::Help),
            "version" => return Err(Wrong::Version),
            "silent" => self.global.silent = on,
            "show-error" => self.global.show_error = on,
            "progress-meter" => self.global.no_meter = !on,
            "progress-bar" => self.global.bar = on,
            "verbose" => self.global.verbose = on,
            "parallel" => self.global.parallel = on,
            "parallel-immediate" => self.global.parallel_immediate = on,
            "parallel-max" => {
                let most = number(&value).ok_or(Wrong::Option(shown.to_owned(), NUMBER))?;
                let sensible = (1..=PARALLEL_MOST).contains(&most);
                self.global.parallel_max = if sensible { most as usize } else { PARALLEL };
            }
            "fail-early" => self.global.fail_early = on,
            "stderr" => self.global.stderr = Some(value),
            "styled-output" if on => return Err(Wrong::Refused(shown.to_owned(), "not supported")),
            // As things are anyway: nothing is buffered, no keepalive probes, no old TLS, no proxy to go around.
            "buffer"
            | "keepalive"
            | "npn"
            | "sessionid"
            | "tcp-nodelay"
            | "noproxy"
            | "disable"
            | "styled-output"
            | "basic"
            | "http1.1"
            | "tlsv1"
            | "tlsv1.0"
            | "tlsv1.1"
            | "tlsv1.2"
            | "suppress-connect-headers" => {}
            "data" | "data-ascii" | "data-binary" | "data-raw" | "data-urlencode" | "json" | "url-query" => {
                self.take_data(name, &value);
            }
            "form" | "form-string" => {
                let field = form::parse(&value, name == "form-string");
                let field = field.ok_or(Wrong::Option(shown.to_owned(), MISUSED))?;
                self.operation().form.push(field);
            }
            _ => return self.operation().set(name, on, value, shown),
        }
        Ok(())
    }

    fn take_data(&mut self, name: &str, value: &[u8]) {
        let made = data::read(name, value, &mut self.reads_standard_input);
        // A file that is not there is empty data, with a warning.
        let more = made.unwrap_or_else(|warning| {
            if !self.global.silent {
                self.warnings.push(warning);
            }
            Vec::new()
        });
        let json = name == "json";
        let operation = self.operation();
        let place = if name == "url-query" { &mut operation.url_query } else { &mut operation.data };
        match place {
            Some(before) => {
                if !json {
                    before.push(b'&');
                }
                before.extend_from_slice(&more);
            }
            None => *place = Some(more),
        }
        operation.json |= json;
    }
}
