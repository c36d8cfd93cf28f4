//! Regular expressions, as Oniguruma has them.

use std::collections::HashMap;
use std::rc::Rc;

use onig::{Regex, RegexOptions, Region, SearchOptions, Syntax};

use crate::object::Object;
use crate::run::ops::described;
use crate::run::{Outcome, raise};
use crate::value::{Str, Value};
use crate::world::World;

use super::Run;

pub const TABLE: &[(&str, usize, Run)] = &[("_match", 3, find)];

/// Expressions that are compiled, by their text and flags.
#[derive(Default)]
pub struct Cache(HashMap<(Str, Str), Rc<Compiled>>);

struct Compiled {
    regex: Regex,
    /// The name of each group, from the first.
    names: Vec<Option<Str>>,
    global: bool,
    skips_empty: bool,
}

/// `_match(RE; FLAGS; whether to only ask)`.
fn find(world: &mut World, input: Value, arguments: &mut [Value]) -> Outcome {
    let Value::String(text) = &input else {
        return raise(format!("{} cannot be matched, as it is not a string", described(&input)));
    };
    let re = match &arguments[0] {
        Value::String(re) => re.clone(),
        other => return raise(format!("{} not a string or array", other.type_name())),
    };
    let flags: Str = match &arguments[1] {
        Value::Null => "".into(),
        Value::String(flags) => flags.clone(),
        other => return raise(format!("{} is not a string", described(other))),
    };
    let asks = arguments[2].is_true();
    let compiled = compiled(world, re, flags)?;
    let mut matches = Vec::new();
    let mut start = 0;
    while start <= text.len() {
        let mut region = Region::new();
        let options = SearchOptions::SEARCH_OPTION_NONE;
        let found = compiled.regex.search_with_options(text, start, text.len(), options, Some(&mut region));
        if found.is_none() {
            break;
        }
        let Some((from, to)) = region.pos(0) else { break };
        // After nothing was matched, the search goes on behind the next letter.
        start = match to > from {
            true => to,
            false => to + text[to..].chars().next().map_or(1, char::len_utf8),
        };
        if to == from && compiled.skips_empty {
            continue;
        }
        if asks {
            return Ok(Value::Bool(true));
        }
        matches.push(described_match(text, &region, &compiled.names));
        if !compiled.global {
            break;
        }
    }
    Ok(if asks { Value::Bool(false) } else { Value::array(matches) })
}

fn compiled(world: &mut World, re: Str, flags: Str) -> Outcome<Rc<Compiled>> {
    let key = (re, flags);
    if let Some(known) = world.regexes.0.get(&key) {
        return Ok(known.clone());
    }
    let mut options = RegexOptions::REGEX_OPTION_CAPTURE_GROUP;
    let (mut global, mut skips_empty) = (false, false);
    for flag in key.1.chars() {
        match flag {
            'g' => global = true,
            'i' => options |= RegexOptions::REGEX_OPTION_IGNORECASE,
            'x' => options |= RegexOptions::REGEX_OPTION_EXTEND,
            's' => options |= RegexOptions::REGEX_OPTION_SINGLELINE,
            'p' => options |= RegexOptions::REGEX_OPTION_MULTILINE | RegexOptions::REGEX_OPTION_SINGLELINE,
            'l' => options |= RegexOptions::REGEX_OPTION_FIND_LONGEST,
            'n' => skips_empty = true,
            _ => return raise(format!("{} is not a valid modifier string", key.1)),
        }
    }
    let regex = match Regex::with_options(&key.0, options, Syntax::perl_ng()) {
        Ok(regex) => regex,
        Err(error) => return raise(format!("Regex failure: {}", error.description())),
    };
    let mut names: Vec<Option<Str>> = vec![None; regex.captures_len()];
    regex.foreach_name(|name, groups| {
        for group in groups {
            if let Some(place) = names.get_mut((*group as usize).wrapping_sub(1)) {
                *place = Some(name.into());
            }
        }
        true
    });
    let compiled = Rc::new(Compiled { regex, names, global, skips_empty });
    world.regexes.0.insert(key, compiled.clone());
    Ok(compiled)
}

/// How many letters there are before a byte.
fn letters_to(text: &str, at: usize) -> Value {
    text[..at].chars().count().into()
}

fn described_match(text: &str, region: &Region, names: &[Option<Str>]) -> Value {
    let mut object = Object::default();
    if let Some((from, to)) = region.pos(0) {
        place(&mut object, text, from, to);
    }
    let is_empty = region.pos(0).is_some_and(|(from, to)| from == to);
    let groups = names.iter().enumerate().map(|(index, name)| {
        let mut group = Object::default();
        match region.pos(index + 1) {
            // Where nothing was matched, so have all groups.
            _ if is_empty => {
                group.insert("offset".into(), object.get("offset").cloned().unwrap_or_default());
                group.insert("string".into(), Value::string(""));
                group.insert("length".into(), Value::Number(0.0));
            }
            Some((from, to)) => place(&mut group, text, from, to),
            None => {
                group.insert("offset".into(), Value::Number(-1.0));
                group.insert("string".into(), Value::Null);
                group.insert("length".into(), Value::Number(0.0));
            }
        }
        group.insert("name".into(), name.clone().map_or(Value::Null, Value::String));
        Value::object(group)
    });
    let groups = groups.collect();
    object.insert("captures".into(), Value::array(groups));
    Value::object(object)
}

fn place(object: &mut Object, text: &str, from: usize, to: usize) {
    object.insert("offset".into(), letters_to(text, from));
    object.insert("length".into(), text[from..to].chars().count().into());
    object.insert("string".into(), Value::string(&text[from..to]));
}
