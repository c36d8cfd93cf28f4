//! What the front ends of ours share: options, quoting, output, modes, names, times, and starting programs.

pub mod args;
pub mod clock;
pub mod files;
pub mod glob;
pub mod mode;
pub mod names;
pub mod out;
pub mod program;
pub mod quote;
pub mod size;

/// Arguments of a tool, its name first.
pub type Arguments = std::vec::IntoIter<std::ffi::OsString>;

/// Says `NAME: MESSAGE` on standard error, in one write.
pub fn complain(name: &str, message: impl std::fmt::Display) {
    let line = format!("{name}: {message}\n");
    // There is nowhere left to say that this failed.
    let _ = wardian_abi::write_all(2, line.as_bytes());
}

/// Says what is wrong with the way the tool was called, as GNU's do.
pub fn complain_of_usage(name: &str, message: impl std::fmt::Display) {
    complain(name, format_args!("{message}\nTry '{name} --help' for more information."));
}
