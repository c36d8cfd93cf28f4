//! The library as its users see it: real scripts in real sandboxes.

mod cases;
mod forks;
mod jobs;
mod kills;
mod limits;
mod mounts;
mod scripts;
mod session;
mod support;
