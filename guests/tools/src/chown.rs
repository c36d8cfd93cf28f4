//! `chown` and `chgrp`: owners of files.

use toolkit::args::{Tool, bytes_of};
use toolkit::names::Names;
use toolkit::out::Out;
use toolkit::{Arguments, complain, files, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Stat};

const LONG: &[(&str, char)] = &[
    ("changes", 'c'),
    ("silent", 'f'),
    ("quiet", 'f'),
    ("verbose", 'v'),
    ("dereference", 'D'),
    ("no-dereference", 'h'),
    ("from=", 'F'),
    ("no-preserve-root", 'N'),
    ("preserve-root", 'N'),
    ("reference=", 'r'),
    ("recursive", 'R'),
];

const CHOWN: Tool = Tool {
    name: "chown",
    short: "cfhvRHLP",
    long: LONG,
    help: "\
Usage: chown [OPTION]... [OWNER][:[GROUP]] FILE...
  or:  chown [OPTION]... --reference=RFILE FILE...
Change the owner and/or group of each FILE to OWNER and/or GROUP.

  -c, --changes          like verbose but report only when a change is made
  -f, --silent, --quiet  suppress most error messages
  -v, --verbose          output a diagnostic for every file processed
  -h, --no-dereference   affect symbolic links instead of any referenced file
      --reference=RFILE  use RFILE's owner and group
  -R, --recursive        operate on files and directories recursively
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

const CHGRP: Tool = Tool {
    name: "chgrp",
    short: "cfhvRHLP",
    long: LONG,
    help: "\
Usage: chgrp [OPTION]... GROUP FILE...
  or:  chgrp [OPTION]... --reference=RFILE FILE...
Change the group of each FILE to GROUP.

  -c, --changes          like verbose but report only when a change is made
  -f, --silent, --quiet  suppress most error messages
  -v, --verbose          output a diagnostic for every file processed
  -h, --no-dereference   affect symbolic links instead of any referenced file
      --reference=RFILE  use RFILE's group rather than specifying a GROUP
  -R, --recursive        operate on files and directories recursively
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

struct Change {
    tool: &'static Tool,
    user: Option<u32>,
    group: Option<u32>,
    follow: bool,
    recursive: bool,
    quiet: bool,
    verbose: bool,
    changes: bool,
    users: Names,
    groups: Names,
    out: Out,
    code: i32,
}

pub fn main(arguments: Arguments) -> i32 {
    run(&CHOWN, bytes_of(arguments)).unwrap_or_else(|code| code)
}

pub fn chgrp(arguments: Arguments) -> i32 {
    run(&CHGRP, bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(tool: &'static Tool, arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = tool.parse(arguments)?;
    let has = |letter: char| parsed.options.iter().any(|(given, _)| *given == letter);
    let reference =
        parsed.options.iter().rev().find(|(letter, _)| *letter == 'r').and_then(|(_, text)| text.clone());
    let mut operands = parsed.operands.clone();
    let mut change = Change {
        tool,
        user: None,
        group: None,
        follow: !has('h'),
        recursive: has('R'),
        quiet: has('f'),
        verbose: has('v'),
        changes: has('c'),
        users: Names::users(),
        groups: Names::groups(),
        out: Out::new(tool.name),
        code: 0,
    };
    match reference {
        Some(file) => {
            let stat = abi::stat(Dir::CWD, &file, true).map_err(|error| {
                complain(
                    tool.name,
                    format_args!("failed to get attributes of {}: {error}", quote::always(&file)),
                );
                1
            })?;
            change.user = (tool.name == "chown").then_some(stat.uid);
            change.group = Some(stat.gid);
        }
        None if operands.is_empty() => return Err(tool.wrong("missing operand")),
        None => {
            let owner = operands.remove(0);
            if operands.is_empty() {
                return Err(tool.wrong(format_args!("missing operand after {}", quote::word(&owner))));
            }
            change.set_owner(&String::from_utf8_lossy(&owner))?;
        }
    }
    for file in &operands {
        change.visit(file);
    }
    Ok(change.code)
}

impl Change {
    /// `user`, `user:group`, `user:`, `:group`; a group alone for chgrp.
    fn set_owner(&mut self, text: &str) -> Result<(), i32> {
        let (user, group) = match text.split_once(':') {
            _ if self.tool.name == "chgrp" => ("", Some(text)),
            Some((user, group)) => (user, Some(group)),
            None => (text, None),
        };
        let invalid = |what: &str| {
            complain(self.tool.name, format_args!("invalid {what}: {}", quote::word(text.as_bytes())));
            1
        };
        let number = |names: &Names, name: &str| names.find(name).or_else(|| name.parse().ok());
        if !user.is_empty() {
            self.user = Some(number(&self.users, user).ok_or_else(|| invalid("user"))?);
        }
        match group {
            // A colon alone means the user's own group.
            Some("") if !user.is_empty() => self.group = self.user,
            Some(group) if !group.is_empty() => {
                self.group = Some(number(&self.groups, group).ok_or_else(|| invalid("group"))?);
            }
            _ => {}
        }
        Ok(())
    }

    fn visit(&mut self, file: &[u8]) {
        let stat = match abi::stat(Dir::CWD, file, self.follow) {
            Ok(stat) => stat,
            Err(error) => return self.fail(format_args!("cannot access {}: {error}", quote::always(file))),
        };
        if self.recursive && abi::stat(Dir::CWD, file, false).is_ok_and(|stat| stat.is_dir()) {
            match files::names_in(file) {
                Ok(names) => names.iter().for_each(|name| self.visit(&files::join(file, name))),
                Err(error) => {
                    self.fail(format_args!("cannot read directory {}: {error}", quote::always(file)))
                }
            }
        }
        self.change(file, &stat);
    }

    fn change(&mut self, file: &[u8], stat: &Stat) {
        let changed = abi::chown(Dir::CWD, file, self.follow, self.user, self.group);
        let differs = self.user.is_some_and(|user| user != stat.uid)
            || self.group.is_some_and(|group| group != stat.gid);
        let what = if self.tool.name == "chgrp" { "group" } else { "ownership" };
        let (name, old, new) = (quote::always(file), self.shown(stat.uid, stat.gid, true), self.wanted());
        if let Err(error) = changed {
            let what = if self.user.is_none() { "group" } else { "ownership" };
            self.fail(format_args!("changing {what} of {name}: {error}"));
            if self.verbose {
                self.out.put(format!("failed to change {what} of {name} from {old} to {new}\n"));
            }
        } else if differs && (self.verbose || self.changes) {
            self.out.put(format!("changed {what} of {name} from {old} to {new}\n"));
        } else if self.verbose {
            self.out.put(format!("{what} of {name} retained as {}\n", self.retained(stat)));
        }
    }

    fn shown(&self, user: u32, group: u32, both: bool) -> String {
        match (self.tool.name, both && self.group.is_some(), self.user.is_some()) {
            ("chgrp", _, _) => self.groups.show(group),
            (_, true, true) => format!("{}:{}", self.users.show(user), self.groups.show(group)),
            (_, true, false) => format!(":{}", self.groups.show(group)),
            _ => self.users.show(user),
        }
    }

    fn wanted(&self) -> String {
        self.shown(self.user.unwrap_or(0), self.group.unwrap_or(0), true)
    }

    fn retained(&self, stat: &Stat) -> String {
        self.shown(stat.uid, stat.gid, true)
    }

    fn fail(&mut self, message: impl std::fmt::Display) {
        if !self.quiet {
            self.out.flush();
            complain(self.tool.name, message);
        }
        self.code = 1;
    }
}
