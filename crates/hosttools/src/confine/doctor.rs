//! What holds on this machine: each tried, not guessed.

use std::fmt;

/// One layer and how it is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is held.
    pub name: &'static str,
    /// Whether it is.
    pub state: State,
    /// More about it.
    pub detail: String,
}

/// How a layer is on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// In force for every program.
    On,
    /// Available, but not in force.
    Off,
    /// This machine does not have it.
    Unavailable,
}

impl fmt::Display for State {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            State::On => "on",
            State::Off => "off",
            State::Unavailable => "unavailable",
        })
    }
}
