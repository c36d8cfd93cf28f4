//! `cargo xtask fuzz vfs_tar`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wardian_fuzz::vfs_tar(data));
