//! The command line of `find`.

use super::format::{self, Piece};
use toolkit::clock;
use toolkit::files;
use toolkit::mode::Change;
use toolkit::names::Names;
use toolkit::quote;
use wardian_abi as abi;
use wardian_abi::Dir;
use wardian_regex::{Fit, Options, Regex, Syntax, locale_is_utf8};

pub struct Command {
    pub starts: Vec<Vec<u8>>,
    /// The file that names the starts, each with NUL behind it.
    pub starts_from: Option<Vec<u8>>,
    pub expression: Expression,
    pub follow_all: bool,
    pub follow_operands: bool,
    pub min_depth: usize,
    pub max_depth: usize,
    pub depth_first: bool,
    pub one_system: bool,
    /// Days are counted from midnight, not from now.
    pub from_midnight: bool,
    /// The files that `-fprint` and its kin write to.
    pub written: Vec<Vec<u8>>,
}

pub enum Expression {
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    /// Both; the answer is the second's.
    List(Box<Expression>, Box<Expression>),
    Not(Box<Expression>),
    Test(Test),
}

/// A number with a sign: more than, less than, or exactly.
#[derive(Clone, Copy)]
pub struct Count {
    pub sign: std::cmp::Ordering,
    pub number: f64,
}

#[derive(Clone, Copy)]
pub enum Which {
    Accessed,
    Changed,
    Modified,
}

pub enum Test {
    Constant(bool),
    Name {
        pattern: Vec<u8>,
        fold: bool,
    },
    Path {
        pattern: Vec<u8>,
        fold: bool,
    },
    LinkName {
        pattern: Vec<u8>,
        fold: bool,
    },
    Regex(Regex),
    Kind(Vec<u8>),
    TargetKind(Vec<u8>),
    Size(Count, u64),
    Days(Which, Count),
    Minutes(Which, Count),
    NewerThan(Which, i64),
    Permissions {
        sign: u8,
        mode: u32,
    },
    Access(u32),
    Empty,
    User(u32),
    Group(u32),
    UserCount(Count),
    GroupCount(Count),
    Unnamed {
        group: bool,
    },
    Links(Count),
    Inode(Count),
    SameFile(u64, u64),
    /// Days between the last change of the inode and the last access.
    Used(Count),
    SystemKind(Vec<u8>),
    Prune,
    Quit,
    Print {
        end: u8,
    },
    Printf(Vec<Piece>),
    Ls,
    /// What another action prints, into one of the files of the command.
    Written {
        to: usize,
        action: Box<Test>,
    },
    Delete,
    Exec {
        command: Vec<Vec<u8>>,
        in_directory: bool,
        asks: bool,
    },
    /// A command for many files at once, with the number of the batch they wait in.
    ExecMany {
        command: Vec<Vec<u8>>,
        in_directory: bool,
        batch: usize,
    },
}

struct Parser<'a> {
    words: &'a [Vec<u8>],
    at: usize,
    acts: bool,
    batches: usize,
    command: Command,
    dialect: Syntax,
    now: i64,
}

type Parsed<T> = Result<T, String>;

const HELP: &str = "\
Usage: find [-H] [-L] [-P] [path...] [expression]

Default path is the current directory; default expression is -print.
Operators, by decreasing precedence: ( EXPR )   ! EXPR   -not EXPR
      EXPR1 -a EXPR2   EXPR1 -and EXPR2   EXPR1 -o EXPR2   EXPR1 -or EXPR2
      EXPR1 , EXPR2
Options: -depth -maxdepth LEVELS -mindepth LEVELS -mount -xdev -regextype TYPE
Tests: -amin N -anewer FILE -atime N -cmin N -cnewer FILE -ctime N -empty
      -executable -false -fstype TYPE -gid N -group NAME -ilname PATTERN -iname PATTERN
      -inum N -ipath PATTERN -iregex PATTERN -links N -lname PATTERN -mmin N
      -mtime N -name PATTERN -newer FILE -newerXY FILE -nogroup -nouser
      -path PATTERN -perm [-/]MODE -readable -regex PATTERN -samefile FILE
      -size N[bcwkMG] -true -type [bcdpfls] -uid N -used N -user NAME
      -writable
      -xtype [bcdpfls]
Actions: -delete -exec COMMAND ; -exec COMMAND {} + -execdir COMMAND ;
      -fls FILE -fprint FILE -fprint0 FILE -fprintf FILE FORMAT -ls
      -ok COMMAND ; -okdir COMMAND ; -print -print0 -printf FORMAT -prune -quit
";

impl Command {
    /// The error is what to say; an empty one when all was said.
    pub fn parse(words: Vec<Vec<u8>>) -> Parsed<Command> {
        let command = Command {
            starts_from: None,
            starts: Vec::new(),
            expression: Expression::Test(Test::Constant(true)),
            follow_all: false,
            follow_operands: false,
            min_depth: 0,
            max_depth: usize::MAX,
            depth_first: false,
            one_system: false,
            from_midnight: false,
            written: Vec::new(),
        };
        let mut parser = Parser {
            words: &words,
            at: 0,
            acts: false,
            batches: 0,
            command,
            dialect: Syntax::Emacs,
            now: clock::now(),
        };
        parser.leading_options();
        parser.starts();
        if parser.at < words.len() {
            parser.command.expression = parser.list()?;
            if let Some(word) = parser.peek() {
                return Err(match word.as_slice() {
                    b")" => "you have too many ')'".to_owned(),
                    _ => format!("paths must precede expression: `{}'", String::from_utf8_lossy(word)),
                });
            }
        }
        let (acts, mut command) = (parser.acts, parser.command);
        if command.starts.is_empty() && command.starts_from.is_none() {
            command.starts.push(b".".to_vec());
        }
        if !acts {
            let print = Expression::Test(Test::Print { end: b'\n' });
            command.expression = Expression::And(Box::new(command.expression), Box::new(print));
        }
        Ok(command)
    }
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Vec<u8>> {
        self.words.get(self.at)
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        let word = self.words.get(self.at).cloned();
        self.at += 1;
        word
    }

    fn leading_options(&mut self) {
        while let Some(word) = self.peek() {
            let (all, operands) = match word.as_slice() {
                b"-L" => (true, true),
                b"-H" => (false, true),
                b"-P" => (false, false),
                _ => return,
            };
            (self.command.follow_all, self.command.follow_operands) = (all, operands);
            self.at += 1;
        }
    }

    fn starts(&mut self) {
        while let Some(word) = self.peek() {
            if word.starts_with(b"-") && word.len() > 1 || matches!(word.as_slice(), b"(" | b"!") {
                break;
            }
            self.command.starts.push(word.clone());
            self.at += 1;
        }
    }

    fn list(&mut self) -> Parsed<Expression> {
        let mut left = self.or()?;
        while self.peek().is_some_and(|word| word == b",") {
            self.at += 1;
            left = Expression::List(Box::new(left), Box::new(self.or()?));
        }
        Ok(left)
    }

    fn or(&mut self) -> Parsed<Expression> {
        let mut left = self.and()?;
        while self.peek().is_some_and(|word| word == b"-o" || word == b"-or") {
            self.at += 1;
            left = Expression::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Parsed<Expression> {
        let mut left = self.unary()?;
        while let Some(word) = self.peek() {
            match word.as_slice() {
                b"-o" | b"-or" | b"," | b")" => break,
                b"-a" | b"-and" => self.at += 1,
                _ => {}
            }
            left = Expression::And(Box::new(left), Box::new(self.unary()?));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<Expression> {
        let before = self.at.checked_sub(1).map(|at| String::from_utf8_lossy(&self.words[at]).into_owned());
        let Some(word) = self.take() else {
            return Err(match before.unwrap_or_default().as_str() {
                "(" => "invalid expression; expected to find a ')' but didn't see one. Perhaps you need an \
                        extra predicate after '('"
                    .to_owned(),
                before => format!("expected an expression after '{before}'"),
            });
        };
        match word.as_slice() {
            b"!" | b"-not" => Ok(Expression::Not(Box::new(self.unary()?))),
            b"(" => {
                let inside = self.list()?;
                match self.take() {
                    Some(word) if word == b")" => Ok(inside),
                    _ => Err(
                        "invalid expression; I was expecting to find a ')' somewhere but did not see one."
                            .to_owned(),
                    ),
                }
            }
            b")" => Err("invalid expression; you have too many ')'".to_owned()),
            b"-o" | b"-or" | b"-a" | b"-and" | b"," => {
                let word = String::from_utf8_lossy(&word);
                Err(format!(
                    "invalid expression; you have used a binary operator '{word}' with nothing before it."
                ))
            }
            _ => self.primary(&String::from_utf8_lossy(&word)).map(Expression::Test),
        }
    }

    /// The argument of a primary.
    fn argument(&mut self, of: &str) -> Parsed<Vec<u8>> {
        self.take().ok_or_else(|| format!("missing argument to `{of}'"))
    }

    fn primary(&mut self, name: &str) -> Parsed<Test> {
        match name {
            "-maxdepth"
            | "-mindepth"
            | "-depth"
            | "-d"
            | "-mount"
            | "-xdev"
            | "-follow"
            | "-regextype"
            | "-files0-from"
            | "-daystart"
            | "-noleaf"
            | "-ignore_readdir_race"
            | "-noignore_readdir_race"
            | "-warn"
            | "-nowarn" => self.global(name),
            "-true" => Ok(Test::Constant(true)),
            "-false" => Ok(Test::Constant(false)),
            "-empty" => Ok(Test::Empty),
            "-prune" => Ok(Test::Prune),
            "-readable" => Ok(Test::Access(4)),
            "-writable" => Ok(Test::Access(2)),
            "-executable" => Ok(Test::Access(1)),
            "-nouser" => Ok(Test::Unnamed { group: false }),
            "-nogroup" => Ok(Test::Unnamed { group: true }),
            "-help" | "--help" | "-version" | "--version" => Err(about(name)),
            "-print" | "-print0" | "-printf" | "-ls" | "-delete" | "-quit" | "-exec" | "-execdir" | "-ok"
            | "-okdir" => self.action(name),
            "-fprint" | "-fprint0" | "-fprintf" | "-fls" => self.written(name),
            _ => self.test(name),
        }
    }

    /// Options that hold for the whole walk, wherever they stand.
    fn global(&mut self, name: &str) -> Parsed<Test> {
        match name {
            "-maxdepth" | "-mindepth" => {
                let text = self.argument(name)?;
                let text = String::from_utf8_lossy(&text);
                let levels = text.parse().map_err(|_| {
                    format!(
                        "Expected a positive decimal integer argument to {name}, but got {}",
                        quote::word(text.as_bytes())
                    )
                })?;
                if name == "-maxdepth" {
                    self.command.max_depth = levels
                } else {
                    self.command.min_depth = levels
                }
            }
            "-depth" | "-d" => self.command.depth_first = true,
            "-mount" | "-xdev" => self.command.one_system = true,
            "-files0-from" => {
                let file = self.argument(name)?;
                if let Some(start) = self.command.starts.first() {
                    let start = quote::word(start);
                    let message = "file operands cannot be combined with -files0-from";
                    return Err(format!("extra operand {start}\nfind: {message}"));
                }
                self.command.starts_from = Some(file);
            }
            "-daystart" => self.command.from_midnight = true,
            "-follow" => (self.command.follow_all, self.command.follow_operands) = (true, true),
            "-regextype" => {
                let kind = self.argument(name)?;
                self.dialect = match kind.as_slice() {
                    b"posix-extended" | b"egrep" | b"posix-egrep" | b"awk" | b"posix-awk" | b"gnu-awk" => {
                        Syntax::Extended
                    }
                    b"posix-basic" | b"ed" | b"sed" | b"posix-minimal-basic" | b"grep" => Syntax::Basic,
                    b"emacs" | b"findutils-default" => Syntax::Emacs,
                    other => return Err(format!("Unknown regular expression type {}", quote::word(other))),
                };
            }
            _ => {}
        }
        Ok(Test::Constant(true))
    }

    fn action(&mut self, name: &str) -> Parsed<Test> {
        self.acts |= name != "-quit";
        match name {
            "-print" => Ok(Test::Print { end: b'\n' }),
            "-print0" => Ok(Test::Print { end: 0 }),
            "-printf" => Ok(Test::Printf(format::parse(&self.argument(name)?))),
            "-ls" => Ok(Test::Ls),
            "-quit" => Ok(Test::Quit),
            "-delete" => {
                self.command.depth_first = true;
                Ok(Test::Delete)
            }
            _ => self.exec(name),
        }
    }

    /// An action that prints into a file, which it makes even if nothing is printed.
    fn written(&mut self, name: &str) -> Parsed<Test> {
        let file = self.argument(name)?;
        let known = self.command.written.iter().position(|known| *known == file);
        let to = known.unwrap_or(self.command.written.len());
        if known.is_none() {
            self.command.written.push(file);
        }
        let action = self.action(&name.replacen("-f", "-", 1))?;
        Ok(Test::Written { to, action: Box::new(action) })
    }

    fn exec(&mut self, name: &str) -> Parsed<Test> {
        let in_directory = name.ends_with("dir");
        let asks = name.starts_with("-ok");
        let mut command: Vec<Vec<u8>> = Vec::new();
        loop {
            let word = self.argument(name)?;
            if word == b";" {
                break;
            }
            if word == b"+" && !asks && command.last().is_some_and(|last| last == b"{}") {
                command.pop();
                if command.is_empty() {
                    return Err(format!("missing argument to `{name}'"));
                }
                self.batches += 1;
                return Ok(Test::ExecMany { command, in_directory, batch: self.batches - 1 });
            }
            command.push(word);
        }
        if command.is_empty() {
            return Err(format!("invalid argument `;' to `{name}'"));
        }
        Ok(Test::Exec { command, in_directory, asks })
    }

    fn test(&mut self, name: &str) -> Parsed<Test> {
        let known = [
            "-name",
            "-iname",
            "-path",
            "-wholename",
            "-ipath",
            "-iwholename",
            "-lname",
            "-ilname",
            "-regex",
            "-iregex",
            "-type",
            "-xtype",
            "-size",
            "-atime",
            "-ctime",
            "-mtime",
            "-amin",
            "-cmin",
            "-mmin",
            "-newer",
            "-anewer",
            "-cnewer",
            "-perm",
            "-user",
            "-uid",
            "-group",
            "-gid",
            "-links",
            "-inum",
            "-samefile",
            "-used",
            "-fstype",
        ];
        let newer = name.strip_prefix("-newer").filter(|letters| letters.len() == 2);
        if !known.contains(&name) && newer.is_none() {
            return Err(match name.starts_with('-') {
                true => format!("unknown predicate `{name}'"),
                false => format!("paths must precede expression: `{name}'{}", self.hint(name)),
            });
        }
        let text = self.argument(name)?;
        let fold = name.starts_with("-i");
        match name.trim_start_matches('-') {
            "name" | "iname" => Ok(Test::Name { pattern: text, fold }),
            "path" | "wholename" | "ipath" | "iwholename" => Ok(Test::Path { pattern: text, fold }),
            "lname" | "ilname" => Ok(Test::LinkName { pattern: text, fold }),
            "regex" | "iregex" => self.regex(&text, fold),
            "type" => kinds(name, &text).map(Test::Kind),
            "xtype" => kinds(name, &text).map(Test::TargetKind),
            "size" => size(&text),
            "perm" => permissions(&text),
            "samefile" => stat_or_link(&text).map(|stat| Test::SameFile(stat.dev, stat.ino)),
            "user" => owner(&Names::users(), &text, "user").map(Test::User),
            "group" => owner(&Names::groups(), &text, "group").map(Test::Group),
            "uid" => count(name, &text).map(Test::UserCount),
            "gid" => count(name, &text).map(Test::GroupCount),
            "links" => count(name, &text).map(Test::Links),
            "used" => count(name, &text).map(Test::Used),
            "fstype" => Ok(Test::SystemKind(text)),
            "inum" => count(name, &text).map(Test::Inode),
            "newer" => stat(&text).map(|stat| Test::NewerThan(Which::Modified, stat.mtime)),
            "anewer" => stat(&text).map(|stat| Test::NewerThan(Which::Accessed, stat.mtime)),
            "cnewer" => stat(&text).map(|stat| Test::NewerThan(Which::Changed, stat.mtime)),
            other => match (newer, other.strip_suffix("min"), other.strip_suffix("time")) {
                (Some(letters), _, _) => self.newer(name, letters, &text),
                (_, Some(letter), _) => Ok(Test::Minutes(which(letter), count(name, &text)?)),
                _ => Ok(Test::Days(which(other), count(name, &text)?)),
            },
        }
    }

    /// What a shell does with a pattern that nobody quoted.
    fn hint(&self, word: &str) -> String {
        if abi::stat(Dir::CWD, word.as_bytes(), false).is_err() {
            return String::new();
        }
        let before = self.at.checked_sub(3).and_then(|at| self.words.get(at));
        match before.map(|word| String::from_utf8_lossy(word)) {
            Some(word) if ["-name", "-iname", "-path", "-ipath"].contains(&word.as_ref()) => {
                format!("\nfind: possible unquoted pattern after predicate `{word}'?")
            }
            _ => String::new(),
        }
    }

    fn regex(&self, text: &[u8], fold: bool) -> Parsed<Test> {
        // The whole path is to match.
        let options = Options {
            ignore_case: fold,
            fit: Fit::Line,
            bytes: !locale_is_utf8(),
            ..Options::new(self.dialect)
        };
        Regex::new(text, &options).map(Test::Regex).map_err(|error| {
            let pattern = String::from_utf8_lossy(text);
            format!("failed to compile regular expression '{pattern}': {error}")
        })
    }

    /// `-newerXY`: X of the file is later than Y of the reference, or than the time given for `t`.
    fn newer(&self, name: &str, letters: &str, text: &[u8]) -> Parsed<Test> {
        let (left, right) = letters.split_at(1);
        if !"acm".contains(left) {
            return Err(format!("unknown predicate `{name}'"));
        }
        let reference = match right {
            "t" => clock::parse(&String::from_utf8_lossy(text), self.now).ok_or_else(|| {
                format!("I cannot figure out how to interpret {} as a date or time", quote::word(text))
            })?,
            "a" => stat(text)?.atime,
            "c" => stat(text)?.ctime,
            "m" => stat(text)?.mtime,
            _ => return Err(format!("unknown predicate `{name}'")),
        };
        Ok(Test::NewerThan(which(left), reference))
    }
}

fn about(name: &str) -> String {
    let text = if name.ends_with("help") {
        HELP
    } else {
        concat!("find (Wardian) ", env!("CARGO_PKG_VERSION"), "\n")
    };
    match abi::write_all(1, text.as_bytes()) {
        Ok(()) => String::new(),
        Err(error) => format!("write error: {error}"),
    }
}

fn which(letter: &str) -> Which {
    match letter.as_bytes().first() {
        Some(b'a') => Which::Accessed,
        Some(b'c') => Which::Changed,
        _ => Which::Modified,
    }
}

fn stat(path: &[u8]) -> Parsed<abi::Stat> {
    abi::stat(Dir::CWD, path, true).map_err(|error| {
        format!("{}: {error}", quote::word(files::path(path).as_os_str().as_encoded_bytes()))
    })
}

/// As [`stat`]; a link that leads nowhere is meant itself.
fn stat_or_link(path: &[u8]) -> Parsed<abi::Stat> {
    stat(path).or_else(|message| abi::stat(Dir::CWD, path, false).map_err(|_| message))
}

fn owner(names: &Names, text: &[u8], what: &str) -> Parsed<u32> {
    let text = String::from_utf8_lossy(text);
    names.find(&text).or_else(|| text.parse().ok()).ok_or_else(|| match what {
        "user" => format!("{} is not the name of a known user", quote::word(text.as_bytes())),
        _ => format!("{} is not the name of an existing group", quote::word(text.as_bytes())),
    })
}

fn count(name: &str, text: &[u8]) -> Parsed<Count> {
    let invalid = || format!("invalid argument `{}' to `{name}'", String::from_utf8_lossy(text));
    let (sign, digits) = match text.split_first() {
        Some((b'+', rest)) => (std::cmp::Ordering::Greater, rest),
        Some((b'-', rest)) => (std::cmp::Ordering::Less, rest),
        _ => (std::cmp::Ordering::Equal, text),
    };
    let digits = std::str::from_utf8(digits).map_err(|_| invalid())?;
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return Err(invalid());
    }
    Ok(Count { sign, number: digits.parse().map_err(|_| invalid())? })
}

fn size(text: &[u8]) -> Parsed<Test> {
    let (digits, unit) = match text.split_last() {
        Some((b'c', rest)) => (rest, 1),
        Some((b'w', rest)) => (rest, 2),
        Some((b'b', rest)) => (rest, 512),
        Some((b'k', rest)) => (rest, 1 << 10),
        Some((b'M', rest)) => (rest, 1 << 20),
        Some((b'G', rest)) => (rest, 1 << 30),
        Some((last, _)) if !last.is_ascii_digit() => {
            return Err(format!("invalid -size type `{}'", char::from(*last)));
        }
        _ => (text, 512),
    };
    let number = count("-size", digits)
        .map_err(|_| format!("Invalid argument `{}' to -size", String::from_utf8_lossy(text)))?;
    Ok(Test::Size(number, unit))
}

fn kinds(name: &str, text: &[u8]) -> Parsed<Vec<u8>> {
    let kinds: Vec<u8> = text.split(|&byte| byte == b',').flatten().copied().collect();
    if kinds.is_empty() || text.split(|&byte| byte == b',').any(|kind| kind.len() > 1) {
        return Err(match text {
            [] => format!("Arguments to {name} should contain at least one letter"),
            _ => format!("Must separate multiple arguments to {name} using: ','"),
        });
    }
    match kinds.iter().find(|kind| !b"bcdpflsD".contains(kind)) {
        Some(unknown) => Err(format!("Unknown argument to {name}: {}", char::from(*unknown))),
        None => Ok(kinds),
    }
}

fn permissions(text: &[u8]) -> Parsed<Test> {
    let (sign, mode) = match text.split_first() {
        Some((sign @ (b'-' | b'/'), rest)) => (*sign, rest),
        _ => (b'=', text),
    };
    let change = Change::parse(mode).ok_or_else(|| format!("invalid mode {}", quote::word(text)))?;
    Ok(Test::Permissions { sign, mode: change.apply(0, false, 0) })
}
