//! `${x@Q}` and its kin.

use super::case;
use super::param::Base;
use super::quote;
use crate::ast::{Param, ParamName, ParamSubscript};
use crate::shell::{Exec, Shell};
use crate::vars::{Value, Var};

/// What a transformation is applied to: a variable's name, and whether all of an array is meant.
pub(super) struct Source {
    name: Option<Vec<u8>>,
    all: bool,
}

impl Shell {
    /// What a parameter's transformation is about; of `${!x@A}`, what `x` names.
    pub(super) fn source_of(&mut self, param: &Param) -> Exec<Source> {
        let mut all = matches!(param.subscript, Some(ParamSubscript::At | ParamSubscript::Star));
        let ParamName::Variable(name) = &param.name else { return Ok(Source { name: None, all }) };
        let mut name = self.vars.resolve(name).into_owned();
        if param.indirect
            && let Some(target) = self.value_of(&name)?
        {
            all = target.ends_with(b"[@]") || target.ends_with(b"[*]");
            let base = target.split(|&byte| byte == b'[').next().unwrap_or_default();
            name = self.vars.resolve(base).into_owned();
        }
        Ok(Source { name: Some(name), all })
    }

    pub(super) fn transform(&mut self, source: &Source, kind: u8, base: Base) -> Exec<Base> {
        Ok(match kind {
            b'a' => self.attributes_of(source, base),
            b'A' => Base::One(self.assignment_of(source, base)),
            b'K' | b'k' => self.pairs_of(source, kind, base),
            _ => match base {
                Base::One(None) => Base::One(None),
                Base::One(Some(text)) => Base::One(Some(self.transform_text(kind, text))),
                Base::Many(list, star) => {
                    let changed = list.into_iter().map(|text| self.transform_text(kind, text)).collect();
                    Base::Many(changed, star)
                }
            },
        })
    }

    fn transform_text(&mut self, kind: u8, text: Vec<u8>) -> Vec<u8> {
        match kind {
            b'Q' => quote::quote(&text),
            b'E' => crate::parser::ansi_c(&text, true).0,
            b'P' => self.expand_prompt(&text),
            b'U' => case::to_upper(&text),
            b'u' => case::change(&text, b'^', false, None, self.utf8()),
            b'L' => case::to_lower(&text),
            _ => text,
        }
    }

    /// What an array is like can be said if it has elements, whichever.
    pub(super) fn has_elements(&self, source: &Source) -> bool {
        match source.name.as_deref().and_then(|name| self.vars.get(name)).map(|var| &var.value) {
            Some(crate::vars::Value::Indexed(array)) => array.len() > 0,
            Some(crate::vars::Value::Assoc(array)) => array.len() > 0,
            _ => false,
        }
    }

    fn attributes_of(&self, source: &Source, base: Base) -> Base {
        let letters = source
            .name
            .as_deref()
            .and_then(|name| self.vars.get(name))
            .map(crate::builtins::attribute_letters);
        let letters = letters.unwrap_or_default();
        match base {
            // There is something to say of an array without elements, too.
            Base::Many(list, star) => {
                let least = usize::from(!letters.is_empty());
                Base::Many(vec![letters; list.len().max(least)], star)
            }
            Base::One(None) if letters.is_empty() => Base::One(None),
            Base::One(_) => Base::One(Some(letters)),
        }
    }

    fn assignment_of(&self, source: &Source, base: Base) -> Option<Vec<u8>> {
        let Some(name) = &source.name else {
            let Base::Many(list, star) = base else { return None };
            if list.is_empty() {
                return None;
            }
            let quoted: Vec<Vec<u8>> = list.iter().map(|text| quote::quote(text)).collect();
            return Some([b"set -- ".as_slice(), &self.join(&quoted, star)].concat());
        };
        let var = self.vars.get(name)?;
        if var.is_array() && source.all {
            return Some(crate::builtins::declaration(name, var));
        }
        let letters = crate::builtins::attribute_letters(var);
        let Base::One(Some(text)) = base else {
            let declared = || [b"declare -", letters.as_slice(), b" ", name].concat();
            return (!letters.is_empty()).then(declared);
        };
        let assignment = [name, b"=".as_slice(), &quote::quote(&text)].concat();
        if letters.is_empty() {
            return Some(assignment);
        }
        Some([b"declare -", letters.as_slice(), b" ", &assignment].concat())
    }

    fn pairs_of(&self, source: &Source, kind: u8, base: Base) -> Base {
        let var = source.name.as_deref().and_then(|name| self.var(name));
        let pairs: Vec<(Vec<u8>, Vec<u8>)> = match var.as_ref().map(|var| &var.value) {
            Some(Value::Indexed(array)) => {
                array.iter().map(|(at, text)| (at.to_string().into_bytes(), text.clone())).collect()
            }
            Some(Value::Assoc(array)) => {
                array.walk().into_iter().map(|(k, v)| (k.clone(), v.clone())).collect()
            }
            _ => Vec::new(),
        };
        let star = matches!(base, Base::Many(_, true));
        match base {
            Base::One(text) => Base::One(text.map(|text| quote::quote(&text))),
            Base::Many(list, star) if pairs.is_empty() => {
                Base::Many(list.iter().map(|text| quote::quote(text)).collect(), star)
            }
            Base::Many(..) if kind == b'k' => {
                Base::Many(pairs.into_iter().flat_map(|(key, text)| [key, text]).collect(), star)
            }
            Base::Many(..) => {
                let assoc = matches!(var.as_deref(), Some(Var { value: Value::Assoc(_), .. }));
                let shown = |(key, text): (Vec<u8>, Vec<u8>)| {
                    let key = if assoc { quote::key(&key) } else { key };
                    [key.as_slice(), b" ", &quote::double(&text)].concat()
                };
                let mut joined = pairs.into_iter().map(shown).collect::<Vec<_>>().join(&b' ');
                if assoc && !joined.is_empty() {
                    joined.push(b' ');
                }
                Base::One(Some(joined))
            }
        }
    }
}
