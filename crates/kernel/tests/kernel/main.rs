//! The kernel with real guests: programs from `guests/testing`, run on real worker threads.

mod compile;
mod counts;
mod fairness;
mod footprint;
mod hostile;
mod interface;
mod kill;
mod leaks;
mod lengths;
mod memory;
mod modules;
mod net;
mod processes;
mod rests;
mod room;
mod signals;
mod spares;
mod stock;
mod support;
mod templates;
mod usertests;
