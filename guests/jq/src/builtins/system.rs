//! What lies outside of the program: its inputs, and what it says besides its results.

use crate::json;
use crate::lang;
use crate::run::{Error, Outcome, raise};
use crate::value::Value;
use crate::world::World;
use crate::yaml;

use super::objects::text_of;
use super::{Run, formats};

pub const TABLE: &[(&str, usize, Run)] = &[
    ("input", 0, |world, _, _| match world.next_input()? {
        Some(value) => Ok(value),
        None => raise("break"),
    }),
    ("input_filename", 0, |world, _, _| Ok(world.inputs.file_name())),
    ("input_line_number", 0, |world, _, _| Ok(world.inputs.line_number().into())),
    ("debug", 0, |world, input, _| {
        let message = Value::array(vec![Value::string("DEBUG:"), input.clone()]);
        world.say(&format!("{}\n", json::to_text(&message)));
        Ok(input)
    }),
    ("stderr", 0, |world, input, _| {
        world.say(&text_of(&input));
        Ok(input)
    }),
    ("halt", 0, |_, _, _| Err(Error::Halt { code: 0, message: None })),
    ("halt_error", 1, halt),
    ("builtins", 0, |_, _, _| {
        let names = super::names().chain(lang::prelude_names());
        Ok(Value::array(names.map(|(name, count)| Value::from(format!("{name}/{count}"))).collect()))
    }),
    ("file_index", 0, |world, _, _| Ok(world.documents.current.file_index.into())),
    ("document_index", 0, |world, _, _| Ok(world.documents.current.index.into())),
    ("filename", 0, |world, _, _| Ok(Value::string(&world.documents.current.file))),
    ("to_yaml", 0, |_, input, _| Ok(Value::from(formats::yaml(&input)))),
    ("from_yaml", 0, |_, input, _| from_yaml(&input)),
    ("load", 1, |_, _, arguments| load(&arguments[0])),
    ("get_search_list", 0, |world, _, _| Ok(world.search_list.clone())),
];

fn halt(_: &mut World, input: Value, arguments: &mut [Value]) -> Outcome {
    match arguments[0].as_number() {
        Some(code) => Err(Error::Halt { code: code as i32, message: Some(input) }),
        None => raise("halt_error/1: number required"),
    }
}

/// The first document of a text.
fn from_yaml(input: &Value) -> Outcome {
    let Value::String(text) = input else { return raise("from_yaml takes a string") };
    match yaml::read(text) {
        Ok(documents) => Ok(documents.into_iter().next().map(|document| document.value).unwrap_or_default()),
        Err(problem) => raise(problem),
    }
}

/// yq's `load(FILE)`.
fn load(file: &Value) -> Outcome {
    let Value::String(file) = file else { return raise("load takes the name of a file") };
    match std::fs::read_to_string(&**file) {
        Ok(text) => from_yaml(&Value::from(text)),
        Err(error) => raise(format!("failed to load {file}: {error}")),
    }
}
