//! What uutils' tools want around them, which are prepared by their own `main`s elsewhere.

use super::Main;
use std::io::Write;
use std::process::ExitCode;
use toolkit::Arguments;

/// Runs one of uutils' tools.
pub fn run(name: &str, main: Main, arguments: Arguments) -> ExitCode {
    prepare(name);
    let code = main(arguments);
    match std::io::stdout().flush() {
        // A tool that failed has said why.
        Err(error) if code == 0 => {
            eprintln!("{name}: write error: {}", without_number(&error.to_string()));
            ExitCode::FAILURE
        }
        _ => ExitCode::from(code as u8),
    }
}

/// An error as C prints it: Rust adds its number.
fn without_number(error: &str) -> &str {
    error.split(" (os error").next().unwrap_or_default()
}

fn prepare(name: &str) {
    // It cannot fail: the messages are part of this program (see standins/fluent).
    let _ = uucore::locale::setup_localization(name);
    explain_write_errors(name.to_owned());
}

/// `println!` panics where GNU's tools say "write error"; a full disk is no bug of the tool's.
fn explain_write_errors(name: String) {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload().downcast_ref::<String>().map(String::as_str).unwrap_or_default();
        if let Some(error) = message.strip_prefix("failed printing to stdout: ") {
            eprintln!("{name}: write error: {}", without_number(error));
            std::process::exit(1);
        }
        default(panic);
    }));
}
