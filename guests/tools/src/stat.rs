//! `stat`: what the kernel knows of a file, or of the file system it is on.

use toolkit::args::{Tool, bytes_of};
use toolkit::clock::Clock;
use toolkit::names::Names;
use toolkit::out::Out;
use toolkit::size::device;
use toolkit::{Arguments, complain, files, mode, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Stat, StatFs};

const TOOL: Tool = Tool {
    name: "stat",
    short: "c:fLt",
    long: &[
        ("dereference", 'L'),
        ("file-system", 'f'),
        ("format=", 'c'),
        ("printf=", 'p'),
        ("terse", 't'),
        ("cached=", 'C'),
    ],
    help: "\
Usage: stat [OPTION]... FILE...
Display file or file system status.

  -L, --dereference     follow links
  -f, --file-system     display file system status instead of file status
  -c  --format=FORMAT   use the specified FORMAT instead of the default;
                          output a newline after each use of FORMAT
      --printf=FORMAT   like --format, but interpret backslash escapes,
                          and do not output a mandatory trailing newline;
                          if you want a newline, include \\n in FORMAT
  -t, --terse           print the information in terse form
      --help        display this help and exit
      --version     output version information and exit

Format sequences for files: %a %A %b %B %d %D %f %F %g %G %h %i %m %n %N %o %s
%t %T %u %U %w %W %x %X %y %Y %z %Z; for file systems: %a %b %c %d %f %i %l %n
%s %S %t %T.
",
    misuse: 1,
};

const FILE: &str = "  File: %N\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\nDevice: %Hd,%Ld\tInode: %-10i  Links: %h\nAccess: (%04a/%10.10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)\nAccess: %x\nModify: %y\nChange: %z\n Birth: %w\n";
const DEVICE: &str = "  File: %N\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\nDevice: %Hd,%Ld\tInode: %-10i  Links: %-5h Device type: %Hr,%Lr\nAccess: (%04a/%10.10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)\nAccess: %x\nModify: %y\nChange: %z\n Birth: %w\n";
const FILE_TERSE: &str = "%n %s %b %f %u %g %D %i %h %t %T %X %Y %Z %W %o\n";
const SYSTEM: &str = "  File: \"%n\"\n    ID: %-8i Namelen: %-7l Type: %T\nBlock size: %-10s Fundamental block size: %S\nBlocks: Total: %-10b Free: %-10f Available: %a\nInodes: Total: %-10c Free: %d\n";
const SYSTEM_TERSE: &str = "%n %i %l %t %s %S %b %f %a %c %d\n";

struct Style {
    format: Option<Vec<u8>>,
    escapes: bool,
    follow: bool,
    terse: bool,
    clock: Clock,
    users: Names,
    groups: Names,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let has = |letter| parsed.options.iter().any(|option| option.0 == letter);
    let format = parsed.options.iter().rev().find(|option| matches!(option.0, 'c' | 'p'));
    let style = Style {
        format: format.and_then(|(_, text)| text.clone()),
        escapes: format.is_some_and(|(letter, _)| *letter == 'p'),
        follow: has('L'),
        terse: has('t'),
        clock: Clock::new(),
        users: Names::users(),
        groups: Names::groups(),
    };
    if parsed.operands.is_empty() {
        return Err(TOOL.wrong("missing operand"));
    }
    let mut out = Out::new("stat");
    let mut code = 0;
    for file in &parsed.operands {
        let text = if has('f') { style.describe_system(file) } else { style.describe(file) };
        match text {
            Ok(text) => out.put(text),
            Err(message) => {
                out.flush();
                complain("stat", message);
                code = 1;
            }
        }
    }
    Ok(code)
}

/// One `%…` of a format.
struct Directive {
    flags: Vec<u8>,
    width: usize,
    precision: Option<usize>,
    /// `H` or `L`: the high or the low part of a device number.
    part: Option<u8>,
    letter: u8,
}

impl Style {
    fn describe(&self, file: &[u8]) -> Result<Vec<u8>, String> {
        let stat = if file == b"-" { abi::fstat(0) } else { abi::stat(Dir::CWD, file, self.follow) };
        let stat = stat.map_err(|error| match file {
            b"-" => format!("cannot stat standard input: {error}"),
            _ => format!("cannot statx {}: {error}", quote::always(file)),
        })?;
        let default = match (self.terse, stat.is_char() || stat.is_block()) {
            (true, _) => FILE_TERSE,
            (_, true) => DEVICE,
            _ => FILE,
        };
        Ok(self.expand(default, |directive| self.file_field(directive, file, &stat)))
    }

    fn describe_system(&self, file: &[u8]) -> Result<Vec<u8>, String> {
        let system = abi::statfs(Dir::CWD, file).map_err(|error| {
            format!("cannot read file system information for {}: {error}", quote::always(file))
        })?;
        let default = if self.terse { SYSTEM_TERSE } else { SYSTEM };
        Ok(self.expand(default, |directive| system_field(directive, file, &system)))
    }

    fn expand(&self, default: &str, mut field: impl FnMut(&Directive) -> Option<Vec<u8>>) -> Vec<u8> {
        let format = self.format.as_deref().unwrap_or(default.as_bytes());
        let mut text = Vec::new();
        let mut rest = format;
        while let [byte, after @ ..] = rest {
            rest = after;
            match byte {
                b'%' => match take_directive(&mut rest) {
                    Some(Directive { letter: b'%', .. }) | None => text.push(b'%'),
                    Some(directive) => {
                        let value = field(&directive).unwrap_or_else(|| b"?".to_vec());
                        text.extend(directive.pad(value));
                    }
                },
                b'\\' if self.escapes => text.extend(take_escape(&mut rest)),
                byte => text.push(*byte),
            }
        }
        if self.format.is_some() && !self.escapes {
            text.push(b'\n');
        }
        text
    }

    fn file_field(&self, directive: &Directive, file: &[u8], stat: &Stat) -> Option<Vec<u8>> {
        let (major, minor) =
            device(if matches!(directive.letter, b'r' | b't' | b'T') { stat.rdev } else { stat.dev });
        let seconds = |nanos: i64| seconds(nanos, directive.precision);
        let text = match (directive.letter, directive.part) {
            (b'd' | b'r', Some(b'H')) => major.to_string(),
            (b'd' | b'r', Some(_)) => minor.to_string(),
            (b'a', _) if directive.flags.contains(&b'#') => format!("0{:o}", stat.mode & 0o7777),
            (b'a', _) => format!("{:o}", stat.mode & 0o7777),
            (b'A', _) => mode::letters(stat.mode),
            (b'b', _) => stat.blocks.to_string(),
            (b'B', _) => "512".to_owned(),
            (b'C', _) => "?".to_owned(),
            (b'd', _) => stat.dev.to_string(),
            (b'D', _) => format!("{:x}", stat.dev),
            (b'f', _) => format!("{:x}", stat.mode),
            (b'F', _) => kind(stat).to_owned(),
            (b'g', _) => stat.gid.to_string(),
            (b'G', _) => self.groups.get(stat.gid).unwrap_or("UNKNOWN").to_owned(),
            (b'h', _) => stat.nlink.to_string(),
            (b'i', _) => stat.ino.to_string(),
            (b'm', _) => mount_point(file),
            (b'n', _) => return Some(file.to_vec()),
            (b'N', _) => self.name_with_target(file, stat),
            (b'o', _) => stat.block_size.to_string(),
            (b's', _) => stat.size.to_string(),
            (b'r', _) => stat.rdev.to_string(),
            (b'R', _) => format!("{:x}", stat.rdev),
            (b't', _) => format!("{major:x}"),
            (b'T', _) => format!("{minor:x}"),
            (b'u', _) => stat.uid.to_string(),
            (b'U', _) => self.users.get(stat.uid).unwrap_or("UNKNOWN").to_owned(),
            (b'w', _) => "-".to_owned(),
            (b'W', _) => "0".to_owned(),
            (b'x', _) => self.clock.full(stat.atime),
            (b'y', _) => self.clock.full(stat.mtime),
            (b'z', _) => self.clock.full(stat.ctime),
            (b'X', _) => seconds(stat.atime),
            (b'Y', _) => seconds(stat.mtime),
            (b'Z', _) => seconds(stat.ctime),
            _ => return None,
        };
        Some(text.into_bytes())
    }

    /// The name, and where it points; in a format of one's own always in quotes.
    fn name_with_target(&self, file: &[u8], stat: &Stat) -> String {
        let show = if self.format.is_some() { quote::always } else { quote::if_needed };
        match files::link_target(file) {
            Ok(target) if stat.is_symlink() => format!("{} -> {}", show(file), show(&target)),
            _ => show(file),
        }
    }
}

fn seconds(nanos: i64, precision: Option<usize>) -> String {
    let (whole, part) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
    match precision {
        None | Some(0) => whole.to_string(),
        Some(digits) => {
            let shown = digits.min(9);
            format!("{whole}.{:.shown$}{}", format!("{part:09}"), "0".repeat(digits - shown))
        }
    }
}

fn kind(stat: &Stat) -> &'static str {
    match stat.kind() {
        0o040_000 => "directory",
        0o120_000 => "symbolic link",
        0o010_000 => "fifo",
        0o140_000 => "socket",
        0o020_000 => "character special file",
        0o060_000 => "block special file",
        0o100_000 if stat.size == 0 => "regular empty file",
        0o100_000 => "regular file",
        _ => "weird file",
    }
}

/// The last mount point that the file's absolute path is below.
fn mount_point(file: &[u8]) -> String {
    let whole = std::fs::canonicalize(files::path(file)).unwrap_or_default();
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    let longest = points.filter(|point| whole.starts_with(point)).max_by_key(|point| point.len());
    longest.unwrap_or("/").to_owned()
}

fn system_field(directive: &Directive, file: &[u8], system: &StatFs) -> Option<Vec<u8>> {
    let text = match directive.letter {
        b'a' | b'f' => system.free_blocks.to_string(),
        b'b' => system.blocks.to_string(),
        b'c' => system.files.to_string(),
        b'd' => system.free_files.to_string(),
        b'i' => "0".to_owned(),
        b'l' => system.name_length.to_string(),
        b'n' => return Some(file.to_vec()),
        b's' | b'S' => system.block_size.to_string(),
        b't' => "1021994".to_owned(),
        b'T' => "tmpfs".to_owned(),
        _ => return None,
    };
    Some(text.into_bytes())
}

fn take_directive(rest: &mut &[u8]) -> Option<Directive> {
    let flags = take_while(rest, |byte| b"#0- +'".contains(&byte)).to_vec();
    let width = number(take_while(rest, |byte| byte.is_ascii_digit()));
    let precision = rest.strip_prefix(b".").map(|after| {
        *rest = after;
        let digits = take_while(rest, |byte| byte.is_ascii_digit());
        if digits.is_empty() { 9 } else { number(digits) }
    });
    let part = rest.first().copied().filter(|byte| b"HL".contains(byte) && rest.len() > 1);
    if part.is_some() {
        *rest = &rest[1..];
    }
    let (&letter, after) = rest.split_first()?;
    *rest = after;
    Some(Directive { flags, width, precision, part, letter })
}

fn take_while<'a>(rest: &mut &'a [u8], test: impl Fn(u8) -> bool) -> &'a [u8] {
    let (taken, after) = rest.split_at(rest.iter().take_while(|byte| test(**byte)).count());
    *rest = after;
    taken
}

/// A width; none is as wide as it can be asked for.
fn number(digits: &[u8]) -> usize {
    std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).unwrap_or(0).min(4096)
}

fn take_escape(rest: &mut &[u8]) -> Vec<u8> {
    let Some((&escape, after)) = rest.split_first() else { return b"\\".to_vec() };
    if (b'0'..=b'7').contains(&escape) {
        let digits = rest.iter().take(3).take_while(|byte| (b'0'..=b'7').contains(*byte)).count();
        let value = rest[..digits].iter().fold(0_u32, |value, digit| value * 8 + u32::from(digit - b'0'));
        *rest = &rest[digits..];
        return vec![value as u8];
    }
    *rest = after;
    vec![match escape {
        b'a' => 0x07,
        b'b' => 0x08,
        b'e' => 0x1b,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        other => other,
    }]
}

impl Directive {
    fn pad(&self, mut value: Vec<u8>) -> Vec<u8> {
        let is_text = b"AFGUnNmwxyzT".contains(&self.letter);
        if let Some(most) = self.precision.filter(|_| is_text) {
            value.truncate(most);
        }
        let missing = self.width.saturating_sub(value.len());
        if self.flags.contains(&b'-') {
            value.resize(value.len() + missing, b' ');
            return value;
        }
        let filler = if self.flags.contains(&b'0') && !is_text { b'0' } else { b' ' };
        let mut padded = vec![filler; missing];
        padded.extend(value);
        padded
    }
}
