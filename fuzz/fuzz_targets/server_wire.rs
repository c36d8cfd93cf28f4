//! `cargo xtask fuzz server_wire`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wardian_fuzz::server::server_wire(data));
