//! A whole run: the command line, the environment, the makefiles, the goals.

use std::collections::HashMap;

use wardian_abi::{self as abi, Dir};

use crate::jobs::Jobs;
use crate::make::{Make, Res, Special, Stop};
use crate::options::{self, Options};
use crate::rules::FileId;
use crate::text;
use crate::variables::{Export, Operator, Origin, Table, Variable, definition};

/// The makefiles that are looked for when none is named.
const NAMES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// How often makefiles may be made anew before that is taken for a mistake.
const MOST_RESTARTS: usize = 100;

const FEATURES: &str =
    "target-specific order-only second-expansion else-if shortest-stem undefine oneshell grouped-target";

/// Runs make; answers the exit code.
pub fn run() -> i32 {
    let arguments = abi::args();
    let environment = abi::environ();
    let level = number_of(&environment, b"MAKELEVEL");
    let name = if level == 0 { "make".to_owned() } else { format!("make[{level}]") };
    let mut given = match options::read(arguments.iter().skip(1).cloned().collect()) {
        Ok(given) => given,
        Err(code) => return code,
    };
    if let Some(flags) = toolkit::program::value_of(&environment, b"MAKEFLAGS")
        && let Err(code) = inherit(&mut given, flags)
    {
        return code;
    }
    for directory in &given.directories {
        if let Err(error) = abi::chdir(Dir::CWD, directory) {
            toolkit::complain(&name, format_args!("*** {}: {error}.  Stop.", text::shown(directory)));
            return 2;
        }
    }
    let prints =
        given.print_directory.unwrap_or((level > 0 || !given.directories.is_empty()) && !given.silent);
    if prints {
        given.print_directory = Some(true);
    }
    let directory = text::shown(&abi::getcwd().unwrap_or_default());
    let announce = |what: &str| {
        let line = format!("{name}: {what} directory '{directory}'\n");
        let _ = abi::write_all(1, line.as_bytes());
    };
    if prints {
        announce("Entering");
    }
    let command = arguments.first().cloned().unwrap_or_else(|| b"make".to_vec());
    let code = make_all(&name, level, &command, &given, &environment);
    if prints {
        announce("Leaving");
    }
    code
}

fn number_of(environment: &[Vec<u8>], name: &[u8]) -> usize {
    let value = toolkit::program::value_of(environment, name).unwrap_or_default();
    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Adds what a make above has passed on. What was given here comes after it.
fn inherit(given: &mut Options, flags: &[u8]) -> Result<(), i32> {
    let own_definitions = std::mem::take(&mut given.definitions);
    let own_jobs = given.jobs;
    let own_goals = given.goals.clone();
    given.read_flags(flags)?;
    given.goals = own_goals;
    // Each make counts its own jobs.
    given.jobs = own_jobs;
    given.definitions.extend(own_definitions);
    Ok(())
}

fn make_all(name: &str, level: usize, command: &[u8], given: &Options, environment: &[Vec<u8>]) -> i32 {
    for restarts in 0..MOST_RESTARTS {
        let mut make = Make::new(name, level, given.clone(), environment.to_vec());
        match make.whole(command, restarts) {
            Ok(Some(code)) => return code,
            Ok(None) => {}
            Err(Stop(code)) => return code,
        }
    }
    toolkit::complain(name, "*** makefiles are remade endlessly.  Stop.");
    2
}

impl Make {
    fn new(name: &str, level: usize, options: Options, environment: Vec<Vec<u8>>) -> Make {
        Make {
            name: name.to_owned(),
            level,
            options,
            globals: Table::new(),
            frames: Vec::new(),
            current: None,
            hidden: Vec::new(),
            expanding: Vec::new(),
            inside: None,
            depth: 0,
            most_arguments: 0,
            place: None,
            files: Vec::new(),
            index: HashMap::new(),
            pattern_rules: Vec::new(),
            pattern_variables: Vec::new(),
            suffixes: Vec::new(),
            special: Special::default(),
            search_paths: Vec::new(),
            makefiles: Vec::new(),
            jobs: Jobs::default(),
            environment,
            export_all: false,
            started: 0,
            clock_skew: false,
            giving_up: false,
        }
    }

    /// Reads and makes everything; answers `None` if makefiles changed and all must be read again.
    fn whole(&mut self, command: &[u8], restarts: usize) -> Res<Option<i32>> {
        self.set_variables(command, restarts)?;
        self.install_builtins()?;
        self.read_all()?;
        self.adopt_flags()?;
        self.convert_suffix_rules();
        self.place = None;
        if self.remake_makefiles()? {
            return Ok(None);
        }
        let goals = self.goals()?;
        self.make_goals(&goals).map(Some)
    }

    fn set_variables(&mut self, command: &[u8], restarts: usize) -> Res<()> {
        let origin = match self.options.environment_overrides {
            true => Origin::EnvironmentOverride,
            false => Origin::Environment,
        };
        for pair in self.environment.clone() {
            let Some(at) = pair.iter().position(|&byte| byte == b'=') else { continue };
            let (name, value) = (&pair[..at], &pair[at + 1..]);
            if matches!(name, b"SHELL" | b"MAKEFLAGS" | b"MAKELEVEL" | b"MFLAGS" | b"MAKEOVERRIDES") {
                continue;
            }
            let mut variable = Variable::new(value, true, origin);
            variable.from_environment = true;
            self.globals.insert(name.to_vec(), variable);
        }
        let definitions = self.options.definitions.clone();
        for given in &definitions {
            if let Some(found) = definition(given) {
                let name = self.expand(found.name)?;
                self.globals.remove(&name);
                self.define(&name, found.operator, found.value, Origin::CommandLine)?;
            }
        }
        let directory = abi::getcwd().unwrap_or_default();
        let overrides: Vec<Vec<u8>> = definitions.iter().map(|one| quote_flag(one)).collect();
        self.define(b"MAKEOVERRIDES", Operator::Simple, &text::join(&overrides), Origin::Default)?;
        let mut flags = self.options.flags();
        if !overrides.is_empty() {
            flags.extend(b" -- ");
            flags.extend(text::replace(&text::join(&overrides), b"$", b"$$"));
        }
        let plain = self.options.flags();
        let dash: &[u8] = if plain.first().is_none_or(|&first| first == b' ') { b"" } else { b"-" };
        let fixed: [(&str, Vec<u8>, Origin); 12] = [
            ("MAKEFLAGS", flags, Origin::File),
            ("MFLAGS", [dash, text::trim_start(&plain)].concat(), Origin::File),
            ("MAKE_COMMAND", command.to_vec(), Origin::Default),
            ("MAKE", b"$(MAKE_COMMAND)".to_vec(), Origin::Default),
            ("MAKE_VERSION", b"4.3".to_vec(), Origin::Default),
            ("MAKE_HOST", b"x86_64-pc-linux-gnu".to_vec(), Origin::Default),
            ("MAKELEVEL", self.level.to_string().into_bytes(), Origin::Environment),
            ("CURDIR", text::replace(&directory, b"$", b"$$"), Origin::File),
            ("SHELL", b"/bin/sh".to_vec(), Origin::File),
            (".SHELLFLAGS", b"-c".to_vec(), Origin::Default),
            (".FEATURES", FEATURES.into(), Origin::Default),
            (".INCLUDE_DIRS", crate::read::INCLUDE_DIRECTORIES.join(" ").into_bytes(), Origin::Default),
        ];
        for (name, value, origin) in fixed {
            let recursive = name == "MAKE";
            let operator = if recursive { Operator::Recursive } else { Operator::Simple };
            self.define(name.as_bytes(), operator, &value, origin)?;
        }
        // Default-origin settings never replace what was given: these two are make's own.
        for name in ["MAKE_COMMAND", "MAKE"] {
            if let Some(variable) = self.globals.get_mut(name.as_bytes()) {
                variable.export = Export::Default;
            }
        }
        let goals = text::join(&self.options.goals);
        if !goals.is_empty() {
            self.define(b"MAKECMDGOALS", Operator::Simple, &goals, Origin::File)?;
        }
        if restarts > 0 {
            let count = restarts.to_string();
            self.define(b"MAKE_RESTARTS", Operator::Simple, count.as_bytes(), Origin::Environment)?;
        }
        Ok(())
    }

    fn read_all(&mut self) -> Res<()> {
        for text in self.options.evaluate.clone() {
            self.read_evaluated(&text)?;
        }
        let named = self.options.makefiles.clone();
        for name in &named {
            self.read_makefile(name, true)?;
        }
        if named.is_empty() {
            for name in NAMES {
                if abi::stat(Dir::CWD, name.as_bytes(), true).is_ok() {
                    self.read_makefile(name.as_bytes(), false)?;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Makefiles may add to `MAKEFLAGS`.
    fn adopt_flags(&mut self) -> Res<()> {
        let flags = self.value(b"MAKEFLAGS")?;
        let kept = (self.options.goals.clone(), self.options.definitions.clone(), self.options.jobs);
        if self.options.read_flags(&flags).is_err() {
            return Err(Stop(2));
        }
        self.options.goals = kept.0;
        self.options.definitions = kept.1;
        if kept.2 != Some(1) {
            self.options.jobs = kept.2;
        }
        Ok(())
    }

    /// Makes makefiles that have rules; answers whether one of them changed.
    fn remake_makefiles(&mut self) -> Res<bool> {
        let pretending = (self.options.dry_run, self.options.question, self.options.touch);
        (self.options.dry_run, self.options.question, self.options.touch) = (false, false, false);
        let mut changed = false;
        for number in 0..self.makefiles.len() {
            let (name, found) = (self.makefiles[number].name.clone(), self.makefiles[number].found);
            changed |= self.remake_makefile(number, &name, found)?;
        }
        (self.options.dry_run, self.options.question, self.options.touch) = pretending;
        Ok(changed)
    }

    fn remake_makefile(&mut self, number: usize, name: &[u8], found: bool) -> Res<bool> {
        let ruled = self.known(name).is_some_and(|id| self.files[id].is_target);
        if name == b"-" || found && !ruled {
            return Ok(false);
        }
        if !found && !ruled && !self.has_implicit(name)? {
            return self.missing_makefile(number, name);
        }
        let id = self.file(name);
        let endless = !self.files[id].doubles.is_empty()
            && self.files[id].doubles.iter().any(|rule| rule.prerequisites.is_empty());
        if self.files[id].phony || endless {
            return Ok(false);
        }
        let before = self.time(id)?;
        let worked = self.make_goal(id)?;
        let after = self.time(id)?;
        if !worked && self.makefiles[number].required {
            return Err(Stop(2));
        }
        if !worked {
            (self.giving_up, self.files[id].failed) = (false, false);
        }
        Ok(worked && self.files[id].ran && before != after)
    }

    fn has_implicit(&mut self, name: &[u8]) -> Res<bool> {
        let id = self.file(name);
        self.find_implicit(id)?;
        Ok(self.files[id].recipe.is_some())
    }

    fn missing_makefile(&mut self, number: usize, name: &[u8]) -> Res<bool> {
        if !self.makefiles[number].required {
            return Ok(false);
        }
        self.place = self.makefiles[number].place.clone();
        self.note(&format!("{}: No such file or directory", text::shown(name)));
        Err(self.fatal_anywhere(&format!("No rule to make target '{}'", text::shown(name))))
    }

    /// The files to make.
    fn goals(&mut self) -> Res<Vec<FileId>> {
        let named = self.options.goals.clone();
        if !named.is_empty() {
            return Ok(named.iter().map(|goal| self.file(goal)).collect());
        }
        let default = self.value(b".DEFAULT_GOAL")?;
        let goals: Vec<Vec<u8>> = text::words(&default).map(<[u8]>::to_vec).collect();
        match &goals[..] {
            [] if self.makefiles.is_empty() => {
                Err(self.fatal_anywhere("No targets specified and no makefile found"))
            }
            [] => Err(self.fatal_anywhere("No targets")),
            [goal] => Ok(vec![self.file(goal)]),
            _ => Err(self.fatal_anywhere(".DEFAULT_GOAL contains more than one target")),
        }
    }

    fn make_goals(&mut self, goals: &[FileId]) -> Res<i32> {
        let mut code = 0;
        for &goal in goals {
            let before = self.started;
            if !self.make_goal(goal)? {
                code = if self.options.question { 1 } else { 2 };
                if self.giving_up {
                    break;
                }
                continue;
            }
            let quiet = self.options.silent || self.options.question;
            if self.started == before && !quiet {
                let file = &self.files[goal];
                match file.phony || file.recipe.is_none() {
                    true => self.say(&format!("{}: Nothing to be done for '{}'.", self.name, file.shown())),
                    false => self.say(&format!("{}: '{}' is up to date.", self.name, file.shown())),
                }
            }
        }
        if self.clock_skew {
            self.complain("warning:  Clock skew detected.  Your build may be incomplete.");
        }
        self.remove_intermediates();
        Ok(code)
    }

    /// Removes the files that were made only on the way to others.
    fn remove_intermediates(&mut self) {
        let removable = |file: &&crate::rules::File| {
            let kept = file.precious || file.secondary || file.phony || file.mentioned && !file.intermediate;
            file.intermediate && file.ran && file.before.is_none() && !kept && !file.failed
        };
        if self.special.all_secondary || self.special.all_precious {
            return;
        }
        let names: Vec<Vec<u8>> = self.files.iter().filter(removable).map(|file| file.name.clone()).collect();
        let there = |name: &&Vec<u8>| abi::stat(Dir::CWD, name, false).is_ok();
        let names: Vec<&Vec<u8>> = match self.options.dry_run {
            true => names.iter().collect(),
            false => names.iter().filter(there).collect(),
        };
        if names.is_empty() || self.options.question || self.options.touch {
            return;
        }
        if !self.options.silent {
            self.say_bytes(&[b"rm ", &text::join(&names)[..]].concat());
        }
        if !self.options.dry_run {
            for name in names {
                if let Err(error) = abi::unlink(Dir::CWD, name) {
                    self.complain(&format!("unlink: {}: {error}", text::shown(name)));
                }
            }
        }
    }
}

/// A definition as `MAKEFLAGS` passes it on: blanks and backslashes get a backslash.
fn quote_flag(definition: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(definition.len());
    for &byte in definition {
        if byte == b'\\' || text::is_blank(byte) {
            quoted.push(b'\\');
        }
        quoted.push(byte);
    }
    quoted
}
