//! A recipe on its way to the shell: expanded, cut into lines, with what its programs see in their environment.

use std::collections::BTreeMap;

use crate::make::{Make, Place, Res};
use crate::rules::FileId;
use crate::text;
use crate::update::unique;
use crate::variables::{Export, Origin, Table, Variable, is_exportable};

/// A line of a recipe, ready to run.
#[derive(Clone, Debug)]
pub struct Command {
    pub text: Vec<u8>,
    pub silent: bool,
    pub ignores_errors: bool,
    /// Runs even with `-n`, `-q` and `-t`.
    pub always: bool,
    pub place: Option<Place>,
}

impl Make {
    /// The commands of a file's recipe.
    pub fn commands(&mut self, id: FileId) -> Res<Vec<Command>> {
        let Some(recipe) = self.files[id].recipe.clone() else { return Ok(Vec::new()) };
        let frame = self.automatic(id);
        let here = self.place.clone();
        let outer = self.current.replace(id);
        self.frames.push(frame);
        let mut commands = Vec::new();
        for (number, (line, _)) in recipe.lines.iter().enumerate() {
            self.place = recipe.place(number);
            let expanded = self.expand(line)?;
            let recursive = text::find(line, b"$(MAKE)").or(text::find(line, b"${MAKE}")).is_some();
            let place = recipe.place(number);
            // What stands before a variable of several lines counts for all of them.
            let written = self.command(line, id, place.clone());
            for piece in split_lines(&expanded) {
                let mut command = self.command(piece, id, place.clone());
                command.silent |= written.silent;
                command.ignores_errors |= written.ignores_errors;
                command.always |= written.always || recursive;
                commands.push(command);
            }
        }
        self.frames.pop();
        self.current = outer;
        self.place = here;
        if self.special.one_shell && !commands.is_empty() {
            commands = vec![one_command(commands)];
        }
        commands.retain(|command| !text::trim(&command.text).is_empty());
        Ok(commands)
    }

    fn command(&self, line: &[u8], id: FileId, place: Option<Place>) -> Command {
        let file = &self.files[id];
        let mut command = Command {
            text: Vec::new(),
            silent: self.options.silent || self.special.all_silent || file.silent,
            ignores_errors: self.options.ignore_errors || self.special.all_ignored || file.ignores_errors,
            always: false,
            place,
        };
        let mut rest = line;
        while let [first, after @ ..] = rest {
            match first {
                b'@' => command.silent = true,
                b'-' => command.ignores_errors = true,
                b'+' => command.always = true,
                b' ' | b'\t' | b'\n' => {}
                _ => break,
            }
            rest = after;
        }
        command.text = rest.to_vec();
        command
    }

    /// `$@`, `$<` and their like.
    fn automatic(&self, id: FileId) -> Table {
        let file = &self.files[id];
        let names = |wanted: &dyn Fn(&crate::rules::Prerequisite) -> bool| -> Vec<Vec<u8>> {
            let fitting = file.prerequisites.iter().filter(|one| wanted(one));
            fitting.map(|one| self.path(one.file).to_vec()).collect()
        };
        let all = names(&|one| !one.order_only);
        let order_only = names(&|one| one.order_only);
        let fresh = file.time.flatten().is_none() && !file.phony;
        let newer = names(&|one| !one.order_only && (one.changed || fresh));
        // A file that is in both lists is an ordinary one.
        let order_only: Vec<Vec<u8>> = order_only.into_iter().filter(|name| !all.contains(name)).collect();
        let stem = match file.stem.is_empty() {
            false => file.stem.clone(),
            true => self.stem_by_suffix(&file.name),
        };
        let values: [(&[u8], Vec<u8>); 8] = [
            (b"@", self.path(id).to_vec()),
            (b"<", all.first().cloned().unwrap_or_default()),
            (b"^", text::join(unique(&all))),
            (b"+", text::join(&all)),
            (b"?", text::join(unique(&newer))),
            (b"|", text::join(unique(&order_only))),
            (b"*", stem),
            (b"%", Vec::new()),
        ];
        let variable = |value| Variable::new(value, false, Origin::Automatic);
        values.into_iter().map(|(name, value)| (name.to_vec(), variable(value))).collect()
    }

    /// `$*` in an explicit rule: the name without a suffix that is known.
    fn stem_by_suffix(&self, name: &[u8]) -> Vec<u8> {
        let fitting = self.suffixes.iter().find(|suffix| name.len() > suffix.len() && name.ends_with(suffix));
        fitting.map_or(Vec::new(), |suffix| name[..name.len() - suffix.len()].to_vec())
    }

    /// What the programs of a recipe see.
    pub fn environment_for(&mut self, id: FileId) -> Res<Vec<Vec<u8>>> {
        let outer = self.current.replace(id);
        let environment = self.exported(id);
        self.current = outer;
        environment
    }

    fn exported(&mut self, id: FileId) -> Res<Vec<Vec<u8>>> {
        let mut wanted: BTreeMap<Vec<u8>, bool> = BTreeMap::new();
        for (name, variable) in &self.globals {
            wanted.insert(name.clone(), self.is_exported(name, variable));
        }
        let mut scope = Some(id);
        while let Some(file) = scope {
            for (name, variable) in &self.files[file].variables {
                let own = variable.export == Export::Yes || self.export_all && is_exportable(name);
                *wanted.entry(name.clone()).or_default() |= own;
            }
            scope = self.files[file].parent;
        }
        let mut environment = Vec::new();
        for (name, _) in wanted.into_iter().filter(|(_, exported)| *exported) {
            let value = match &name[..] {
                b"SHELL" | b"MAKELEVEL" => continue,
                name => self.value(name)?,
            };
            environment.push([&name[..], b"=", &value].concat());
        }
        let shell = self.globals.get(&b"SHELL"[..]).filter(|shell| shell.export == Export::Yes);
        let shell = shell.map(|shell| shell.value.clone());
        let given = toolkit::program::value_of(&self.environment, b"SHELL").map(<[u8]>::to_vec);
        environment.extend(shell.or(given).map(|shell| [b"SHELL=", &shell[..]].concat()));
        environment.push(format!("MAKELEVEL={}", self.level + 1).into_bytes());
        Ok(environment)
    }

    fn is_exported(&self, name: &[u8], variable: &Variable) -> bool {
        match variable.export {
            Export::Yes => true,
            Export::No => false,
            Export::Default => match variable.origin {
                Origin::Environment | Origin::EnvironmentOverride => true,
                Origin::CommandLine => is_exportable(name),
                Origin::Default | Origin::Automatic => name == b"MAKEFLAGS",
                _ => {
                    variable.from_environment
                        || name == b"MAKEFLAGS"
                        || self.export_all && is_exportable(name)
                }
            },
        }
    }
}

/// Lines of an expanded recipe; a backslash at the end of one keeps it together with the next.
fn split_lines(text: &[u8]) -> Vec<&[u8]> {
    let (mut lines, mut start) = (Vec::new(), 0);
    for (at, &byte) in text.iter().enumerate() {
        let backslashes = || text[start..at].iter().rev().take_while(|&&byte| byte == b'\\').count();
        if byte == b'\n' && backslashes() % 2 == 0 {
            lines.push(&text[start..at]);
            start = at + 1;
        }
    }
    lines.push(&text[start..]);
    lines
}

/// With `.ONESHELL` all lines are one script; what the first says of silence and errors counts for all.
fn one_command(commands: Vec<Command>) -> Command {
    let mut all = commands[0].clone();
    let texts: Vec<&[u8]> = commands.iter().map(|command| &command.text[..]).collect();
    all.text = texts.join(&b'\n');
    all
}
