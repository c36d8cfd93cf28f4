//! Arithmetic: compiled once where the text is known, kept by text where it is not.

mod eval;
mod parse;

use crate::ast::{Piece, Word};
use std::rc::Rc;

pub use eval::ArithError;
pub use parse::{is_name, parse_slotted};

/// An arithmetic expression as it stands in a script.
#[derive(Debug, Clone)]
pub struct Arith {
    /// Its text, with expansions in it.
    pub word: Word,
    /// The expansions' pieces, in order, that `expr` refers to as slots.
    pub slots: Vec<Piece>,
    /// The compiled form; none when expansions make up part of a token, or the text is wrong.
    pub expr: Option<Rc<Expr>>,
}

/// Marks a slot in the text given to the expression parser: this byte, then the slot's number plus one.
pub const SLOT: u8 = 1;

impl Arith {
    pub fn new(word: Word) -> Arith {
        let (mut text, mut slots) = (Vec::new(), Vec::new());
        let compiled =
            flatten(&word.pieces, &mut text, &mut slots).then(|| parse_slotted(&text).ok()).flatten();
        Arith { word, slots, expr: compiled.map(Rc::new) }
    }
}

/// The text of pieces with a slot for each expansion; false when it cannot be said that way.
fn flatten(pieces: &[Piece], text: &mut Vec<u8>, slots: &mut Vec<Piece>) -> bool {
    pieces.iter().all(|piece| match piece {
        Piece::Text(part) | Piece::Quoted(part) => {
            text.extend_from_slice(part);
            !part.contains(&SLOT)
        }
        Piece::Double(inner) => flatten(inner, text, slots),
        Piece::Tilde(user) => {
            text.push(b'~');
            text.extend_from_slice(user);
            true
        }
        Piece::Process { .. } => false,
        expansion => {
            text.extend_from_slice(&[SLOT, slots.len() as u8 + 1]);
            slots.push(expansion.clone());
            slots.len() < 250
        }
    })
}

/// An expression.
#[derive(Debug, Clone)]
pub enum Expr {
    Number(i64),
    /// The value of an expansion, by its number.
    Slot(usize),
    Variable(Rc<[u8]>),
    /// `name[…]`: the subscript as arithmetic, if it is any, and as text for an associative array.
    Element {
        name: Rc<[u8]>,
        subscript: Option<Box<Expr>>,
        text: Rc<[u8]>,
    },
    Unary(u8, Box<Expr>),
    Binary(Op, Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Ternary(Box<Expr>, Box<Expr>, Box<Expr>),
    Comma(Box<Expr>, Box<Expr>),
    /// A divisor or exponent: not 0, or not negative. The complaint quotes the rest of the text.
    Checked {
        value: Box<Expr>,
        message: &'static str,
        rest: Rc<[u8]>,
    },
    /// `=` with no operator, or `+=` and the like.
    Assign(Option<Op>, Box<Expr>, Box<Expr>),
    /// `++x`, `--x`, `x++`, `x--`.
    Step {
        target: Box<Expr>,
        by: i64,
        prefix: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Mul,
    Div,
    Rem,
    Add,
    Sub,
    Shl,
    Shr,
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
    BitAnd,
    BitXor,
    BitOr,
    Pow,
}
