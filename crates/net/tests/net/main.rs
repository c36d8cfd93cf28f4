//! The gateway against real servers on this machine. Names are looked up by a resolver that says what a test wants.

#[path = "../../../../fuzz/src/net.rs"]
mod fuzzed;
#[path = "../../../../fuzz/src/random.rs"]
#[allow(dead_code)]
mod random;

mod bypass;
mod cassettes;
mod deserted;
mod floods;
mod hostile;
mod http;
mod kept;
mod opaque;
mod policy;
mod proxies;
mod rates;
mod reader;
mod secrets;
mod servers;
mod tls;
mod told;
mod world;
