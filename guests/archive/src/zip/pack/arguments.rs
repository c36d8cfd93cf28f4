//! zip's command line: options of one and of two letters, and lists that end where the next option begins.

use super::{Act, HELP, Job, MISUSE, error};
use wardian_abi as abi;

/// Options of two letters that would mean something else letter by letter.
const DOUBLE: &[&str] = &[
    "FS", "sf", "su", "sU", "tt", "nw", "ds", "db", "dc", "dd", "dg", "du", "dv", "ic", "MM", "ws", "ll",
    "la", "lf",
];

/// The endings of what is packed already.
const STORED_SUFFIXES: &[&[u8]] = &[b".Z", b".zip", b".zoo", b".arc", b".lzh", b".arj"];

const LONG: &[(&str, &str)] = &[
    ("compress-1", "1"),
    ("compress-9", "9"),
    ("delete", "d"),
    ("exclude", "x"),
    ("filesync", "FS"),
    ("freshen", "f"),
    ("grow", "g"),
    ("help", "h"),
    ("include", "i"),
    ("junk-paths", "j"),
    ("move", "m"),
    ("latest-time", "o"),
    ("names-stdin", "@"),
    ("no-dir-entries", "D"),
    ("no-extra", "X"),
    ("quiet", "q"),
    ("recurse-paths", "r"),
    ("show-files", "sf"),
    ("store", "0"),
    ("suffixes", "n"),
    ("symlinks", "y"),
    ("temp-path", "b"),
    ("test", "T"),
    ("update", "u"),
    ("verbose", "v"),
    ("version", "V"),
];

/// What the words that follow belong to.
#[derive(PartialEq)]
enum Into {
    Names,
    Excludes,
    Includes,
}

impl Job {
    pub fn parse(arguments: Vec<Vec<u8>>) -> Result<Job, i32> {
        let mut job = Job {
            act: Act::Add,
            archive: Vec::new(),
            names: Vec::new(),
            recursive: false,
            junk_paths: false,
            links: false,
            no_directories: false,
            no_extra: false,
            quiet: false,
            verbose: false,
            moves: false,
            test: false,
            level: 6,
            names_from_stdin: false,
            excludes: Vec::new(),
            includes: Vec::new(),
            stored: STORED_SUFFIXES.iter().map(|suffix| suffix.to_vec()).collect(),
            as_old_as_latest: false,
            temporary: None,
            code: 0,
        };
        let mut words = Vec::new();
        let mut into = Into::Names;
        let mut rest = arguments.into_iter();
        while let Some(word) = rest.next() {
            match word.as_slice() {
                b"--" => words.extend(rest.by_ref()),
                b"@" if into != Into::Names => into = Into::Names,
                [b'-', b'-', long @ ..] => {
                    let option = long_option(long)?;
                    into = job.take(option.0, option.1, &mut rest)?;
                }
                [b'-', letters @ ..] if !letters.is_empty() => {
                    into = job.take_letters(&String::from_utf8_lossy(letters), &mut rest)?;
                }
                _ => match into {
                    Into::Names => words.push(word),
                    Into::Excludes => job.excludes.push(word),
                    Into::Includes => job.includes.push(word),
                },
            }
        }
        let mut words = words.into_iter();
        job.archive = words.next().unwrap_or_else(|| b"-".to_vec());
        job.names = words.collect();
        if job.archive == b"-" && job.names.is_empty() && !job.names_from_stdin {
            job.names.push(b"-".to_vec());
        }
        // A name without an ending is given one.
        if job.archive != b"-" && !toolkit::files::base_name(&job.archive).contains(&b'.') {
            job.archive.extend(b".zip");
        }
        if job.archive == b"-" && job.names == [b"-".to_vec()] && abi::isatty(1) {
            return Err(error(MISUSE, "Invalid command arguments", b"cannot write zip file to terminal"));
        }
        Ok(job)
    }

    fn take_letters(&mut self, letters: &str, rest: &mut impl Iterator<Item = Vec<u8>>) -> Result<Into, i32> {
        let mut left = letters;
        let mut into = Into::Names;
        while !left.is_empty() {
            let first = left.chars().next().map_or(1, char::len_utf8);
            let length = if DOUBLE.iter().any(|double| left.starts_with(double)) { 2 } else { first };
            let (option, after) = left.split_at(length);
            left = after;
            // What follows a list's letter is its first word.
            let attached = if matches!(option, "x" | "i" | "b" | "n" | "t" | "P" | "Z" | "O") {
                std::mem::take(&mut left)
            } else {
                ""
            };
            into = self.take(option, Some(attached).filter(|text| !text.is_empty()), rest)?;
        }
        Ok(into)
    }

    fn take(
        &mut self,
        option: &str,
        attached: Option<&str>,
        rest: &mut impl Iterator<Item = Vec<u8>>,
    ) -> Result<Into, i32> {
        let mut value = |what: &str| {
            attached.map(|text| text.as_bytes().to_vec()).or_else(|| rest.next()).ok_or_else(|| {
                let detail = format!("option '{option}' ({what}) requires a value");
                error(MISUSE, "Invalid command arguments", detail.as_bytes())
            })
        };
        match option {
            "r" => self.recursive = true,
            "j" => self.junk_paths = true,
            "y" => self.links = true,
            "D" => self.no_directories = true,
            "X" => self.no_extra = true,
            "q" => self.quiet = true,
            "v" => self.verbose = true,
            "m" => self.moves = true,
            "T" => self.test = true,
            "u" => self.act = Act::Update,
            "f" => self.act = Act::Freshen,
            "d" => self.act = Act::Delete,
            "FS" => self.act = Act::Sync,
            "sf" => self.act = Act::ShowFiles,
            "@" => self.names_from_stdin = true,
            "x" => {
                self.excludes.push(value("exclude files matching patterns")?);
                return Ok(Into::Excludes);
            }
            "i" => {
                self.includes.push(value("include only files matching patterns")?);
                return Ok(Into::Includes);
            }
            "b" => self.temporary = Some(value("dir to use for temp archive")?),
            "n" => {
                let list = value("suffixes to not compress")?;
                self.stored = list.split(|byte| b":;".contains(byte)).map(<[u8]>::to_vec).collect();
            }
            "o" => self.as_old_as_latest = true,
            "Z" => match value("compression method")?.as_slice() {
                b"store" => self.level = 0,
                b"deflate" => {}
                other => {
                    return Err(error(
                        MISUSE,
                        "Invalid command arguments",
                        &[b"not a method here: ", other].concat(),
                    ));
                }
            },
            "e" | "P" => {
                return Err(error(MISUSE, "Invalid command arguments", b"encryption is not supported here"));
            }
            "h" | "?" => return Err(print(HELP)),
            "V" | "L" => return Err(print(&format!("Zip 3.0 (Wardian) {}\n", env!("CARGO_PKG_VERSION")))),
            "g" | "A" | "S" | "k" | "l" | "ll" | "c" | "z" | "nw" | "ds" | "db" | "dc" | "dd" | "dg"
            | "du" | "dv" | "ic" | "MM" | "ws" | "la" | "lf" | "J" => {
                if matches!(option, "A" | "l" | "ll" | "k" | "c" | "z" | "J") {
                    let detail = format!("option '{option}' is not supported here");
                    return Err(error(MISUSE, "Invalid command arguments", detail.as_bytes()));
                }
            }
            option if option.len() == 1 && option.as_bytes()[0].is_ascii_digit() => {
                self.level = u32::from(option.as_bytes()[0] - b'0');
            }
            option => {
                let detail = format!("short option '{option}' not supported");
                return Err(error(MISUSE, "Invalid command arguments", detail.as_bytes()));
            }
        }
        Ok(Into::Names)
    }
}

/// The short form of a long option, or of an unambiguous start of one, and its value.
fn long_option(long: &[u8]) -> Result<(&'static str, Option<&str>), i32> {
    let text = std::str::from_utf8(long).unwrap_or_default();
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    let mut fitting = LONG.iter().filter(|(known, _)| known.starts_with(name));
    match (fitting.next(), fitting.next()) {
        (Some((_, option)), None) => Ok((option, value)),
        (Some((_, option)), Some(_)) if LONG.iter().any(|(known, _)| *known == name) => Ok((option, value)),
        _ => {
            let detail = format!("long option '{name}' not supported");
            Err(error(MISUSE, "Invalid command arguments", detail.as_bytes()))
        }
    }
}

fn print(text: &str) -> i32 {
    i32::from(abi::write_all(1, text.as_bytes()).is_err())
}
