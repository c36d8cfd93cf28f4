//! `cargo xtask fuzz vfs_operations`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wardian_fuzz::vfs_operations(data));
