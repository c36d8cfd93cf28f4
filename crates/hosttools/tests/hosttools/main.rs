//! The gateway, with real programs, real files and real processes.

mod adversarial;
mod confinement;
mod door;
mod git_programs;
mod git_sync;
mod lanes;
mod processes;
mod programs;
mod races;
mod rig;
mod settings;
mod yard;
