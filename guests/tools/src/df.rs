//! `df`: how full file systems are.

use toolkit::args::{Tool, bytes_of};
use toolkit::mounts::{self, Mounted};
use toolkit::out::Out;
use toolkit::size::Scale;
use toolkit::table::{Align, Table};
use toolkit::{Arguments, complain, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, StatFs};

const TOOL: Tool = Tool {
    name: "df",
    short: "aB:hHiklmPt:Tx:v",
    long: &[
        ("all", 'a'),
        ("block-size=", 'Ḃ'),
        ("human-readable", 'h'),
        ("si", 'H'),
        ("inodes", 'i'),
        ("local", 'l'),
        ("no-sync", 'v'),
        ("output[=", 'o'),
        ("portability", 'P'),
        ("sync", 'v'),
        ("total", 's'),
        ("type=", 't'),
        ("print-type", 'T'),
        ("exclude-type=", 'x'),
    ],
    help: "\
Usage: df [OPTION]... [FILE]...
Show information about the file system on which each FILE resides,
or all file systems by default.

  -a, --all             include pseudo, duplicate, inaccessible file systems
  -B, --block-size=SIZE  scale sizes by SIZE before printing them
  -h, --human-readable  print sizes in powers of 1024 (e.g., 1023M)
  -H, --si              print sizes in powers of 1000 (e.g., 1.1G)
  -i, --inodes          list inode information instead of block usage
  -k                    like --block-size=1K
  -l, --local           limit listing to local file systems
      --no-sync         do not invoke sync before getting usage info (default)
      --output[=FIELD_LIST]  use the output format defined by FIELD_LIST,
                               or print all fields if FIELD_LIST is omitted.
  -P, --portability     use the POSIX output format
      --sync            invoke sync before getting usage info
      --total           elide all entries insignificant to available space,
                          and produce a grand total
  -t, --type=TYPE       limit listing to file systems of type TYPE
  -T, --print-type      print file system type
  -x, --exclude-type=TYPE   limit listing to file systems not of type TYPE
      --help        display this help and exit
      --version     output version information and exit

FIELD_LIST is a comma-separated list of columns to be included.  Valid
field names are: 'source', 'fstype', 'itotal', 'iused', 'iavail', 'ipcent',
'size', 'used', 'avail', 'pcent', 'file' and 'target'.
",
    misuse: 1,
};

#[derive(Clone, Copy, PartialEq)]
enum Field {
    Source,
    Type,
    Size,
    Used,
    Available,
    Percent,
    Inodes,
    InodesUsed,
    InodesFree,
    InodesPercent,
    Target,
    File,
}

const FIELDS: [(&str, Field); 12] = [
    ("source", Field::Source),
    ("fstype", Field::Type),
    ("itotal", Field::Inodes),
    ("iused", Field::InodesUsed),
    ("iavail", Field::InodesFree),
    ("ipcent", Field::InodesPercent),
    ("size", Field::Size),
    ("used", Field::Used),
    ("avail", Field::Available),
    ("pcent", Field::Percent),
    ("file", Field::File),
    ("target", Field::Target),
];

/// File systems that hold nothing of their own.
const PSEUDO: [&str; 6] = ["proc", "sysfs", "devpts", "cgroup2", "mqueue", "devtmpfs"];

struct Options {
    fields: Vec<Field>,
    scale: Scale,
    all: bool,
    posix: bool,
    total: bool,
    inodes: bool,
    only: Vec<Vec<u8>>,
    without: Vec<Vec<u8>>,
}

/// One line: what is shown of a file system.
struct Line {
    source: String,
    kind: String,
    target: String,
    file: String,
    blocks: Amount,
    inodes: Amount,
}

/// How much there is of something, and how much of it is left.
#[derive(Clone, Copy, Default)]
struct Amount {
    all: u128,
    free: u128,
}

impl Amount {
    fn used(self) -> u128 {
        self.all.saturating_sub(self.free)
    }

    fn percent(self) -> String {
        match self.all {
            0 => "-".to_owned(),
            all => format!("{}%", (self.used() * 100).div_ceil(all)),
        }
    }
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let options = Options::from(parsed.options)?;
    let mounted = mounts::all();
    let (mut lines, mut code) = (Vec::new(), 0);
    if parsed.operands.is_empty() {
        let last_on_point =
            |at: usize| !mounted[at + 1..].iter().any(|later| later.point == mounted[at].point);
        let shown = (0..mounted.len()).filter(|&at| options.all || last_on_point(at));
        lines.extend(shown.filter_map(|at| options.line(&mounted[at], b"-", false)));
    }
    for operand in &parsed.operands {
        match abi::stat(Dir::CWD, operand, true) {
            Ok(_) => {
                let found = mounts::of(operand, &mounted);
                lines.extend(found.and_then(|mount| options.line(mount, operand, true)));
            }
            Err(error) => {
                complain("df", format_args!("{}: {error}", quote::if_needed(operand)));
                code = 1;
            }
        }
    }
    if lines.is_empty() {
        if code == 0 {
            complain("df", "no file systems processed");
        }
        return Ok(1);
    }
    if options.total {
        lines.push(total_of(&lines));
    }
    options.print(&lines);
    Ok(code)
}

fn total_of(lines: &[Line]) -> Line {
    let sum = |amount: fn(&Line) -> Amount| Amount {
        all: lines.iter().map(|line| amount(line).all).sum(),
        free: lines.iter().map(|line| amount(line).free).sum(),
    };
    Line {
        source: "total".to_owned(),
        kind: "-".to_owned(),
        target: "-".to_owned(),
        file: "-".to_owned(),
        blocks: sum(|line| line.blocks),
        inodes: sum(|line| line.inodes),
    }
}

impl Options {
    fn from(given: Vec<(char, Option<Vec<u8>>)>) -> Result<Options, i32> {
        let mut options = Options {
            fields: Vec::new(),
            scale: Scale::Blocks(1024, ""),
            all: false,
            posix: false,
            total: false,
            inodes: false,
            only: Vec::new(),
            without: Vec::new(),
        };
        let (mut with_type, mut output) = (false, None);
        for (letter, text) in given {
            match letter {
                'a' => options.all = true,
                'B' => options.scale = block_size(&text.unwrap_or_default(), "-B")?,
                'Ḃ' => options.scale = block_size(&text.unwrap_or_default(), "--block-size")?,
                'h' => options.scale = Scale::Human(1024),
                'H' => options.scale = Scale::Human(1000),
                'i' => options.inodes = true,
                'k' => options.scale = Scale::Blocks(1024, ""),
                'm' => options.scale = Scale::Blocks(1 << 20, ""),
                'P' => options.posix = true,
                's' => options.total = true,
                'o' => output = Some(text.unwrap_or_default()),
                'T' => with_type = true,
                't' => options.only.extend(text),
                'x' => options.without.extend(text),
                _ => {}
            }
        }
        options.fields = match output {
            None => usual_fields(options.inodes, with_type),
            Some(list) => {
                let conflict = [(options.inodes, "-i"), (options.posix, "-P"), (with_type, "-T")];
                if let Some((_, other)) = conflict.iter().find(|(given, _)| *given) {
                    let message = format!("options {other} and --output are mutually exclusive");
                    return Err(TOOL.wrong(message));
                }
                named_fields(&String::from_utf8_lossy(&list))?
            }
        };
        Ok(options)
    }

    fn line(&self, mount: &Mounted, file: &[u8], named: bool) -> Option<Line> {
        let is_pseudo = PSEUDO.contains(&mount.kind.as_str());
        let of_kind = |kinds: &[Vec<u8>]| kinds.iter().any(|kind| kind == mount.kind.as_bytes());
        if of_kind(&self.without) || (!self.only.is_empty() && !of_kind(&self.only)) {
            return None;
        }
        let system = if is_pseudo { StatFs::default() } else { system_at(mount)? };
        if system.blocks == 0 && !self.all && !named && self.only.is_empty() {
            return None;
        }
        let block = u128::from(system.block_size);
        Some(Line {
            source: mount.source.clone(),
            kind: mount.kind.clone(),
            target: String::from_utf8_lossy(&mount.point).into_owned(),
            file: String::from_utf8_lossy(file).into_owned(),
            blocks: Amount {
                all: u128::from(system.blocks) * block,
                free: u128::from(system.free_blocks) * block,
            },
            inodes: Amount { all: system.files.into(), free: system.free_files.into() },
        })
    }

    fn print(&self, lines: &[Line]) {
        let mut table = Table::new();
        for &field in &self.fields {
            let (least, align) = match field {
                Field::Source => (14, Align::Left),
                Field::Type => (4, Align::Left),
                Field::Target | Field::File => (0, Align::Left),
                Field::Percent | Field::InodesPercent => (4, Align::Right),
                _ => (5, Align::Right),
            };
            table.column(self.title(field), least, align);
        }
        for line in lines {
            table.row(self.fields.iter().map(|&field| self.cell(field, line)).collect());
        }
        table.print(&mut Out::new("df"));
    }

    fn title(&self, field: Field) -> String {
        let human = matches!(self.scale, Scale::Human(_));
        match field {
            Field::Source => "Filesystem",
            Field::Type => "Type",
            Field::Size if human => "Size",
            Field::Size => return format!("{}-blocks", self.block_name()),
            Field::Used => "Used",
            Field::Available if human => "Avail",
            Field::Available => "Available",
            Field::Percent if self.posix => "Capacity",
            Field::Percent => "Use%",
            Field::Inodes => "Inodes",
            Field::InodesUsed => "IUsed",
            Field::InodesFree => "IFree",
            Field::InodesPercent => "IUse%",
            Field::Target => "Mounted on",
            Field::File => "File",
        }
        .to_owned()
    }

    /// The block size as a heading has it: `1K`, `2M`, `1000B`; in full for POSIX.
    fn block_name(&self) -> String {
        let Scale::Blocks(size, _) = self.scale else { return String::new() };
        if self.posix {
            return size.to_string();
        }
        let mut best = format!("{size}B");
        for (unit, suffix) in [(1000_u128, ["kB", "MB", "GB", "TB"]), (1024, ["K", "M", "G", "T"])] {
            let mut divisor = unit;
            for name in suffix {
                if size % divisor == 0 {
                    best = format!("{}{name}", size / divisor);
                }
                divisor *= unit;
            }
        }
        best
    }

    fn cell(&self, field: Field, line: &Line) -> String {
        let count = |number: u128| match self.scale {
            Scale::Human(unit) => toolkit::size::human(number, unit),
            Scale::Blocks(..) => number.to_string(),
        };
        match field {
            Field::Source => line.source.clone(),
            Field::Type => line.kind.clone(),
            Field::Size => self.scale.show(line.blocks.all),
            Field::Used => self.scale.show(line.blocks.used()),
            Field::Available => self.scale.show(line.blocks.free),
            Field::Percent => line.blocks.percent(),
            Field::Inodes => count(line.inodes.all),
            Field::InodesUsed => count(line.inodes.used()),
            Field::InodesFree => count(line.inodes.free),
            Field::InodesPercent => line.inodes.percent(),
            Field::Target => line.target.clone(),
            Field::File => line.file.clone(),
        }
    }
}

fn block_size(text: &[u8], option: &str) -> Result<Scale, i32> {
    Scale::parse(text).ok_or_else(|| {
        complain("df", format_args!("invalid {option} argument {}", quote::plain_word(text)));
        1
    })
}

fn usual_fields(inodes: bool, with_type: bool) -> Vec<Field> {
    let amounts = if inodes {
        [Field::Inodes, Field::InodesUsed, Field::InodesFree, Field::InodesPercent]
    } else {
        [Field::Size, Field::Used, Field::Available, Field::Percent]
    };
    let kind = with_type.then_some(Field::Type);
    [Field::Source].into_iter().chain(kind).chain(amounts).chain([Field::Target]).collect()
}

fn named_fields(list: &str) -> Result<Vec<Field>, i32> {
    if list.is_empty() {
        return Ok(FIELDS.iter().map(|(_, field)| *field).collect());
    }
    let mut fields = Vec::new();
    for name in list.split(',') {
        let Some((_, field)) = FIELDS.iter().find(|(known, _)| *known == name) else {
            let name = quote::word(name.as_bytes());
            return Err(TOOL.wrong(format_args!("option --output: field {name} unknown")));
        };
        if fields.contains(field) {
            let name = quote::word(name.as_bytes());
            return Err(TOOL.wrong(format_args!("option --output: field {name} used more than once")));
        }
        fields.push(*field);
    }
    Ok(fields)
}

fn system_at(mount: &Mounted) -> Option<StatFs> {
    abi::statfs(Dir::CWD, &mount.point).ok()
}
