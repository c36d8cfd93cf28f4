//! What remains to be done with a value (frames), and what else could have been (forks).

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::builtins::Native;
use crate::lang::{Bind, Entry, Key, Operator, Part, Pattern};
use crate::object::Object;
use crate::value::{Str, Value, drop_gently};

use super::env::Env;
use super::trail::{Point, Trail};

/// The rest of the program: a list of frames, innermost first.
#[derive(Clone, Default)]
pub struct Rest(Option<Rc<Node>>);

struct Node {
    frame: Frame,
    rest: Rest,
}

impl Rest {
    pub fn then(self, frame: Frame) -> Rest {
        Rest(Some(Rc::new(Node { frame, rest: self })))
    }

    /// The first frame and those after it; `None` at the end of the program.
    pub fn split(self) -> Option<(Frame, Rest)> {
        let mut node = self.0?;
        Some(match Rc::get_mut(&mut node) {
            Some(own) => {
                let frame = std::mem::replace(&mut own.frame, Frame::Truth);
                (frame, std::mem::take(&mut own.rest))
            }
            None => (node.frame.clone(), node.rest.clone()),
        })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(rest) = self.rest.0.take()
            && Rc::strong_count(&rest) == 1
        {
            drop_gently(rest);
        }
    }
}

/// An expression with its surroundings.
#[derive(Clone)]
pub struct Code {
    pub entry: Entry,
    pub env: Env,
}

/// What is to be done with the value that comes next.
#[derive(Clone)]
pub enum Frame {
    /// It is the input of an expression.
    Into(Code),
    /// It is the key under which to look into what a term gives.
    KeyFor(Code, Point),
    /// It is the start of a slice, whose end is to come.
    SliceFrom(Rc<SliceTo>),
    SliceTo(Rc<SliceTo>, Value),
    /// What lies in it under a key.
    Get(Value),
    /// All that lies in it, one after the other.
    Each,
    /// It is one more item of an array.
    Collect(Rc<RefCell<Vec<Value>>>),
    /// It is the key or the value of an entry of an object.
    ObjectKey(Rc<ObjectSoFar>),
    ObjectValue(Rc<ObjectSoFar>, Str),
    Negate,
    Right(Operator, Code, Point),
    Left(Operator, Value, Option<Trail>),
    /// It decides whether another expression is asked: at `true` for `and`, at `false` for `or`.
    Both(bool, Code, Point),
    Truth,
    /// It was made of a value that was found elsewhere, and goes by that one's way.
    Place(Option<Trail>),
    /// It counts for `//` if it is true.
    Found(Rc<Cell<bool>>),
    Branch(Entry, Code, Point),
    /// It leaves the body of a `try`.
    Leave(usize),
    Bind(Rc<Binding>),
    /// It is the key of the next entry of a pattern.
    PatternKey(Rc<Matching>),
    ReduceStart(&'static Bind, Code, Point, Env),
    ReduceStore(Rc<RefCell<Point>>),
    ForeachStart(&'static Bind, Code, Option<Entry>, Point, Env),
    ForeachStep(Rc<RefCell<Point>>, Option<Code>),
    UpdateAt(Rc<Updating>),
    UpdateWith(Rc<Updating>, Rc<Vec<Value>>, usize),
    Part(Rc<TextSoFar>),
    Argument(Rc<Arguments>),
    PathEnd(Option<Trail>),
    GetPath(Point),
    Select(Point),
    /// Counts up to a number, then cuts off what is left above a height.
    Limit(Rc<Cell<f64>>, usize),
    RangeFrom(Rc<RangeSoFar>),
}

#[derive(Clone)]
pub struct SliceTo {
    pub term: Entry,
    pub to: Option<Entry>,
    pub env: Env,
    pub input: Point,
}

#[derive(Clone)]
pub struct ObjectSoFar {
    pub entries: &'static [(Entry, Entry)],
    pub object: Object,
    pub env: Env,
    pub input: Point,
}

/// What follows once variables are bound.
#[derive(Clone)]
pub enum Goal {
    Body(Entry),
    Reduce(Entry, Rc<RefCell<Point>>),
    Foreach(Entry, Option<Entry>, Rc<RefCell<Point>>),
}

pub struct Binding {
    pub bind: &'static Bind,
    pub goal: Goal,
    pub env: Env,
    pub input: Point,
}

/// A pattern being matched.
#[derive(Clone)]
pub struct Matching {
    pub binding: Rc<Binding>,
    /// What is still to be matched, the next last.
    pub pending: Vec<Pending>,
    pub env: Env,
}

/// A part of a pattern and the value it is for.
#[derive(Clone)]
pub enum Pending {
    Pattern(&'static Pattern, Value),
    /// The entries of an object pattern that are left.
    Entries(&'static [(Key, Option<Pattern>)], Value),
}

pub struct Updating {
    pub root: RefCell<Value>,
    pub deleted: RefCell<Vec<Value>>,
    pub update: Code,
    pub trail: Option<Trail>,
}

#[derive(Clone)]
pub struct TextSoFar {
    pub format: Str,
    pub parts: &'static [Part],
    /// The pieces after the ones still to come, last first.
    pub done: Vec<Str>,
    pub env: Env,
    pub input: Point,
}

#[derive(Clone)]
pub struct Arguments {
    pub native: Native,
    pub entries: &'static [Entry],
    /// Evaluated from the last to the first; so is this.
    pub values: Vec<Value>,
    pub env: Env,
    pub input: Point,
}

#[derive(Clone)]
pub struct RangeSoFar {
    pub entries: &'static [Entry],
    pub values: Vec<Value>,
    pub env: Env,
    pub input: Point,
}

/// Another way to go on, or a mark on the way back.
pub enum Fork {
    /// Another expression on the same input.
    Eval(Code, Point, Rest),
    /// The items of a container from a place on.
    Each(Point, usize, Rest),
    Range {
        next: f64,
        end: f64,
        step: f64,
        input: Point,
        rest: Rest,
    },
    Recurse(Vec<(Point, usize)>, Rest),
    Inputs(Point, Rest),
    /// The documents from one on.
    Documents(usize, Rest),
    CollectEnd(Rc<RefCell<Vec<Value>>>, Option<Trail>, Rest),
    ReduceEnd(Rc<RefCell<Point>>, Rest),
    /// The right side of `//`, if the left gave nothing.
    Otherwise {
        found: Rc<Cell<bool>>,
        code: Code,
        input: Point,
        rest: Rest,
    },
    Try {
        number: usize,
        handler: Option<Entry>,
        env: Env,
        input: Point,
        rest: Rest,
    },
    /// An error from here on is not the business of the `try` of that number.
    Left(usize),
    Label(usize),
    /// The next of several patterns, if this one fails.
    Alternative {
        binding: Rc<Binding>,
        next: usize,
        value: Value,
        rest: Rest,
    },
    /// The update gave nothing: the path is to be deleted.
    UpdateMissing(Rc<Updating>, Rc<Vec<Value>>),
    UpdateEnd(Rc<Updating>, Rest),
}
