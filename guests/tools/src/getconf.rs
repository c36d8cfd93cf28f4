//! `getconf`: the numbers of the system.

use toolkit::args::{answer_help, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, complain};
use wardian_abi as abi;
use wardian_abi::Resource;

const VALUES: &[(&str, &str)] = &[
    ("ARG_MAX", "2097152"),
    ("BC_BASE_MAX", "99"),
    ("BC_SCALE_MAX", "99"),
    ("CHAR_BIT", "8"),
    ("CLK_TCK", "100"),
    ("GNU_LIBC_VERSION", "undefined"),
    ("HOST_NAME_MAX", "64"),
    ("INT_MAX", "2147483647"),
    ("INT_MIN", "-2147483648"),
    ("IOV_MAX", "1024"),
    ("LINE_MAX", "2048"),
    ("LINK_MAX", "127"),
    ("LOGIN_NAME_MAX", "256"),
    ("LONG_BIT", "64"),
    ("NAME_MAX", "255"),
    ("PAGESIZE", "4096"),
    ("PAGE_SIZE", "4096"),
    ("PATH", "/bin:/usr/bin"),
    ("PATH_MAX", "4096"),
    ("PIPE_BUF", "4096"),
    ("RE_DUP_MAX", "32767"),
    ("SHRT_MAX", "32767"),
    ("SSIZE_MAX", "32767"),
    ("SYMLOOP_MAX", "40"),
    ("UCHAR_MAX", "255"),
    ("UINT_MAX", "4294967295"),
    ("WORD_BIT", "32"),
    ("_POSIX_VERSION", "200809"),
    ("_POSIX2_VERSION", "200809"),
];

pub fn main(arguments: Arguments) -> i32 {
    let words = bytes_of(arguments);
    if let Some(code) = answer_help(
        "getconf",
        "Usage: getconf NAME\n  or:  getconf -a\nPrint a number of the system, or all of them.\n",
        &words,
    ) {
        return code;
    }
    let mut out = Out::new("getconf");
    match words.first().map(|word| String::from_utf8_lossy(word).into_owned()) {
        None => {
            complain("Usage", "getconf [-v specification] variable_name [pathname]");
            2
        }
        Some(word) if word == "-a" => {
            for (name, _) in VALUES {
                let value = value_of(name).unwrap_or_default();
                out.put(format!("{name:<34} {value}\n"));
            }
            0
        }
        Some(name) => match value_of(&name) {
            Some(value) => {
                out.put(value + "\n");
                0
            }
            None => {
                complain("getconf", format_args!("Unrecognized variable `{name}'"));
                2
            }
        },
    }
}

fn value_of(name: &str) -> Option<String> {
    let limit = |which| {
        let soft = abi::getrlimit(which).map_or(-1, |limit| limit.soft);
        if soft < 0 { "undefined".to_owned() } else { soft.to_string() }
    };
    Some(match name {
        "_NPROCESSORS_ONLN" | "_NPROCESSORS_CONF" => {
            let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
            text.lines().filter(|line| line.starts_with("processor")).count().max(1).to_string()
        }
        "_PHYS_PAGES" => (toolkit::processes::memory("MemTotal") / 4).to_string(),
        "_AVPHYS_PAGES" => (toolkit::processes::memory("MemFree") / 4).to_string(),
        "OPEN_MAX" => limit(Resource::Descriptors),
        "CHILD_MAX" => limit(Resource::Processes),
        name => VALUES.iter().find(|(known, _)| *known == name)?.1.to_owned(),
    })
}
