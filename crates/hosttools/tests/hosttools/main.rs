//! The door, with real programs, real files and real processes.

mod confinement;
mod lanes;
mod processes;
mod rig;
mod settings;
