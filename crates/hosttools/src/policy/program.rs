//! What a policy says about one program, and where the program is.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::ToolError;

/// Where programs are looked up; also the whole `PATH` of those that run.
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What a policy says about one program.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProgramPolicy {
    /// What it may do, in one line.
    pub about: String,
    /// The file to run, if it is not the one of that name in the usual places.
    pub path: Option<PathBuf>,
    /// Whether it may change files in the jail.
    pub write: bool,
    /// Whether it may also change mode, owner and times of files by path, which nothing confines to the jail.
    pub attributes: bool,
    /// Whether it may open sockets.
    pub network: bool,
    /// Whether it may start other programs.
    pub children: bool,
    /// Its timeout, if it differs from the default.
    pub timeout_ms: Option<u64>,
    /// How it parses flags.
    pub notation: Notation,
    /// Variables it is given.
    pub env: BTreeMap<String, String>,
    /// How many of its first operands are text and not paths,
    pub text_words: usize,
    /// unless one of these flags is present.
    pub text_words_unless: Vec<String>,
    /// The rules for its flags, or for those of all its subcommands.
    pub flags: FlagRules,
    /// Flags before the subcommand.
    pub before: LeadingFlags,
    /// The allowed subcommands. If there are none, the program has no subcommands.
    pub subcommands: BTreeMap<String, FlagRules>,
}

/// How a program parses flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Notation {
    /// `--long=value`, abbreviations of long flags, bundles of short ones.
    #[default]
    Gnu,
    /// Whole words after one dash, as in `find`.
    Words,
}

/// Rules for flags.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlagRules {
    /// Denied in every form that the program would understand.
    pub deny: Vec<String>,
    /// Allowed, although a denied flag begins the same way.
    pub exact: Vec<String>,
    /// Flags that take a value.
    pub values: Vec<String>,
    /// Flags that take a value which is text, not a path.
    pub texts: Vec<String>,
    /// Arguments inserted before the caller's.
    pub insert: Vec<String>,
    /// Whether a call to which these rules apply may change mode, owner and times of files by path, as
    /// [`ProgramPolicy::attributes`] lets all calls.
    pub attributes: bool,
}

/// Flags that may precede a subcommand.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LeadingFlags {
    /// Those that are allowed.
    pub allow: Vec<String>,
    /// Those that take the next argument as their value, needed to find the subcommand after them.
    pub values: Vec<String>,
}

impl FlagRules {
    /// Combines these rules with others.
    pub(crate) fn and(&self, more: &FlagRules) -> FlagRules {
        let both = |a: &Vec<String>, b: &Vec<String>| [a.as_slice(), b.as_slice()].concat();
        FlagRules {
            deny: both(&self.deny, &more.deny),
            exact: both(&self.exact, &more.exact),
            values: both(&self.values, &more.values),
            texts: both(&self.texts, &more.texts),
            insert: both(&self.insert, &more.insert),
            attributes: self.attributes || more.attributes,
        }
    }

    fn check(&self, notation: Notation) -> Result<(), String> {
        let named = [&self.deny, &self.exact, &self.values, &self.texts];
        match named.into_iter().flatten().find(|flag| !is_flag(flag, notation)) {
            Some(flag) => Err(format!("'{flag}' is not a flag of a program with this notation")),
            None => Ok(()),
        }
    }
}

fn is_flag(flag: &str, notation: Notation) -> bool {
    let name = flag.trim_start_matches('-');
    let dashes = flag.len() - name.len();
    let plain = !name.is_empty() && !name.contains('=') && !name.contains(char::is_whitespace);
    plain
        && match notation {
            Notation::Gnu => dashes == 2 || (dashes == 1 && name.chars().count() == 1),
            Notation::Words => dashes == 1,
        }
}

impl ProgramPolicy {
    pub(super) fn check(&self) -> Result<(), String> {
        self.flags.check(self.notation)?;
        for (name, rules) in &self.subcommands {
            rules.check(self.notation).map_err(|why| format!("{name}: {why}"))?;
        }
        let rules = self.subcommands.values().chain([&self.flags]);
        let attributes = rules.fold(self.attributes, |any, rules| any || rules.attributes);
        if attributes && !self.write {
            return Err("attributes: only with write".to_owned());
        }
        if self.path.as_ref().is_some_and(|path| !path.is_absolute()) {
            return Err("path is not absolute".to_owned());
        }
        match self.env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            Some(name) => Err(format!("env: '{name}' is not a name")),
            None => Ok(()),
        }
    }
}

/// Returns the file of a program: absolute, without links, executable, and not one the agent could have put there.
pub(crate) fn locate(name: &str, policy: &ProgramPolicy, jail: &Path) -> Result<PathBuf, ToolError> {
    let denied = |why: &str| ToolError::ProgramDenied { program: name.to_owned(), why: why.to_owned() };
    let found = match &policy.path {
        Some(path) => real_executable(path),
        None => PATH.split(':').find_map(|directory| real_executable(&Path::new(directory).join(name))),
    };
    let program = found.ok_or_else(|| denied("is not installed"))?;
    if program.starts_with(jail) {
        return Err(denied("lies inside the jail, where it could have been changed"));
    }
    Ok(program)
}

fn real_executable(path: &Path) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    let metadata = real.metadata().ok()?;
    (metadata.is_file() && metadata.permissions().mode() & 0o111 != 0).then_some(real)
}
