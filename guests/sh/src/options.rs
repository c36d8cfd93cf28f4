//! Options of `set` and `shopt`.

/// Options by letter and name. The letter is 0 where there is none.
macro_rules! set_options {
    ($($field:ident $letter:literal $name:literal $default:literal;)*) => {
        /// The options of `set`.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Options { $(pub $field: bool,)* }

        impl Default for Options {
            fn default() -> Self {
                Options { $($field: $default,)* }
            }
        }

        impl Options {
            /// Names, in the order `set -o` lists them.
            pub const NAMES: &[&str] = &[$($name,)*];

            pub fn by_name(&mut self, name: &[u8]) -> Option<&mut bool> {
                $(if name == $name.as_bytes() { return Some(&mut self.$field); })*
                None
            }

            pub fn by_letter(&mut self, letter: u8) -> Option<&mut bool> {
                $(if $letter != b'\0' && letter == $letter { return Some(&mut self.$field); })*
                None
            }

            /// The names that are on, for `SHELLOPTS`.
            pub fn enabled(&self) -> Vec<u8> {
                let mut names: Vec<&str> = Vec::new();
                $(if self.$field { names.push($name); })*
                names.join(":").into_bytes()
            }

            /// The letters that are on, for `$-`.
            pub fn letters(&self) -> Vec<u8> {
                let mut letters = Vec::new();
                $(if $letter != b'\0' && self.$field { letters.push($letter); })*
                letters.sort_by_key(|letter| b"abefhkmnprtuvxBCEHPT".iter().position(|other| other == letter));
                letters
            }
        }
    };
}

set_options! {
    allexport b'a' "allexport" false;
    braceexpand b'B' "braceexpand" true;
    emacs b'\0' "emacs" false;
    errexit b'e' "errexit" false;
    errtrace b'E' "errtrace" false;
    functrace b'T' "functrace" false;
    hashall b'h' "hashall" true;
    histexpand b'H' "histexpand" false;
    history b'\0' "history" false;
    ignoreeof b'\0' "ignoreeof" false;
    comments b'\0' "interactive-comments" true;
    keyword b'k' "keyword" false;
    monitor b'm' "monitor" false;
    noclobber b'C' "noclobber" false;
    noexec b'n' "noexec" false;
    noglob b'f' "noglob" false;
    nolog b'\0' "nolog" false;
    notify b'b' "notify" false;
    nounset b'u' "nounset" false;
    onecmd b't' "onecmd" false;
    physical b'P' "physical" false;
    pipefail b'\0' "pipefail" false;
    posix b'\0' "posix" false;
    privileged b'p' "privileged" false;
    verbose b'v' "verbose" false;
    vi b'\0' "vi" false;
    xtrace b'x' "xtrace" false;
}

/// The options of `shopt`, by name, with what they are at first.
pub const SHOPT: &[(&str, bool)] = &[
    ("autocd", false),
    ("assoc_expand_once", false),
    ("cdable_vars", false),
    ("cdspell", false),
    ("checkhash", false),
    ("checkjobs", false),
    ("checkwinsize", true),
    ("cmdhist", true),
    ("compat31", false),
    ("compat32", false),
    ("compat40", false),
    ("compat41", false),
    ("compat42", false),
    ("compat43", false),
    ("compat44", false),
    ("complete_fullquote", true),
    ("direxpand", false),
    ("dirspell", false),
    ("dotglob", false),
    ("execfail", false),
    ("expand_aliases", false),
    ("extdebug", false),
    ("extglob", false),
    ("extquote", true),
    ("failglob", false),
    ("force_fignore", true),
    ("globasciiranges", true),
    ("globskipdots", true),
    ("globstar", false),
    ("gnu_errfmt", false),
    ("histappend", false),
    ("histreedit", false),
    ("histverify", false),
    ("hostcomplete", true),
    ("huponexit", false),
    ("inherit_errexit", false),
    ("interactive_comments", true),
    ("lastpipe", false),
    ("lithist", false),
    ("localvar_inherit", false),
    ("localvar_unset", false),
    ("login_shell", false),
    ("mailwarn", false),
    ("no_empty_cmd_completion", false),
    ("nocaseglob", false),
    ("nocasematch", false),
    ("noexpand_translation", false),
    ("nullglob", false),
    ("patsub_replacement", true),
    ("progcomp", true),
    ("progcomp_alias", false),
    ("promptvars", true),
    ("restricted_shell", false),
    ("shift_verbose", false),
    ("sourcepath", true),
    ("varredir_close", false),
    ("xpg_echo", false),
];

const EXTDEBUG: usize = {
    let mut at = 0;
    while !matches!(SHOPT[at].0.as_bytes(), b"extdebug") {
        at += 1;
    }
    at
};

/// The values of `shopt`'s options, and those that matter often as fields.
#[derive(Clone, Debug)]
pub struct Shopt {
    values: Vec<bool>,
}

impl Default for Shopt {
    fn default() -> Self {
        Shopt { values: SHOPT.iter().map(|(_, on)| *on).collect() }
    }
}

impl Shopt {
    pub fn get(&self, name: &str) -> bool {
        SHOPT.iter().position(|(known, _)| *known == name).is_some_and(|at| self.values[at])
    }

    /// `extdebug`, which every call of a function asks for.
    pub fn extdebug(&self) -> bool {
        self.values[EXTDEBUG]
    }

    /// The level of `shopt -s compatNN` that is on.
    pub fn compatibility(&self) -> Option<&'static str> {
        let levels =
            SHOPT.iter().zip(&self.values).filter(|((name, _), on)| **on && name.starts_with("compat"));
        levels.map(|((name, _), _)| *name).next()
    }

    /// The names that are on, for `BASHOPTS`.
    pub fn enabled(&self) -> Vec<u8> {
        let on = SHOPT.iter().zip(&self.values).filter(|(_, on)| **on).map(|((name, _), _)| *name);
        on.collect::<Vec<_>>().join(":").into_bytes()
    }

    pub fn by_name(&mut self, name: &[u8]) -> Option<&mut bool> {
        let at = SHOPT.iter().position(|(known, _)| known.as_bytes() == name)?;
        self.values.get_mut(at)
    }
}
