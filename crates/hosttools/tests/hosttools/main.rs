//! The door, with real programs, real files and real processes.

mod processes;
mod rig;
mod settings;
