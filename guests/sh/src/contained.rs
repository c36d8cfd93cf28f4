//! A run whose options and traps end with it: what a caller uses who must not depend on what ran before.

use crate::options::{Options, Shopt};
use crate::shell::Shell;
use crate::vars::Var;
use std::collections::BTreeMap;

/// What a contained run cannot change for the next one.
pub struct Kept {
    options: Options,
    shopt: Shopt,
    /// `BASH_COMPAT`: `shopt -s compat44` sets it, and it would be in force without the option.
    compatibility: Option<Var>,
    traps: BTreeMap<i32, Vec<u8>>,
}

impl Shell {
    pub fn keep_options_and_traps(&self) -> Kept {
        Kept {
            options: self.options.clone(),
            shopt: self.shopt.clone(),
            compatibility: self.vars.raw(b"BASH_COMPAT").cloned(),
            traps: self.traps.commands(),
        }
    }

    /// Puts the options and traps back. Variables, functions, aliases, the directory and the history stay as they are.
    pub fn restore_options_and_traps(&mut self, mut kept: Kept) {
        // These two options have a variable each, which follows.
        for name in [&b"posix"[..], b"ignoreeof"] {
            let before = kept.options.by_name(name).is_some_and(|on| *on);
            if self.options.by_name(name).is_some_and(|on| *on) != before {
                let _ = crate::builtins::set_named(self, name, before);
            }
        }
        if self.shopt.compatibility() != kept.shopt.compatibility() {
            match kept.compatibility {
                Some(var) => self.vars.insert(b"BASH_COMPAT", var),
                None => drop(self.vars.remove(b"BASH_COMPAT")),
            }
        }
        self.options = kept.options;
        self.shopt = kept.shopt;
        let set: Vec<i32> = self.traps.commands().into_keys().collect();
        for signal in set.into_iter().filter(|signal| !kept.traps.contains_key(signal)) {
            self.traps.reset(signal);
        }
        for (signal, command) in kept.traps {
            if self.traps.get(signal) != Some(&command) {
                self.traps.set(signal, command);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::session::ShellSession;
    use wardian_abi::Session;

    fn contained(script: &str) -> i32 {
        ShellSession::run_contained(script.as_bytes())
    }

    fn get(name: &str) -> Option<String> {
        ShellSession::getenv(name.as_bytes()).map(|value| String::from_utf8_lossy(&value).into_owned())
    }

    #[test]
    fn options_and_traps_end_with_the_run() {
        assert_eq!(
            ShellSession::run(b"set -u; shopt -s extglob; trap 'old=1' USR1; trap 'failed=old' ERR"),
            0
        );
        let before = ShellSession::run(b"before=\"$- $SHELLOPTS $BASHOPTS $(trap)\"");
        assert_eq!(before, 0);
        assert_eq!(contained("set -e; false; never=1"), 1);
        assert_eq!(contained("false; after=1"), 0);
        assert_eq!((get("never"), get("after")), (None, Some("1".into())));
        let changes = "set +u -x -f -C -n -o posix -o pipefail; :";
        assert_eq!(contained(&format!("exec 2>/dev/null; {changes}")), 0);
        assert_eq!(contained("shopt -u extglob; shopt -s nullglob compat44; set -o ignoreeof"), 0);
        assert_eq!(
            contained("trap 'x' USR1; trap '' INT; trap - ERR; trap 'left=1' EXIT; trap 'y' DEBUG"),
            0
        );
        assert_eq!(get("left"), Some("1".into()));
        assert_eq!(contained("after=\"$- $SHELLOPTS $BASHOPTS $(trap)\"; [[ $before == \"$after\" ]]"), 0);
        assert_eq!((get("POSIXLY_CORRECT"), get("IGNOREEOF"), get("BASH_COMPAT")), (None, None, None));
    }

    #[test]
    fn all_else_lives_on() {
        assert_eq!(contained("x=1; f() { echo $((x + 1)); }; a=(p q); cd /; exit 3; x=2"), 3);
        assert_eq!(contained("[[ $? == 3 && $x$(f)${a[1]}$PWD == 12q/ ]]"), 0);
        assert_eq!(contained("set -- one two"), 0);
        assert_eq!(contained("alias ten='echo 10'\nif then fi"), 2);
        assert_eq!(contained("[[ $2$(alias) == \"twoalias ten='echo 10'\" ]]"), 0);
        // An option set without a container is the session's, also for what is contained.
        assert_eq!(ShellSession::run(b"set -o pipefail"), 0);
        assert_eq!(contained("false | true"), 1);
    }
}
