//! Evaluating an expression: to its result where it has just one, otherwise to the first step of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::lang::{Entry, Node, Special};
use crate::value::Value;

use super::super::direct::direct;
use super::super::env::{Bound, Env};
use super::super::errors::Error;
use super::super::frame::{
    Arguments, Binding, Code, Fork, Frame, Goal, ObjectSoFar, RangeSoFar, Rest, SliceTo, TextSoFar, Updating,
};
use super::super::trail::{Point, Trail};
use super::resume::placed;
use super::{Machine, Next};

impl Machine<'_> {
    pub(super) fn eval(&mut self, code: Code, input: Point, rest: Rest) -> Next {
        let Code { entry, env } = code;
        // While paths are followed, what an expression does to them matters too.
        if entry.direct && input.trail.is_none() {
            return match direct(self.world, entry, input.value, &env) {
                Ok(value) => Next::Return(Point::plain(value), rest),
                Err(error) => Next::Throw(error),
            };
        }
        let code = |entry: Entry| Code { entry, env: env.clone() };
        match &entry.node {
            Node::Identity => Next::Return(input, rest),
            Node::Const(value) => Next::Return(Point { value: value.clone(), ..input }, rest),
            Node::Variable(back) => Next::Return(Point { value: env.value(*back), ..input }, rest),
            Node::Pipe(first, second) => {
                let rest = rest.then(Frame::Into(code(second)));
                Next::Eval(Code { entry: first, env }, input, rest)
            }
            Node::Comma(first, second) => {
                self.forks.push(Fork::Eval(code(second), input.clone(), rest.clone()));
                Next::Eval(Code { entry: first, env }, input, rest)
            }
            Node::Index(term, key) => self.eval_index(term, key, input, env, rest),
            Node::Slice(term, from, to) => {
                let slice = Rc::new(SliceTo { term, to: *to, env: env.clone(), input: input.clone() });
                match from {
                    Some(from) => {
                        self.sub(Code { entry: from, env }, input, rest.then(Frame::SliceFrom(slice)))
                    }
                    None => self.resume(Frame::SliceFrom(slice), Point::plain(Value::Null), rest),
                }
            }
            Node::Iterate(term) => Next::Eval(Code { entry: term, env }, input, rest.then(Frame::Each)),
            Node::Collect(inner) => {
                let items = Rc::new(RefCell::new(Vec::new()));
                self.forks.push(Fork::CollectEnd(items.clone(), input.trail.clone(), rest));
                self.sub(Code { entry: inner, env }, input, Rest::default().then(Frame::Collect(items)))
            }
            Node::Object(entries) => {
                let so_far = ObjectSoFar { entries, object: Default::default(), env, input };
                self.object_entry(so_far, rest)
            }
            Node::Negate(operand) => {
                let rest = placed(rest, &input).then(Frame::Negate);
                self.sub(Code { entry: operand, env }, input, rest)
            }
            Node::Binary(operator, left, right) => {
                let frame = Frame::Right(*operator, code(left), input.clone());
                self.sub(Code { entry: right, env }, input, rest.then(frame))
            }
            Node::And(left, right) => {
                let frame = Frame::Both(true, code(right), input.clone());
                self.sub(Code { entry: left, env }, input, rest.then(frame))
            }
            Node::Or(left, right) => {
                let frame = Frame::Both(false, code(right), input.clone());
                self.sub(Code { entry: left, env }, input, rest.then(frame))
            }
            Node::Otherwise(left, right) => {
                let found = Rc::new(Cell::new(false));
                self.forks.push(Fork::Otherwise {
                    found: found.clone(),
                    code: code(right),
                    input: input.clone(),
                    rest: rest.clone(),
                });
                Next::Eval(Code { entry: left, env }, input, rest.then(Frame::Found(found)))
            }
            Node::If(condition, yes, no) => {
                let frame = Frame::Branch(yes, code(no), input.clone());
                self.sub(Code { entry: condition, env }, input, rest.then(frame))
            }
            Node::Try(body, handler) if body.direct && input.trail.is_none() => {
                match direct(self.world, body, input.value, &env) {
                    Ok(value) => Next::Return(Point::plain(value), rest),
                    Err(Error::Raised(value)) => match handler {
                        None => Next::Back,
                        Some(entry) => Next::Eval(Code { entry, env }, Point::plain(value), rest),
                    },
                    Err(error) => Next::Throw(error),
                }
            }
            Node::Try(body, handler) => {
                let number = self.number();
                let fork = Fork::Try {
                    number,
                    handler: *handler,
                    env: env.clone(),
                    input: input.clone(),
                    rest: rest.clone(),
                };
                self.forks.push(fork);
                Next::Eval(Code { entry: body, env }, input, rest.then(Frame::Leave(number)))
            }
            Node::Bind(bind, body) => {
                let source = code(bind.source);
                let binding = Binding { bind, goal: Goal::Body(body), env, input: input.clone() };
                self.sub(source, input, rest.then(Frame::Bind(Rc::new(binding))))
            }
            Node::Reduce(bind, init, update) => {
                let frame = Frame::ReduceStart(bind, code(update), input.clone(), env.clone());
                Next::Eval(Code { entry: init, env }, input, rest.then(frame))
            }
            Node::Foreach(bind, init, update, extract) => {
                let frame = Frame::ForeachStart(bind, code(update), *extract, input.clone(), env.clone());
                Next::Eval(Code { entry: init, env }, input, rest.then(frame))
            }
            Node::Label(body) => {
                let number = self.number();
                self.forks.push(Fork::Label(number));
                Next::Eval(Code { entry: body, env: env.with(Bound::Label(number)) }, input, rest)
            }
            Node::Break(back) => match env.get(*back) {
                Bound::Label(number) => Next::Throw(Error::Break(*number)),
                _ => Next::Back,
            },
            Node::Update(paths, update) => self.eval_update(paths, code(update), input, env, rest),
            Node::Text(format, parts) => {
                let so_far = TextSoFar { format: format.clone(), parts, done: Vec::new(), env, input };
                self.text_part(so_far, rest)
            }
            Node::Native(native, entries) => {
                let so_far = Arguments { native: *native, entries, values: Vec::new(), env, input };
                self.argument(so_far, rest)
            }
            Node::Special(special, entries) => self.special(*special, entries, input, env, rest),
            Node::Call(function, back, entries) => {
                let mut inner = env.without(*back);
                for &entry in entries {
                    inner = inner.with(closure(entry, &env));
                }
                match function.body.get() {
                    Some(body) => Next::Eval(Code { entry: body, env: inner }, input, rest),
                    None => Next::Back,
                }
            }
            Node::Closure(back) => match env.get(*back) {
                Bound::Closure(entry, inner) => Next::Eval(Code { entry, env: inner.clone() }, input, rest),
                _ => Next::Back,
            },
        }
    }

    /// Evaluates an expression whose result is not the place that is followed, only used on the way.
    pub(super) fn sub(&mut self, code: Code, input: Point, rest: Rest) -> Next {
        Next::Eval(code, Point::plain(input.value), rest)
    }

    fn eval_index(&mut self, term: Entry, key: Entry, input: Point, env: Env, rest: Rest) -> Next {
        if !key.direct {
            let frame = Frame::KeyFor(Code { entry: term, env: env.clone() }, input.clone());
            return self.sub(Code { entry: key, env }, input, rest.then(frame));
        }
        let key = match &key.node {
            Node::Const(value) => value.clone(),
            _ => match direct(self.world, key, input.value.clone(), &env) {
                Ok(value) => value,
                Err(error) => return Next::Throw(error),
            },
        };
        match &term.node {
            Node::Identity => self.resume(Frame::Get(key), input, rest),
            _ => Next::Eval(Code { entry: term, env }, input, rest.then(Frame::Get(key))),
        }
    }

    /// The paths are those of the old value; each is changed in the new.
    fn eval_update(&mut self, paths: Entry, update: Code, input: Point, env: Env, rest: Rest) -> Next {
        let updating = Rc::new(Updating {
            root: RefCell::new(input.value.clone()),
            deleted: RefCell::new(Vec::new()),
            update,
            trail: input.trail,
        });
        self.forks.push(Fork::UpdateEnd(updating.clone(), rest));
        let trail = Some(Trail::root(input.value.clone()));
        let rest = Rest::default().then(Frame::UpdateAt(updating));
        Next::Eval(Code { entry: paths, env }, Point { value: input.value, trail }, rest)
    }

    fn special(
        &mut self,
        special: Special,
        entries: &'static [Entry],
        input: Point,
        env: Env,
        rest: Rest,
    ) -> Next {
        let code = |index: usize| Code { entry: entries[index], env: env.clone() };
        match special {
            Special::Empty => Next::Back,
            Special::Path => {
                let trail = Some(Trail::root(input.value.clone()));
                let rest = rest.then(Frame::PathEnd(input.trail));
                Next::Eval(code(0), Point { value: input.value, trail }, rest)
            }
            Special::GetPath => self.sub(code(0), input.clone(), rest.then(Frame::GetPath(input))),
            Special::Select if entries[0].direct => {
                match direct(self.world, entries[0], input.value.clone(), &env) {
                    Ok(value) if value.is_true() => Next::Return(input, rest),
                    Ok(_) => Next::Back,
                    Err(error) => Next::Throw(error),
                }
            }
            Special::Select => self.sub(code(0), input.clone(), rest.then(Frame::Select(input))),
            Special::First => {
                let frame = Frame::Limit(Rc::new(Cell::new(1.0)), self.forks.len());
                Next::Eval(code(0), input, rest.then(frame))
            }
            Special::Limit => match direct(self.world, entries[0], input.value.clone(), &env) {
                Ok(count) => {
                    let count = Cell::new(count.as_number().unwrap_or(f64::INFINITY));
                    let frame = Frame::Limit(Rc::new(count), self.forks.len());
                    Next::Eval(code(1), input, rest.then(frame))
                }
                Err(error) => Next::Throw(error),
            },
            Special::Range => {
                let so_far = RangeSoFar { entries, values: Vec::new(), env, input };
                self.range_bound(so_far, rest)
            }
            Special::Inputs => self.back(Fork::Inputs(input, rest)),
            Special::Documents => self.back(Fork::Documents(0, rest)),
            Special::Recurse => {
                self.forks.push(Fork::Recurse(vec![(input.clone(), 0)], rest.clone()));
                Next::Return(input, rest)
            }
        }
    }
}

/// An argument as it is bound: what only names another closure is that closure.
fn closure(entry: Entry, env: &Env) -> Bound {
    match &entry.node {
        Node::Closure(back) => env.get(*back).clone(),
        _ => Bound::Closure(entry, env.clone()),
    }
}
