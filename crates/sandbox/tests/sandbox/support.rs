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
