//! The library as its users see it: real scripts in real sandboxes.

mod adversarial;
mod api;
mod archives;
mod audit;
mod capabilities;
mod cases;
mod descriptors;
mod endings;
mod engines;
mod forks;
mod idle;
mod inputs;
mod interpreter;
mod jobs;
mod kills;
mod limits;
mod mounts;
mod network;
mod order;
mod python;
mod python_packages;
mod scripts;
mod session;
mod soak;
mod support;
mod tools;
