//! What an expression says of a file, and what its actions do.

use super::File;
use super::format::{self, Piece};
use super::parse::{Command, Count, Expression, Test, Which};
use std::cmp::Ordering;
use toolkit::clock::{self, Clock};
use toolkit::mounts::{self, Mounted};
use toolkit::names::Names;
use toolkit::out::Out;
use toolkit::{complain, files, glob, program, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Spawn, Stat, open_flags};

/// Files that wait for `-exec … +`, all in one directory when that is where the command runs.
#[derive(Default)]
struct Batch {
    directory: Vec<u8>,
    names: Vec<Vec<u8>>,
    bytes: usize,
}

/// Bytes of arguments for one command.
const ENOUGH: usize = 128 * 1024;

pub struct Finder {
    pub out: Out,
    pub code: i32,
    pub prune: bool,
    pub quit: bool,
    pub clock: Clock,
    pub users: Names,
    pub groups: Names,
    now: i64,
    environment: Vec<Vec<u8>>,
    batches: Vec<Batch>,
    /// The files of `-fprint` and its kin, open.
    written: Vec<abi::Fd>,
    mounted: Vec<Mounted>,
}

impl Finder {
    /// The error is what to say.
    pub fn new(out: Out, command: &Command) -> Result<Self, String> {
        let mut written = Vec::new();
        for file in &command.written {
            let flags = open_flags::WRONLY | open_flags::CREAT | open_flags::TRUNC | open_flags::CLOEXEC;
            let opened = abi::open(Dir::CWD, file, flags, 0o666);
            written.push(opened.map_err(|error| format!("{}: {error}", quote::word(file)))?);
        }
        let (clock, mut now) = (Clock::new(), clock::now());
        if command.from_midnight {
            now = clock.end_of_day(now);
        }
        Ok(Finder {
            out,
            code: 0,
            prune: false,
            quit: false,
            clock,
            users: Names::users(),
            groups: Names::groups(),
            now,
            environment: abi::environ(),
            batches: Vec::new(),
            written,
            mounted: mounts::all(),
        })
    }

    pub fn fail(&mut self, message: impl std::fmt::Display) {
        self.out.flush();
        complain("find", message);
        self.code = 1;
    }

    pub fn test(&mut self, expression: &Expression, file: &File<'_>) -> bool {
        match expression {
            Expression::And(left, right) => self.test(left, file) && !self.quit && self.test(right, file),
            Expression::Or(left, right) => self.test(left, file) || !self.quit && self.test(right, file),
            Expression::List(left, right) => {
                self.test(left, file);
                !self.quit && self.test(right, file)
            }
            Expression::Not(inner) => !self.test(inner, file),
            Expression::Test(test) => self.primary(test, file),
        }
    }

    fn primary(&mut self, test: &Test, file: &File<'_>) -> bool {
        match test {
            Test::Constant(value) => *value,
            Test::Name { pattern, fold } => glob::matches(pattern, files::base_name(file.path), *fold),
            Test::Path { pattern, fold } => glob::matches(pattern, file.path, *fold),
            Test::LinkName { pattern, fold } => {
                file.stat().is_symlink()
                    && files::link_target(file.path)
                        .is_ok_and(|target| glob::matches(pattern, &target, *fold))
            }
            Test::Regex(regex) => regex.is_match(file.path),
            Test::Kind(kinds) => kinds.contains(&kind(&file.stat())),
            Test::TargetKind(kinds) => {
                kinds.contains(&kind(&abi::stat(Dir::CWD, file.path, true).unwrap_or(file.stat())))
            }
            Test::Access(mode) => abi::access(Dir::CWD, file.path, *mode).is_ok(),
            Test::Empty if file.stat().is_dir() => {
                files::names_in(file.path).is_ok_and(|names| names.is_empty())
            }
            Test::SystemKind(kind) => {
                mounts::of(file.path, &self.mounted).is_some_and(|mount| mount.kind.as_bytes() == kind)
            }
            action if !action.takes_a_look() => self.act(action, file),
            other => match file.look() {
                Ok(stat) => self.attribute(other, &stat).unwrap_or_else(|| self.act(other, file)),
                Err(error) => {
                    self.fail(format_args!("{}: {error}", quote::word(file.path)));
                    false
                }
            },
        }
    }

    /// What a test says of a file's inode; nothing if it is an action.
    fn attribute(&self, test: &Test, stat: &Stat) -> Option<bool> {
        Some(match test {
            Test::Size(count, unit) => fits(*count, stat.size.div_ceil(*unit) as f64),
            Test::Days(which, count) => self.is_aged(*count, time(stat, *which), 86_400, f64::floor),
            Test::Minutes(which, count) => self.is_aged(*count, time(stat, *which), 60, f64::ceil),
            Test::NewerThan(which, than) => time(stat, *which) > *than,
            Test::Permissions { sign, mode } => match sign {
                b'-' => stat.mode & mode == *mode,
                b'/' => *mode == 0 || stat.mode & mode != 0,
                _ => stat.mode & 0o7777 == *mode,
            },
            Test::Empty => stat.is_file() && stat.size == 0,
            Test::User(uid) => stat.uid == *uid,
            Test::Group(gid) => stat.gid == *gid,
            Test::UserCount(count) => fits(*count, f64::from(stat.uid)),
            Test::GroupCount(count) => fits(*count, f64::from(stat.gid)),
            Test::Unnamed { group: true } => self.groups.get(stat.gid).is_none(),
            Test::Unnamed { group: false } => self.users.get(stat.uid).is_none(),
            Test::Links(count) => fits(*count, f64::from(stat.nlink)),
            Test::Inode(count) => fits(*count, stat.ino as f64),
            Test::SameFile(device, inode) => stat.dev == *device && stat.ino == *inode,
            Test::Used(count) => {
                let days = (stat.atime - stat.ctime) as f64 / 86_400e9;
                stat.atime >= stat.ctime && fits(*count, days.ceil())
            }
            _ => return None,
        })
    }

    fn is_aged(&self, count: Count, time: i64, unit: i64, round: fn(f64) -> f64) -> bool {
        let age = self.now.saturating_sub(time) as f64 / (unit as f64 * 1e9);
        match count.sign {
            Ordering::Less => age < count.number,
            Ordering::Greater if unit == 60 => age > count.number,
            Ordering::Greater => age >= count.number + 1.0,
            Ordering::Equal => round(age) == count.number,
        }
    }

    fn act(&mut self, action: &Test, file: &File<'_>) -> bool {
        match action {
            Test::Prune => self.prune = true,
            Test::Quit => self.quit = true,
            Test::Print { .. } | Test::Printf(_) | Test::Ls => {
                let text = self.printed(action, file);
                self.out.put(text);
            }
            Test::Written { to, action } => {
                let text = self.printed(action, file);
                if let Err(error) = abi::write_all(self.written[*to], &text) {
                    self.fail(format_args!("write error: {error}"));
                }
            }
            Test::Delete => return self.delete(file),
            Test::Exec { command, in_directory, asks } => {
                if *asks && !self.is_agreed(&command[0], file.path) {
                    return false;
                }
                let (directory, name) = place(file.path, *in_directory);
                let words: Vec<Vec<u8>> = command.iter().map(|word| replace(word, &name)).collect();
                return self.run(&words, &directory) == Some(0);
            }
            Test::ExecMany { command, in_directory, batch } => {
                self.gather(command, *in_directory, *batch, file)
            }
            _ => {}
        }
        true
    }

    /// What an action prints of a file.
    fn printed(&self, action: &Test, file: &File<'_>) -> Vec<u8> {
        match action {
            Test::Print { end } => [file.path, &[*end]].concat(),
            Test::Printf(pieces) => format::render(pieces, file, self),
            _ => format::ls_line(file, self).into_bytes(),
        }
    }

    /// Asks whether a command is to run.
    fn is_agreed(&mut self, command: &[u8], path: &[u8]) -> bool {
        self.out.flush();
        let question = [b"< ", command, b" ... ", path, b" > ? "].concat();
        // Whoever cannot see the question cannot say yes to it either.
        let _ = abi::write_all(2, &question);
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).is_ok() && answer.starts_with(['y', 'Y'])
    }

    fn delete(&mut self, file: &File<'_>) -> bool {
        if matches!(file.path, b"." | b"..") {
            return true;
        }
        let path = files::path(file.path);
        let removed =
            if file.stat().is_dir() { std::fs::remove_dir(path) } else { std::fs::remove_file(path) };
        match removed {
            Ok(()) => true,
            Err(error) => {
                self.fail(format_args!("cannot delete {}: {}", quote::word(file.path), Errno::from(error)));
                false
            }
        }
    }

    fn gather(&mut self, command: &[Vec<u8>], in_directory: bool, batch: usize, file: &File<'_>) {
        let (directory, name) = place(file.path, in_directory);
        if self.batches.len() <= batch {
            self.batches.resize_with(batch + 1, Batch::default);
        }
        let waiting = &self.batches[batch];
        if waiting.directory != directory || waiting.bytes + name.len() > ENOUGH {
            self.run_batch(command, batch);
        }
        let waiting = &mut self.batches[batch];
        waiting.bytes += name.len() + 1;
        waiting.directory = directory;
        waiting.names.push(name);
    }

    fn run_batch(&mut self, command: &[Vec<u8>], batch: usize) {
        let Some(waiting) = self.batches.get_mut(batch).map(std::mem::take) else { return };
        if waiting.names.is_empty() {
            return;
        }
        let words: Vec<Vec<u8>> = command.iter().cloned().chain(waiting.names).collect();
        if self.run(&words, &waiting.directory) != Some(0) {
            self.code = 1;
        }
    }

    /// Runs the commands that files still wait for.
    pub fn finish(&mut self, expression: &Expression) {
        match expression {
            Expression::And(left, right) | Expression::Or(left, right) | Expression::List(left, right) => {
                self.finish(left);
                self.finish(right);
            }
            Expression::Not(inner) => self.finish(inner),
            Expression::Test(Test::ExecMany { command, batch, .. }) => self.run_batch(command, *batch),
            Expression::Test(_) => {}
        }
    }

    /// Runs a command; `None` when it could not be started or was ended by a signal.
    fn run(&mut self, words: &[Vec<u8>], directory: &[u8]) -> Option<i32> {
        self.out.flush();
        match program::spawn(words, &self.environment, Spawn { cwd: directory, ..Spawn::default() }) {
            Ok(child) => program::wait_for(child).code(),
            Err(error) => {
                complain("find", format_args!("{}: {error}", quote::word(&words[0])));
                None
            }
        }
    }
}

impl Test {
    /// Whether it is a test or an action that needs more of a file than its name and kind.
    fn takes_a_look(&self) -> bool {
        match self {
            Test::Prune | Test::Quit | Test::Print { .. } | Test::Delete => false,
            Test::Exec { .. } | Test::ExecMany { .. } => false,
            Test::Written { action, .. } => action.takes_a_look(),
            Test::Printf(pieces) => pieces.iter().any(Piece::takes_a_look),
            _ => true,
        }
    }
}

/// Where a command runs and what it calls the file.
fn place(path: &[u8], in_directory: bool) -> (Vec<u8>, Vec<u8>) {
    if !in_directory {
        return (Vec::new(), path.to_vec());
    }
    let name = files::base_name(path);
    let parent = files::parent(path);
    if name == b"/" { (parent, b"/".to_vec()) } else { (parent, files::join(b".", name)) }
}

/// Every `{}` in a word becomes the name.
fn replace(word: &[u8], name: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::new();
    let mut rest = word;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"{}") {
        replaced.extend_from_slice(&rest[..at]);
        replaced.extend_from_slice(name);
        rest = &rest[at + 2..];
    }
    replaced.extend_from_slice(rest);
    replaced
}

fn fits(count: Count, value: f64) -> bool {
    value.partial_cmp(&count.number) == Some(count.sign)
}

fn time(stat: &Stat, which: Which) -> i64 {
    match which {
        Which::Accessed => stat.atime,
        Which::Changed => stat.ctime,
        Which::Modified => stat.mtime,
    }
}

/// The letter of `-type`.
pub fn kind(stat: &Stat) -> u8 {
    match stat.kind() {
        0o040_000 => b'd',
        0o120_000 => b'l',
        0o010_000 => b'p',
        0o140_000 => b's',
        0o020_000 => b'c',
        0o060_000 => b'b',
        _ => b'f',
    }
}
