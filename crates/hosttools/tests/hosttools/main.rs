//! The door, with real programs, real files and real processes.

mod confinement;
mod git_sync;
mod lanes;
mod processes;
mod rig;
mod settings;
