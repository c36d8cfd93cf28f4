//! The `wardian` binary.
fn main() {}
