//! Stage 5: denied flags, in every form that the program would understand.
//!
//! Every argument that begins with a dash is checked, even after `--` and in the place of a value: which of them the
//! program treats as flags is its business, and a file with such a name can be written as `./--name`.

use crate::error::ToolError;
use crate::policy::{FlagRules, Notation, ProgramPolicy};
use crate::subcommand::Parts;

/// Refuses the call if one of its flags is denied.
pub(crate) fn check(
    program: &str,
    policy: &ProgramPolicy,
    rules: &FlagRules,
    parts: &Parts,
) -> Result<(), ToolError> {
    let denied = |flag: &str, why: String| ToolError::FlagDenied {
        program: program.to_owned(),
        flag: flag.to_owned(),
        why,
    };
    // Few are needed here, and one that is overlooked could turn everything behind it: these are listed.
    let mut before = parts.before.iter();
    while let Some(word) = before.next() {
        if !policy.before.allow.contains(word) {
            return Err(denied(word, "only listed flags may precede a subcommand".to_owned()));
        }
        if policy.before.values.contains(word) {
            before.next();
        }
    }
    for word in parts.rest {
        if let Some(rule) = met(word, policy.notation, rules) {
            return Err(denied(word, format!("it matches {rule}")));
        }
    }
    Ok(())
}

/// Returns the rule that denies an argument.
fn met<'a>(word: &str, notation: Notation, rules: &'a FlagRules) -> Option<&'a str> {
    let mut denied = rules.deny.iter().map(String::as_str);
    match notation {
        Notation::Words => {
            let name = word.strip_prefix('-')?.trim_start_matches('-');
            denied.find(|flag| flag.trim_start_matches('-') == name)
        }
        Notation::Gnu => match word.strip_prefix("--") {
            Some("") => None,
            Some(long) => {
                let name = long.split_once('=').map_or(long, |(name, _)| name);
                let exact = rules.exact.iter().any(|flag| flag.strip_prefix("--") == Some(name));
                denied
                    .find(|flag| !exact && flag.strip_prefix("--").is_some_and(|flag| flag.starts_with(name)))
            }
            None => {
                let bundle = shorts(word.strip_prefix('-')?, rules);
                denied.find(|flag| short(flag).is_some_and(|letter| bundle.contains(letter)))
            }
        },
    }
}

/// Returns the letters of a bundle that are flags: the first that takes a value takes the rest as its value.
fn shorts<'a>(bundle: &'a str, rules: &FlagRules) -> &'a str {
    match value_at(bundle, rules) {
        Some(start) => &bundle[..start],
        None => bundle,
    }
}

/// Returns where in a bundle of letters (without its dash) the value of one of them begins.
pub(crate) fn value_at(bundle: &str, rules: &FlagRules) -> Option<usize> {
    let takes_value =
        |letter: char| rules.values.iter().chain(&rules.texts).any(|flag| short(flag) == Some(letter));
    bundle.char_indices().find(|(_, letter)| takes_value(*letter)).map(|(at, letter)| at + letter.len_utf8())
}

/// The letter of a short flag.
pub(crate) fn short(flag: &str) -> Option<char> {
    let mut letters = flag.strip_prefix('-')?.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) if letter != '-' => Some(letter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;
    use crate::subcommand::allowed;

    fn verdict(line: &str) -> Result<(), ToolError> {
        let policy = Policy::standard();
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let (program, args) = words.split_first().unwrap();
        let policy = &policy.programs[program];
        let parts = allowed(program, policy, args)?;
        let own = parts.subcommand.map(|name| policy.subcommands[name].clone()).unwrap_or_default();
        check(program, policy, &policy.flags.and(&own), &parts)
    }

    /// Every flag the policy denies, alone, with a value, abbreviated and in a bundle, behind `--` too.
    #[test]
    fn every_denied_flag_is_denied_in_every_form() {
        let policy = Policy::standard();
        let mut tried = 0;
        for (program, rules) in &policy.programs {
            let none = FlagRules::default();
            let own: Vec<(&str, &FlagRules)> = match rules.subcommands.is_empty() {
                true => vec![("", &none)],
                false => rules.subcommands.iter().map(|(name, own)| (name.as_str(), own)).collect(),
            };
            for (subcommand, own) in own {
                for flag in rules.flags.and(own).deny {
                    for form in forms(&flag, rules.notation) {
                        let line = format!("{program} {subcommand} {form}");
                        assert_eq!(
                            verdict(&line).map_err(|error| error.code()),
                            Err("FLAG_DENIED"),
                            "{line}"
                        );
                        tried += 1;
                    }
                }
            }
        }
        assert!(tried > 500, "{tried}");
    }

    fn forms(flag: &str, notation: Notation) -> Vec<String> {
        let mut forms = vec![flag.to_owned(), format!("x {flag}"), format!("-- {flag}")];
        match (notation, short(flag)) {
            (Notation::Words, _) => forms.push(format!("-{flag}")),
            (_, Some(letter)) => {
                forms.extend([format!("-{letter}value"), format!("-1{letter}"), format!("-é{letter}2")])
            }
            (_, None) => {
                forms.push(format!("{flag}=value"));
                forms.push(format!("{flag}="));
                // Down to where it could also be meant for something else that is listed as fine.
                let shortest = if flag == "--textconv" { 7 } else { 3 };
                forms.extend((shortest..flag.len()).map(|end| flag[..end].to_owned()));
            }
        }
        forms
    }

    #[test]
    fn before_the_subcommand_only_listed_flags() {
        for flags in [
            "-c a.b=c",
            "-ca.b=c",
            "-C .",
            "-C.",
            "--exec-path=.",
            "--git-dir .",
            "--git-dir=.",
            "--work-tree .",
            "--work-tree=.",
            "--namespace x",
            "--config-env=a=B",
            "--paginate",
            "-p",
            "--bare",
            "--no-pag",
            "--attr-source x",
            "--",
        ] {
            let line = format!("git {flags} status");
            assert_eq!(verdict(&line).map_err(|error| error.code()), Err("FLAG_DENIED"), "{line}");
        }
        verdict("git --no-pager --literal-pathspecs status").unwrap();
    }

    #[test]
    fn what_only_looks_like_a_denied_flag_is_fine() {
        for line in [
            "git log -c --text --oneline -n 3 --no-ext-diff",
            "git log -SRdL -Gdm",
            "git diff -C -M",
            "git rev-parse --git-dir",
            "git branch --list -a -v",
            "ls -l --dereference-command-line",
            "tail -n5 --lines=3",
            "grep -eR -rn x",
            "grep -AR x",
            "find . -name -o -type f",
            "find . -execute",
            "cat -- -",
            "wc -l --total=never",
        ] {
            verdict(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }
}
