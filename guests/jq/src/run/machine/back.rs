//! Going back: to the last way not taken, or to whoever catches an error.

use crate::value::Value;

use super::super::errors::Error;
use super::super::frame::{Code, Fork, Rest};
use super::super::paths;
use super::super::trail::Point;
use super::{Machine, Next};

impl Machine<'_> {
    /// Takes the last way not taken.
    pub(super) fn back(&mut self, fork: Fork) -> Next {
        match fork {
            Fork::Eval(code, input, rest) => Next::Eval(code, input, rest),
            Fork::Each(container, place, rest) => self.next_item(container, place, rest),
            Fork::Range { next, end, step, input, rest } => {
                if !(step > 0.0 && next < end || step < 0.0 && next > end) {
                    return Next::Back;
                }
                let point = input.made(Value::Number(next));
                let following = next + step;
                if step > 0.0 && following < end || step < 0.0 && following > end {
                    self.forks.push(Fork::Range { next: following, end, step, input, rest: rest.clone() });
                }
                Next::Return(point, rest)
            }
            Fork::Recurse(open, rest) => self.descend(open, rest),
            Fork::Inputs(input, rest) => match self.world.next_input() {
                Ok(Some(value)) => {
                    let point = input.made(value);
                    self.forks.push(Fork::Inputs(input, rest.clone()));
                    Next::Return(point, rest)
                }
                Ok(None) => Next::Back,
                Err(error) => Next::Throw(error),
            },
            Fork::Documents(index, rest) => {
                let Some(value) = self.world.documents.enter(index) else { return Next::Back };
                self.forks.push(Fork::Documents(index + 1, rest.clone()));
                Next::Return(Point::plain(value), rest)
            }
            Fork::CollectEnd(items, trail, rest) => {
                Next::Return(Point { value: Value::array(items.take()), trail }, rest)
            }
            Fork::ReduceEnd(state, rest) => {
                let state = state.replace(Point::plain(Value::Null));
                Next::Return(state, rest)
            }
            Fork::Otherwise { found, code, input, rest } => {
                if found.get() {
                    Next::Back
                } else {
                    Next::Eval(code, input, rest)
                }
            }
            Fork::Try { .. } | Fork::Left(_) | Fork::Label(_) | Fork::Alternative { .. } => Next::Back,
            Fork::UpdateMissing(updating, path) => {
                updating.deleted.borrow_mut().push(Value::array(path.to_vec()));
                Next::Back
            }
            Fork::UpdateEnd(updating, rest) => {
                let root = updating.root.take();
                match paths::delete(root, updating.deleted.take()) {
                    Ok(value) => Next::Return(Point { value, trail: updating.trail.clone() }, rest),
                    Err(error) => Next::Throw(error),
                }
            }
        }
    }

    fn next_item(&mut self, container: Point, place: usize, rest: Rest) -> Next {
        let Some((key, value, place)) = item_at(&container.value, place) else { return Next::Back };
        let point = match container.trail {
            None => Point::plain(value),
            Some(_) => container.child(&key.value(), value),
        };
        if has_item_at(&container.value, place + 1) {
            self.forks.push(Fork::Each(container, place + 1, rest.clone()));
        }
        Next::Return(point, rest)
    }

    /// The next value of a walk through all that lies within a value.
    fn descend(&mut self, mut open: Vec<(Point, usize)>, rest: Rest) -> Next {
        while let Some((container, place)) = open.pop() {
            let Some((key, value, place)) = item_at(&container.value, place) else { continue };
            let point = match container.trail {
                None => Point::plain(value),
                Some(_) => container.child(&key.value(), value),
            };
            open.push((container, place + 1));
            open.push((point.clone(), 0));
            self.forks.push(Fork::Recurse(open, rest.clone()));
            return Next::Return(point, rest);
        }
        Next::Back
    }

    /// Drops ways not taken until one that an error leads to. If there is none, the error is the program's.
    pub(super) fn unwind(&mut self, error: Error) -> Result<Next, Error> {
        let mut left = Vec::new();
        let error = match error {
            Error::Halt { .. } => {
                self.forks.clear();
                return Err(error);
            }
            other => other,
        };
        while let Some(fork) = self.forks.pop() {
            match (fork, &error) {
                (Fork::Left(number), _) => left.push(number),
                (Fork::Label(number), Error::Break(wanted)) if number == *wanted => return Ok(Next::Back),
                (Fork::Try { number, handler, env, input, rest }, Error::Raised(value))
                    if !left.contains(&number) =>
                {
                    return Ok(match handler {
                        None => Next::Back,
                        Some(entry) => Next::Eval(Code { entry, env }, input.made(value.clone()), rest),
                    });
                }
                (Fork::Alternative { binding, next, value, rest }, Error::Raised(_)) => {
                    return Ok(self.bind(binding, next, value, rest));
                }
                _ => {}
            }
        }
        Err(error)
    }
}

/// A key of an item, made into a value only where it is asked for.
enum Key<'a> {
    Index(usize),
    Name(&'a crate::value::Str),
}

impl Key<'_> {
    fn value(&self) -> Value {
        match self {
            Key::Index(index) => Value::from(*index),
            Key::Name(name) => Value::String((*name).clone()),
        }
    }
}

/// The item at a place of a container, or the next after it; with the place it is at.
fn item_at(container: &Value, place: usize) -> Option<(Key<'_>, Value, usize)> {
    match container {
        Value::Array(items) => items.get(place).map(|item| (Key::Index(place), item.clone(), place)),
        Value::Object(object) => (place..object.places())
            .find_map(|place| object.at(place).map(|(key, value)| (Key::Name(key), value.clone(), place))),
        _ => None,
    }
}

fn has_item_at(container: &Value, place: usize) -> bool {
    match container {
        Value::Array(items) => place < items.len(),
        Value::Object(object) => place < object.places(),
        _ => false,
    }
}
