//! `who`, `users` and `logname`: who is logged in. Nobody is: a sandbox has a user, but no log of logins.

use toolkit::args::{Tool, bytes_of};
use toolkit::{Arguments, complain, quote};

const WHO: Tool = Tool {
    name: "who",
    short: "abdlmpqrstuwHT",
    long: &[
        ("all", 'a'),
        ("boot", 'b'),
        ("count", 'q'),
        ("dead", 'd'),
        ("heading", 'H'),
        ("login", 'l'),
        ("lookup", 'L'),
        ("message", 'T'),
        ("mesg", 'T'),
        ("process", 'p'),
        ("runlevel", 'r'),
        ("short", 's'),
        ("time", 't'),
        ("users", 'u'),
        ("writable", 'T'),
    ],
    help: "\
Usage: who [OPTION]... [ FILE | ARG1 ARG2 ]
Print information about users who are currently logged in. In a sandbox
nobody is.

  -a, --all         same as -b -d --login -p -r -t -T -u
  -b, --boot        time of last system boot
  -d, --dead        print dead processes
  -H, --heading     print line of column headings
  -l, --login       print system login processes
      --lookup      attempt to canonicalize hostnames via DNS
  -m                only hostname and user associated with stdin
  -p, --process     print active processes spawned by init
  -q, --count       all login names and number of users logged on
  -r, --runlevel    print current runlevel
  -s, --short       print only name, line, and time (default)
  -t, --time        print last system clock change
  -T, -w, --mesg    add user's message status as +, - or ?
  -u, --users       list users logged in
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

pub fn main(arguments: Arguments) -> i32 {
    let parsed = match WHO.parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    if let Some(extra) = parsed.operands.get(2) {
        return WHO.wrong(format_args!("extra operand {}", quote::word(extra)));
    }
    let has = |letter: char| parsed.options.iter().any(|(given, _)| *given == letter);
    let mut out = toolkit::out::Out::new("who");
    if has('q') {
        out.put("\n# users=0\n");
    } else if has('H') {
        out.put(heading(has('a') || has('T') || has('w'), has('a') || has('u')));
    }
    0
}

/// The line above the columns.
fn heading(message: bool, idle: bool) -> String {
    let state = if message { "  " } else { "" };
    let wide = if idle { " IDLE          PID" } else { "" };
    format!("NAME    {state} LINE         TIME            {wide} COMMENT\n")
}

const USERS: Tool = Tool {
    name: "users",
    short: "",
    long: &[],
    help: "\
Usage: users [OPTION]... [FILE]
Output who is currently logged in according to FILE. In a sandbox nobody is.

      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

pub fn users(arguments: Arguments) -> i32 {
    match USERS.parse(bytes_of(arguments)) {
        Ok(parsed) if parsed.operands.len() > 1 => {
            USERS.wrong(format_args!("extra operand {}", quote::word(&parsed.operands[1])))
        }
        Ok(_) => 0,
        Err(code) => code,
    }
}

const LOGNAME: Tool = Tool {
    name: "logname",
    short: "",
    long: &[],
    help: "\
Usage: logname [OPTION]
Print the user's login name. In a sandbox nobody has logged in; whoami
prints the user's name.

      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

pub fn logname(arguments: Arguments) -> i32 {
    match LOGNAME.parse(bytes_of(arguments)) {
        Ok(parsed) => match parsed.operands.first() {
            Some(extra) => LOGNAME.wrong(format_args!("extra operand {}", quote::word(extra))),
            None => {
                complain("logname", "no login name");
                1
            }
        },
        Err(code) => code,
    }
}
