//! Names that are in sight, innermost last.

use crate::lang::tree::{Entry, Function};

#[derive(Default)]
pub struct Scope {
    names: Vec<Named>,
    /// How many of them are entries of the environment when the program runs.
    depth: usize,
}

struct Named {
    name: String,
    /// Entries there were before it.
    depth: usize,
    what: What,
}

enum What {
    Variable,
    Constant(Entry),
    Closure,
    Label,
    Function(&'static Function),
}

/// What a call means.
pub enum Callee {
    /// The closure so many entries back.
    Closure(usize),
    /// A function, and how many entries back its surroundings end.
    Function(&'static Function, usize),
}

/// What a variable is.
pub enum Source {
    Entry(usize),
    Constant(Entry),
}

impl Scope {
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// A place to go back to.
    pub fn mark(&self) -> (usize, usize) {
        (self.names.len(), self.depth)
    }

    pub fn back_to(&mut self, (names, depth): (usize, usize)) {
        self.names.truncate(names);
        self.depth = depth;
    }

    fn add(&mut self, name: String, what: What) {
        let is_entry = matches!(what, What::Variable | What::Closure | What::Label);
        self.names.push(Named { name, depth: self.depth, what });
        self.depth += usize::from(is_entry);
    }

    pub fn add_variable(&mut self, name: String) {
        self.add(name, What::Variable);
    }

    pub fn add_constant(&mut self, name: String, value: Entry) {
        self.add(name, What::Constant(value));
    }

    pub fn add_closure(&mut self, name: String) {
        self.add(name, What::Closure);
    }

    pub fn add_label(&mut self, name: String) {
        self.add(name, What::Label);
    }

    pub fn add_function(&mut self, name: String, function: &'static Function) {
        self.add(name, What::Function(function));
    }

    pub fn variable(&self, name: &str) -> Option<Source> {
        self.names.iter().rev().find_map(|named| match named.what {
            What::Variable if named.name == name => Some(Source::Entry(self.depth - named.depth - 1)),
            What::Constant(value) if named.name == name => Some(Source::Constant(value)),
            _ => None,
        })
    }

    pub fn label(&self, name: &str) -> Option<usize> {
        let is_it = |named: &&Named| matches!(named.what, What::Label) && named.name == name;
        self.names.iter().rev().find(is_it).map(|named| self.depth - named.depth - 1)
    }

    pub fn callee(&self, name: &str, arguments: usize) -> Option<Callee> {
        self.names.iter().rev().filter(|named| named.name == name).find_map(|named| match named.what {
            What::Closure if arguments == 0 => Some(Callee::Closure(self.depth - named.depth - 1)),
            What::Function(function) if function.parameters == arguments => {
                Some(Callee::Function(function, self.depth - named.depth))
            }
            _ => None,
        })
    }
}

/// Names that were taken out of sight for a while.
pub struct Hidden(Vec<Named>, usize);

impl Scope {
    /// Takes what was added since a mark out of sight.
    pub fn take_back(&mut self, mark: (usize, usize)) -> Hidden {
        let names = self.names.split_off(mark.0);
        let depth = std::mem::replace(&mut self.depth, mark.1);
        Hidden(names, depth)
    }

    pub fn give_again(&mut self, Hidden(names, depth): Hidden) {
        self.names.extend(names);
        self.depth = depth;
    }
}
