//! Handing a value to what waits for it.

use std::cell::RefCell;
use std::rc::Rc;

use crate::builtins;
use crate::lang::{Bind, Entry, Part, Pattern};
use crate::object::Object;
use crate::value::{Str, Value};

use super::super::direct::direct;
use super::super::env::{Bound, Env};
use super::super::errors::{Outcome, raise};
use super::super::frame::{
    Arguments, Binding, Code, Fork, Frame, Goal, Matching, ObjectSoFar, Pending, RangeSoFar, Rest, SliceTo,
    TextSoFar, Updating,
};
use super::super::trail::{Point, Trail};
use super::super::{ops, paths};
use super::{Machine, Next};

fn returned(result: Outcome, trail: Option<Trail>, rest: Rest) -> Next {
    match result {
        Ok(value) => Next::Return(Point { value, trail }, rest),
        Err(error) => Next::Throw(error),
    }
}

/// What is made of the input goes by its way, if it has one.
pub(super) fn placed(rest: Rest, input: &Point) -> Rest {
    match &input.trail {
        None => rest,
        trail => rest.then(Frame::Place(trail.clone())),
    }
}

/// The fields of a state that may be shared, copied only then.
fn own<T: Clone>(shared: Rc<T>) -> T {
    Rc::try_unwrap(shared).unwrap_or_else(|shared| (*shared).clone())
}

impl Machine<'_> {
    pub(super) fn resume(&mut self, frame: Frame, point: Point, rest: Rest) -> Next {
        match frame {
            Frame::Into(code) => Next::Eval(code, point, rest),
            Frame::KeyFor(code, input) => Next::Eval(code, input, rest.then(Frame::Get(point.value))),
            Frame::SliceFrom(slice) => match slice.to {
                Some(to) => {
                    let (env, input) = (slice.env.clone(), slice.input.clone());
                    self.sub(Code { entry: to, env }, input, rest.then(Frame::SliceTo(slice, point.value)))
                }
                None => slice_of(&slice, point.value, Value::Null, rest),
            },
            Frame::SliceTo(slice, from) => slice_of(&slice, from, point.value, rest),
            Frame::Get(key) => get(point, &key, rest),
            Frame::Each => self.each(point, rest),
            Frame::Collect(items) => {
                items.borrow_mut().push(point.value);
                Next::Back
            }
            Frame::ObjectKey(so_far) => self.object_key(so_far, point.value, rest),
            Frame::ObjectValue(so_far, key) => {
                let mut so_far = own(so_far);
                so_far.object.insert(key, point.value);
                so_far.entries = &so_far.entries[1..];
                self.object_entry(so_far, rest)
            }
            Frame::Negate => returned(ops::negate(&point.value), point.trail, rest),
            Frame::Right(operator, left, input) => {
                let frame = Frame::Left(operator, point.value, input.trail.clone());
                self.sub(left, input, rest.then(frame))
            }
            Frame::Left(operator, right, trail) => {
                returned(ops::binary(operator, point.value, right), trail, rest)
            }
            Frame::Both(asks_at, right, input) => {
                if point.value.is_true() == asks_at {
                    let rest = placed(rest, &input);
                    self.sub(right, input, rest.then(Frame::Truth))
                } else {
                    Next::Return(input.made(Value::Bool(!asks_at)), rest)
                }
            }
            Frame::Place(trail) => Next::Return(Point { value: point.value, trail }, rest),
            Frame::Truth => Next::Return(point.made(Value::Bool(point.value.is_true())), rest),
            Frame::Found(found) => {
                if !point.value.is_true() {
                    return Next::Back;
                }
                found.set(true);
                Next::Return(point, rest)
            }
            Frame::Branch(yes, no, input) => {
                let entry = if point.value.is_true() { yes } else { no.entry };
                Next::Eval(Code { entry, env: no.env }, input, rest)
            }
            Frame::Leave(number) => {
                self.forks.push(Fork::Left(number));
                Next::Return(point, rest)
            }
            Frame::Bind(binding) => self.bind(binding, 0, point.value, rest),
            Frame::PatternKey(matching) => self.pattern_key(own(matching), &point.value, rest),
            Frame::ReduceStart(bind, update, input, env) => {
                let state = Rc::new(RefCell::new(point));
                self.forks.push(Fork::ReduceEnd(state.clone(), rest));
                let goal = Goal::Reduce(update.entry, state);
                self.source(bind, goal, input, env, Rest::default())
            }
            Frame::ForeachStart(bind, update, extract, input, env) => {
                let goal = Goal::Foreach(update.entry, extract, Rc::new(RefCell::new(point)));
                self.source(bind, goal, input, env, rest)
            }
            Frame::ReduceStore(state) => {
                *state.borrow_mut() = point;
                Next::Back
            }
            Frame::ForeachStep(state, extract) => {
                *state.borrow_mut() = point.clone();
                match extract {
                    Some(code) => Next::Eval(code, point, rest),
                    None => Next::Return(point, rest),
                }
            }
            Frame::UpdateAt(updating) => self.update_at(updating, point),
            Frame::UpdateWith(updating, path, height) => {
                self.forks.truncate(height);
                store(&updating, &path, Ok(point.value))
            }
            Frame::Part(so_far) => {
                let mut so_far = own(so_far);
                match builtins::format(&so_far.format, &point.value) {
                    Ok(text) => so_far.done.push(text),
                    Err(error) => return Next::Throw(error),
                }
                self.text_part(so_far, rest)
            }
            Frame::Argument(so_far) => {
                let mut so_far = own(so_far);
                so_far.values.push(point.value);
                self.argument(so_far, rest)
            }
            Frame::PathEnd(outer) => match &point.trail {
                Some(trail) if trail.leads_to(&point.value) => {
                    let path = Value::array(trail.keys());
                    Next::Return(Point { value: path, trail: outer }, rest)
                }
                _ => returned(not_a_path(&point.value), None, rest),
            },
            Frame::GetPath(input) => get_path(input, &point.value, rest),
            Frame::Select(input) if point.value.is_true() => Next::Return(input, rest),
            Frame::Select(_) => Next::Back,
            Frame::Limit(left, height) => {
                left.set(left.get() - 1.0);
                if left.get() <= 0.0 {
                    self.forks.truncate(height);
                }
                Next::Return(point, rest)
            }
            Frame::RangeFrom(so_far) => {
                let mut so_far = own(so_far);
                so_far.values.push(point.value);
                self.range_bound(so_far, rest)
            }
        }
    }

    pub(super) fn each(&mut self, point: Point, rest: Rest) -> Next {
        if let Err(error) = point.check_iteration() {
            return Next::Throw(error);
        }
        match &point.value {
            Value::Array(_) | Value::Object(_) => self.back(Fork::Each(point, 0, rest)),
            other => returned(ops::cannot_iterate(other), None, rest),
        }
    }

    /// The next entry of an object, first those that need no machine.
    pub(super) fn object_entry(&mut self, mut so_far: ObjectSoFar, rest: Rest) -> Next {
        while let Some((key, value)) = so_far.entries.first() {
            if !key.direct || !value.direct {
                let code = Code { entry: key, env: so_far.env.clone() };
                let input = so_far.input.clone();
                return self.sub(code, input, rest.then(Frame::ObjectKey(Rc::new(so_far))));
            }
            match self.direct_entry(key, value, &mut so_far) {
                Ok(()) => so_far.entries = &so_far.entries[1..],
                Err(error) => return Next::Throw(error),
            }
        }
        Next::Return(Point { value: Value::object(so_far.object), trail: so_far.input.trail }, rest)
    }

    fn direct_entry(&mut self, key: Entry, value: Entry, so_far: &mut ObjectSoFar) -> Outcome<()> {
        let ObjectSoFar { object, env, input, .. } = so_far;
        let key = direct(self.world, key, input.value.clone(), env)?;
        let value = direct(self.world, value, input.value.clone(), env)?;
        object.insert(ops::object_key(&key)?, value);
        Ok(())
    }

    fn object_key(&mut self, so_far: Rc<ObjectSoFar>, key: Value, rest: Rest) -> Next {
        let key = match ops::object_key(&key) {
            Ok(key) => key,
            Err(error) => return Next::Throw(error),
        };
        let Some((_, value)) = so_far.entries.first() else { return Next::Back };
        let (code, input) = (Code { entry: value, env: so_far.env.clone() }, so_far.input.clone());
        self.sub(code, input, rest.then(Frame::ObjectValue(so_far, key)))
    }

    fn source(&mut self, bind: &'static Bind, goal: Goal, input: Point, env: Env, rest: Rest) -> Next {
        let code = Code { entry: bind.source, env: env.clone() };
        let binding = Binding { bind, goal, env, input: Point::plain(input.value.clone()) };
        self.sub(code, input, rest.then(Frame::Bind(Rc::new(binding))))
    }

    /// Matches a value with one of the patterns of a bind; the next is tried if an error comes back.
    pub(super) fn bind(&mut self, binding: Rc<Binding>, which: usize, value: Value, rest: Rest) -> Next {
        let bind = binding.bind;
        if bind.is_plain() {
            let env = binding.env.with(Bound::Value(value));
            return self.bound(&binding, env, rest);
        }
        if which + 1 < bind.patterns.len() {
            let (binding, value, rest) = (binding.clone(), value.clone(), rest.clone());
            self.forks.push(Fork::Alternative { binding, next: which + 1, value, rest });
        }
        let mut env = binding.env.clone();
        for _ in 0..bind.variables {
            env = env.with(Bound::Value(Value::Null));
        }
        let pending = vec![Pending::Pattern(&bind.patterns[which], value)];
        self.matching(Matching { binding, pending, env }, rest)
    }

    fn matching(&mut self, mut matching: Matching, rest: Rest) -> Next {
        while let Some(pending) = matching.pending.pop() {
            match pending {
                Pending::Pattern(Pattern::Variable(place), value) => set(&mut matching, *place, value),
                Pending::Pattern(Pattern::Array(items), value) => {
                    if let Err(error) = match_items(&mut matching, items, &value) {
                        return Next::Throw(error);
                    }
                }
                Pending::Pattern(Pattern::Object(entries), value) => {
                    matching.pending.push(Pending::Entries(entries, value));
                }
                Pending::Entries([], _) => {}
                Pending::Entries(entries @ [(key, _), ..], value) => {
                    let (code, input) = (Code { entry: key.expr, env: matching.env.clone() }, value.clone());
                    matching.pending.push(Pending::Entries(entries, value));
                    if !key.expr.direct {
                        let rest = rest.then(Frame::PatternKey(Rc::new(matching)));
                        return self.sub(code, Point::plain(input), rest);
                    }
                    let name = direct(self.world, code.entry, input, &code.env);
                    if let Err(error) = name.and_then(|name| match_key(&mut matching, &name)) {
                        return Next::Throw(error);
                    }
                }
            }
        }
        let binding = matching.binding.clone();
        self.bound(&binding, matching.env, rest)
    }

    fn pattern_key(&mut self, mut matching: Matching, name: &Value, rest: Rest) -> Next {
        match match_key(&mut matching, name) {
            Ok(()) => self.matching(matching, rest),
            Err(error) => Next::Throw(error),
        }
    }

    /// The variables have their values: on to what they are for.
    fn bound(&mut self, binding: &Binding, env: Env, rest: Rest) -> Next {
        match &binding.goal {
            Goal::Body(body) => Next::Eval(Code { entry: body, env }, binding.input.clone(), rest),
            Goal::Reduce(update, state) => {
                let now = state.replace(Point::plain(Value::Null));
                if update.direct && now.trail.is_none() {
                    return match direct(self.world, update, now.value, &env) {
                        Ok(value) => {
                            state.borrow_mut().value = value;
                            Next::Back
                        }
                        Err(error) => Next::Throw(error),
                    };
                }
                let rest = Rest::default().then(Frame::ReduceStore(state.clone()));
                Next::Eval(Code { entry: update, env }, now, rest)
            }
            Goal::Foreach(update, extract, state) => {
                let now = state.replace(Point::plain(Value::Null));
                let extract = extract.map(|entry| Code { entry, env: env.clone() });
                let rest = rest.then(Frame::ForeachStep(state.clone(), extract));
                Next::Eval(Code { entry: update, env }, now, rest)
            }
        }
    }

    fn update_at(&mut self, updating: Rc<Updating>, point: Point) -> Next {
        let path = match &point.trail {
            Some(trail) if trail.leads_to(&point.value) => trail.keys(),
            _ => return returned(not_a_path(&point.value), None, Rest::default()),
        };
        drop(point);
        let root = updating.root.borrow().clone();
        let value = match paths::get(root, &path) {
            Ok(value) => value,
            Err(error) => return Next::Throw(error),
        };
        let Code { entry, env } = updating.update.clone();
        if entry.direct {
            let result = direct(self.world, entry, value, &env);
            return store(&updating, &path, result);
        }
        let (path, height) = (Rc::new(path), self.forks.len());
        self.forks.push(Fork::UpdateMissing(updating.clone(), path.clone()));
        let rest = Rest::default().then(Frame::UpdateWith(updating, path, height));
        Next::Eval(Code { entry, env }, Point::plain(value), rest)
    }

    /// The parts of a string, from the last to the first: so are they evaluated.
    pub(super) fn text_part(&mut self, mut so_far: TextSoFar, rest: Rest) -> Next {
        while let Some((last, others)) = so_far.parts.split_last() {
            so_far.parts = others;
            match last {
                Part::Text(text) => so_far.done.push(text.clone()),
                Part::Program(entry) => {
                    let (code, input) = (Code { entry, env: so_far.env.clone() }, so_far.input.clone());
                    return self.sub(code, input, rest.then(Frame::Part(Rc::new(so_far))));
                }
            }
        }
        let text: String = so_far.done.iter().rev().map(|part: &Str| &**part).collect();
        Next::Return(Point { value: Value::from(text), trail: so_far.input.trail }, rest)
    }

    /// The arguments of a function of ours, from the last to the first.
    pub(super) fn argument(&mut self, mut so_far: Arguments, rest: Rest) -> Next {
        if let Some((last, others)) = so_far.entries.split_last() {
            so_far.entries = others;
            let (code, input) = (Code { entry: last, env: so_far.env.clone() }, so_far.input.clone());
            return self.sub(code, input, rest.then(Frame::Argument(Rc::new(so_far))));
        }
        so_far.values.reverse();
        let result = (so_far.native.run)(self.world, so_far.input.value, &mut so_far.values);
        returned(result, so_far.input.trail, rest)
    }

    pub(super) fn range_bound(&mut self, mut so_far: RangeSoFar, rest: Rest) -> Next {
        if let Some((first, others)) = so_far.entries.split_first() {
            so_far.entries = others;
            let (code, input) = (Code { entry: first, env: so_far.env.clone() }, so_far.input.clone());
            return self.sub(code, input, rest.then(Frame::RangeFrom(Rc::new(so_far))));
        }
        let numbers: Vec<f64> = so_far.values.iter().filter_map(Value::as_number).collect();
        let [next, end, step] = numbers[..] else {
            return returned(raise("Range bounds must be numeric"), None, rest);
        };
        self.back(Fork::Range { next, end, step, input: so_far.input, rest })
    }
}

fn set(matching: &mut Matching, place: usize, value: Value) {
    let back = matching.binding.bind.variables - 1 - place;
    matching.env = matching.env.replaced(back, value);
}

/// The items of an array pattern are to be matched next, the first first.
fn match_items(matching: &mut Matching, items: &'static [Pattern], value: &Value) -> Outcome<()> {
    if !matches!(value, Value::Array(_) | Value::Null) {
        return ops::index(value.clone(), &Value::Number(0.0)).map(drop);
    }
    for (index, item) in items.iter().enumerate().rev() {
        let part = ops::index(value.clone(), &Value::from(index))?;
        matching.pending.push(Pending::Pattern(item, part));
    }
    Ok(())
}

/// The next entry of an object pattern has this key.
fn match_key(matching: &mut Matching, name: &Value) -> Outcome<()> {
    let Some(Pending::Entries([(key, inner), others @ ..], value)) = matching.pending.pop() else {
        return Ok(());
    };
    let part = check_key(&value, name)?;
    matching.pending.push(Pending::Entries(others, value));
    if let Some(place) = key.variable {
        set(matching, place, part.clone());
    }
    if let Some(inner) = inner {
        matching.pending.push(Pending::Pattern(inner, part));
    }
    Ok(())
}

/// What an object has under the key of a pattern.
fn check_key(value: &Value, key: &Value) -> Outcome {
    match key {
        Value::String(_) => ops::index(value.clone(), key),
        _ => raise(format!("Cannot index {} with {}", value.type_name(), key.type_name())),
    }
}

fn store(updating: &Updating, path: &[Value], result: Outcome) -> Next {
    let result = result.and_then(|value| {
        let root = updating.root.take();
        paths::set(root, path, value)
    });
    match result {
        Ok(root) => {
            *updating.root.borrow_mut() = root;
            Next::Back
        }
        Err(error) => Next::Throw(error),
    }
}

fn slice_of(slice: &SliceTo, from: Value, to: Value, rest: Rest) -> Next {
    let mut key = Object::default();
    key.insert("start".into(), from);
    key.insert("end".into(), to);
    let code = Code { entry: slice.term, env: slice.env.clone() };
    Next::Eval(code, slice.input.clone(), rest.then(Frame::Get(Value::object(key))))
}

fn get(point: Point, key: &Value, rest: Rest) -> Next {
    if let Err(error) = point.check_access(key) {
        return Next::Throw(error);
    }
    if point.trail.is_none() {
        return returned(ops::index(point.value, key), None, rest);
    }
    match ops::index(point.value.clone(), key) {
        Ok(value) => Next::Return(point.child(key, value), rest),
        Err(error) => Next::Throw(error),
    }
}

fn get_path(input: Point, path: &Value, rest: Rest) -> Next {
    let Value::Array(keys) = path else {
        return returned(raise("Path must be specified as an array"), None, rest);
    };
    if input.trail.is_none() {
        return returned(paths::get(input.value, keys), None, rest);
    }
    let mut point = input;
    for key in keys.iter() {
        if let Err(error) = point.check_access(key) {
            return Next::Throw(error);
        }
        match &point.value {
            Value::Null => point = point.child(key, Value::Null),
            value => match ops::index(value.clone(), key) {
                Ok(value) => point = point.child(key, value),
                Err(error) => return Next::Throw(error),
            },
        }
    }
    Next::Return(point, rest)
}

fn not_a_path(value: &Value) -> Outcome {
    raise(format!("Invalid path expression with result {}", ops::shown(value, 30)))
}
