//! Definitions of variables: on a line, over many (`define`), for a target, on the command line.

use crate::conditions::split_word;
use crate::lines::{Lines, collapse};
use crate::make::{Make, Res};
use crate::rules::{FileId, PatternVariables};
use crate::text::{self, Pattern};
use crate::variables::{Definition, Export, Operator, Origin, Variable, appended, definition};

/// A line that defines, exports or both.
pub struct DefinitionLine {
    modifiers: Modifiers,
    what: What,
}

#[derive(Clone, Copy, Default)]
struct Modifiers {
    is_override: bool,
    private: bool,
    export: Option<Export>,
}

enum What {
    Define {
        name: Vec<u8>,
        operator: Operator,
        value: Vec<u8>,
    },
    /// `export NAMES`, `unexport NAMES`; without names all are meant.
    Export(Vec<u8>),
}

impl Make {
    /// Reads a definition, with the lines of a `define`.
    pub fn definition_line(&mut self, lines: &mut Lines<'_>, line: &[u8]) -> Res<Option<DefinitionLine>> {
        let (modifiers, rest) = modifiers(line);
        let (word, after) = split_word(rest);
        if word == b"define" && definition(rest).is_none_or(|found| found.name != b"define") {
            let what = self.define_lines(lines, after)?;
            return Ok(Some(DefinitionLine { modifiers, what }));
        }
        if let Some(found) = definition(rest) {
            let what = What::Define {
                name: found.name.to_vec(),
                operator: found.operator,
                value: found.value.to_vec(),
            };
            return Ok(Some(DefinitionLine { modifiers, what }));
        }
        if modifiers.export.is_some() && !rest_is_rule(rest) {
            return Ok(Some(DefinitionLine { modifiers, what: What::Export(rest.to_vec()) }));
        }
        Ok(None)
    }

    /// `define NAME [OPERATOR]`, lines, `endef`.
    fn define_lines(&mut self, lines: &mut Lines<'_>, head: &[u8]) -> Res<What> {
        let (name, operator) = match definition(head) {
            Some(found) => (found.name, found.operator),
            None => (text::trim(head), Operator::Recursive),
        };
        if name.is_empty() {
            return Err(self.fatal("empty variable name"));
        }
        let (mut value, mut depth) = (Vec::new(), 1);
        loop {
            let Some((line, _)) = lines.next() else {
                return Err(self.fatal("missing 'endef', unterminated 'define'"));
            };
            if !line.starts_with(b"\t") {
                let collapsed = collapse(line);
                match split_word(&collapsed) {
                    (b"define", _) => depth += 1,
                    (b"endef", rest) if rest.is_empty() || rest.starts_with(b"#") => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
            }
            value.extend_from_slice(line);
            value.push(b'\n');
        }
        // The last newline belongs to `endef`.
        value.pop();
        Ok(What::Define { name: name.to_vec(), operator, value })
    }

    /// Sets a global variable, unless one of a higher origin has the name.
    pub fn define(&mut self, name: &[u8], operator: Operator, value: &[u8], origin: Origin) -> Res<()> {
        let old = self.globals.get(name).cloned();
        if old.as_ref().is_some_and(|old| old.origin > origin) {
            return Ok(());
        }
        let (value, recursive) = match (operator, &old) {
            (Operator::Conditional, Some(_)) => return Ok(()),
            (Operator::Append, Some(old)) => {
                let added = if old.recursive { value.to_vec() } else { self.expand(value)? };
                (appended(&old.value, &added), old.recursive)
            }
            _ => self.defined_value(operator, value)?,
        };
        let mut variable = Variable::new(value, recursive, origin);
        variable.place = self.place.clone();
        if let Some(old) = old {
            variable.export = old.export;
            variable.from_environment = old.from_environment;
        }
        self.globals.insert(name.to_vec(), variable);
        Ok(())
    }

    /// Handles what follows the colon of a rule if it is a definition; answers whether it is.
    pub fn target_variables(&mut self, targets: &[Vec<u8>], right: &[u8]) -> Res<bool> {
        let (modifiers, rest) = modifiers(text::trim_start(right));
        let Some(found) = definition(rest) else { return Ok(false) };
        let name = text::trim(&self.expand(found.name)?).to_vec();
        if name.is_empty() {
            return Err(self.fatal("empty variable name"));
        }
        for target in targets {
            let pattern = Pattern::new(target);
            if pattern.has_stem() {
                // As for any variable, `:=` is expanded where it stands.
                let value = match found.operator {
                    Operator::Simple => self.expand(found.value)?,
                    _ => found.value.to_vec(),
                };
                self.pattern_variables.push(PatternVariables {
                    pattern,
                    name: name.clone(),
                    operator: found.operator,
                    value,
                    is_override: modifiers.is_override,
                    private: modifiers.private,
                    export: modifiers.export == Some(Export::Yes),
                });
                continue;
            }
            let id = self.file(target);
            self.files[id].mentioned = true;
            let found = Definition { name: &name, ..found.clone() };
            self.define_for(id, &found, modifiers)?;
        }
        Ok(true)
    }

    fn define_for(&mut self, id: FileId, found: &Definition<'_>, modifiers: Modifiers) -> Res<()> {
        let origin = if modifiers.is_override { Origin::Override } else { Origin::File };
        let global = self.globals.get(found.name);
        if global.is_some_and(|global| global.origin > origin) {
            return Ok(());
        }
        let outer = self.current.replace(id);
        let defined = self.target_variable(id, found, origin);
        self.current = outer;
        if let Some(mut variable) = defined? {
            variable.private = modifiers.private;
            if let Some(export) = modifiers.export {
                variable.export = export;
            }
            self.files[id].variables.insert(found.name.to_vec(), variable);
        }
        Ok(())
    }

    fn target_variable(
        &mut self,
        id: FileId,
        found: &Definition<'_>,
        origin: Origin,
    ) -> Res<Option<Variable>> {
        let own = self.files[id].variables.get(found.name).cloned();
        Ok(match (found.operator, own) {
            (Operator::Conditional, _) if self.look_up(found.name).is_some() => None,
            (Operator::Append, Some(mut own)) => {
                let added = if own.recursive { found.value.to_vec() } else { self.expand(found.value)? };
                own.value = appended(&own.value, &added);
                Some(own)
            }
            (Operator::Append, None) => {
                // If what it is added to is simple, so is this.
                let simple = self.look_up(found.name).is_some_and(|outer| !outer.recursive);
                let value = if simple { self.expand(found.value)? } else { found.value.to_vec() };
                let mut variable = Variable::new(value, !simple, origin);
                variable.appends = true;
                Some(variable)
            }
            _ => {
                let (value, recursive) = self.defined_value(found.operator, found.value)?;
                Some(Variable::new(value, recursive, origin))
            }
        })
    }

    /// Gives a target the variables of the patterns that it fits, the most general first.
    pub fn adopt_pattern_variables(&mut self, id: FileId) -> Res<()> {
        let name = self.files[id].name.clone();
        let mut fitting: Vec<(usize, PatternVariables)> = (self.pattern_variables.iter())
            .filter_map(|one| one.pattern.stem(&name).map(|stem| (stem.len(), one.clone())))
            .collect();
        if fitting.is_empty() {
            return Ok(());
        }
        fitting.sort_by_key(|(stem, _)| std::cmp::Reverse(*stem));
        // What the target itself says comes last.
        let own = std::mem::take(&mut self.files[id].variables);
        for (_, one) in fitting {
            let modifiers = Modifiers {
                is_override: one.is_override,
                private: one.private,
                export: one.export.then_some(Export::Yes),
            };
            // A simple value was expanded when it was read.
            let value = match one.operator {
                Operator::Simple => text::replace(&one.value, b"$", b"$$"),
                _ => one.value.clone(),
            };
            let found = Definition { name: &one.name, operator: one.operator, value: &value };
            self.define_for(id, &found, modifiers)?;
        }
        for (name, mut variable) in own {
            if let Some(adopted) = self.files[id].variables.get(&name).filter(|_| variable.appends) {
                variable.appends = adopted.appends;
                variable.value = appended(&adopted.value, &variable.value);
            }
            self.files[id].variables.insert(name, variable);
        }
        Ok(())
    }
}

impl DefinitionLine {
    /// Does what the line says.
    pub fn carry_out(self, make: &mut Make) -> Res<()> {
        let modifiers = self.modifiers;
        match self.what {
            What::Define { name, operator, value } => {
                let name = text::trim(&make.expand(&name)?).to_vec();
                if name.is_empty() {
                    return Err(make.fatal("empty variable name"));
                }
                let origin = if modifiers.is_override { Origin::Override } else { Origin::File };
                make.define(&name, operator, &value, origin)?;
                if let Some(export) = modifiers.export {
                    set_export(make, &name, export);
                }
            }
            What::Export(names) => {
                let names = make.expand(&names)?;
                let export = modifiers.export.unwrap_or(Export::Default);
                if text::trim(&names).is_empty() {
                    make.export_all = export == Export::Yes;
                }
                for name in text::words(&names) {
                    set_export(make, name, export);
                }
            }
        }
        Ok(())
    }
}

fn set_export(make: &mut Make, name: &[u8], export: Export) {
    let variable = make.globals.entry(name.to_vec());
    variable.or_insert_with(|| Variable::new("", false, Origin::File)).export = export;
}

/// The words before a definition, and the rest. A variable may have the name of such a word.
fn modifiers(line: &[u8]) -> (Modifiers, &[u8]) {
    let (mut modifiers, mut rest) = (Modifiers::default(), line);
    loop {
        let (word, _) = split_word(rest);
        if definition(rest).is_some_and(|found| found.name == word) {
            return (modifiers, rest);
        }
        match word {
            b"override" => modifiers.is_override = true,
            b"private" => modifiers.private = true,
            b"export" => modifiers.export = Some(Export::Yes),
            b"unexport" => modifiers.export = Some(Export::No),
            _ => return (modifiers, rest),
        }
        // The value's blanks at the end are part of it.
        rest = text::trim_start(&rest[word.len()..]);
    }
}

/// `export: prerequisites` is a rule for a target of that name.
fn rest_is_rule(rest: &[u8]) -> bool {
    rest.starts_with(b":")
}
