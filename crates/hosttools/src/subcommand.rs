//! Stage 4: the subcommand, for programs that have them.

use crate::error::ToolError;
use crate::policy::ProgramPolicy;

/// A call split at its subcommand.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    /// What precedes the subcommand: flags, if anything.
    pub(crate) before: &'a [String],
    /// The subcommand, for programs that have them.
    pub(crate) subcommand: Option<&'a str>,
    /// What follows it.
    pub(crate) rest: &'a [String],
}

/// Finds the subcommand among the arguments; one that is not listed is denied.
pub(crate) fn allowed<'a>(
    program: &str,
    policy: &ProgramPolicy,
    args: &'a [String],
) -> Result<Parts<'a>, ToolError> {
    if policy.subcommands.is_empty() {
        return Ok(Parts { before: &[], subcommand: None, rest: args });
    }
    let denied = |subcommand: &str, why: String| ToolError::SubcommandDenied {
        program: program.to_owned(),
        subcommand: subcommand.to_owned(),
        why,
    };
    let Some(place) = place(policy, args) else {
        return Err(denied("", "a subcommand is needed".to_owned()));
    };
    let subcommand = args[place].as_str();
    if !policy.subcommands.contains_key(subcommand) {
        let allowed: Vec<&str> = policy.subcommands.keys().map(String::as_str).collect();
        return Err(denied(subcommand, format!("is not one of {}", allowed.join(", "))));
    }
    Ok(Parts { before: &args[..place], subcommand: Some(subcommand), rest: &args[place + 1..] })
}

/// Returns where the first argument is that is neither a flag nor a flag's value.
fn place(policy: &ProgramPolicy, args: &[String]) -> Option<usize> {
    let mut place = 0;
    while args.get(place)?.starts_with('-') {
        place += if policy.before.values.contains(&args[place]) { 2 } else { 1 };
    }
    (place < args.len()).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;

    fn cut(line: &str) -> Result<(usize, Option<String>, usize), ToolError> {
        let policy = Policy::standard();
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let parts = allowed("git", &policy.programs["git"], &args)?;
        Ok((parts.before.len(), parts.subcommand.map(str::to_owned), parts.rest.len()))
    }

    #[test]
    fn every_listed_subcommand_is_found_also_behind_flags() {
        for name in ["blame", "branch", "diff", "log", "ls-files", "rev-parse", "show", "status"] {
            assert_eq!(cut(name).unwrap(), (0, Some(name.to_owned()), 0));
            assert_eq!(cut(&format!("--no-pager {name} -x y")).unwrap(), (1, Some(name.to_owned()), 2));
            assert_eq!(cut(&format!("-c log {name}")).unwrap(), (2, Some(name.to_owned()), 0));
        }
    }

    #[test]
    fn others_are_denied() {
        for line in
            ["push", "config --list", "Log", "-c status", "", "--version", "difftool", "log2", "-C diff push"]
        {
            assert_eq!(cut(line).unwrap_err().code(), "SUBCOMMAND_DENIED", "{line}");
        }
    }

    #[test]
    fn a_program_without_subcommands_has_only_arguments() {
        let policy = Policy::standard();
        let args = ["push".to_owned()];
        let parts = allowed("ls", &policy.programs["ls"], &args).unwrap();
        assert_eq!((parts.before.len(), parts.subcommand, parts.rest.len()), (0, None, 1));
    }
}
