//! Where a value was found, while paths are being followed.

use std::rc::Rc;

use crate::value::{Value, drop_gently};

use super::errors::{Outcome, raise};
use super::ops;

/// The way from the root to a value: the last key and the way before it.
#[derive(Clone)]
pub struct Trail(Rc<Step>);

struct Step {
    /// `None` at the root.
    last: Option<(Value, Trail)>,
    /// What lies there.
    at: Value,
    /// Whether a way that ends is an error, and not just no way any more.
    strict: bool,
}

impl Trail {
    pub fn root(at: Value) -> Trail {
        Trail(Rc::new(Step { last: None, at, strict: true }))
    }

    /// A trail to follow as far as it leads.
    pub fn lenient(at: Value) -> Trail {
        Trail(Rc::new(Step { last: None, at, strict: false }))
    }

    pub fn with(&self, key: Value, at: Value) -> Trail {
        Trail(Rc::new(Step { last: Some((key, self.clone())), at, strict: self.0.strict }))
    }

    /// The keys from the root.
    pub fn keys(&self) -> Vec<Value> {
        let mut keys = Vec::new();
        let mut step = self;
        while let Some((key, before)) = &step.0.last {
            keys.push(key.clone());
            step = before;
        }
        keys.reverse();
        keys
    }

    /// Whether a value is the one that lies at the end of the way, and not one that was made.
    pub fn leads_to(&self, value: &Value) -> bool {
        self.0.at.is_identical(value)
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if let Some((_, before)) = self.last.take()
            && Rc::strong_count(&before.0) == 1
        {
            drop_gently(before);
        }
    }
}

/// A value on its way through the program, and where it was found if paths are followed.
#[derive(Clone)]
pub struct Point {
    pub value: Value,
    pub trail: Option<Trail>,
}

impl Point {
    pub fn plain(value: Value) -> Point {
        Point { value, trail: None }
    }

    /// A value that was made of this one: it has no place of its own.
    pub fn made(&self, value: Value) -> Point {
        Point { value, trail: self.trail.clone() }
    }

    /// Fails if the value was made, so that there is no way to what lies in it.
    pub fn check_access(&self, key: &Value) -> Outcome<()> {
        match &self.trail {
            Some(trail) if trail.0.strict && !trail.leads_to(&self.value) => raise(format!(
                "Invalid path expression near attempt to access element {} of {}",
                ops::shown(key, 15),
                ops::shown(&self.value, 30)
            )),
            _ => Ok(()),
        }
    }

    pub fn check_iteration(&self) -> Outcome<()> {
        match &self.trail {
            Some(trail) if trail.0.strict && !trail.leads_to(&self.value) => raise(format!(
                "Invalid path expression near attempt to iterate through {}",
                ops::shown(&self.value, 30)
            )),
            _ => Ok(()),
        }
    }

    /// The child under a key.
    pub fn child(&self, key: &Value, value: Value) -> Point {
        let followed = self.trail.as_ref().filter(|trail| trail.leads_to(&self.value));
        let trail = followed.map(|trail| trail.with(key.clone(), value.clone()));
        Point { value, trail }
    }
}
