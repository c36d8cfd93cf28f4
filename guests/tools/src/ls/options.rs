//! The options of `ls`.

use toolkit::args::Tool;
use toolkit::quote;
use toolkit::size::Scale;
use wardian_abi as abi;

const LONG: &[(&str, char)] = &[
    ("all", 'a'),
    ("almost-all", 'A'),
    ("author", 'Á'),
    ("block-size=", 'É'),
    ("color[=", 'Ç'),
    ("classify[=", 'F'),
    ("context", 'Z'),
    ("dereference", 'L'),
    ("dereference-command-line", 'H'),
    ("directory", 'd'),
    ("escape", 'b'),
    ("file-type", 'Ý'),
    ("format=", 'Ö'),
    ("full-time", 'Ü'),
    ("group-directories-first", 'Ð'),
    ("hide=", 'Ħ'),
    ("hide-control-chars", 'q'),
    ("human-readable", 'h'),
    ("ignore=", 'I'),
    ("ignore-backups", 'B'),
    ("indicator-style=", 'Ñ'),
    ("inode", 'i'),
    ("kibibytes", 'k'),
    ("literal", 'N'),
    ("no-group", 'G'),
    ("numeric-uid-gid", 'n'),
    ("quote-name", 'Q'),
    ("quoting-style=", 'Ø'),
    ("recursive", 'R'),
    ("reverse", 'r'),
    ("show-control-chars", 'Ŝ'),
    ("si", 'Ś'),
    ("size", 's'),
    ("sort=", 'Š'),
    ("tabsize=", 'T'),
    ("time=", 'Ť'),
    ("time-style=", 'Ţ'),
    ("width=", 'w'),
    ("zero", 'Ż'),
];

const HELP: &str = "\
Usage: ls [OPTION]... [FILE]...
List information about the FILEs (the current directory by default).
Sort entries alphabetically if none of -cftuvSUX nor --sort is specified.

  -a, --all                  do not ignore entries starting with .
  -A, --almost-all           do not list implied . and ..
  -b, --escape               print C-style escapes for nongraphic characters
      --block-size=SIZE      with -l, scale sizes by SIZE when printing them
  -B, --ignore-backups       do not list implied entries ending with ~
  -c                         with -lt: sort by, and show, ctime
  -C                         list entries by columns
      --color[=WHEN]         colorize the output; WHEN can be 'always' (default
                               if omitted), 'auto', or 'never'
  -d, --directory            list directories themselves, not their contents
  -f                         do not sort, enable -aU, disable -ls --color
  -F, --classify[=WHEN]      append indicator (one of */=>@|) to entries
      --file-type            likewise, except do not append '*'
      --full-time            like -l --time-style=full-iso
  -g                         like -l, but do not list owner
      --group-directories-first  group directories before files
  -G, --no-group             in a long listing, don't print group names
  -h, --human-readable       with -l and -s, print sizes like 1K 234M 2G etc.
      --si                   likewise, but use powers of 1000 not 1024
  -H, --dereference-command-line  follow symbolic links listed on the command line
      --hide=PATTERN         do not list implied entries matching shell PATTERN
  -i, --inode                print the index number of each file
  -I, --ignore=PATTERN       do not list implied entries matching shell PATTERN
  -k, --kibibytes            default to 1024-byte blocks for file system usage
  -l                         use a long listing format
  -L, --dereference          show information for what a symbolic link refers to
  -m                         fill width with a comma separated list of entries
  -n, --numeric-uid-gid      like -l, but list numeric user and group IDs
  -N, --literal              print entry names without quoting
  -o                         like -l, but do not list group information
  -p                         append / indicator to directories
  -q, --hide-control-chars   print ? instead of nongraphic characters
  -Q, --quote-name           enclose entry names in double quotes
  -r, --reverse              reverse order while sorting
  -R, --recursive            list subdirectories recursively
  -s, --size                 print the allocated size of each file, in blocks
  -S                         sort by file size, largest first
      --sort=WORD            none (-U), size (-S), time (-t), version (-v), extension (-X)
      --time=WORD            atime (-u), ctime (-c), mtime
      --time-style=STYLE     full-iso, long-iso, iso, locale, or +FORMAT
  -t                         sort by time, newest first; see --time
  -u                         with -lt: sort by, and show, access time
  -U                         do not sort; list entries in directory order
  -v                         natural sort of (version) numbers within text
  -w, --width=COLS           set output width to COLS.  0 means no limit
  -x                         list entries by lines instead of by columns
  -X                         sort alphabetically by entry extension
      --zero                 end each output line with NUL, not newline
  -1                         list one file per line
      --help        display this help and exit
      --version     output version information and exit
";

#[derive(Clone, Copy, PartialEq)]
pub enum Format {
    Long,
    OnePerLine,
    Columns,
    Across,
    Commas,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Order {
    Name,
    Size,
    Time,
    Version,
    Extension,
    Width,
    Directory,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Time {
    Modified,
    Accessed,
    Changed,
}

/// Which symbolic links are looked through.
#[derive(Clone, Copy, PartialEq)]
pub enum Who {
    Nobody,
    DirectoryOperands,
    Operands,
    All,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Quoting {
    Literal,
    ShellEscape,
    ShellEscapeAlways,
    C,
    Escape,
}

/// What is put behind a name to say what it is.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub enum Indicator {
    None,
    Slash,
    FileType,
    Classify,
}

pub struct Options {
    pub format: Format,
    pub order: Order,
    pub reverse: bool,
    pub time: Time,
    pub time_style: String,
    pub hidden: bool,
    pub shows_dots: bool,
    pub ignored: Vec<Vec<u8>>,
    pub hides: Vec<Vec<u8>>,
    pub directory_itself: bool,
    pub directories_first: bool,
    pub recursive: bool,
    pub follow: Who,
    pub inode: bool,
    pub blocks: bool,
    pub numeric: bool,
    pub owner: bool,
    pub group: bool,
    pub author: bool,
    pub block_scale: Scale,
    pub size_scale: Scale,
    pub indicator: Indicator,
    pub quoting: Quoting,
    pub question_marks: bool,
    pub color: bool,
    pub width: usize,
    pub tab: usize,
    pub end: u8,
}

impl Options {
    pub fn parse(name: &'static str, arguments: Vec<Vec<u8>>) -> Result<(Options, Vec<Vec<u8>>), i32> {
        let short = "abcdfghiklmnopqrstuvw:xABCFGHI:LNQRST:UXZ1";
        let tool = Tool { name, short, long: LONG, help: HELP, misuse: 2 };
        let parsed = tool.parse(arguments)?;
        let mut options = Options::defaults(name);
        let (mut follow, mut time_given, mut order) = (None, false, None);
        for (letter, argument) in parsed.options {
            let text = String::from_utf8_lossy(argument.as_deref().unwrap_or_default()).into_owned();
            let invalid = |what: &str| wrong_word(&tool, what, &text);
            match letter {
                'L' => follow = Some(Who::All),
                'H' => follow = Some(Who::Operands),
                'c' | 'u' | 'Ť' => {
                    options.time = time_named(letter, &text).ok_or_else(|| invalid("time"))?;
                    time_given = true;
                }
                't' | 'S' | 'U' | 'v' | 'X' | 'f' | 'Š' => {
                    order = Some(order_named(letter, &text).ok_or_else(|| wrong_order(&tool, &text))?);
                    if letter == 'f' {
                        options.set_unsorted();
                    }
                }
                'I' => options.ignored.extend(argument),
                'Ħ' => options.hides.extend(argument),
                'Ç' => options.color = when(&text, argument.is_none()).ok_or_else(|| invalid("color"))?,
                'F' => {
                    let classify = when(&text, argument.is_none()).ok_or_else(|| invalid("classify"))?;
                    options.indicator = if classify { Indicator::Classify } else { options.indicator };
                }
                'É' => {
                    let scale = Scale::parse(text.as_bytes()).ok_or_else(|| {
                        tool.wrong(format_args!(
                            "invalid --block-size argument {}",
                            quote::plain_word(text.as_bytes())
                        ))
                    })?;
                    (options.block_scale, options.size_scale) = (scale, scale);
                }
                'w' => {
                    options.width = text.parse().map_err(|_| {
                        tool.wrong(format_args!("invalid line width: {}", quote::word(text.as_bytes())))
                    })?;
                }
                'T' => options.tab = text.parse().map_err(|_| invalid("tabsize"))?,
                'Ö' => options.format = format_named(&text).ok_or_else(|| invalid("format"))?,
                'Ø' => options.quoting = quoting_named(&text).ok_or_else(|| invalid("quoting-style"))?,
                'Ñ' => {
                    options.indicator = indicator_named(&text).ok_or_else(|| invalid("indicator-style"))?
                }
                'Ţ' => options.time_style = text,
                letter => options.set(letter),
            }
        }
        options.order = match order {
            Some(order) => order,
            None if time_given && options.format != Format::Long => Order::Time,
            None => Order::Name,
        };
        let describes_links = options.format == Format::Long
            || options.directory_itself
            || options.indicator == Indicator::Classify;
        let usual = if describes_links { Who::Nobody } else { Who::DirectoryOperands };
        options.follow = follow.unwrap_or(usual);
        Ok((options, parsed.operands))
    }

    fn defaults(name: &str) -> Options {
        let terminal = abi::isatty(1);
        let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
        let window =
            || abi::winsize(1).ok().map(|(_, columns)| usize::from(columns)).filter(|width| *width > 0);
        Options {
            format: match name {
                "vdir" => Format::Long,
                "dir" => Format::Columns,
                _ if terminal => Format::Columns,
                _ => Format::OnePerLine,
            },
            order: Order::Name,
            reverse: false,
            time: Time::Modified,
            time_style: std::env::var("TIME_STYLE").unwrap_or_else(|_| "locale".to_owned()),
            hidden: false,
            shows_dots: false,
            ignored: Vec::new(),
            hides: Vec::new(),
            directory_itself: false,
            directories_first: false,
            recursive: false,
            follow: Who::Nobody,
            inode: false,
            blocks: false,
            numeric: false,
            owner: true,
            group: true,
            author: false,
            block_scale: Scale::Blocks(1024, ""),
            size_scale: Scale::Blocks(1, ""),
            indicator: Indicator::None,
            quoting: match name {
                "ls" if terminal => Quoting::ShellEscape,
                "ls" => Quoting::Literal,
                _ => Quoting::Escape,
            },
            question_marks: name == "ls" && terminal,
            color: false,
            width: columns.or_else(window).unwrap_or(80),
            tab: 8,
            end: b'\n',
        }
    }

    /// What an option without an argument sets.
    fn set(&mut self, letter: char) {
        match letter {
            'a' => (self.hidden, self.shows_dots) = (true, true),
            'A' => (self.hidden, self.shows_dots) = (true, false),
            'Á' => self.author = true,
            'b' => self.quoting = Quoting::Escape,
            'B' => self.ignored.push(b"*~".to_vec()),
            'C' => self.format = Format::Columns,
            'd' => self.directory_itself = true,
            'Ð' => self.directories_first = true,
            'g' => (self.format, self.owner) = (Format::Long, false),
            'G' => self.group = false,
            'h' => (self.block_scale, self.size_scale) = (Scale::Human(1024), Scale::Human(1024)),
            'Ś' => (self.block_scale, self.size_scale) = (Scale::Human(1000), Scale::Human(1000)),
            'i' => self.inode = true,
            'k' => self.block_scale = Scale::Blocks(1024, ""),
            'l' => self.format = Format::Long,
            'm' => self.format = Format::Commas,
            'n' => (self.format, self.numeric) = (Format::Long, true),
            'N' => self.quoting = Quoting::Literal,
            'o' => (self.format, self.group) = (Format::Long, false),
            'p' => self.indicator = Indicator::Slash,
            'Ý' => self.indicator = Indicator::FileType,
            'q' => self.question_marks = true,
            'Q' => self.quoting = Quoting::C,
            'r' => self.reverse = true,
            'R' => self.recursive = true,
            's' => self.blocks = true,
            'Ŝ' => self.question_marks = false,
            'Ü' => (self.format, self.time_style) = (Format::Long, "full-iso".to_owned()),
            'x' => self.format = Format::Across,
            'Ż' => {
                (self.end, self.color, self.quoting) = (0, false, Quoting::Literal);
                if self.format != Format::Long {
                    self.format = Format::OnePerLine;
                }
            }
            '1' if self.format != Format::Long => self.format = Format::OnePerLine,
            _ => {}
        }
    }

    fn set_unsorted(&mut self) {
        (self.hidden, self.shows_dots, self.color, self.blocks) = (true, true, false, false);
        if self.format == Format::Long {
            self.format = if abi::isatty(1) { Format::Columns } else { Format::OnePerLine };
        }
    }

    /// Whether a directory starts with the sum of its blocks.
    pub fn shows_blocks(&self) -> bool {
        self.format == Format::Long || self.blocks
    }

    /// Whether a name in a directory is listed.
    pub fn shows(&self, name: &[u8]) -> bool {
        let matches = |pattern: &Vec<u8>| toolkit::glob::matches(pattern, name, false);
        let concealed = !self.hidden && (name.starts_with(b".") || self.hides.iter().any(matches));
        !concealed && !self.ignored.iter().any(matches)
    }
}

fn when(text: &str, missing: bool) -> Option<bool> {
    match text {
        "" if missing => Some(true),
        "always" | "yes" | "force" => Some(true),
        "never" | "no" | "none" => Some(false),
        "auto" | "tty" | "if-tty" => Some(abi::isatty(1)),
        _ => None,
    }
}

fn time_named(letter: char, text: &str) -> Option<Time> {
    match (letter, text) {
        ('c', _) | (_, "ctime" | "status") => Some(Time::Changed),
        ('u', _) | (_, "atime" | "access" | "use") => Some(Time::Accessed),
        (_, "mtime" | "modification") => Some(Time::Modified),
        _ => None,
    }
}

/// Says that a word is none of those that an option takes.
fn wrong_word(tool: &Tool, option: &str, word: &str) -> i32 {
    let words: &[&str] = match option {
        "color" | "classify" | "hyperlink" => &["always yes force", "never no none", "auto tty if-tty"],
        "time" => &["atime access use", "ctime status", "birth creation"],
        "format" => &["verbose long", "commas", "horizontal across", "vertical", "single-column"],
        "quoting-style" => &[
            "literal",
            "shell",
            "shell-always",
            "shell-escape",
            "shell-escape-always",
            "c",
            "c-maybe",
            "escape",
            "locale",
            "clocale",
        ],
        "indicator-style" => &["none", "slash", "file-type", "classify"],
        _ => {
            let (word, option) =
                (quote::word(word.as_bytes()), quote::word(format!("--{option}").as_bytes()));
            return tool.wrong(format_args!("invalid argument {word} for {option}"));
        }
    };
    tool.wrong_choice(&format!("--{option}"), word.as_bytes(), words);
    // A word that is none is no wrong option to GNU's.
    1
}

fn wrong_order(tool: &Tool, word: &str) -> i32 {
    let orders = ["none", "time", "size", "extension", "version", "width"];
    tool.wrong_choice("--sort", word.as_bytes(), &orders);
    // A word that is none is no wrong option to GNU's.
    1
}

fn order_named(letter: char, text: &str) -> Option<Order> {
    match (letter, text) {
        ('t', _) | (_, "time") => Some(Order::Time),
        ('S', _) | (_, "size") => Some(Order::Size),
        ('U' | 'f', _) | (_, "none") => Some(Order::Directory),
        ('v', _) | (_, "version") => Some(Order::Version),
        ('X', _) | (_, "extension") => Some(Order::Extension),
        (_, "width") => Some(Order::Width),
        (_, "name") => Some(Order::Name),
        _ => None,
    }
}

fn format_named(text: &str) -> Option<Format> {
    match text {
        "long" | "verbose" => Some(Format::Long),
        "single-column" => Some(Format::OnePerLine),
        "vertical" => Some(Format::Columns),
        "across" | "horizontal" => Some(Format::Across),
        "commas" => Some(Format::Commas),
        _ => None,
    }
}

fn quoting_named(text: &str) -> Option<Quoting> {
    match text {
        "literal" => Some(Quoting::Literal),
        "shell" | "shell-escape" => Some(Quoting::ShellEscape),
        "shell-always" | "shell-escape-always" => Some(Quoting::ShellEscapeAlways),
        "c" => Some(Quoting::C),
        "escape" => Some(Quoting::Escape),
        _ => None,
    }
}

fn indicator_named(text: &str) -> Option<Indicator> {
    match text {
        "none" => Some(Indicator::None),
        "slash" => Some(Indicator::Slash),
        "file-type" => Some(Indicator::FileType),
        "classify" => Some(Indicator::Classify),
        _ => None,
    }
}
