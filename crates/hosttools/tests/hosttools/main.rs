//! The door, with real programs, real files and real processes.

mod settings;
