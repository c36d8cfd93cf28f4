//! The gateway against real servers on this machine. Names are looked up by a resolver that says what a test wants.

mod bypass;
mod cassettes;
mod hostile;
mod http;
mod opaque;
mod policy;
mod secrets;
mod servers;
mod tls;
mod world;
