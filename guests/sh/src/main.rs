//! The shell as a program: `bash`, `sh`.

use wardian_sh::{ShellSession, run_command};

wardian_abi::session!(ShellSession);

fn main() {
    wardian_abi::link();
    // A writer whose reader is gone ends quietly, as any Unix program does.
    let _ = wardian_abi::sigaction(13, wardian_abi::Disposition::Default);
    let code = run_command(wardian_abi::args());
    wardian_abi::exit(code);
}
