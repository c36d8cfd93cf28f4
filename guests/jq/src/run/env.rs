//! The environment: variables, closures and labels, innermost first. Scopes share what lies around them.

use std::rc::Rc;

use crate::lang::Entry;
use crate::value::{Value, drop_gently};

/// A list of what is bound.
#[derive(Clone, Default)]
pub struct Env(Option<Rc<Node>>);

struct Node {
    bound: Bound,
    rest: Env,
}

/// One binding.
#[derive(Clone)]
pub enum Bound {
    Value(Value),
    /// An argument that is not evaluated yet, and where it is to be.
    Closure(Entry, Env),
    /// The number of this pass through the label.
    Label(usize),
}

impl Env {
    pub fn with(&self, bound: Bound) -> Env {
        Env(Some(Rc::new(Node { bound, rest: self.clone() })))
    }

    /// The environment without so many of its innermost bindings.
    pub fn without(&self, count: usize) -> Env {
        let mut env = self;
        for _ in 0..count {
            match &env.0 {
                Some(node) => env = &node.rest,
                None => break,
            }
        }
        env.clone()
    }

    /// The binding so many entries back. The compiler has counted: there is one.
    pub fn get(&self, back: usize) -> &Bound {
        let mut env = self;
        for _ in 0..back {
            if let Some(node) = &env.0 {
                env = &node.rest;
            }
        }
        match &env.0 {
            Some(node) => &node.bound,
            None => &Bound::Value(Value::Null),
        }
    }

    pub fn value(&self, back: usize) -> Value {
        match self.get(back) {
            Bound::Value(value) => value.clone(),
            _ => Value::Null,
        }
    }

    /// The same with another value so many entries back.
    pub fn replaced(&self, back: usize, value: Value) -> Env {
        let mut above = Vec::with_capacity(back);
        for depth in 0..back {
            above.push(self.get(depth).clone());
        }
        let changed = self.without(back + 1).with(Bound::Value(value));
        above.into_iter().rev().fold(changed, |env, bound| env.with(bound))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Closures may hold each other in a long chain.
        if let Bound::Closure(..) = self.bound {
            drop_gently(std::mem::replace(&mut self.bound, Bound::Label(0)));
        }
        if let Some(rest) = self.rest.0.take()
            && Rc::strong_count(&rest) == 1
        {
            drop_gently(rest);
        }
    }
}
