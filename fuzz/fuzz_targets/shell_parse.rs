//! `cargo xtask fuzz shell_parse`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wardian_fuzz::shell_parse(data));
