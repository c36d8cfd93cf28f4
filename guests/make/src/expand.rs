//! Expansion: what `$(…)` in a text stands for.

use crate::functions;
use crate::make::{Make, Res, Stop};
use crate::text::{self, Pattern};
use crate::variables::{Origin, Table, Variable, appended};

/// The automatic variables that have a `D` and an `F` beside them.
const WITH_PARTS: &[u8] = b"@%*<^+?|";

/// How deep expansions may be nested; GNU make has no limit but its stack.
const DEEPEST: usize = 2000;

impl Make {
    /// A text with all its references replaced.
    pub fn expand(&mut self, text: &[u8]) -> Res<Vec<u8>> {
        let mut result = Vec::with_capacity(text.len());
        self.expand_into(text, &mut result)?;
        Ok(result)
    }

    fn expand_into(&mut self, text: &[u8], result: &mut Vec<u8>) -> Res<()> {
        if self.depth > DEEPEST {
            return Err(self.fatal("expansions are nested too deeply"));
        }
        self.depth += 1;
        let mut rest = text;
        while let Some(at) = rest.iter().position(|&byte| byte == b'$') {
            result.extend_from_slice(&rest[..at]);
            rest = &rest[at + 1..];
            match rest.first() {
                None => result.push(b'$'),
                Some(b'$') => {
                    result.push(b'$');
                    rest = &rest[1..];
                }
                Some(open @ (b'(' | b'{')) => {
                    let Some(length) = text::reference_length(rest) else {
                        return Err(self.unterminated(&rest[1..], *open));
                    };
                    self.reference(&rest[1..length - 1], *open, result)?;
                    rest = &rest[length..];
                }
                Some(blank) if text::is_blank(*blank) => rest = &rest[1..],
                Some(_) => {
                    self.value_into(&rest[..1], result)?;
                    rest = &rest[1..];
                }
            }
        }
        result.extend_from_slice(rest);
        self.depth -= 1;
        Ok(())
    }

    fn unterminated(&self, inner: &[u8], open: u8) -> Stop {
        let Some((function, _)) = functions::find(inner) else {
            return self.fatal("unterminated variable reference");
        };
        let close = if open == b'(' { ')' } else { '}' };
        self.fatal(&format!("unterminated call to function '{}': missing '{close}'", function.name))
    }

    /// What stands between the parentheses: a function, a substitution or a name.
    fn reference(&mut self, inner: &[u8], open: u8, result: &mut Vec<u8>) -> Res<()> {
        if let Some((function, arguments)) = functions::find(inner) {
            let value = self.function(function, arguments, open)?;
            result.extend_from_slice(&value);
            return Ok(());
        }
        let expanded;
        let inner = match inner.contains(&b'$') {
            true => {
                expanded = self.expand(inner)?;
                &expanded[..]
            }
            false => inner,
        };
        if let Some(colon) = inner.iter().position(|&byte| byte == b':')
            && let Some(equals) = inner[colon..].iter().position(|&byte| byte == b'=')
        {
            let (from, to) = (&inner[colon + 1..colon + equals], &inner[colon + equals + 1..]);
            let mut value = Vec::new();
            self.value_into(&inner[..colon], &mut value)?;
            result.extend_from_slice(&substitution(&value, from, to));
            return Ok(());
        }
        self.value_into(inner, result)
    }

    /// The expanded value of a variable.
    pub fn value(&mut self, name: &[u8]) -> Res<Vec<u8>> {
        let mut value = Vec::new();
        self.value_into(name, &mut value)?;
        Ok(value)
    }

    fn value_into(&mut self, name: &[u8], result: &mut Vec<u8>) -> Res<()> {
        let Some(variable) = self.look_up(name) else {
            if self.options.warn_undefined {
                let here = self.place.clone();
                self.place = self.inside.clone().or(self.place.take());
                self.warn(&format!("undefined variable '{}'", text::shown(name)));
                self.place = here;
            }
            return Ok(());
        };
        if variable.appends {
            self.hidden.push(name.to_vec());
            let outer = self.value(name);
            self.hidden.pop();
            let outer = outer?;
            let mut own = Vec::new();
            self.own_value_into(name, &variable, &mut own)?;
            result.extend_from_slice(&appended(&outer, &own));
            return Ok(());
        }
        self.own_value_into(name, &variable, result)
    }

    fn own_value_into(&mut self, name: &[u8], variable: &Variable, result: &mut Vec<u8>) -> Res<()> {
        match variable.recursive {
            true => self.expand_variable(name, variable, result),
            false => {
                result.extend_from_slice(&variable.value);
                Ok(())
            }
        }
    }

    fn expand_variable(&mut self, name: &[u8], variable: &Variable, result: &mut Vec<u8>) -> Res<()> {
        // What a target adds to a variable is expanded inside the expansion of the same name outside of it.
        let level = (name.to_vec(), self.times_hidden(name));
        if self.expanding.contains(&level) {
            let message =
                format!("Recursive variable '{}' references itself (eventually)", text::shown(name));
            self.place = variable.place.clone().or(self.place.take());
            return Err(self.fatal(&message));
        }
        self.expanding.push(level);
        let here = variable.place.clone().map(|place| self.inside.replace(place));
        self.expand_into(&variable.value, result)?;
        if let Some(here) = here {
            self.inside = here;
        }
        self.expanding.pop();
        Ok(())
    }

    /// A function of the user's: `$(call NAME,…)`, with its arguments as `$1`, `$2`, ….
    pub fn call(&mut self, name: &[u8], arguments: Vec<Vec<u8>>) -> Res<Vec<u8>> {
        let Some(variable) = self.look_up(name) else { return Ok(Vec::new()) };
        let mut frame = Table::new();
        // Arguments of a call around this one must not shine through.
        for number in arguments.len()..self.most_arguments {
            frame.insert(number.to_string().into_bytes(), Variable::new("", false, Origin::Automatic));
        }
        let most = self.most_arguments;
        self.most_arguments = most.max(arguments.len());
        for (number, argument) in arguments.into_iter().enumerate() {
            let argument = Variable::new(argument, false, Origin::Automatic);
            frame.insert(number.to_string().into_bytes(), argument);
        }
        let expanding = std::mem::take(&mut self.expanding);
        self.frames.push(frame);
        let result = match variable.recursive {
            true => self.expand(&variable.value),
            false => Ok(variable.value),
        };
        self.frames.pop();
        self.expanding = expanding;
        self.most_arguments = most;
        result
    }

    fn times_hidden(&self, name: &[u8]) -> usize {
        self.hidden.iter().filter(|hidden| *hidden == name).count()
    }

    /// The variable that a name means here: of a call or recipe, of the current target, or global.
    pub fn look_up(&self, name: &[u8]) -> Option<Variable> {
        for frame in self.frames.iter().rev() {
            if let Some(variable) = frame.get(name) {
                return Some(variable.clone());
            }
        }
        if let [base, part @ (b'D' | b'F')] = name
            && WITH_PARTS.contains(base)
            && let Some(whole) = self.look_up(&[*base])
        {
            let parts = text::words(&whole.value).map(|word| part_of(word, *part));
            return Some(Variable::new(text::join(parts), false, Origin::Automatic));
        }
        let mut hidden = self.times_hidden(name);
        let mut scope = self.current;
        let mut own = true;
        while let Some(file) = scope {
            let file = &self.files[file];
            let found = file.variables.get(name).filter(|variable| own || !variable.private);
            match found {
                Some(_) if hidden > 0 => hidden -= 1,
                Some(variable) => return Some(variable.clone()),
                None => {}
            }
            scope = file.parent;
            own = false;
        }
        match name {
            b".VARIABLES" => {
                let names = text::join(self.globals.keys());
                Some(Variable::new(names, false, Origin::Default))
            }
            _ => self.globals.get(name).cloned(),
        }
    }
}

fn substitution(value: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let (from, to) = match Pattern::new(from).has_stem() {
        true => (Pattern::new(from), Pattern::new(to)),
        false => (Pattern::new(&[b"%", from].concat()), Pattern::new(&[b"%", to].concat())),
    };
    text::join(text::words(value).map(|word| text::substitute(word, &from, &to)))
}

/// The directory (`D`) or the file (`F`) of a path, as in `$(@D)`.
fn part_of(path: &[u8], part: u8) -> Vec<u8> {
    let (directory, file) = text::split_path(path);
    match (part, directory) {
        (b'F', _) => file.to_vec(),
        (_, b"") => b".".to_vec(),
        (_, b"/") => b"/".to_vec(),
        (_, directory) => directory[..directory.len() - 1].to_vec(),
    }
}
