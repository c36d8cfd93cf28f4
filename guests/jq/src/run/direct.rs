//! Expressions with exactly one result, evaluated at once: most of what most programs do.

use crate::builtins;
use crate::lang::{Entry, Node, Part, Special};
use crate::object::Object;
use crate::value::Value;
use crate::world::World;

use super::env::{Bound, Env};
use super::errors::{Error, Outcome};
use super::ops;

/// The result of an expression that is marked as direct. It calls itself as deep as the expression is, which the
/// parser limits.
pub fn direct(world: &mut World, entry: Entry, input: Value, env: &Env) -> Outcome {
    let (mut entry, mut input) = (entry, input);
    while let Node::Pipe(first, second) = &entry.node {
        input = direct(world, first, input, env)?;
        entry = second;
    }
    match &entry.node {
        Node::Identity => Ok(input),
        Node::Const(value) => Ok(value.clone()),
        Node::Variable(back) => Ok(env.value(*back)),
        Node::Index(term, key) => match &key.node {
            Node::Const(key) => {
                let container = direct(world, term, input, env)?;
                ops::index(container, key)
            }
            _ => {
                let key = direct(world, key, input.clone(), env)?;
                let container = direct(world, term, input, env)?;
                ops::index(container, &key)
            }
        },
        Node::Slice(term, from, to) => {
            let mut bound = |entry: &Option<Entry>| match entry {
                Some(entry) => direct(world, entry, input.clone(), env),
                None => Ok(Value::Null),
            };
            let (from, to) = (bound(from)?, bound(to)?);
            let container = direct(world, term, input, env)?;
            ops::slice(container, &from, &to)
        }
        Node::Object(entries) => {
            let mut object = Object::default();
            for (key, value) in entries {
                let key = match &key.node {
                    Node::Const(Value::String(key)) => key.clone(),
                    _ => ops::object_key(&direct(world, key, input.clone(), env)?)?,
                };
                object.insert(key, direct(world, value, input.clone(), env)?);
            }
            Ok(Value::object(object))
        }
        Node::Collect(inner) => {
            let mut items = Vec::new();
            stream(world, inner, input, env, &mut |_, item| {
                items.push(item);
                Ok(())
            })?;
            Ok(Value::array(items))
        }
        Node::Negate(operand) => ops::negate(&direct(world, operand, input, env)?),
        Node::Binary(operator, left, right) => {
            let right = direct(world, right, input.clone(), env)?;
            let left = direct(world, left, input, env)?;
            ops::binary(*operator, left, right)
        }
        Node::And(left, right) => {
            let truth = direct(world, left, input.clone(), env)?.is_true()
                && direct(world, right, input, env)?.is_true();
            Ok(Value::Bool(truth))
        }
        Node::Or(left, right) => {
            let truth = direct(world, left, input.clone(), env)?.is_true()
                || direct(world, right, input, env)?.is_true();
            Ok(Value::Bool(truth))
        }
        Node::Otherwise(left, right) => match direct(world, left, input.clone(), env)? {
            value if value.is_true() => Ok(value),
            _ => direct(world, right, input, env),
        },
        Node::If(condition, yes, no) => {
            let holds = direct(world, condition, input.clone(), env)?.is_true();
            direct(world, if holds { yes } else { no }, input, env)
        }
        Node::Try(body, Some(handler)) => match direct(world, body, input, env) {
            Err(Error::Raised(value)) => direct(world, handler, value, env),
            other => other,
        },
        Node::Bind(bind, body) => {
            let value = direct(world, bind.source, input.clone(), env)?;
            direct(world, body, input, &env.with(Bound::Value(value)))
        }
        Node::Text(format, parts) => {
            // From the last to the first, as where they are several.
            let mut done = Vec::with_capacity(parts.len());
            for part in parts.iter().rev() {
                done.push(match part {
                    Part::Text(text) => text.clone(),
                    Part::Program(entry) => {
                        let value = direct(world, entry, input.clone(), env)?;
                        builtins::format(format, &value)?
                    }
                });
            }
            let text: String = done.iter().rev().map(|part| &**part).collect();
            Ok(Value::from(text))
        }
        Node::Native(native, entries) => {
            let mut values = [Value::Null, Value::Null, Value::Null];
            for (index, entry) in entries.iter().enumerate().rev() {
                values[index] = direct(world, entry, input.clone(), env)?;
            }
            (native.run)(world, input, &mut values[..entries.len()])
        }
        // No other node is marked as direct.
        _ => super::raise("not an expression with one result"),
    }
}

/// What takes results, one after the other.
type Taker<'a> = dyn FnMut(&mut World, Value) -> Outcome<()> + 'a;

/// Hands all results of an expression that is marked as streaming to a taker, each as soon as it is there.
fn stream(world: &mut World, entry: Entry, input: Value, env: &Env, take: &mut Taker<'_>) -> Outcome<()> {
    if entry.direct {
        let value = direct(world, entry, input, env)?;
        return take(world, value);
    }
    match &entry.node {
        Node::Pipe(first, second) => {
            stream(world, first, input, env, &mut |world, value| stream(world, second, value, env, take))
        }
        Node::Comma(first, second) => {
            stream(world, first, input.clone(), env, take)?;
            stream(world, second, input, env, take)
        }
        Node::Iterate(term) => stream(world, term, input, env, &mut |world, container| match &container {
            Value::Array(items) => items.iter().try_for_each(|item| take(world, item.clone())),
            Value::Object(object) => object.iter().try_for_each(|(_, value)| take(world, value.clone())),
            other => ops::cannot_iterate(other).map(drop),
        }),
        Node::If(condition, yes, no) => {
            let holds = direct(world, condition, input.clone(), env)?.is_true();
            stream(world, if holds { yes } else { no }, input, env, take)
        }
        Node::Special(Special::Select, arguments) => {
            match direct(world, arguments[0], input.clone(), env)?.is_true() {
                true => take(world, input),
                false => Ok(()),
            }
        }
        // `empty`: no other node is marked as streaming.
        _ => Ok(()),
    }
}
