//! What the operators of `${x…}` do with a value: lengths, parts, replacements, patterns taken off.

use super::*;

impl Shell {
    pub(super) fn apply(&mut self, param: &Param, base: Base) -> Exec<Base> {
        Ok(match &param.op {
            ParamOp::None | ParamOp::Names { .. } | ParamOp::Keys { .. } => base,
            ParamOp::Length => Base::One(Some(self.length(param, base).to_string().into_bytes())),
            ParamOp::Remove { suffix, longest, pattern } => {
                let pattern = self.expand_pattern(pattern, false)?;
                each(base, |text| remove(&pattern, text, *suffix, *longest))
            }
            // Nothing is looked at that would not be used.
            ParamOp::Replace { .. } if matches!(base, Base::One(None)) => base,
            ParamOp::Replace { anchor, pattern, with } => {
                let fold = self.shopt.get("nocasematch");
                let pattern = self.expand_pattern(pattern, fold)?;
                let with = self.replacement(with)?;
                each(base, |text| replace(&pattern, text, *anchor, &with))
            }
            ParamOp::Case { kind, all, pattern } => {
                let pattern = match pattern {
                    // A pattern that comes out empty is as good as none.
                    Some(word) if !self.expand_pattern_text(word)?.is_empty() => {
                        Some(self.expand_pattern(word, false)?)
                    }
                    _ => None,
                };
                let utf8 = self.utf8();
                each(base, |text| crate::expand::case::change(&text, *kind, *all, pattern.as_ref(), utf8))
            }
            ParamOp::Substring { offset, length } => {
                return self.substring(param, base, offset, length.as_ref());
            }
            ParamOp::Transform(kind) => {
                let source = self.source_of(param)?;
                return self.transform(&source, *kind, base);
            }
            ParamOp::BadTransform(text) => match base {
                Base::One(None) => base,
                _ => {
                    self.complain_parts(&[text, b": bad substitution"]);
                    return Err(self.fatal());
                }
            },
            ParamOp::Alternative { .. } | ParamOp::Bad(_) => base,
        })
    }

    fn length(&self, param: &Param, base: Base) -> usize {
        let _ = param;
        match base {
            Base::One(text) => text.map_or(0, |text| char_count(&text, self.utf8())),
            Base::Many(list, _) => list.len(),
        }
    }

    /// The replacement, in which an unquoted `&` is the matched text.
    fn replacement(&mut self, with: &Word) -> Exec<Replacement> {
        if !self.shopt.get("patsub_replacement") {
            return Ok(Replacement { parts: vec![Some(self.expand_string(with)?)] });
        }
        let text = self.expand_replacement(with)?;
        let (mut parts, mut part) = (Vec::new(), Vec::new());
        let mut bytes = text.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            match (byte, bytes.peek()) {
                (b'\\', Some(b'&' | b'\\')) => part.extend(bytes.next()),
                (b'&', _) => {
                    parts.push(Some(std::mem::take(&mut part)));
                    parts.push(None);
                }
                _ => part.push(byte),
            }
        }
        parts.push(Some(part));
        Ok(Replacement { parts })
    }

    fn substring(
        &mut self,
        param: &Param,
        base: Base,
        offset: &crate::arith::Arith,
        length: Option<&crate::arith::Arith>,
    ) -> Exec<Base> {
        // Nothing is worked out that would not be used.
        if let Base::One(None) = base {
            return Ok(base);
        }
        let named = [self.param_text(&param.name).as_slice(), b": "].concat();
        let length_text = length.map(|length| crate::unparse::word_text(&length.word)).unwrap_or_default();
        let offset = self.arith(offset).map_err(|error| self.arith_discard(&named, error))?;
        let length = match length {
            Some(length) => Some(self.arith(length).map_err(|error| self.arith_discard(&named, error))?),
            None => None,
        };
        match base {
            Base::One(None) => Ok(Base::One(None)),
            Base::One(Some(text)) => {
                let utf8 = self.utf8();
                let count = char_count(&text, utf8) as i64;
                let Some((from, to)) = self.slice_bounds(offset, length, count, &length_text)? else {
                    return Ok(Base::One(Some(Vec::new())));
                };
                Ok(Base::One(Some(chars(&text, from as usize, to as usize, utf8))))
            }
            Base::Many(mut list, star) => {
                let positional = matches!(param.name, ParamName::Special(_));
                if let (false, ParamName::Variable(name)) = (positional, &param.name)
                    && let Some(list) = self.sparse_slice(name, offset, length, &length_text)?
                {
                    return Ok(Base::Many(list, star));
                }
                if !positional && list.is_empty() {
                    return Ok(Base::Many(list, star));
                }
                let mut offset = offset;
                if positional {
                    // `${@:0}` starts with `$0`.
                    list.insert(0, self.name.clone());
                    if offset < 0 {
                        offset += list.len() as i64;
                        if offset < 0 {
                            return Ok(Base::Many(Vec::new(), star));
                        }
                    }
                }
                if length.is_some_and(|length| length < 0) {
                    self.complain_parts(&[&length_text, b": substring expression < 0"]);
                    return Err(Flow::Discard(1));
                }
                let count = list.len() as i64;
                let Some((from, to)) = self.slice_bounds(offset, length, count, &length_text)? else {
                    return Ok(Base::Many(Vec::new(), star));
                };
                Ok(Base::Many(list[from as usize..to as usize].to_vec(), star))
            }
        }
    }

    /// A slice of an array counts indices at its start, elements at its end.
    fn sparse_slice(
        &self,
        name: &[u8],
        offset: i64,
        length: Option<i64>,
        length_text: &[u8],
    ) -> Exec<Option<Vec<Vec<u8>>>> {
        let Some(var) = self.var(name) else { return Ok(None) };
        let elements: Vec<(i64, &Vec<u8>)> = match &var.value {
            Value::Indexed(array) => array.iter().collect(),
            // The elements of an associative array count from 1.
            Value::Assoc(array) => (1..).zip(array.walk().into_iter().map(|(_, text)| text)).collect(),
            _ => return Ok(None),
        };
        let end = elements.last().map_or(0, |(at, _)| at.saturating_add(1));
        let from = if offset < 0 { offset.wrapping_add(end) } else { offset };
        if from < 0 || from > end || elements.is_empty() {
            return Ok(Some(Vec::new()));
        }
        if let Some(length) = length
            && length < 0
        {
            self.complain_parts(&[length_text, b": substring expression < 0"]);
            return Err(Flow::Discard(1));
        }
        let most = length.map_or(usize::MAX, |length| usize::try_from(length).unwrap_or(usize::MAX));
        let chosen = elements.into_iter().filter(|(at, _)| *at >= from).take(most);
        Ok(Some(chosen.map(|(_, text)| text.clone()).collect()))
    }

    fn slice_bounds(
        &self,
        offset: i64,
        length: Option<i64>,
        count: i64,
        length_text: &[u8],
    ) -> Exec<Option<(i64, i64)>> {
        let from = if offset < 0 { offset.saturating_add(count) } else { offset };
        if from < 0 || from > count {
            return Ok(None);
        }
        let to = match length {
            None => count,
            Some(length) if length < 0 => {
                let to = count.saturating_add(length);
                if to < from {
                    self.complain_parts(&[length_text, b": substring expression < 0"]);
                    return Err(Flow::Discard(1));
                }
                to
            }
            Some(length) => from.saturating_add(length).min(count),
        };
        Ok(Some((from, to)))
    }
}

/// What takes a match's place: text, and the match itself where there is none.
struct Replacement {
    parts: Vec<Option<Vec<u8>>>,
}

impl Replacement {
    fn fill(&self, matched: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.fill_into(matched, &mut out);
        out
    }

    fn fill_into(&self, matched: &[u8], out: &mut Vec<u8>) {
        self.parts.iter().for_each(|part| out.extend_from_slice(part.as_deref().unwrap_or(matched)));
    }
}

fn each(base: Base, mut change: impl FnMut(Vec<u8>) -> Vec<u8>) -> Base {
    match base {
        Base::One(text) => Base::One(text.map(change)),
        Base::Many(list, star) => Base::Many(list.into_iter().map(&mut change).collect(), star),
    }
}

fn remove(pattern: &Pattern, mut text: Vec<u8>, suffix: bool, longest: bool) -> Vec<u8> {
    if suffix {
        if let Some(start) = pattern.suffix(&text, longest) {
            text.truncate(start);
        }
    } else if let Some(end) = pattern.prefix(&text, longest) {
        text.drain(..end);
    }
    text
}

fn replace(pattern: &Pattern, text: Vec<u8>, anchor: Anchor, with: &Replacement) -> Vec<u8> {
    if text.is_empty() && !pattern.is_stars() {
        return text;
    }
    match anchor {
        Anchor::First | Anchor::All => {
            pattern.replace(&text, anchor == Anchor::All, &|matched, out| with.fill_into(matched, out))
        }
        Anchor::Start => match pattern.prefix(&text, true) {
            Some(end) => [with.fill(&text[..end]), text[end..].to_vec()].concat(),
            None => text,
        },
        Anchor::End => match pattern.suffix(&text, true) {
            Some(start) => [text[..start].to_vec(), with.fill(&text[start..])].concat(),
            None => text,
        },
    }
}

/// Characters from one count to another.
pub fn chars(text: &[u8], from: usize, to: usize, utf8: bool) -> Vec<u8> {
    if !utf8 {
        return text[from.min(text.len())..to.min(text.len())].to_vec();
    }
    let (mut at, mut count, mut start) = (0, 0, text.len());
    while at <= text.len() {
        if count == from {
            start = start.min(at);
        }
        if count == to || at == text.len() {
            break;
        }
        at += char_at(text, at, true).1;
        count += 1;
    }
    text[start.min(at)..at].to_vec()
}
