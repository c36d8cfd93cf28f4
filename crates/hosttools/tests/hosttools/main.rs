//! The door, with real programs, real files and real processes.

mod confinement;
mod processes;
mod rig;
mod settings;
