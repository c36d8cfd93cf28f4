//! The machine: it follows one way through the program, remembers the others, and goes back to the last of them when
//! asked for another result. Nothing here calls itself, so a program may recurse as deep as there is memory, and a
//! call in last place leaves nothing behind.

mod back;
mod eval;
mod resume;

use crate::lang::Compiled;
use crate::value::Value;
use crate::world::World;

use super::env::Env;
use super::errors::{Error, Outcome};
use super::frame::{Code, Fork, Rest};
use super::trail::{Point, Trail};

/// A run of a program on one input.
pub struct Machine<'w> {
    pub world: &'w mut World,
    forks: Vec<Fork>,
    /// Numbers for labels and tries.
    numbers: usize,
    start: Option<(Code, Point)>,
}

/// What to do next.
enum Next {
    Eval(Code, Point, Rest),
    /// Hand a value to the rest of the program.
    Return(Point, Rest),
    /// Nothing more this way.
    Back,
    Throw(Error),
}

impl<'w> Machine<'w> {
    pub fn new(program: &Compiled, input: Value, world: &'w mut World) -> Self {
        let code = Code { entry: program.main, env: Env::default() };
        Machine { world, forks: Vec::new(), numbers: 0, start: Some((code, Point::plain(input))) }
    }

    /// The same, and the way from the input to each result is kept as far as there is one.
    pub fn following(program: &Compiled, input: Value, world: &'w mut World) -> Self {
        let mut machine = Machine::new(program, Value::Null, world);
        if let Some((_, point)) = &mut machine.start {
            *point = Point { trail: Some(Trail::lenient(input.clone())), value: input };
        }
        machine
    }

    fn number(&mut self) -> usize {
        self.numbers += 1;
        self.numbers
    }

    /// The next result, or the error that ends all.
    pub fn next(&mut self) -> Option<Outcome> {
        self.next_point().map(|result| result.map(|point| point.value))
    }

    /// The next result and, if the input was followed, the path to where it came from.
    pub fn next_with_path(&mut self) -> Option<Outcome<(Value, Option<Vec<Value>>)>> {
        self.next_point().map(|result| {
            result.map(|point| {
                let path = point.trail.as_ref().map(Trail::keys);
                (point.value, path)
            })
        })
    }

    fn next_point(&mut self) -> Option<Outcome<Point>> {
        let mut next = match self.start.take() {
            Some((code, input)) => Next::Eval(code, input, Rest::default()),
            None => Next::Back,
        };
        loop {
            next = match next {
                Next::Eval(code, input, rest) => self.eval(code, input, rest),
                Next::Return(point, rest) => match rest.split() {
                    Some((frame, rest)) => self.resume(frame, point, rest),
                    None => return Some(Ok(point)),
                },
                Next::Back => match self.forks.pop() {
                    Some(fork) => self.back(fork),
                    None => return None,
                },
                Next::Throw(error) => match self.unwind(error) {
                    Ok(next) => next,
                    Err(error) => return Some(Err(error)),
                },
            };
        }
    }
}
