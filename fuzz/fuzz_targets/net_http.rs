//! `cargo xtask fuzz net_http`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wardian_fuzz::net::net_http(data));
