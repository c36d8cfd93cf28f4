//! `id`, `whoami` and `groups`: who a process runs as. Real and effective are the same here.

use toolkit::args::{Tool, bytes_of};
use toolkit::names::Names;
use toolkit::out::Out;
use toolkit::{Arguments, complain, quote};
use wardian_abi as abi;

const ID: Tool = Tool {
    name: "id",
    short: "agGnruzZ",
    long: &[
        ("group", 'g'),
        ("groups", 'G'),
        ("name", 'n'),
        ("real", 'r'),
        ("user", 'u'),
        ("zero", 'z'),
        ("context", 'Z'),
    ],
    help: "\
Usage: id [OPTION]... [USER]...
Print user and group information for each specified USER,
or (when USER omitted) for the current process.

  -a             ignore, for compatibility with other versions
  -g, --group    print only the effective group ID
  -G, --groups   print all group IDs
  -n, --name     print a name instead of a number, for -ugG
  -r, --real     print the real ID instead of the effective ID, with -ugG
  -u, --user     print only the effective user ID
  -z, --zero     delimit entries with NUL characters, not whitespace;
                   not permitted in default format
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

const WHOAMI: Tool = Tool {
    name: "whoami",
    short: "",
    long: &[],
    help: "\
Usage: whoami [OPTION]...
Print the user name associated with the current effective user ID.
Same as id -un.

      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

const GROUPS: Tool = Tool {
    name: "groups",
    short: "",
    long: &[],
    help: "\
Usage: groups [OPTION]... [USERNAME]...
Print group memberships for each USERNAME or, if no USERNAME is specified, for
the current process (which may differ if the groups database has changed).

      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

/// A user and all its groups, the first of them its own.
struct Identity {
    uid: u32,
    groups: Vec<u32>,
}

pub fn main(arguments: Arguments) -> i32 {
    tell(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn tell(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = ID.parse(arguments)?;
    let has = |letter| parsed.options.iter().any(|option| option.0 == letter);
    let refuse = |why| {
        complain("id", why);
        1
    };
    let choices = ['u', 'g', 'G', 'Z'].into_iter().filter(|letter| has(*letter)).collect::<Vec<_>>();
    match choices[..] {
        ['Z'] => return Err(refuse("--context (-Z) works only on an SELinux-enabled kernel")),
        [_, _, ..] => return Err(refuse("cannot print \"only\" of more than one choice")),
        [] if has('n') || has('r') => {
            return Err(refuse("cannot print only names or real IDs in default format"));
        }
        [] if has('z') => return Err(refuse("option --zero not permitted in default format")),
        _ => {}
    }
    let (users, groups) = (Names::users(), Names::groups());
    let mut out = Out::new("id");
    let mut code = 0;
    let ends = if has('z') { ("\0", "\0") } else { (" ", "\n") };
    for identity in identities("id", &parsed.operands, &users, &mut code) {
        let name = |names: &Names, id| if has('n') { names.show(id) } else { id.to_string() };
        match choices.first() {
            Some('u') => out.put(name(&users, identity.uid)),
            Some('g') => out.put(name(&groups, identity.groups[0])),
            Some(_) => {
                let all: Vec<_> = identity.groups.iter().map(|gid| name(&groups, *gid)).collect();
                out.put(all.join(ends.0));
            }
            None => out.put(in_full(&identity, &users, &groups)),
        }
        out.put(ends.1);
    }
    Ok(code)
}

fn in_full(identity: &Identity, users: &Names, groups: &Names) -> String {
    let with_name = |names: &Names, id| match names.get(id) {
        Some(name) => format!("{id}({name})"),
        None => id.to_string(),
    };
    let all: Vec<_> = identity.groups.iter().map(|gid| with_name(groups, *gid)).collect();
    let (user, group) = (with_name(users, identity.uid), with_name(groups, identity.groups[0]));
    format!("uid={user} gid={group} groups={}", all.join(","))
}

/// The users named, or the one the process runs as.
fn identities(tool: &str, operands: &[Vec<u8>], users: &Names, code: &mut i32) -> Vec<Identity> {
    if operands.is_empty() {
        let (uid, gid) = (abi::getuid(), abi::getgid());
        let name = users.get(uid).unwrap_or_default();
        return vec![Identity { uid, groups: groups_of(name, gid) }];
    }
    let mut found = Vec::new();
    for operand in operands {
        match entry_of(&String::from_utf8_lossy(operand)) {
            Some(identity) => found.push(identity),
            None => {
                complain(tool, format_args!("{}: no such user", quote::word(operand)));
                *code = 1;
            }
        }
    }
    found
}

/// The line of `/etc/passwd` with this name or number.
fn entry_of(user: &str) -> Option<Identity> {
    let text = std::fs::read_to_string("/etc/passwd").ok()?;
    let fields = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let by_name = |fields: &Vec<&str>| fields[0] == user;
    let fields: Vec<Vec<&str>> = fields.filter(|fields| fields.len() > 3).collect();
    let entry = fields
        .iter()
        .find(|entry| by_name(entry))
        .or_else(|| fields.iter().find(|entry| entry[2] == user))?;
    Some(Identity { uid: entry[2].parse().ok()?, groups: groups_of(entry[0], entry[3].parse().ok()?) })
}

/// Its own group, then those that `/etc/group` names it in.
fn groups_of(user: &str, own: u32) -> Vec<u32> {
    let text = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let mut groups = vec![own];
    for line in text.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, gid, members] = fields[..] else { continue };
        if let Ok(gid) = gid.parse()
            && gid != own
            && members.split(',').any(|member| member == user)
        {
            groups.push(gid);
        }
    }
    groups
}

/// `whoami`.
pub fn whoami(arguments: Arguments) -> i32 {
    let parsed = match WHOAMI.parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    if let Some(extra) = parsed.operands.first() {
        return WHOAMI.wrong(format_args!("extra operand {}", quote::word(extra)));
    }
    let uid = abi::getuid();
    match Names::users().get(uid) {
        Some(name) => {
            Out::new("whoami").put(format!("{name}\n"));
            0
        }
        None => {
            complain("whoami", format_args!("cannot find name for user ID {uid}"));
            1
        }
    }
}

/// `groups`.
pub fn groups(arguments: Arguments) -> i32 {
    let parsed = match GROUPS.parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let (users, groups) = (Names::users(), Names::groups());
    let mut out = Out::new("groups");
    let mut code = 0;
    for identity in identities("groups", &parsed.operands, &users, &mut code) {
        if !parsed.operands.is_empty() {
            out.put(format!("{} : ", users.show(identity.uid)));
        }
        let all: Vec<_> = identity.groups.iter().map(|gid| groups.show(*gid)).collect();
        out.put(all.join(" ") + "\n");
    }
    code
}
