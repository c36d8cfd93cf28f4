//! What lies outside of the program: its inputs, and what it says besides its results.

use crate::json;
use crate::lang;
use crate::run::{Error, Outcome, raise};
use crate::value::Value;
use crate::world::World;

use super::Run;
use super::objects::text_of;

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
    ("get_search_list", 0, |world, _, _| Ok(world.search_list.clone())),
];

fn halt(_: &mut World, input: Value, arguments: &mut [Value]) -> Outcome {
    match arguments[0].as_number() {
        Some(code) => Err(Error::Halt { code: code as i32, message: Some(input) }),
        None => raise("halt_error/1: number required"),
    }
}
