//! What a run of make knows, and how it speaks.

use std::collections::HashMap;
use std::rc::Rc;

use wardian_abi as abi;

use crate::jobs::Jobs;
use crate::options::Options;
use crate::rules::{File, FileId, PatternRule, PatternVariables};
use crate::text;
use crate::variables::Table;

/// The end of everything: what there was to say has been said.
#[derive(Debug)]
pub struct Stop(pub i32);

pub type Res<T> = Result<T, Stop>;

/// A line of a makefile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub file: Rc<str>,
    pub line: usize,
}

/// A run of make.
pub struct Make {
    /// `make`, with its level if it was started by another.
    pub name: String,
    pub level: usize,
    pub options: Options,
    pub globals: Table,
    /// Variables of recipes, calls and loops, the innermost last.
    pub frames: Vec<Table>,
    /// The target whose variables count.
    pub current: Option<FileId>,
    /// Names whose innermost scope is passed over, once for each time a name is here: for `+=` of targets.
    pub hidden: Vec<Vec<u8>>,
    /// Names that are being expanded, to notice circles.
    pub expanding: Vec<(Vec<u8>, usize)>,
    /// Where the variable is defined that is being expanded.
    pub inside: Option<Place>,
    pub depth: usize,
    /// The most arguments of the calls around.
    pub most_arguments: usize,
    /// Where the text comes from that is being read or expanded.
    pub place: Option<Place>,
    pub files: Vec<File>,
    pub index: HashMap<Vec<u8>, FileId>,
    pub pattern_rules: Vec<PatternRule>,
    pub pattern_variables: Vec<PatternVariables>,
    pub suffixes: Vec<Vec<u8>>,
    pub special: Special,
    pub search_paths: Vec<(text::Pattern, Vec<Vec<u8>>)>,
    pub makefiles: Vec<Makefile>,
    pub jobs: Jobs,
    /// The environment that make was started with.
    pub environment: Vec<Vec<u8>>,
    pub export_all: bool,
    /// Recipes that were started.
    pub started: usize,
    /// A file is from the future.
    pub clock_skew: bool,
    /// An error was met and `-k` was not given.
    pub giving_up: bool,
}

/// What special targets ask for.
#[derive(Default)]
pub struct Special {
    pub delete_on_error: bool,
    pub one_shell: bool,
    pub second_expansion: bool,
    pub not_parallel: bool,
    pub posix: bool,
    /// All intermediate files are kept.
    pub all_secondary: bool,
    pub all_silent: bool,
    pub all_ignored: bool,
    pub all_precious: bool,
}

/// A makefile that was read, or should have been.
pub struct Makefile {
    pub name: Vec<u8>,
    /// An error if it can be neither read nor made.
    pub required: bool,
    pub found: bool,
    pub place: Option<Place>,
}

impl Make {
    /// Writes a line to standard output.
    pub fn say(&self, line: &str) {
        self.say_bytes(line.as_bytes());
    }

    pub fn say_bytes(&self, line: &[u8]) {
        if abi::write_all(1, &[line, b"\n"].concat()).is_err() {
            toolkit::complain(&self.name, "write error: stdout");
            abi::exit(1);
        }
    }

    /// Writes `make: MESSAGE` to standard error.
    pub fn complain(&self, message: &str) {
        toolkit::complain(&self.name, message);
    }

    /// Who speaks: the line of the makefile, or make.
    fn speaker(&self) -> String {
        match &self.place {
            Some(place) => format!("{}:{}", place.file, place.line),
            None => self.name.clone(),
        }
    }

    /// Writes a message with its place.
    pub fn note(&self, message: &str) {
        toolkit::complain(&self.speaker(), message);
    }

    pub fn warn(&self, message: &str) {
        self.note(&format!("warning: {message}"));
    }

    /// Says what makes going on impossible.
    pub fn fatal(&self, message: &str) -> Stop {
        self.note(&format!("*** {message}.  Stop."));
        Stop(2)
    }

    /// As [`fatal`](Make::fatal), for what no line of a makefile is to blame for.
    pub fn fatal_anywhere(&self, message: &str) -> Stop {
        self.complain(&format!("*** {message}.  Stop."));
        Stop(2)
    }

    /// A file by name; it is noted if it was not known.
    pub fn file(&mut self, name: &[u8]) -> FileId {
        // Names are compared without a `./` before them.
        let name = normal(name);
        if let Some(&id) = self.index.get(name) {
            return id;
        }
        let id = self.files.len();
        self.files.push(File::new(name.to_vec()));
        self.index.insert(name.to_vec(), id);
        id
    }

    /// A file by name, if a makefile mentions it.
    pub fn known(&self, name: &[u8]) -> Option<FileId> {
        self.index.get(normal(name)).copied()
    }
}

fn normal(mut name: &[u8]) -> &[u8] {
    while let Some(rest) = name.strip_prefix(b"./") {
        let start = rest.iter().position(|&byte| byte != b'/').unwrap_or(rest.len());
        if rest[start..].is_empty() {
            return name;
        }
        name = &rest[start..];
    }
    name
}
