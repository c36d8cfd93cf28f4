//! Parameters: `$x`, `${x…}`, `$@` and arrays.

mod operate;

use super::Sink;
use crate::ast::{Anchor, Param, ParamName, ParamOp, ParamSubscript, Word};
use crate::pattern::{Pattern, char_at, char_count};
use crate::shell::{Exec, Flow, Shell};
use crate::vars::{Attrs, Value};
use std::rc::Rc;

/// What a parameter stands for before an operator acts on it.
pub(super) enum Base {
    One(Option<Vec<u8>>),
    /// `star` when the elements are joined inside quotes.
    Many(Vec<Vec<u8>>, bool),
}

impl Shell {
    pub(super) fn expand_param(&mut self, param: &Param, quoted: bool, sink: &mut Sink) -> Exec<()> {
        // The common case: a plain variable.
        if let (ParamName::Variable(name), None, false, ParamOp::None) =
            (&param.name, &param.subscript, param.indirect, &param.op)
        {
            let Some(var) = self.vars.raw(name) else { return self.unset_param(param) };
            if let Value::Scalar(text) = &var.value
                && !var.attrs.has(Attrs::NAMEREF)
            {
                if quoted || !sink.is_fields() {
                    if quoted {
                        sink.quoted(text)
                    } else {
                        sink.split(text)
                    }
                    return Ok(());
                }
                let text = text.clone();
                self.emit(&text, false, sink);
                return Ok(());
            }
        }
        if matches!(param.op, ParamOp::Length)
            && let Some(length) = self.known_length(param)
        {
            self.emit(length.to_string().as_bytes(), quoted, sink);
            return Ok(());
        }
        if let ParamOp::Bad(text) = &param.op {
            self.complain_parts(&[text, b": bad substitution"]);
            return Err(if self.options.posix { self.fatal() } else { Flow::Discard(1) });
        }
        if let ParamOp::Alternative { kind, colon, word } = &param.op {
            return self.expand_alternative(param, *kind, *colon, word, quoted, sink);
        }
        let base = self.param_base(param)?;
        self.check_set(param, &base)?;
        let mut result = self.apply(param, base)?;
        if sink.is_value()
            && let Base::Many(_, star) = &mut result
        {
            *star |= joins_by_ifs(&param.op, quoted);
        }
        self.emit_base(result, quoted, sink);
        Ok(())
    }

    /// `${#x}` and `${#a[@]}` where the variable says so itself, without a copy of what it holds.
    fn known_length(&self, param: &Param) -> Option<usize> {
        let ParamName::Variable(name) = &param.name else { return None };
        let var = self.vars.raw(name).filter(|_| !param.indirect)?;
        if var.attrs.has(Attrs::NAMEREF) || var.attrs.has(Attrs::DYNAMIC) {
            return None;
        }
        match (&var.value, &param.subscript) {
            (Value::Scalar(text), None) => Some(char_count(text, self.utf8())),
            (Value::Indexed(array), Some(ParamSubscript::At | ParamSubscript::Star)) => Some(array.len()),
            (Value::Assoc(array), Some(ParamSubscript::At | ParamSubscript::Star)) => Some(array.len()),
            _ => None,
        }
    }

    /// Puts a result into the sink.
    fn emit_base(&mut self, base: Base, quoted: bool, sink: &mut Sink) {
        match base {
            Base::One(None) => {}
            Base::One(Some(text)) => self.emit(&text, quoted, sink),
            Base::Many(list, star) if !sink.is_fields() => {
                let joined = self.join(&list, star);
                self.emit(&joined, quoted, sink);
            }
            Base::Many(list, true) if quoted => {
                // No parameters beside a `$@` that has none either are no field.
                if !list.is_empty() {
                    sink.start();
                }
                let joined = self.join(&list, true);
                sink.quoted(&joined);
            }
            Base::Many(list, _) if quoted => {
                for (at, text) in list.iter().enumerate() {
                    if at > 0 {
                        sink.finish_field();
                    }
                    sink.start();
                    sink.quoted(text);
                }
            }
            Base::Many(list, _) => {
                let separator = self.separator();
                for (at, text) in list.iter().enumerate() {
                    if at > 0 {
                        if separator.is_empty() { sink.break_field() } else { sink.split(&separator) }
                    }
                    self.emit(text, false, sink);
                }
            }
        }
    }

    /// `"$*"`: joined by the first character of IFS; in other places `$@` is joined by a space.
    pub(super) fn join(&self, list: &[Vec<u8>], star: bool) -> Vec<u8> {
        if star { list.join(self.separator().as_slice()) } else { list.join(&b' ') }
    }

    /// What parts of a list are joined with: the first character of IFS.
    fn separator(&self) -> Vec<u8> {
        let mut ifs = self.ifs();
        let len = if ifs.is_empty() { 0 } else { char_at(&ifs, 0, self.utf8()).1 };
        ifs.truncate(len);
        ifs
    }

    /// The value or values a parameter names.
    fn param_base(&mut self, param: &Param) -> Exec<Base> {
        if param.indirect {
            return self.indirect_base(param);
        }
        match &param.op {
            ParamOp::Names { star } => return Ok(Base::Many(self.names_with_prefix(&param.name), *star)),
            ParamOp::Keys { star } => return Ok(Base::Many(self.keys(&param.name), *star)),
            _ => {}
        }
        self.named_base(&param.name, &param.subscript)
    }

    fn named_base(&mut self, name: &ParamName, subscript: &Option<ParamSubscript>) -> Exec<Base> {
        Ok(match name {
            ParamName::Special(b'@') => Base::Many(self.params.clone(), false),
            ParamName::Special(b'*') => Base::Many(self.params.clone(), true),
            ParamName::Special(special) => Base::One(self.special(*special)),
            ParamName::Positional(0) => Base::One(Some(self.name.clone())),
            ParamName::Positional(at) => Base::One(self.params.get(at - 1).cloned()),
            ParamName::Variable(name) => return self.variable_base(name, subscript),
        })
    }

    fn special(&self, special: u8) -> Option<Vec<u8>> {
        let text = match special {
            b'#' => self.params.len().to_string(),
            b'?' => self.status.to_string(),
            b'$' => self.pid.to_string(),
            b'!' => return self.last_background.map(|pid| pid.to_string().into_bytes()),
            _ => return Some(self.flags()),
        };
        Some(text.into_bytes())
    }

    /// `$-`
    pub fn flags(&self) -> Vec<u8> {
        let mut flags = self.options.letters();
        if self.restricted {
            let at = flags.iter().position(|letter| b"tuvxBCEHPT".contains(letter)).unwrap_or(flags.len());
            flags.insert(at, b'r');
        }
        if self.interactive {
            let at =
                flags.iter().position(|letter| b"kmnprtuvxBCEHPT".contains(letter)).unwrap_or(flags.len());
            flags.insert(at, b'i');
        }
        match self.invocation {
            crate::shell::Invocation::Session if self.interactive => flags.push(b's'),
            crate::shell::Invocation::Command | crate::shell::Invocation::Session => flags.push(b'c'),
            crate::shell::Invocation::Stdin => flags.push(b's'),
            crate::shell::Invocation::File => {}
        }
        flags
    }

    fn variable_base(&mut self, name: &Rc<[u8]>, subscript: &Option<ParamSubscript>) -> Exec<Base> {
        let resolved = self.vars.resolve(name).into_owned();
        if resolved.is_empty() && !name.is_empty() {
            self.warn_of_circle(name);
        }
        if let Some(open) = resolved.iter().position(|&byte| byte == b'[')
            && subscript.is_none()
        {
            return self.reference_base(&resolved, open);
        }
        let Some(var) = self.var(&resolved) else {
            return Ok(match subscript {
                Some(ParamSubscript::At) => Base::Many(Vec::new(), false),
                Some(ParamSubscript::Star) => Base::Many(Vec::new(), true),
                _ => Base::One(None),
            });
        };
        Ok(match subscript {
            None => Base::One(var.text().cloned()),
            Some(all @ (ParamSubscript::At | ParamSubscript::Star)) => {
                let star = matches!(all, ParamSubscript::Star);
                Base::Many(values(&var.value), star)
            }
            Some(ParamSubscript::One(subscript)) => {
                if matches!(var.value, Value::Assoc(_)) {
                    drop(var);
                    let key = self.expand_string(&subscript.word)?;
                    let var = self.var(&resolved);
                    return Ok(Base::One(match var.as_ref().map(|var| &var.value) {
                        Some(Value::Assoc(array)) => array.get(&key).cloned(),
                        _ => None,
                    }));
                }
                drop(var);
                let index = self.arith_or_discard(&subscript.arith)?;
                Base::One(self.element(&resolved, index)?)
            }
        })
    }

    /// An element of an indexed array; negative counts from the end.
    pub fn element(&self, name: &[u8], index: i64) -> Exec<Option<Vec<u8>>> {
        let Some(var) = self.var(name) else { return Ok(None) };
        Ok(match &var.value {
            Value::Indexed(array) => {
                let at = if index < 0 { array.end().wrapping_add(index) } else { index };
                if at < 0 {
                    self.bad_subscript(name)?;
                }
                array.get(at).cloned()
            }
            Value::Scalar(text) if index == 0 => Some(text.clone()),
            _ => {
                if index < 0 {
                    self.bad_subscript(name)?;
                }
                None
            }
        })
    }

    /// An index before the first: there is no such element, and with `set -e` no going on.
    fn bad_subscript(&self, name: &[u8]) -> Exec<()> {
        self.complain_parts(&[name, b": bad array subscript"]);
        if self.options.errexit { Err(Flow::Exit(1)) } else { Ok(()) }
    }

    /// The value of text like `array[3]` or `array[@]`, as indirection and namerefs have it.
    fn reference_base(&mut self, target: &[u8], open: usize) -> Exec<Base> {
        let name: Rc<[u8]> = target[..open].into();
        let inside = target[open + 1..].strip_suffix(b"]").unwrap_or(b"");
        match inside {
            b"@" => return self.variable_base(&name, &Some(ParamSubscript::At)),
            b"*" => return self.variable_base(&name, &Some(ParamSubscript::Star)),
            _ => {}
        }
        let inside = self.expand_subscript(inside)?;
        if self.is_assoc(&name) {
            let key = inside;
            let var = self.vars.get(&name);
            return Ok(Base::One(match var.map(|var| &var.value) {
                Some(Value::Assoc(array)) => array.get(&key).cloned(),
                _ => None,
            }));
        }
        let index = self.arith_text(&inside).map_err(|error| self.arith_discard(b"", error))?;
        Ok(Base::One(self.element(&name, index)?))
    }

    /// `${!x}`: the parameter whose name is the value of `x`; of a nameref, the name it points to.
    fn indirect_base(&mut self, param: &Param) -> Exec<Base> {
        if let ParamName::Variable(name) = &param.name
            && param.subscript.is_none()
            && self.vars.raw(name).is_some_and(|var| var.attrs.has(Attrs::NAMEREF))
        {
            let target = self.vars.resolve(name).into_owned();
            return Ok(Base::One((target != name.as_ref()).then_some(target)));
        }
        let target = match self.named_base(&param.name, &param.subscript)? {
            Base::One(Some(target)) => target,
            Base::One(None) => {
                let shown = self.param_text(&param.name);
                let named = matches!(param.name, ParamName::Variable(_));
                if !named {
                    return Ok(Base::One(None));
                }
                self.complain_parts(&[&shown, b": invalid indirect expansion"]);
                return Err(Flow::Discard(1));
            }
            Base::Many(list, star) => self.join(&list, star),
        };
        if target.is_empty() && matches!(param.name, ParamName::Special(_)) {
            return Ok(Base::One(None));
        }
        self.base_of_text(&target)
    }

    /// The value of a parameter given by its name as text.
    pub(super) fn base_of_text(&mut self, target: &[u8]) -> Exec<Base> {
        if let Some(open) = target.iter().position(|&byte| byte == b'[')
            && crate::parser::is_assignment_name(&target[..open])
            && target.ends_with(b"]")
        {
            return self.reference_base(target, open);
        }
        let name = match target {
            [special] if b"@*#?-$!".contains(special) => ParamName::Special(*special),
            digits if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {
                let text = std::str::from_utf8(digits).unwrap_or("");
                ParamName::Positional(text.parse().unwrap_or(usize::MAX))
            }
            name if crate::parser::is_assignment_name(name) => ParamName::Variable(name.into()),
            other => {
                self.complain_parts(&[other, b": invalid variable name"]);
                return Err(Flow::Discard(1));
            }
        };
        self.named_base(&name, &None)
    }

    /// The value of a variable or element given by name.
    pub fn value_of(&mut self, target: &[u8]) -> Exec<Option<Vec<u8>>> {
        Ok(match self.base_of_text(target)? {
            Base::One(text) => text,
            Base::Many(list, star) => Some(self.join(&list, star)),
        })
    }

    fn names_with_prefix(&self, name: &ParamName) -> Vec<Vec<u8>> {
        let ParamName::Variable(prefix) = name else { return Vec::new() };
        let set = |name: &&Vec<u8>| {
            let is_set = |var: &crate::vars::Var| {
                !matches!(var.value, Value::Unset) && !var.attrs.has(crate::vars::Attrs::UNASSIGNED)
                    || var.attrs.has(crate::vars::Attrs::DYNAMIC)
            };
            name.starts_with(prefix) && self.vars.raw(name).is_some_and(is_set)
        };
        self.vars.names().into_iter().filter(set).cloned().collect()
    }

    fn keys(&self, name: &ParamName) -> Vec<Vec<u8>> {
        let ParamName::Variable(name) = name else { return Vec::new() };
        match self.var(name).as_ref().map(|var| &var.value) {
            Some(Value::Indexed(array)) => array.iter().map(|(at, _)| at.to_string().into_bytes()).collect(),
            Some(Value::Assoc(array)) => array.walk().into_iter().map(|(key, _)| key.clone()).collect(),
            Some(Value::Scalar(_)) => vec![b"0".to_vec()],
            _ => Vec::new(),
        }
    }

    /// The name of a parameter, for messages.
    pub(super) fn param_text(&self, name: &ParamName) -> Vec<u8> {
        match name {
            ParamName::Variable(name) => name.to_vec(),
            ParamName::Positional(at) => at.to_string().into_bytes(),
            ParamName::Special(byte) => vec![*byte],
        }
    }

    fn shown_param(&mut self, param: &Param) -> Vec<u8> {
        let mut text = self.param_text(&param.name);
        match &param.subscript {
            Some(ParamSubscript::At) => text.extend_from_slice(b"[@]"),
            Some(ParamSubscript::Star) => text.extend_from_slice(b"[*]"),
            Some(ParamSubscript::One(subscript)) => {
                text.push(b'[');
                text.extend(crate::unparse::word_text(&subscript.word));
                text.push(b']');
            }
            None => {}
        }
        text
    }

    /// A parameter that is not there: nothing, or with `set -u` an error.
    fn unset_param(&mut self, param: &Param) -> Exec<()> {
        if self.options.nounset {
            let mut shown = self.shown_param(param);
            match param.name {
                _ if param.indirect => shown.insert(0, b'!'),
                ParamName::Variable(_) => {}
                // `$9` is told from `${9}`.
                _ if param.bare => shown.insert(0, b'$'),
                _ => {}
            }
            self.complain_parts(&[&shown, b": unbound variable"]);
            return Err(self.fatal());
        }
        Ok(())
    }

    fn check_set(&mut self, param: &Param, base: &Base) -> Exec<()> {
        let mut exempt = matches!(param.op, ParamOp::Names { .. } | ParamOp::Keys { .. });
        if let (ParamOp::Transform(b'a'), Base::One(None), true) = (&param.op, base, self.options.nounset) {
            let source = self.source_of(param)?;
            exempt = self.has_elements(&source);
        }
        match base {
            Base::One(None) if !exempt => self.unset_param(param),
            Base::Many(list, _) if list.is_empty() && matches!(param.op, ParamOp::Length) => {
                self.check_counted(&param.name)
            }
            _ => Ok(()),
        }
    }

    /// With `set -u` the elements of an array that was never assigned cannot be counted.
    fn check_counted(&mut self, name: &ParamName) -> Exec<()> {
        let ParamName::Variable(name) = name else { return Ok(()) };
        let assigned = |var: &crate::vars::Var| !var.attrs.has(crate::vars::Attrs::UNASSIGNED);
        if !self.options.nounset || self.vars.get(name).is_some_and(assigned) {
            return Ok(());
        }
        self.complain_parts(&[name, b": unbound variable"]);
        Err(Flow::Discard(1))
    }

    /// `:-`, `:=`, `:?`, `:+` and their kin without the colon.
    fn expand_alternative(
        &mut self,
        param: &Param,
        kind: u8,
        colon: bool,
        word: &Word,
        quoted: bool,
        sink: &mut Sink,
    ) -> Exec<()> {
        let base = self.param_base(param)?;
        let present = match &base {
            Base::One(None) => false,
            Base::One(Some(text)) => !colon || !text.is_empty(),
            Base::Many(list, star) => match list.as_slice() {
                [] => false,
                [only] => !colon || !only.is_empty(),
                _ => !colon || !self.join(list, *star).is_empty(),
            },
        };
        match kind {
            b'+' if present => self.expand_operand(word, quoted, sink),
            b'+' => {
                // `"${@:+x}"` of empty parameters is an empty field, of none it is nothing.
                if quoted && !matches!(&base, Base::Many(list, false) if list.is_empty()) {
                    sink.start();
                }
                Ok(())
            }
            _ if present => {
                self.emit_base(base, quoted, sink);
                Ok(())
            }
            b'-' => self.expand_operand(word, quoted, sink),
            b'=' => {
                let text = self.expand_string(word)?;
                self.assign_default(param, &text)?;
                // What its attributes made of the text.
                let text = match (&param.name, &param.subscript, param.indirect) {
                    (ParamName::Variable(name), None, false) => {
                        self.text(name).map_or(text, |value| value.to_vec())
                    }
                    _ => text,
                };
                self.emit(&text, quoted, sink);
                Ok(())
            }
            _ => {
                let mut message = self.expand_string(word)?;
                if message.is_empty() {
                    message = if colon {
                        b"parameter null or not set".to_vec()
                    } else {
                        b"parameter not set".to_vec()
                    };
                }
                let shown = self.shown_param(param);
                self.complain_parts(&[&shown, b": ", &message]);
                Err(self.fatal())
            }
        }
    }

    /// The word of `${x:-word}`. Unquoted, its own text is split like an expansion's result.
    fn expand_operand(&mut self, word: &Word, quoted: bool, sink: &mut Sink) -> Exec<()> {
        if quoted {
            // An operand that is empty is still a field, as quotes around nothing are.
            if word.pieces.is_empty() {
                sink.start();
            }
            return self.expand_pieces(&word.pieces, true, sink);
        }
        if sink.is_fields() && word.pieces.iter().any(is_unquoted_list) {
            let ifs = self.ifs();
            if !ifs.is_empty() && !ifs.contains(&b' ') {
                return self.expand_joined_operand(word, sink);
            }
        }
        self.expand_split_operand(word, sink)
    }

    /// Where blanks do not separate, bash splits an operand with a list in it and joins the fields by blanks.
    fn expand_joined_operand(&mut self, word: &Word, sink: &mut Sink) -> Exec<()> {
        let mut inner = Sink::new(super::sink::Mode::Fields);
        self.expand_split_operand(word, &mut inner)?;
        let fields: Vec<Vec<u8>> = inner.into_fields().into_iter().map(|field| field.text).collect();
        sink.quoted(&fields.join(&b' '));
        Ok(())
    }

    fn expand_split_operand(&mut self, word: &Word, sink: &mut Sink) -> Exec<()> {
        for piece in &word.pieces {
            match piece {
                // Where nothing separates, an assignment joins the parameters by blanks all the same.
                crate::ast::Piece::Param(param)
                    if sink.is_value()
                        && matches!((&param.name, &param.op), (ParamName::Special(b'*'), ParamOp::None))
                        && self.separator().is_empty() =>
                {
                    sink.quoted(&self.params.join(&b' '));
                }
                crate::ast::Piece::Text(text) => self.emit(text, false, sink),
                other => self.expand_pieces(std::slice::from_ref(other), false, sink)?,
            }
        }
        Ok(())
    }

    fn assign_default(&mut self, param: &Param, text: &[u8]) -> Exec<()> {
        match (&param.name, &param.subscript) {
            (ParamName::Variable(name), _) if param.indirect => {
                let target = self.text(name).map(|text| text.to_vec()).unwrap_or_default();
                self.assign_target(&target, text)
            }
            (ParamName::Variable(name), None) => self.assign(name, text),
            (ParamName::Variable(name), Some(ParamSubscript::One(subscript))) => {
                self.assign_element(name, subscript, text.to_vec(), false)
            }
            _ => {
                let shown = self.shown_param(param);
                self.complain_parts(&[b"$", &shown, b": cannot assign in this way"]);
                Err(Flow::Discard(1))
            }
        }
    }
}

fn is_unquoted_list(piece: &crate::ast::Piece) -> bool {
    let crate::ast::Piece::Param(param) = piece else { return false };
    matches!(param.name, ParamName::Special(b'@'))
        || matches!(param.subscript, Some(ParamSubscript::At))
        || matches!(param.op, ParamOp::Names { star: false })
}

/// Whether an assignment joins a list that an operator acted on by IFS: bash does so unevenly.
fn joins_by_ifs(op: &ParamOp, quoted: bool) -> bool {
    match op {
        ParamOp::Names { .. } | ParamOp::Remove { .. } | ParamOp::Transform(_) => true,
        ParamOp::None | ParamOp::Alternative { .. } => false,
        _ => quoted,
    }
}

/// All elements of a value.
pub fn values(value: &Value) -> Vec<Vec<u8>> {
    match value {
        Value::Unset => Vec::new(),
        Value::Scalar(text) => vec![text.clone()],
        Value::Indexed(array) => array.iter().map(|(_, text)| text.clone()).collect(),
        Value::Assoc(array) => array.walk().into_iter().map(|(_, text)| text.clone()).collect(),
    }
}
