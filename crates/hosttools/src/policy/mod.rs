//! Stage 3: the policy, a TOML file that lists the programs an agent may use. Anything else is denied.

mod program;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::config::ConfigError;
use crate::error::ToolError;

pub use program::{FlagRules, LeadingFlags, Notation, ProgramPolicy};
pub(crate) use program::{PATH, locate};

/// The default policy.
const STANDARD: &str = include_str!("default.toml");
/// What it allows in addition on a copy of an overlay.
const COPIES: &str = include_str!("copies.toml");

/// Which programs an agent may use, and how.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The programs, by name.
    pub programs: BTreeMap<String, ProgramPolicy>,
    #[serde(skip)]
    text: String,
}

impl Policy {
    /// Returns the default policy: read-only programs.
    pub fn standard() -> Policy {
        Policy::parse(STANDARD).expect("the policy that comes with us is tested")
    }

    /// Returns the default policy for programs that work on a copy of a sandbox's overlay: what [`Policy::standard`]
    /// allows, and the commands of git that change a repository.
    pub fn for_copies() -> Policy {
        let more = Policy::parse(COPIES).expect("the policy that comes with us is tested");
        let mut policy = Policy::standard();
        for (name, more) in more.programs {
            let program = policy.programs.entry(name).or_default();
            program.about = more.about;
            program.write = more.write;
            program.env.extend(more.env);
            program.subcommands.extend(more.subcommands);
        }
        policy.text.push('\n');
        policy.text.push_str(COPIES);
        policy
    }

    /// Parses a policy from TOML.
    pub fn parse(text: &str) -> Result<Policy, ConfigError> {
        let mut policy: Policy = toml::from_str(text).map_err(|error| ConfigError(error.to_string()))?;
        for (name, program) in &policy.programs {
            program.check().map_err(|why| ConfigError(format!("programs.{name}: {why}")))?;
        }
        policy.text = text.to_owned();
        Ok(policy)
    }

    /// Reads a policy from a file.
    pub fn from_file(file: &Path) -> Result<Policy, ConfigError> {
        let failed = |error: &dyn std::fmt::Display| ConfigError(format!("{}: {error}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
        Policy::parse(&text).map_err(|error| failed(&error))
    }

    /// Returns its source text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns what it says about a program. Only names count: a path, even to the same file, is denied.
    pub(crate) fn program(&self, name: &str) -> Result<&ProgramPolicy, ToolError> {
        self.programs.get(name).ok_or_else(|| ToolError::ProgramDenied {
            program: name.to_owned(),
            why: "is not listed in the policy".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_policy_names_these_programs_and_no_others() {
        let policy = Policy::standard();
        let names: Vec<&str> = policy.programs.keys().map(String::as_str).collect();
        assert_eq!(names, ["cat", "find", "git", "grep", "head", "ls", "tail", "wc"]);
        assert!(policy.programs.values().all(|program| !program.write && !program.network));
        let git: Vec<&str> = policy.programs["git"].subcommands.keys().map(String::as_str).collect();
        assert_eq!(git, ["blame", "branch", "diff", "log", "ls-files", "rev-parse", "show", "status"]);
    }

    #[test]
    fn on_copies_git_may_write_and_still_start_nothing() {
        let policy = Policy::for_copies();
        let git = &policy.programs["git"];
        assert!(git.write && !git.children && !git.network && !git.attributes);
        assert!(
            Policy::standard().programs["git"]
                .subcommands
                .keys()
                .all(|name| git.subcommands.contains_key(name))
        );
        assert!(git.subcommands.contains_key("commit") && !git.subcommands.contains_key("push"));
        assert!(policy.programs.iter().all(|(name, program)| program.write == (name == "git")));
        let count: usize = git.env["GIT_CONFIG_COUNT"].parse().expect("a number");
        for number in 0..count {
            assert!(git.env.contains_key(&format!("GIT_CONFIG_KEY_{number}")), "{number}");
            assert!(git.env.contains_key(&format!("GIT_CONFIG_VALUE_{number}")), "{number}");
        }
    }

    #[test]
    fn unknown_programs_and_paths_are_denied() {
        for name in ["sh", "", "/bin/ls", "./ls", "../bin/ls", "LS", "ls ", "l\u{73}\u{200b}", "gıt"] {
            assert_eq!(Policy::standard().program(name).unwrap_err().code(), "PROGRAM_DENIED", "{name:?}");
        }
        assert!(Policy::standard().program("ls").is_ok());
    }

    #[test]
    fn a_policy_that_makes_no_sense_is_an_error() {
        for text in [
            "[programs.x]\ndney = []",
            "[programs.x]\nflags.deny = [\"output\"]",
            "[programs.x]\nflags.deny = [\"-long\"]",
            "[programs.x]\nflags.deny = [\"--a=b\"]",
            "[programs.x]\nattributes = true",
            "[programs.x]\nsubcommands.a.attributes = true",
            "[programs.x]\npath = \"bin/x\"",
            "[programs.x]\nenv = { \"A=B\" = \"\" }",
            "programs = 3",
        ] {
            assert!(Policy::parse(text).is_err(), "{text}");
        }
    }
}
