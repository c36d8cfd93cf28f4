//! `uname`, `arch` and `hostname`: what the system is called.

use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, quote};

const TOOL: Tool = Tool {
    name: "uname",
    short: "asnrvmpio",
    long: &[
        ("all", 'a'),
        ("kernel-name", 's'),
        ("nodename", 'n'),
        ("kernel-release", 'r'),
        ("kernel-version", 'v'),
        ("machine", 'm'),
        ("processor", 'p'),
        ("hardware-platform", 'i'),
        ("operating-system", 'o'),
    ],
    help: "\
Usage: uname [OPTION]...
Print certain system information.  With no OPTION, same as -s.

  -a, --all                print all information, in the following order,
                             except omit -p and -i if unknown:
  -s, --kernel-name        print the kernel name
  -n, --nodename           print the network node hostname
  -r, --kernel-release     print the kernel release
  -v, --kernel-version     print the kernel version
  -m, --machine            print the machine hardware name
  -p, --processor          print the processor type (non-portable)
  -i, --hardware-platform  print the hardware platform (non-portable)
  -o, --operating-system   print the operating system
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

/// What programs look for: a Linux on the machine that the shell of everybody's scripts expects.
const MACHINE: &str = "x86_64";

pub fn main(arguments: Arguments) -> i32 {
    let parsed = match TOOL.parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    if let Some(extra) = parsed.operands.first() {
        return TOOL.wrong(format_args!("extra operand {}", quote::word(extra)));
    }
    let given: Vec<char> = parsed.options.iter().map(|(letter, _)| *letter).collect();
    let all = given.contains(&'a');
    let wants = |letter: char| given.contains(&letter) || all || (given.is_empty() && letter == 's');
    let (release, version) = kernel();
    let fields = [
        ('s', "Linux".to_owned()),
        ('n', host_name()),
        ('r', release),
        ('v', version),
        ('m', MACHINE.to_owned()),
        ('p', "unknown".to_owned()),
        ('i', "unknown".to_owned()),
        ('o', "GNU/Linux".to_owned()),
    ];
    let shown: Vec<String> = fields
        .into_iter()
        .filter(|(letter, text)| wants(*letter) && !(all && text == "unknown" && !given.contains(letter)))
        .map(|(_, text)| text)
        .collect();
    Out::new("uname").put(shown.join(" ") + "\n");
    0
}

const ARCH: Tool = Tool {
    name: "arch",
    short: "",
    long: &[],
    help: "\
Usage: arch [OPTION]...
Print machine architecture.

      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

pub fn arch(arguments: Arguments) -> i32 {
    match ARCH.parse(bytes_of(arguments)) {
        Ok(parsed) => match parsed.operands.first() {
            Some(extra) => ARCH.wrong(format_args!("extra operand {}", quote::word(extra))),
            None => {
                Out::new("arch").put(format!("{MACHINE}\n"));
                0
            }
        },
        Err(code) => code,
    }
}

/// Release and version, out of `/proc/version`: `Linux version RELEASE (WHO) #VERSION`.
fn kernel() -> (String, String) {
    let text = std::fs::read_to_string("/proc/version").unwrap_or_default();
    let release = text.split(' ').nth(2).unwrap_or("unknown").to_owned();
    let version = text.find('#').map_or("unknown", |at| text[at..].trim_end()).to_owned();
    (release, version)
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    if name.trim().is_empty() { "localhost".to_owned() } else { name.trim().to_owned() }
}

const HOSTNAME: Tool = Tool {
    name: "hostname",
    short: "adfiIsAy",
    long: &[
        ("alias", 'a'),
        ("domain", 'd'),
        ("fqdn", 'f'),
        ("long", 'f'),
        ("ip-address", 'i'),
        ("all-ip-addresses", 'I'),
        ("short", 's'),
    ],
    help: "\
Usage: hostname [-a|-d|-f|-i|-I|-s]
Show the system's name.

  -d, --domain            DNS domain name
  -f, --fqdn, --long      long host name (FQDN)
  -i, --ip-address        addresses for the host name
  -I, --all-ip-addresses  all addresses for the host
  -s, --short             short host name
      --help              display this help and exit
      --version           output version information and exit
",
    misuse: 255,
};

pub fn hostname(arguments: Arguments) -> i32 {
    let parsed = match HOSTNAME.parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    if !parsed.operands.is_empty() {
        toolkit::complain("hostname", "you must be root to change the host name");
        return 1;
    }
    let name = host_name();
    let text = match parsed.options.last().map(|(letter, _)| *letter) {
        Some('s') => name.split('.').next().unwrap_or_default().to_owned(),
        Some('d') => name.split_once('.').map_or(String::new(), |(_, domain)| domain.to_owned()),
        Some('i' | 'I') => "127.0.0.1".to_owned(),
        _ => name,
    };
    Out::new("hostname").put(text + "\n");
    0
}
