//! `cargo xtask fuzz shell_cases`: what libFuzzer mutates is a choice of cases and of changes to them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let seed = data.iter().fold(1, |seed: u64, byte| seed.wrapping_mul(257).wrapping_add(u64::from(*byte)));
    wardian_fuzz::shell_parse(&wardian_fuzz::shell::mutated_case(&mut wardian_fuzz::random::Random::new(
        seed,
    )));
});
