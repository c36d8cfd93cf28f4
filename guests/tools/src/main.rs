//! The Unix tools of the sandbox: one program that does what the name it is called by says.
//!
//! One program, because its compiled code is then loaded and shared once; `/bin` holds a link to it for each line of
//! `NAMES`. Called as `tools NAME ARGUMENT…` it does the same, for those who have no links.

mod cat;
mod chmod;
mod env;
mod find;
mod id;
mod kill;
mod ls;
mod mkfifo;
mod nice;
mod nohup;
mod quick;
mod stat;
mod support;
mod time;
mod timeout;
mod wasi;
mod which;
mod xargs;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// A tool: its arguments, its name first, in; its exit code out.
type Main = fn(support::Arguments) -> i32;

/// Whose work a tool is: uutils' want to be prepared.
enum Tool {
    Ours(Main),
    Theirs(Main),
}

/// Lets a name run its tool, and holds the list against the one that the kernel makes links from.
macro_rules! tools {
    ($($name:literal => $whose:ident($main:path)),* $(,)?) => {
        fn tool_named(name: &str) -> Option<Tool> {
            Some(match name {
                $($name => Tool::$whose($main),)*
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
    "[" => Theirs(uu_test::uumain),
    "arch" => Theirs(uu_arch::uumain),
    "b2sum" => Theirs(uu_b2sum::uumain),
    "base32" => Theirs(uu_base32::uumain),
    "base64" => Theirs(uu_base64::uumain),
    "basename" => Theirs(uu_basename::uumain),
    "basenc" => Theirs(uu_basenc::uumain),
    "cat" => Ours(cat::main),
    "chmod" => Ours(chmod::main),
    "cksum" => Theirs(uu_cksum::uumain),
    "comm" => Theirs(uu_comm::uumain),
    "cp" => Theirs(uu_cp::uumain),
    "csplit" => Theirs(uu_csplit::uumain),
    "cut" => Theirs(uu_cut::uumain),
    "date" => Theirs(uu_date::uumain),
    "dir" => Ours(ls::dir),
    "dircolors" => Theirs(uu_dircolors::uumain),
    "dirname" => Theirs(uu_dirname::uumain),
    "echo" => Theirs(uu_echo::uumain),
    "egrep" => Theirs(uu_grep::uumain),
    "env" => Ours(env::main),
    "expand" => Theirs(uu_expand::uumain),
    "expr" => Theirs(uu_expr::uumain),
    "factor" => Theirs(uu_factor::uumain),
    "false" => Theirs(uu_false::uumain),
    "fgrep" => Theirs(uu_grep::uumain),
    "find" => Ours(find::main),
    "fmt" => Theirs(uu_fmt::uumain),
    "fold" => Theirs(uu_fold::uumain),
    "grep" => Theirs(uu_grep::uumain),
    "groups" => Ours(id::groups),
    "head" => Theirs(uu_head::uumain),
    "id" => Ours(id::main),
    "join" => Theirs(uu_join::uumain),
    "kill" => Ours(kill::main),
    "link" => Theirs(uu_link::uumain),
    "ln" => Theirs(uu_ln::uumain),
    "ls" => Ours(ls::main),
    "md5sum" => Theirs(uu_md5sum::uumain),
    "mkdir" => Theirs(uu_mkdir::uumain),
    "mkfifo" => Ours(mkfifo::main),
    "mktemp" => Theirs(uu_mktemp::uumain),
    "mv" => Theirs(uu_mv::uumain),
    "nice" => Ours(nice::main),
    "nl" => Theirs(uu_nl::uumain),
    "nohup" => Ours(nohup::main),
    "nproc" => Theirs(uu_nproc::uumain),
    "numfmt" => Theirs(uu_numfmt::uumain),
    "od" => Theirs(uu_od::uumain),
    "paste" => Theirs(uu_paste::uumain),
    "pathchk" => Theirs(uu_pathchk::uumain),
    "pr" => Theirs(uu_pr::uumain),
    "printenv" => Theirs(uu_printenv::uumain),
    "printf" => Theirs(uu_printf::uumain),
    "ptx" => Theirs(uu_ptx::uumain),
    "pwd" => Theirs(uu_pwd::uumain),
    "readlink" => Theirs(uu_readlink::uumain),
    "realpath" => Theirs(uu_realpath::uumain),
    "rm" => Theirs(uu_rm::uumain),
    "rmdir" => Theirs(uu_rmdir::uumain),
    "sed" => Theirs(sed::sed::uumain),
    "seq" => Theirs(uu_seq::uumain),
    "sha1sum" => Theirs(uu_sha1sum::uumain),
    "sha224sum" => Theirs(uu_sha224sum::uumain),
    "sha256sum" => Theirs(uu_sha256sum::uumain),
    "sha384sum" => Theirs(uu_sha384sum::uumain),
    "sha512sum" => Theirs(uu_sha512sum::uumain),
    "shred" => Theirs(uu_shred::uumain),
    "shuf" => Theirs(uu_shuf::uumain),
    "sleep" => Theirs(uu_sleep::uumain),
    "sort" => Theirs(uu_sort::uumain),
    "split" => Theirs(uu_split::uumain),
    "stat" => Ours(stat::main),
    "sum" => Theirs(uu_sum::uumain),
    "tail" => Theirs(uu_tail::uumain),
    "tee" => Theirs(uu_tee::uumain),
    "test" => Theirs(uu_test::uumain),
    "time" => Ours(time::main),
    "timeout" => Ours(timeout::main),
    "touch" => Theirs(uu_touch::uumain),
    "tr" => Theirs(uu_tr::uumain),
    "true" => Theirs(uu_true::uumain),
    "truncate" => Theirs(uu_truncate::uumain),
    "tsort" => Theirs(uu_tsort::uumain),
    "tty" => Theirs(uu_tty::uumain),
    "uname" => Theirs(uu_uname::uumain),
    "unexpand" => Theirs(uu_unexpand::uumain),
    "uniq" => Theirs(uu_uniq::uumain),
    "unlink" => Theirs(uu_unlink::uumain),
    "vdir" => Ours(ls::vdir),
    "wasi" => Ours(wasi::main),
    "wc" => Theirs(uu_wc::uumain),
    "which" => Ours(which::main),
    "whoami" => Ours(id::whoami),
    "xargs" => Ours(xargs::main),
    "yes" => Theirs(uu_yes::uumain),
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
    let Some(tool) = tool_named(&name) else {
        eprintln!("{name}: not one of these tools");
        return ExitCode::from(127);
    };
    let code = match tool {
        Tool::Ours(main) => return ExitCode::from(main(arguments.into_iter()) as u8),
        Tool::Theirs(main) => {
            prepare(&name);
            main(arguments.into_iter())
        }
    };
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
