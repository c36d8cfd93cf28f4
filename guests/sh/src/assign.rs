//! Assignments, with what attributes make of them.

use crate::ast::{AssignedValue, Assignment, Element, Subscript};
use crate::shell::{Exec, Flow, Shell};
use crate::vars::{Assoc, Attrs, Indexed, Value, Var};

/// Attributes that change what an assignment does.
const SLOW: Attrs = Attrs(
    Attrs::READONLY.0
        | Attrs::INTEGER.0
        | Attrs::UPPER.0
        | Attrs::LOWER.0
        | Attrs::NAMEREF.0
        | Attrs::DYNAMIC.0
        | Attrs::CAPITAL.0
        | Attrs::WATCHED.0,
);

impl Shell {
    /// `name=text`
    pub fn assign(&mut self, name: &[u8], text: &[u8]) -> Exec<()> {
        if let Some(var) = self.vars.raw_mut(name)
            && !var.attrs.has(SLOW)
            && let Value::Scalar(old) = &mut var.value
            && !self.options.allexport
        {
            old.clear();
            old.extend_from_slice(text);
            return Ok(());
        }
        self.assign_slowly(name, text.to_vec(), false)
    }

    /// `name+=text`
    pub fn assign_append(&mut self, name: &[u8], text: &[u8]) -> Exec<()> {
        if let Some(var) = self.vars.raw_mut(name)
            && !var.attrs.has(SLOW)
            && let Value::Scalar(old) = &mut var.value
            && !self.options.allexport
        {
            old.extend_from_slice(text);
            return Ok(());
        }
        self.assign_slowly(name, text.to_vec(), true)
    }

    fn assign_slowly(&mut self, name: &[u8], text: Vec<u8>, append: bool) -> Exec<()> {
        if let Some(var) = self.vars.raw(name)
            && var.attrs.has(Attrs::NAMEREF)
            && !matches!(&var.value, Value::Scalar(target) if !target.is_empty())
        {
            if var.attrs.has(Attrs::READONLY) {
                return Err(self.readonly_error(name));
            }
            let base = text.split(|&byte| byte == b'[').next().unwrap_or_default();
            if !crate::parser::is_assignment_name(base) {
                self.complain_parts(&[b"`", &text, b"': not a valid identifier"]);
                return Err(Flow::Discard(1));
            }
            self.vars.set_raw(name, &text);
            return Ok(());
        }
        let target = self.resolve_target(name)?;
        if let Some(open) = target.iter().position(|&byte| byte == b'[') {
            return self.assign_reference(&target, open, text, append);
        }
        self.check_writable(&target)?;
        if self.vars.raw(&target).is_some_and(|var| var.attrs.has(Attrs::DYNAMIC)) {
            self.assign_dynamic(&target, &text);
            return Ok(());
        }
        let old = if append { self.vars.raw(&target).and_then(Var::text).cloned() } else { None };
        let value = self.shaped(&target, old, text)?;
        if target != b"GLOBIGNORE" || !value.is_empty() {
            self.follow_variable(&target, true);
        }
        let export = self.options.allexport;
        let var = self.vars.entry(&target);
        match &mut var.value {
            Value::Indexed(array) => array.insert(0, value),
            Value::Assoc(array) => array.insert(b"0".to_vec(), value),
            _ => var.value = Value::Scalar(value),
        }
        if export {
            var.attrs.set(Attrs::EXPORT, true);
        }
        Ok(())
    }

    /// Sets the option that a variable stands for, when that is set or unset.
    pub fn follow_variable(&mut self, name: &[u8], on: bool) {
        match name {
            // As in bash, names to leave out mean that all others are wanted, and it stays so.
            b"GLOBIGNORE" => self.shopt.by_name(b"dotglob").into_iter().for_each(|option| *option = on),
            // Whatever it is set to, the next word is read from its start.
            b"OPTIND" => self.getopts_at = 0,
            b"IGNOREEOF" | b"ignoreeof" => self.options.ignoreeof = on,
            b"POSIXLY_CORRECT" => drop(crate::builtins::set_named(self, b"posix", on)),
            _ => {}
        }
    }

    /// The variable a name stands for; the assignment is given up where namerefs go in circles.
    fn resolve_target(&self, name: &[u8]) -> Exec<Vec<u8>> {
        let target = self.vars.resolve(name).into_owned();
        if target.is_empty() && !name.is_empty() {
            self.warn_of_circle(name);
            return Err(Flow::Discard(1));
        }
        Ok(target)
    }

    /// A reference that refers to nothing and is given elements is an array instead.
    fn end_reference(&mut self, name: &[u8]) {
        if self.vars.raw(name).is_some_and(|var| var.attrs.has(Attrs::NAMEREF)) {
            self.complain_parts(&[b"warning: ", name, b": removing nameref attribute"]);
            self.vars.entry(name).attrs.set(Attrs::NAMEREF, false);
        }
    }

    pub fn warn_of_circle(&self, name: &[u8]) {
        self.complain_parts(&[b"warning: ", name, b": circular name reference"]);
    }

    fn check_writable(&self, name: &[u8]) -> Exec<()> {
        match self.vars.raw(name) {
            Some(var) if var.attrs.has(Attrs::READONLY) => Err(self.readonly_error(name)),
            _ => Ok(()),
        }
    }

    /// What a variable's attributes make of a value; `old` is what it is appended to.
    fn shaped(&mut self, name: &[u8], old: Option<Vec<u8>>, text: Vec<u8>) -> Exec<Vec<u8>> {
        let attrs = self.vars.raw(name).map_or(Attrs::default(), |var| var.attrs);
        if attrs.has(Attrs::INTEGER) {
            let value = self.arith_text(&text).map_err(|error| self.arith_discard(b"", error))?;
            let base = match old {
                Some(old) => self.arith_text(&old).map_err(|error| self.arith_discard(b"", error))?,
                None => 0,
            };
            return Ok(base.wrapping_add(value).to_string().into_bytes());
        }
        let mut value = match old {
            Some(mut old) => {
                old.extend_from_slice(&text);
                old
            }
            None => text,
        };
        if attrs.has(Attrs::UPPER) {
            value = crate::expand::case::to_upper(&value);
        } else if attrs.has(Attrs::LOWER) {
            value = crate::expand::case::to_lower(&value);
        } else if attrs.has(Attrs::CAPITAL) {
            value = crate::expand::case::capitalize(&value);
        }
        Ok(value)
    }

    /// An assignment through a name like `array[3]`, where `open` is its bracket.
    pub fn assign_reference(&mut self, target: &[u8], open: usize, text: Vec<u8>, append: bool) -> Exec<()> {
        let (name, subscript) = (&target[..open], target[open + 1..].strip_suffix(b"]").unwrap_or(b""));
        let resolved = self.resolve_target(name)?;
        let subscript = self.expand_subscript(subscript)?;
        if self.is_assoc(&resolved) {
            return self.assign_key(&resolved, subscript, text, append);
        }
        let index = self.arith_text(&subscript).map_err(|error| self.arith_discard(b"", error))?;
        self.assign_index(&resolved, index, text, append)
    }

    /// A subscript that is only known as text: its expansions are done and its quotes removed.
    pub fn expand_subscript(&mut self, text: &[u8]) -> Exec<Vec<u8>> {
        if !text.iter().any(|byte| matches!(byte, b'$' | b'`' | b'\'' | b'"' | b'\\')) {
            return Ok(text.to_vec());
        }
        match crate::parser::Parser::new(text.to_vec(), self.line).whole_subscript() {
            Some(word) => self.expand_string(&word),
            None => Ok(strip_quotes(text)),
        }
    }

    pub fn is_assoc(&self, name: &[u8]) -> bool {
        matches!(self.vars.get(name), Some(Var { value: Value::Assoc(_), .. }))
            || matches!(name, b"BASH_ALIASES" | b"BASH_CMDS")
    }

    /// `name[index]=value` of an indexed array, which a scalar becomes.
    pub fn assign_index(&mut self, name: &[u8], index: i64, text: Vec<u8>, append: bool) -> Exec<()> {
        let name = &self.resolve_target(name)?;
        self.end_reference(name);
        self.check_writable(name)?;
        let (end, old) = match self.vars.raw(name).map(|var| &var.value) {
            Some(Value::Indexed(array)) => (array.end(), append.then(|| array.get(index).cloned()).flatten()),
            Some(Value::Scalar(text)) => (1, (append && index == 0).then(|| text.clone())),
            Some(Value::Assoc(_)) => {
                return self.assign_key(name, index.to_string().into_bytes(), text, append);
            }
            _ => (0, None),
        };
        let index = if index < 0 { index.wrapping_add(end) } else { index };
        if index < 0 {
            self.complain_parts(&[
                name,
                b"[",
                index.wrapping_sub(end).to_string().as_bytes(),
                b"]: bad array subscript",
            ]);
            return Err(Flow::Discard(1));
        }
        let old = if append && old.is_none() {
            match self.vars.raw(name).map(|var| &var.value) {
                Some(Value::Indexed(array)) => array.get(index).cloned(),
                _ => None,
            }
        } else {
            old
        };
        let value = self.shaped(name, old, text)?;
        let var = self.vars.entry(name);
        var.attrs.set(Attrs::UNASSIGNED, false);
        if let Value::Indexed(array) = &mut var.value {
            array.insert(index, value);
            return Ok(());
        }
        let mut array = Indexed::default();
        if let Value::Scalar(text) = std::mem::take(&mut var.value) {
            array.insert(0, text);
        }
        array.insert(index, value);
        var.value = Value::Indexed(array);
        Ok(())
    }

    /// `name[key]=value` of an associative array.
    pub fn assign_key(&mut self, name: &[u8], key: Vec<u8>, text: Vec<u8>, append: bool) -> Exec<()> {
        let name = &self.resolve_target(name)?;
        self.check_writable(name)?;
        if key.is_empty() {
            self.complain_parts(&[name, b"[]: bad array subscript"]);
            return Err(Flow::Discard(1));
        }
        if self.assign_dynamic_key(name, &key, &text) {
            return Ok(());
        }
        let old = match self.vars.raw(name).map(|var| &var.value) {
            Some(Value::Assoc(array)) if append => array.get(&key).cloned(),
            _ => None,
        };
        let value = self.shaped(name, old, text)?;
        let var = self.vars.entry(name);
        if !matches!(var.value, Value::Assoc(_)) {
            var.value = Value::Assoc(Assoc::default());
        }
        var.attrs.set(Attrs::UNASSIGNED, false);
        if let Value::Assoc(array) = &mut var.value {
            array.insert(key, value);
        }
        Ok(())
    }

    /// Carries out an assignment of the script.
    pub fn run_assignment(&mut self, assignment: &Assignment) -> Exec<()> {
        match &assignment.value {
            AssignedValue::Array(elements) => {
                if self.options.xtrace {
                    self.trace(&crate::unparse::assignment_text(assignment));
                }
                if let Some(subscript) = &assignment.subscript {
                    let shown = crate::unparse::word_text(&subscript.word);
                    let message = b"]: cannot assign list to array member";
                    self.complain_parts(&[&assignment.name, b"[", &shown, message]);
                    return Err(Flow::Discard(1));
                }
                let values = self.expand_elements(&assignment.name, elements)?;
                self.assign_array(&assignment.name, values, assignment.append)
            }
            AssignedValue::Scalar(word) => {
                if let (None, false, Some(text)) = (&assignment.subscript, assignment.append, word.as_plain())
                    && !self.options.xtrace
                {
                    return self.assign(&assignment.name, text);
                }
                let text = self.expand_value(word)?;
                self.trace_assignment(assignment, &text);
                match &assignment.subscript {
                    None if assignment.append => self.assign_append(&assignment.name, &text),
                    None => self.assign(&assignment.name, &text),
                    Some(subscript) => {
                        self.assign_element(&assignment.name, subscript, text, assignment.append)
                    }
                }
            }
        }
    }

    pub fn assign_element(
        &mut self,
        name: &[u8],
        subscript: &Subscript,
        text: Vec<u8>,
        append: bool,
    ) -> Exec<()> {
        let resolved = self.resolve_target(name)?;
        if self.is_assoc(&resolved) {
            let key = self.expand_string(&subscript.word)?;
            return self.assign_key(&resolved, key, text, append);
        }
        if let Some(shown @ (b"" | b"*" | b"@")) = subscript.word.as_plain() {
            self.complain_parts(&[name, b"[", shown, b"]: bad array subscript"]);
            return Err(Flow::Discard(1));
        }
        let index = self.arith_or_discard(&subscript.arith)?;
        self.assign_index(&resolved, index, text, append)
    }

    /// The elements of `(…)`, expanded.
    pub fn expand_elements(&mut self, name: &[u8], elements: &[Element]) -> Exec<Vec<ArrayItem>> {
        let assoc = self.is_assoc(name);
        let mut items = Vec::new();
        for element in elements {
            match &element.subscript {
                Some(subscript) => {
                    let key = if assoc {
                        ArrayKey::Text(self.expand_string(&subscript.word)?)
                    } else {
                        ArrayKey::Arith(subscript.clone())
                    };
                    let value = self.expand_value(&element.value)?;
                    items.push(ArrayItem { key: Some(key), append: element.append, value });
                }
                // Keys and values are not split, nor are they patterns.
                None if assoc => {
                    let value = self.expand_value(&element.value)?;
                    items.push(ArrayItem { key: None, append: false, value });
                }
                None => {
                    let mut fields = Vec::new();
                    self.expand_fields(&element.value, &mut fields)?;
                    let item = |value| ArrayItem { key: None, append: false, value };
                    items.extend(fields.into_iter().map(item));
                }
            }
        }
        Ok(items)
    }

    /// `name=(…)` or `name+=(…)`.
    pub fn assign_array(&mut self, name: &[u8], items: Vec<ArrayItem>, append: bool) -> Exec<()> {
        let name = &self.resolve_target(name)?;
        self.end_reference(name);
        self.check_writable(name)?;
        let var = self.vars.entry(name);
        var.attrs.set(Attrs::UNASSIGNED, false);
        if matches!(var.value, Value::Assoc(_)) {
            if !append {
                var.value = Value::Assoc(Assoc::default());
            }
            return self.fill_assoc(name, items);
        }
        match (&mut var.value, append) {
            (Value::Indexed(_), true) => {}
            (Value::Scalar(text), true) => {
                var.value = Value::Indexed([std::mem::take(text)].into_iter().collect())
            }
            _ => var.value = Value::Indexed(Indexed::default()),
        }
        self.fill_indexed(name, items)
    }

    /// Says what is wrong with an element of `(…)`.
    fn complain_of_item(&self, subscript: &Subscript, value: &[u8], message: &[u8]) {
        let shown = crate::unparse::word_text(&subscript.word);
        self.complain_parts(&[b"[", &shown, b"]=", value, message]);
    }

    fn fill_indexed(&mut self, name: &[u8], items: Vec<ArrayItem>) -> Exec<()> {
        let plain = !self.vars.raw(name).is_some_and(|var| var.attrs.has(SLOW));
        let mut next = match self.vars.raw(name).map(|var| &var.value) {
            Some(Value::Indexed(array)) => array.end(),
            _ => 0,
        };
        for item in items {
            if let Some(ArrayKey::Arith(subscript)) = &item.key {
                // Elements that cannot be are left out.
                let message: &[u8] = match subscript.word.as_plain() {
                    Some(b"") => b": bad array subscript",
                    Some(b"*" | b"@") => b": cannot assign to non-numeric index",
                    _ => b"",
                };
                if !message.is_empty() {
                    self.complain_of_item(subscript, &item.value, message);
                    continue;
                }
                next = self.arith_or_discard(&subscript.arith)?;
                if next < 0 {
                    next += match self.vars.raw(name).map(|var| &var.value) {
                        Some(Value::Indexed(array)) => array.end(),
                        _ => 0,
                    };
                }
                if next < 0 {
                    self.complain_of_item(subscript, &item.value, b": bad array subscript");
                    continue;
                }
            }
            match self.vars.raw_mut(name) {
                Some(Var { value: Value::Indexed(array), .. }) if plain && !item.append && next >= 0 => {
                    array.insert(next, item.value);
                }
                _ => self.assign_index(name, next, item.value, item.append)?,
            }
            next = next.saturating_add(1);
        }
        Ok(())
    }

    /// Keys and values in turn, or `[key]=value` each.
    fn fill_assoc(&mut self, name: &[u8], items: Vec<ArrayItem>) -> Exec<()> {
        let mut key: Option<Vec<u8>> = None;
        let with_keys = items.first().is_some_and(|item| item.key.is_some());
        for item in items {
            match (item.key, key.take()) {
                // Either all have keys, or keys and values take turns.
                (None, _) if with_keys => self.complain_parts(&[
                    name,
                    b": ",
                    &item.value,
                    b": must use subscript when assigning associative array",
                ]),
                // A first one without a key makes text of all.
                (Some(ArrayKey::Text(text)), before) if !with_keys => {
                    let text = [b"[", text.as_slice(), b"]=", &item.value].concat();
                    match before {
                        Some(key) => self.assign_key(name, key, text, false)?,
                        None => key = Some(text),
                    }
                }
                (Some(ArrayKey::Text(text)), _) => self.assign_key(name, text, item.value, item.append)?,
                (_, Some(key)) => self.assign_key(name, key, item.value, false)?,
                (_, None) => key = Some(item.value),
            }
        }
        match key {
            Some(key) => self.assign_key(name, key, Vec::new(), false),
            None => Ok(()),
        }
    }

    /// Assigns to what a builtin was given as a name: a variable or an element of one.
    pub fn assign_target(&mut self, target: &[u8], text: &[u8]) -> Exec<()> {
        match target.iter().position(|&byte| byte == b'[') {
            Some(open) if target.ends_with(b"]") => self.assign_reference(target, open, text.to_vec(), false),
            _ => self.assign(target, text),
        }
    }
}

/// An element to be assigned.
pub struct ArrayItem {
    pub key: Option<ArrayKey>,
    pub append: bool,
    pub value: Vec<u8>,
}

pub enum ArrayKey {
    Text(Vec<u8>),
    Arith(Subscript),
}

/// A subscript given as text loses its quotes.
pub fn strip_quotes(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\'' | b'"' => {}
            b'\\' => out.extend(bytes.next()),
            _ => out.push(byte),
        }
    }
    out
}
