//! The Unix tools of the sandbox: one program that does what the name it is called by says.
//!
//! One program, because its compiled code is then loaded and shared once; `/bin` holds a link to it for each line of
//! `NAMES`. Called as `tools NAME ARGUMENT…` it does the same, for those who have no links.

mod quick;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// A tool: its arguments, its name first, in; its exit code out.
type Tool = fn(std::vec::IntoIter<OsString>) -> i32;

/// Lets a name run a crate's `uumain`, and holds the list against the one that the kernel makes links from.
macro_rules! tools {
    ($($name:literal => $uumain:path),* $(,)?) => {
        fn find(name: &str) -> Option<Tool> {
            Some(match name {
                $($name => $uumain,)*
                _ => return None,
            })
        }

        const _: () = assert!(
            is_same(concat!($($name, "\n"),*), include_str!("../NAMES")),
            "NAMES does not list these tools in this order"
        );
    };
}

tools! {
    "[" => uu_test::uumain,
    "arch" => uu_arch::uumain,
    "b2sum" => uu_b2sum::uumain,
    "base32" => uu_base32::uumain,
    "base64" => uu_base64::uumain,
    "basename" => uu_basename::uumain,
    "basenc" => uu_basenc::uumain,
    "cat" => uu_cat::uumain,
    "cksum" => uu_cksum::uumain,
    "comm" => uu_comm::uumain,
    "cp" => uu_cp::uumain,
    "csplit" => uu_csplit::uumain,
    "cut" => uu_cut::uumain,
    "date" => uu_date::uumain,
    "dir" => uu_dir::uumain,
    "dircolors" => uu_dircolors::uumain,
    "dirname" => uu_dirname::uumain,
    "echo" => uu_echo::uumain,
    "egrep" => uu_grep::uumain,
    "expand" => uu_expand::uumain,
    "expr" => uu_expr::uumain,
    "factor" => uu_factor::uumain,
    "false" => uu_false::uumain,
    "fgrep" => uu_grep::uumain,
    "fmt" => uu_fmt::uumain,
    "fold" => uu_fold::uumain,
    "grep" => uu_grep::uumain,
    "head" => uu_head::uumain,
    "join" => uu_join::uumain,
    "link" => uu_link::uumain,
    "ln" => uu_ln::uumain,
    "ls" => uu_ls::uumain,
    "md5sum" => uu_md5sum::uumain,
    "mkdir" => uu_mkdir::uumain,
    "mktemp" => uu_mktemp::uumain,
    "mv" => uu_mv::uumain,
    "nl" => uu_nl::uumain,
    "nproc" => uu_nproc::uumain,
    "numfmt" => uu_numfmt::uumain,
    "od" => uu_od::uumain,
    "paste" => uu_paste::uumain,
    "pathchk" => uu_pathchk::uumain,
    "pr" => uu_pr::uumain,
    "printenv" => uu_printenv::uumain,
    "printf" => uu_printf::uumain,
    "ptx" => uu_ptx::uumain,
    "pwd" => uu_pwd::uumain,
    "readlink" => uu_readlink::uumain,
    "realpath" => uu_realpath::uumain,
    "rm" => uu_rm::uumain,
    "rmdir" => uu_rmdir::uumain,
    "sed" => sed::sed::uumain,
    "seq" => uu_seq::uumain,
    "sha1sum" => uu_sha1sum::uumain,
    "sha224sum" => uu_sha224sum::uumain,
    "sha256sum" => uu_sha256sum::uumain,
    "sha384sum" => uu_sha384sum::uumain,
    "sha512sum" => uu_sha512sum::uumain,
    "shred" => uu_shred::uumain,
    "shuf" => uu_shuf::uumain,
    "sleep" => uu_sleep::uumain,
    "sort" => uu_sort::uumain,
    "split" => uu_split::uumain,
    "sum" => uu_sum::uumain,
    "tail" => uu_tail::uumain,
    "tee" => uu_tee::uumain,
    "test" => uu_test::uumain,
    "touch" => uu_touch::uumain,
    "tr" => uu_tr::uumain,
    "true" => uu_true::uumain,
    "truncate" => uu_truncate::uumain,
    "tsort" => uu_tsort::uumain,
    "tty" => uu_tty::uumain,
    "uname" => uu_uname::uumain,
    "unexpand" => uu_unexpand::uumain,
    "uniq" => uu_uniq::uumain,
    "unlink" => uu_unlink::uumain,
    "vdir" => uu_vdir::uumain,
    "wc" => uu_wc::uumain,
    "yes" => uu_yes::uumain,
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
    if name == "tools" && arguments.len() > 1 {
        arguments.remove(0);
        name = name_of(&arguments);
        uucore::set_utility_is_second_arg();
    }
    if let Some(code) = quick::answer(&name, &arguments[1..]) {
        return ExitCode::from(code);
    }
    let Some(tool) = find(&name) else {
        eprintln!("{name}: not one of these tools");
        return ExitCode::from(127);
    };
    prepare(&name);
    let code = tool(arguments.into_iter());
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

fn name_of(arguments: &[OsString]) -> String {
    let path = arguments.first().map(|path| path.to_string_lossy()).unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// What uutils' own `main`s do before a tool runs.
fn prepare(name: &str) {
    // Neither can fail: the messages are part of this program (see standins/fluent).
    let _ = uucore::locale::setup_localization(name);
    if name.ends_with("grep") {
        let _ = uucore_of_grep::locale::setup_localization(name);
    }
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
