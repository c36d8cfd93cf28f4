//! The network tools of the sandbox: one program that does what the name it is called by says.
//!
//! `/bin` holds a link for each line of `NAMES`; called as `net NAME ARGUMENT…` it does the same, for those who have no
//! links. All of it goes through the sockets of `wardian_abi::net`, and TLS through the sandbox's gateway.

mod curl;
mod getent;
mod lookup;
mod nc;
mod ping;
mod services;
mod sockets;
mod wget;

use wardian_http as http;

use std::ffi::OsString;
use std::process::ExitCode;

/// A program: its arguments, its name first, in; its exit code out.
type Main = fn(toolkit::Arguments) -> i32;

/// Lets a name run its program, and holds the list against the one that the kernel makes links from.
macro_rules! programs {
    ($($name:literal => $main:path),* $(,)?) => {
        fn program_named(name: &str) -> Option<Main> {
            Some(match name {
                $($name => $main,)*
                _ => return None,
            })
        }

        const _: () = assert!(
            is_same(concat!($($name, "\n"),*), include_str!("../NAMES")),
            "NAMES does not list these programs in this order"
        );
    };
}

programs! {
    "curl" => curl::main,
    "dig" => lookup::dig,
    "getent" => getent::main,
    "host" => lookup::host,
    "nc" => nc::main,
    "netcat" => nc::main,
    "netstat" => sockets::netstat,
    "nslookup" => lookup::nslookup,
    "ping" => ping::main,
    "ss" => sockets::ss,
    "wget" => wget::main,
}

const fn is_same(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let mut at = 0;
    while at < left.len() && at < right.len() && left[at] == right[at] {
        at += 1;
    }
    at == left.len() && at == right.len()
}

fn main() -> ExitCode {
    // Keeps the crate that takes absolute and relative paths to the kernel.
    wardian_abi::link();
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let mut name = name_of(&arguments);
    if name == "net" && arguments.len() > 1 {
        arguments.remove(0);
        name = name_of(&arguments);
    }
    // One called by another name (`exec -a`, a symbolic link) goes by that of its file.
    if program_named(&name).is_none() {
        name = name_of_file().unwrap_or(name);
    }
    match program_named(&name) {
        Some(main) => ExitCode::from(main(arguments.into_iter()) as u8),
        None => {
            toolkit::complain(&name, "not one of these programs");
            ExitCode::from(127)
        }
    }
}

fn name_of(arguments: &[OsString]) -> String {
    let path = arguments.first().map(|path| path.to_string_lossy()).unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

fn name_of_file() -> Option<String> {
    let file = std::fs::read_link("/proc/self/exe").ok()?;
    Some(file.file_name()?.to_str()?.to_owned())
}
