//! The list of functions that guests can import. It is built where the calls are defined, so it cannot miss one.

use wasmtime::Linker;

use crate::instance::Ctx;

/// A function that guests can import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Its import module.
    pub module: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// The types of its parameters: `i` for 32 bits, `l` for 64.
    pub params: String,
    /// The names of its parameters.
    pub names: Vec<&'static str>,
    /// Whether it returns a number; all but `proc_exit` do.
    pub answers: bool,
}

/// A linker that records what it defines.
pub(crate) struct Imports<'l> {
    pub(crate) linker: &'l mut Linker<Ctx>,
    pub(crate) list: Vec<Import>,
}

impl<'l> Imports<'l> {
    pub(crate) fn new(linker: &'l mut Linker<Ctx>) -> Imports<'l> {
        Imports { linker, list: Vec::new() }
    }

    pub(crate) fn note(&mut self, module: &'static str, name: &'static str, params: &[(&'static str, char)]) {
        let (names, params) = params.iter().copied().unzip();
        self.list.push(Import { module, name, params, names, answers: true });
    }
}

/// A type of a parameter.
pub(crate) trait Word {
    const LETTER: char;
}

impl Word for u32 {
    const LETTER: char = 'i';
}

impl Word for i32 {
    const LETTER: char = 'i';
}

impl Word for u64 {
    const LETTER: char = 'l';
}

impl Word for i64 {
    const LETTER: char = 'l';
}
