//! What tools of ours share: options, quoting, output, modes, names, times, and starting programs.

// Only our own programs use it, from the same tree: names that speak for themselves need no more words.
#![allow(missing_docs, clippy::new_without_default)]

pub mod args;
pub mod backup;
pub mod clock;
pub mod copy;
pub mod count;
pub mod digits;
pub mod files;
pub mod glob;
pub mod input;
pub mod mode;
pub mod mounts;
pub mod names;
pub mod options;
pub mod out;
pub mod pad;
pub mod processes;
pub mod program;
pub mod quote;
pub mod records;
pub mod size;
pub mod source;
pub mod table;
pub mod target;
pub mod version;
pub mod when;

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
    let advice = match name {
        // The tools of diffutils say their name twice.
        "cmp" | "diff" | "sdiff" | "diff3" => format!("{name}: Try '{name} --help' for more information."),
        // Those of grep say first how they are called.
        "grep" => {
            format!("Usage: grep [OPTION]... PATTERNS [FILE]...\nTry '{name} --help' for more information.")
        }
        "gzip" => format!("Try `{name} --help' for more information."),
        "xz" | "unxz" | "xzcat" | "lzma" | "unlzma" | "lzcat" => {
            format!("{name}: Try `{name} --help' for more information.")
        }
        "tar" => format!("Try '{name} --help' or '{name} --usage' for more information."),
        _ => format!("Try '{name} --help' for more information."),
    };
    complain(name, format_args!("{message}\n{advice}"));
}

/// The line after several complaints about the way the tool was called.
pub fn hint_at_help(name: &str) {
    let line = format!("Try '{name} --help' for more information.\n");
    let _ = wardian_abi::write_all(2, line.as_bytes());
}
