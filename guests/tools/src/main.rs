//! The Unix tools of the sandbox: one program that does what the name it is called by says.
//!
//! One program, because its compiled code is then loaded and shared once; `/bin` holds a link to it for each line of
//! `NAMES`. Called as `tools NAME ARGUMENT…` it does the same, for those who have no links.

mod awk;
mod bc;
mod cal;
mod cat;
mod chmod;
mod chown;
mod cmp;
mod column;
mod comm;
mod cp;
mod csplit;
mod date;
mod dc;
mod dd;
mod desk;
mod df;
mod diff;
mod dos2unix;
mod du;
mod ed;
mod env;
mod envsubst;
mod expr;
mod extended;
mod factor;
mod fd;
mod file;
mod find;
mod fmt;
mod getconf;
mod getopt;
mod grep;
mod head;
mod hexdump;
mod iconv;
mod id;
mod install;
mod kill;
mod killall;
mod lines;
mod ln;
mod locale;
mod ls;
mod lscpu;
mod mkdir;
mod mkfifo;
mod mktemp;
mod mv;
mod nano;
mod nice;
mod nl;
mod nohup;
mod numfmt;
mod openssl;
mod pager;
mod patch;
mod pathchk;
mod pgrep;
mod pr;
mod ps;
mod ptx;
mod pv;
mod quick;
mod realpath;
mod rename;
mod rev;
mod rg;
mod rm;
mod rmdir;
mod script;
mod sed;
mod seq;
mod session;
mod shred;
mod sleep;
mod sort;
mod split;
mod sponge;
mod stat;
mod strings;
mod stty;
mod sync;
mod tac;
mod tail;
mod terminal;
mod test;
mod time;
mod timeout;
mod touch;
mod tree;
mod ts;
mod tty;
mod uname;
mod uptime;
mod uuidgen;
#[cfg(target_os = "wasi")]
mod uutils;
mod vi;
mod wasi;
mod watch;
mod wc;
mod which;
mod who;
mod xargs;
mod xxd;

use std::ffi::OsString;
use std::process::ExitCode;

/// A tool: its arguments, its name first, in; its exit code out.
type Main = fn(toolkit::Arguments) -> i32;

/// Whose work a tool is: uutils' want to be prepared, and are not there in a native build.
enum Tool {
    Ours(Main),
    #[cfg(target_os = "wasi")]
    Theirs(Main),
    #[cfg(not(target_os = "wasi"))]
    Theirs,
}

macro_rules! tool {
    (Ours($main:path)) => {
        Tool::Ours($main)
    };
    (Theirs($main:path)) => {{
        #[cfg(target_os = "wasi")]
        let tool = Tool::Theirs($main);
        #[cfg(not(target_os = "wasi"))]
        let tool = Tool::Theirs;
        tool
    }};
}

/// Lets a name run its tool, and holds the list against the one that the kernel makes links from.
macro_rules! tools {
    ($($name:literal => $whose:ident($main:path)),* $(,)?) => {
        fn tool_named(name: &str) -> Option<Tool> {
            Some(match name {
                $($name => tool!($whose($main)),)*
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
    "[" => Ours(test::bracket),
    "arch" => Ours(uname::arch),
    "awk" => Ours(awk::main),
    "b2sum" => Theirs(uu_b2sum::uumain),
    "base32" => Ours(columns::base::base32),
    "base64" => Ours(columns::base::base64),
    "basename" => Theirs(uu_basename::uumain),
    "basenc" => Ours(columns::base::basenc),
    "bc" => Ours(bc::main),
    "cal" => Ours(cal::main),
    "cat" => Ours(cat::main),
    "chgrp" => Ours(chown::chgrp),
    "chmod" => Ours(chmod::main),
    "chown" => Ours(chown::main),
    "cksum" => Theirs(uu_cksum::uumain),
    "clear" => Ours(terminal::clear),
    "cmp" => Ours(cmp::main),
    "column" => Ours(column::main),
    "comm" => Ours(comm::main),
    "cp" => Ours(cp::main),
    "csplit" => Ours(csplit::main),
    "cut" => Ours(columns::cut::main),
    "date" => Ours(date::main),
    "dc" => Ours(dc::main),
    "dd" => Ours(dd::main),
    "df" => Ours(df::main),
    "diff" => Ours(diff::main),
    "diff3" => Ours(diff::diff3::main),
    "dir" => Ours(ls::dir),
    "dircolors" => Theirs(uu_dircolors::uumain),
    "dirname" => Theirs(uu_dirname::uumain),
    "dos2unix" => Ours(dos2unix::main),
    "du" => Ours(du::main),
    "echo" => Theirs(uu_echo::uumain),
    "ed" => Ours(ed::main),
    "editor" => Ours(nano::main),
    "egrep" => Ours(grep::egrep),
    "env" => Ours(env::main),
    "envsubst" => Ours(envsubst::main),
    "ex" => Ours(ed::ex),
    "expand" => Ours(columns::tabs::expand::main),
    "expr" => Ours(expr::main),
    "factor" => Ours(factor::main),
    "false" => Theirs(uu_false::uumain),
    "fd" => Ours(fd::main),
    "fgrep" => Ours(grep::fgrep),
    "file" => Ours(file::main),
    "find" => Ours(find::main),
    "fmt" => Ours(fmt::main),
    "fold" => Ours(columns::fold::main),
    "free" => Ours(uptime::free),
    "gawk" => Ours(awk::main),
    "getconf" => Ours(getconf::main),
    "getopt" => Ours(getopt::main),
    "grep" => Ours(grep::main),
    "groups" => Ours(id::groups),
    "hd" => Ours(hexdump::hd),
    "head" => Ours(head::main),
    "hexdump" => Ours(hexdump::main),
    "hostname" => Ours(uname::hostname),
    "iconv" => Ours(iconv::main),
    "id" => Ours(id::main),
    "install" => Ours(install::main),
    "ionice" => Ours(session::ionice),
    "join" => Theirs(uu_join::uumain),
    "kill" => Ours(kill::main),
    "killall" => Ours(killall::main),
    "less" => Ours(pager::less),
    "link" => Theirs(uu_link::uumain),
    "ln" => Ours(ln::main),
    "locale" => Ours(locale::main),
    "logname" => Ours(who::logname),
    "ls" => Ours(ls::main),
    "lscpu" => Ours(lscpu::main),
    "md5sum" => Theirs(uu_md5sum::uumain),
    "mkdir" => Ours(mkdir::main),
    "mkfifo" => Ours(mkfifo::main),
    "mktemp" => Ours(mktemp::main),
    "more" => Ours(pager::more),
    "mv" => Ours(mv::main),
    "nano" => Ours(nano::main),
    "nice" => Ours(nice::main),
    "nl" => Ours(nl::main),
    "nohup" => Ours(nohup::main),
    "nproc" => Theirs(uu_nproc::uumain),
    "numfmt" => Ours(numfmt::main),
    "od" => Theirs(uu_od::uumain),
    "openssl" => Ours(openssl::main),
    "paste" => Ours(columns::paste::main),
    "patch" => Ours(patch::main),
    "pathchk" => Ours(pathchk::main),
    "pgrep" => Ours(pgrep::main),
    "pkill" => Ours(pgrep::pkill),
    "pr" => Ours(pr::main),
    "printenv" => Theirs(uu_printenv::uumain),
    "printf" => Theirs(uu_printf::uumain),
    "ps" => Ours(ps::main),
    "ptx" => Ours(ptx::main),
    "pv" => Ours(pv::main),
    "pwd" => Theirs(uu_pwd::uumain),
    "readlink" => Ours(realpath::readlink),
    "realpath" => Ours(realpath::main),
    "rename" => Ours(rename::main),
    "renice" => Ours(session::renice),
    "rev" => Ours(rev::main),
    "rg" => Ours(rg::main),
    "rm" => Ours(rm::main),
    "rmdir" => Ours(rmdir::main),
    "script" => Ours(script::main),
    "sdiff" => Ours(diff::sdiff::main),
    "sed" => Ours(sed::main),
    "seq" => Ours(seq::main),
    "setsid" => Ours(session::setsid),
    "sha1sum" => Theirs(uu_sha1sum::uumain),
    "sha224sum" => Theirs(uu_sha224sum::uumain),
    "sha256sum" => Theirs(uu_sha256sum::uumain),
    "sha384sum" => Theirs(uu_sha384sum::uumain),
    "sha512sum" => Theirs(uu_sha512sum::uumain),
    "shred" => Ours(shred::main),
    "shuf" => Theirs(uu_shuf::uumain),
    "sleep" => Ours(sleep::main),
    "sort" => Ours(sort::main),
    "split" => Ours(split::main),
    "sponge" => Ours(sponge::main),
    "stat" => Ours(stat::main),
    "stdbuf" => Ours(session::stdbuf),
    "strings" => Ours(strings::main),
    "stty" => Ours(stty::main),
    "sum" => Theirs(uu_sum::uumain),
    "sync" => Ours(sync::main),
    "tac" => Ours(tac::main),
    "tail" => Ours(tail::main),
    "tee" => Theirs(uu_tee::uumain),
    "test" => Ours(test::main),
    "time" => Ours(time::main),
    "timeout" => Ours(timeout::main),
    "touch" => Ours(touch::main),
    "tput" => Ours(terminal::tput),
    "tr" => Ours(columns::tr::main),
    "tree" => Ours(tree::main),
    "true" => Theirs(uu_true::uumain),
    "truncate" => Theirs(uu_truncate::uumain),
    "ts" => Ours(ts::main),
    "tsort" => Theirs(uu_tsort::uumain),
    "tty" => Theirs(uu_tty::uumain),
    "uname" => Ours(uname::main),
    "unexpand" => Ours(columns::tabs::unexpand::main),
    "uniq" => Ours(columns::uniq::main),
    "unix2dos" => Ours(dos2unix::unix2dos),
    "unlink" => Theirs(uu_unlink::uumain),
    "uptime" => Ours(uptime::main),
    "users" => Ours(who::users),
    "uuidgen" => Ours(uuidgen::main),
    "vdir" => Ours(ls::vdir),
    "wasi" => Ours(wasi::main),
    "vi" => Ours(vi::main),
    "watch" => Ours(watch::main),
    "wc" => Ours(wc::main),
    "which" => Ours(which::main),
    "who" => Ours(who::main),
    "whoami" => Ours(id::whoami),
    "xargs" => Ours(xargs::main),
    "xxd" => Ours(xxd::main),
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

#[cfg(not(target_os = "wasi"))]
const SIGPIPE: i32 = 13;

fn main() -> ExitCode {
    // Keeps the crate that takes absolute and relative paths to the kernel.
    wardian_abi::link();
    // Rust's runtime ignores it on Linux, and knows nothing of it in a sandbox.
    #[cfg(not(target_os = "wasi"))]
    let _ = wardian_abi::sigaction(SIGPIPE, wardian_abi::Disposition::Default);
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let mut name = name_of(&arguments);
    if name == "tools" && arguments.len() > 1 {
        arguments.remove(0);
        name = name_of(&arguments);
        #[cfg(target_os = "wasi")]
        uucore::set_utility_is_second_arg();
    }
    // One called by another name (`exec -a`, a symbolic link) goes by that of its file.
    if tool_named(&name).is_none() {
        name = name_of_file().unwrap_or(name);
    }
    if let Some(code) = quick::answer(&name, arguments.get(1..).unwrap_or_default()) {
        return ExitCode::from(code);
    }
    match tool_named(&name) {
        Some(Tool::Ours(main)) => ExitCode::from(main(arguments.into_iter()) as u8),
        #[cfg(target_os = "wasi")]
        Some(Tool::Theirs(main)) => match desk::admit(&name, &words(&arguments)) {
            Ok(()) => uutils::run(&name, main, arguments.into_iter()),
            Err(code) => ExitCode::from(code as u8),
        },
        #[cfg(not(target_os = "wasi"))]
        Some(Tool::Theirs) => match desk::admit(&name, &words(&arguments)) {
            Ok(()) => cannot_be(&name, "a tool of uutils', which only a sandbox has"),
            Err(code) => ExitCode::from(code as u8),
        },
        None => cannot_be(&name, "not one of these tools"),
    }
}

/// What follows the name.
fn words(arguments: &[OsString]) -> Vec<Vec<u8>> {
    arguments.iter().skip(1).map(|word| word.as_encoded_bytes().to_vec()).collect()
}

fn cannot_be(name: &str, why: &str) -> ExitCode {
    toolkit::complain(name, why);
    ExitCode::from(127)
}

fn name_of(arguments: &[OsString]) -> String {
    let path = arguments.first().map(|path| path.to_string_lossy()).unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

fn name_of_file() -> Option<String> {
    let file = std::fs::read_link("/proc/self/exe").ok()?;
    Some(file.file_name()?.to_str()?.to_owned())
}
