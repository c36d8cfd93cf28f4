//! A program's environment: nothing of the host process except what is requested by name.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use crate::policy::{PATH, ProgramPolicy};

/// No colours, no pager, no prompts, no configuration of the user or the machine.
const QUIET: [(&str, &str); 14] = [
    ("LANG", "C.UTF-8"),
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("EDITOR", "/bin/false"),
    ("VISUAL", "/bin/false"),
    ("GIT_EDITOR", "/bin/false"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "/bin/false"),
    ("SSH_ASKPASS", "/bin/false"),
];

/// Returns a program's whole environment. Fixed variables come last, so they cannot be overridden.
pub(crate) fn environment(
    passed: &[(String, OsString)],
    policy: &ProgramPolicy,
    requested: &[(String, String)],
    jail: &Path,
    cwd: &Path,
) -> Vec<(OsString, OsString)> {
    let mut all: BTreeMap<OsString, OsString> = BTreeMap::new();
    all.extend(passed.iter().map(|(name, value)| (name.into(), value.clone())));
    all.extend(QUIET.iter().map(|(name, value)| (name.into(), value.into())));
    all.extend(policy.env.iter().map(|(name, value)| (name.into(), value.into())));
    all.extend(requested.iter().map(|(name, value)| (name.into(), value.into())));
    all.extend([
        ("PATH".into(), PATH.into()),
        ("HOME".into(), jail.into()),
        ("PWD".into(), cwd.into()),
        // A repository around the jail is not the jail's.
        ("GIT_CEILING_DIRECTORIES".into(), jail.parent().unwrap_or(jail).into()),
    ]);
    all.into_iter().collect()
}

/// Returns the current values of the host's variables that are passed on.
pub(crate) fn passed(names: &[String]) -> Vec<(String, OsString)> {
    names.iter().filter_map(|name| Some((name.clone(), std::env::var_os(name)?))).collect()
}

/// Returns the values that must not be seen: those configured, and those of passed variables whose names suggest a
/// secret.
pub(crate) fn secrets(said: &[String], passed: &[(String, OsString)]) -> Vec<Vec<u8>> {
    const SECRET: [&str; 5] = ["TOKEN", "SECRET", "PASSW", "KEY", "CREDENTIAL"];
    let named = passed.iter().filter(|(name, value)| {
        let name = name.to_uppercase();
        value.len() >= 8 && SECRET.iter().any(|word| name.contains(word))
    });
    let said = said.iter().map(|secret| secret.as_bytes().to_vec());
    said.chain(named.map(|(_, value)| value.as_encoded_bytes().to_vec())).collect()
}
