//! Short ways to run a script and look at what came of it.

use wardian::{RunResult, Sandbox};

/// A sandbox with the default options.
pub async fn sandbox() -> Sandbox {
    Sandbox::builder().build().await.expect("a sandbox")
}

/// Runs a script that must not be lost.
pub async fn run(sandbox: &Sandbox, script: &str) -> RunResult {
    sandbox.run(script).await.expect("a result")
}

/// A script's standard output; it must end well and complain about nothing.
pub async fn output(sandbox: &Sandbox, script: &str) -> String {
    let result = run(sandbox, script).await;
    let stderr = String::from_utf8_lossy(&result.stderr).into_owned();
    assert_eq!((result.exit_code, stderr.as_str()), (0, ""), "{script}");
    text(result.stdout)
}

/// Bytes as text.
pub fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text")
}

/// The same numbers for the same seed (splitmix64).
pub fn random(seed: usize) -> usize {
    let mixed = (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ mixed >> 31) as usize
}
