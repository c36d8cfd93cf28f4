//! tar's command line.

use super::header::Format;
use super::select::{Matching, Pattern};
use super::transform::Transform;
use crate::codec;
use toolkit::args::{OPERAND, Tool};
use toolkit::mode::Change;
use toolkit::{complain, complain_of_usage, files};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno};

/// What to do with the archive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    Create,
    Extract,
    List,
    Append,
    Update,
    Concatenate,
    Diff,
    Delete,
}

/// What to do about files that are there already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Old {
    Replace,
    Overwrite,
    Keep,
    Skip,
    KeepNewer,
    /// Also no change to directories that are there.
    ReplaceButDirectories,
}

/// A name on the command line or in a list, and the directory it is meant from.
pub struct Named {
    pub name: Vec<u8>,
    pub directory: Option<Vec<u8>>,
    /// How many patterns to leave out stood before it.
    pub excludes: usize,
    /// Whether what is below a directory is meant, too.
    pub recursion: bool,
}

/// An owner or a group that members are given.
#[derive(Clone, Default)]
pub struct Identity {
    pub name: Option<Vec<u8>>,
    pub id: Option<u64>,
}

/// How an archive is compressed.
#[derive(Clone, Copy, PartialEq)]
pub struct Packing {
    pub format: codec::Format,
    pub level: Option<i32>,
}

pub struct Options {
    pub act: Act,
    pub archive: Vec<u8>,
    pub packing: Option<Packing>,
    pub by_suffix: bool,
    pub verbose: u32,
    pub names: Vec<Named>,
    /// Where to go before anything else: the last directory named.
    pub directory: Option<Vec<u8>>,
    pub excludes: Vec<Pattern>,
    pub transform: Transform,
    pub strip: usize,
    pub format: Format,
    pub absolute: bool,
    pub dereference: bool,
    pub hard_dereference: bool,
    pub recursion: bool,
    pub one_file_system: bool,
    pub to_stdout: bool,
    pub old: Old,
    pub unlink_first: bool,
    pub recursive_unlink: bool,
    pub keeps_directory_links: bool,
    pub keep_mode: Option<bool>,
    pub keep_owner: Option<bool>,
    pub touch: bool,
    pub owner: Identity,
    pub group: Identity,
    pub numeric: bool,
    pub mode: Option<Change>,
    pub mtime: Option<i64>,
    pub clamp: bool,
    pub newer: Option<i64>,
    /// Whether a change of a file's mode or name counts as one of the file.
    pub newer_by_change: bool,
    newer_text: Option<Vec<u8>>,
    pub sorted: bool,
    pub remove: bool,
    pub ignore_zeros: bool,
    pub ignore_failed_read: bool,
    pub full_time: bool,
    pub show_transformed: bool,
    pub totals: bool,
    pub utc: bool,
    pub verify_compare: bool,
    /// Holes are to be left out of the archive: they are found when reading, whatever this says.
    pub sparse: bool,
    pub record: u64,
    pub pax_times: bool,
    /// The member to start from.
    pub start: Option<Vec<u8>>,
    /// Whether times that are yet to come are worth a word.
    pub tells_future: bool,
    pub tags: Vec<(Vec<u8>, Tag)>,
    /// Whether names came from a list, which may be empty.
    has_list: bool,
    /// Options that came after the last name and so do nothing.
    pub idle: Vec<String>,
}

/// What of a directory with a certain file in it is kept.
#[derive(Clone, Copy, PartialEq)]
pub enum Tag {
    WithItself,
    Directory,
    Nothing,
}

/// Letters for options that have none, from where nobody types.
macro_rules! letters {
    ($($name:ident)*) => {
        letters!(@ 0xe000u32; $($name)*);
    };
    (@ $code:expr; $name:ident $($rest:ident)*) => {
        const $name: char = char::from_u32($code).unwrap();
        letters!(@ $code + 1; $($rest)*);
    };
    (@ $code:expr;) => {};
}

letters! {
    DELETE ZSTD EXCLUDE STRIP TRANSFORM OVERWRITE SKIP_OLD KEEP_NEWER OVERWRITE_DIR NO_OVERWRITE_DIR WILDCARDS
    NO_WILDCARDS ANCHORED NO_ANCHORED IGNORE_CASE NO_IGNORE_CASE MATCH_SLASH NO_MATCH_SLASH OWNER GROUP MODE MTIME
    SORT NUMERIC NULL NO_NULL REMOVE NO_RECURSION RECURSION SAME_OWNER NO_SAME_OWNER NO_SAME_PERMISSIONS FULL_TIME
    NEWER_MTIME EXCLUDE_VCS EXCLUDE_BACKUPS ONE_FS HARD_DEREFERENCE TOTALS UTC PAX_OPTION CLAMP SHOW_TRANSFORMED
    IGNORE_FAILED IGNORED IGNORED_VALUE KEEP_LINKS RECURSIVE_UNLINK EXCLUDE_CACHES EXCLUDE_CACHES_ALL EXCLUDE_CACHES_UNDER
    EXCLUDE_TAG EXCLUDE_TAG_ALL EXCLUDE_TAG_UNDER WARNING LZMA VERBATIM ADD_FILE
    CHECKPOINT RECORD_SIZE QUOTING
}

pub const TOOL: Tool = Tool {
    name: "tar",
    short: "-Aab:BcC:df:F:g:GhH:iI:jJkK:lmMN:oOpPrRsStT:uUvV:wWxX:zZ",
    long: &[
        ("absolute-names", 'P'),
        ("add-file=", ADD_FILE),
        ("anchored", ANCHORED),
        ("append", 'r'),
        ("atime-preserve[=", IGNORED_VALUE),
        ("auto-compress", 'a'),
        ("blocking-factor=", 'b'),
        ("bzip2", 'j'),
        ("catenate", 'A'),
        ("checkpoint[=", CHECKPOINT),
        ("checkpoint-action=", CHECKPOINT),
        ("clamp-mtime", CLAMP),
        ("compare", 'd'),
        ("concatenate", 'A'),
        ("create", 'c'),
        ("delay-directory-restore", IGNORED),
        ("delete", DELETE),
        ("dereference", 'h'),
        ("diff", 'd'),
        ("directory=", 'C'),
        ("exclude=", EXCLUDE),
        ("exclude-backups", EXCLUDE_BACKUPS),
        ("exclude-caches", EXCLUDE_CACHES),
        ("exclude-caches-all", EXCLUDE_CACHES_ALL),
        ("exclude-caches-under", EXCLUDE_CACHES_UNDER),
        ("exclude-from=", 'X'),
        ("exclude-tag=", EXCLUDE_TAG),
        ("exclude-tag-all=", EXCLUDE_TAG_ALL),
        ("exclude-tag-under=", EXCLUDE_TAG_UNDER),
        ("exclude-vcs", EXCLUDE_VCS),
        ("extract", 'x'),
        ("file=", 'f'),
        ("files-from=", 'T'),
        ("force-local", IGNORED),
        ("format=", 'H'),
        ("full-time", FULL_TIME),
        ("get", 'x'),
        ("group=", GROUP),
        ("gunzip", 'z'),
        ("gzip", 'z'),
        ("hard-dereference", HARD_DEREFERENCE),
        ("ignore-case", IGNORE_CASE),
        ("ignore-failed-read", IGNORE_FAILED),
        ("ignore-zeros", 'i'),
        ("keep-directory-symlink", KEEP_LINKS),
        ("keep-newer-files", KEEP_NEWER),
        ("keep-old-files", 'k'),
        ("list", 't'),
        ("lzma", LZMA),
        ("mode=", MODE),
        ("mtime=", MTIME),
        ("newer=", 'N'),
        ("newer-mtime=", NEWER_MTIME),
        ("no-anchored", NO_ANCHORED),
        ("no-auto-compress", IGNORED),
        ("no-delay-directory-restore", IGNORED),
        ("no-ignore-case", NO_IGNORE_CASE),
        ("no-null", NO_NULL),
        ("no-overwrite-dir", NO_OVERWRITE_DIR),
        ("no-recursion", NO_RECURSION),
        ("no-same-owner", NO_SAME_OWNER),
        ("no-same-permissions", NO_SAME_PERMISSIONS),
        ("no-wildcards", NO_WILDCARDS),
        ("no-wildcards-match-slash", NO_MATCH_SLASH),
        ("null", NULL),
        ("numeric-owner", NUMERIC),
        ("old-archive", 'o'),
        ("one-file-system", ONE_FS),
        ("overwrite", OVERWRITE),
        ("overwrite-dir", OVERWRITE_DIR),
        ("owner=", OWNER),
        ("pax-option=", PAX_OPTION),
        ("portability", 'o'),
        ("posix", '\u{e0ff}'),
        ("preserve-order", IGNORED),
        ("preserve-permissions", 'p'),
        ("quoting-style=", QUOTING),
        ("read-full-records", IGNORED),
        ("record-size=", RECORD_SIZE),
        ("recursion", RECURSION),
        ("recursive-unlink", RECURSIVE_UNLINK),
        ("remove-files", REMOVE),
        ("same-order", IGNORED),
        ("same-owner", SAME_OWNER),
        ("same-permissions", 'p'),
        ("show-transformed-names", SHOW_TRANSFORMED),
        ("show-stored-names", SHOW_TRANSFORMED),
        ("skip-old-files", SKIP_OLD),
        ("sort=", SORT),
        ("sparse", 'S'),
        ("starting-file=", 'K'),
        ("strip-components=", STRIP),
        ("to-stdout", 'O'),
        ("totals[=", TOTALS),
        ("touch", 'm'),
        ("transform=", TRANSFORM),
        ("ungzip", 'z'),
        ("unlink-first", 'U'),
        ("update", 'u'),
        ("use-compress-program=", 'I'),
        ("utc", UTC),
        ("verbatim-files-from", VERBATIM),
        ("no-verbatim-files-from", IGNORED),
        ("verbose", 'v'),
        ("verify", 'W'),
        ("warning=", WARNING),
        ("wildcards", WILDCARDS),
        ("wildcards-match-slash", MATCH_SLASH),
        ("xform=", TRANSFORM),
        ("xz", 'J'),
        ("zstd", ZSTD),
    ],
    help: "\
Usage: tar OPERATION [OPTION]... [NAME]...
Keeps files and directories in one archive, and gets them out again.

  tar -czf some.tar.gz here there   # pack
  tar -tvf some.tar.gz              # look
  tar -xf some.tar.gz -C elsewhere  # unpack

One of these says what to do:
  -c, --create        a new archive
  -x, --extract       take out (also --get)
  -t, --list          show names, with -v everything
  -r, --append        add at the end
  -u, --update        add what is newer than in the archive
  -A, --concatenate   add the members of other archives (also --catenate)
  -d, --diff          compare with the files (also --compare)
      --delete        take out of the archive

Where and what:
  -f, --file=ARCHIVE  the archive; - for standard input or output
  -C, --directory=DIR names that follow are seen from there
  -T, --files-from=FILE, --null, -h, --dereference, --hard-dereference,
  --no-recursion, --one-file-system, -N, --newer=DATE, --newer-mtime=DATE,
  -K, --starting-file=NAME
      --exclude=PATTERN, -X, --exclude-from=FILE, --exclude-vcs,
      --exclude-backups, --exclude-caches, --exclude-tag=FILE
      --anchored, --ignore-case, --wildcards, --wildcards-match-slash
                      how patterns match; --no-... for the opposite
      --strip-components=NUMBER   so many directories off the front of names
      --transform=s/RE/TEXT/      other names (also --xform)
  -P, --absolute-names            names may begin with /

Taking out:
  -k, --keep-old-files, --skip-old-files, --keep-newer-files, --overwrite,
  -U, --unlink-first, --recursive-unlink, --keep-directory-symlink,
  --no-overwrite-dir  what becomes of files that are there already
  -m, --touch         times of now
  -O, --to-stdout     contents to standard output
  -p, --preserve-permissions, --same-owner, --no-same-owner,
  --no-same-permissions

Putting in:
      --owner=NAME[:UID], --group=NAME[:GID], --numeric-owner,
      --mode=CHANGES, --mtime=DATE-OR-FILE, --clamp-mtime, --sort=ORDER
      --remove-files  remove what was put in

Format:
  -z, --gzip, -j, --bzip2, -J, --xz, --lzma, --zstd, -a, --auto-compress,
  -I, --use-compress-program=PROGRAM   how it is packed
  -H, --format=FORMAT gnu, oldgnu, pax, posix, ustar or v7
  -b, --blocking-factor=N, -i, --ignore-zeros

Messages:
  -v, --verbose, --full-time, --show-transformed-names, --totals, --utc,
  --help, --version
",
    misuse: 64,
};

/// Says what is wrong and gives up.
pub fn fatal(message: impl std::fmt::Display) -> i32 {
    super::list::complain(format_args!("{message}\ntar: Error is not recoverable: exiting now"));
    2
}

pub fn misuse(message: impl std::fmt::Display) -> i32 {
    complain_of_usage("tar", message);
    2
}

/// Turns the letters of old, `tar xzf FILE`, into options.
fn with_old_style(arguments: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, i32> {
    let Some(first) = arguments.first().filter(|first| !first.is_empty() && first[0] != b'-') else {
        return Ok(arguments);
    };
    let mut result = Vec::new();
    let mut rest = arguments[1..].iter();
    for &letter in first {
        result.push(vec![b'-', letter]);
        let takes_argument =
            TOOL.short.split_once(char::from(letter)).is_some_and(|(_, after)| after.starts_with(':'));
        if takes_argument {
            let Some(argument) = rest.next() else {
                complain_of_usage(
                    "tar",
                    format_args!("Old option '{}' requires an argument.", char::from(letter)),
                );
                return Err(2);
            };
            result.push(argument.clone());
        }
    }
    result.extend(rest.cloned());
    Ok(result)
}

/// What counts for the options that follow.
struct State {
    act: Option<Act>,
    archive: Option<Vec<u8>>,
    matching: Matching,
    /// Whether patterns for members were asked for.
    directory: Option<Vec<u8>>,
    null: bool,
    verbatim: bool,
}

impl Options {
    pub fn parse(arguments: Vec<Vec<u8>>) -> Result<(Options, Matching), i32> {
        let parsed = TOOL.parse(with_old_style(arguments)?)?;
        let mut options = Options::new();
        let mut state = State {
            act: None,
            archive: None,
            matching: Matching::default(),
            directory: None,
            null: false,
            verbatim: false,
        };
        // A list's names may end with NULs because of an option that follows it.
        state.null = parsed.options.iter().any(|(letter, _)| *letter == NULL);
        for (letter, text) in parsed.options {
            options.set(&mut state, letter, text)?;
        }
        let Some(act) = state.act else {
            return Err(misuse(
                "You must specify one of the '-Acdtrux', '--delete' or '--test-label' options",
            ));
        };
        options.act = act;
        options.archive = state.archive.unwrap_or_else(|| {
            std::env::var_os("TAPE").map_or_else(|| b"-".to_vec(), std::ffi::OsString::into_encoded_bytes)
        });
        if act == Act::Create && options.names.is_empty() && !options.has_list {
            return Err(misuse("Cowardly refusing to create an empty archive"));
        }
        options.directory = state.directory;
        if options.by_suffix && options.packing.is_none() && act == Act::Create {
            options.packing =
                codec::Format::of_name(&options.archive).map(|format| Packing { format, level: None });
        }
        if matches!(act, Act::Append | Act::Update | Act::Concatenate | Act::Delete)
            && options.packing.is_some()
        {
            return Err(misuse("Cannot update compressed archives"));
        }
        options.tell_dates();
        Ok((options, state.matching))
    }

    /// Says how a date was understood, to those who want to know.
    fn tell_dates(&self) {
        let (Some(text), Some(newer), true) = (&self.newer_text, self.newer, self.verbose > 0) else {
            return;
        };
        if text.starts_with(b"/") || text.starts_with(b".") {
            return;
        }
        let option = if self.newer_by_change { "--after-date" } else { "--newer-mtime" };
        let date = toolkit::clock::Clock::new().format(newer, "%Y-%m-%d %H:%M:%S");
        complain("tar", format_args!("Option {option}: Treating date '{}' as {date}", shown(text)));
    }

    fn new() -> Options {
        Options {
            act: Act::List,
            archive: Vec::new(),
            packing: None,
            by_suffix: false,
            verbose: 0,
            names: Vec::new(),
            directory: None,
            excludes: Vec::new(),
            transform: Transform::default(),
            strip: 0,
            format: Format::Gnu,
            absolute: false,
            dereference: false,
            hard_dereference: false,
            recursion: true,
            one_file_system: false,
            to_stdout: false,
            old: Old::Replace,
            unlink_first: false,
            recursive_unlink: false,
            keeps_directory_links: false,
            keep_mode: None,
            keep_owner: None,
            touch: false,
            owner: Identity::default(),
            group: Identity::default(),
            numeric: false,
            mode: None,
            mtime: None,
            clamp: false,
            newer: None,
            newer_by_change: false,
            newer_text: None,
            sorted: false,
            remove: false,
            ignore_zeros: false,
            ignore_failed_read: false,
            full_time: false,
            show_transformed: false,
            totals: false,
            utc: false,
            verify_compare: false,
            sparse: false,
            record: 10_240,
            pax_times: true,
            start: None,
            tells_future: true,
            tags: Vec::new(),
            has_list: false,
            idle: Vec::new(),
        }
    }

    fn set(&mut self, state: &mut State, letter: char, text: Option<Vec<u8>>) -> Result<(), i32> {
        let text_or_empty = || text.clone().unwrap_or_default();
        match letter {
            'A' => state.choose(Act::Concatenate)?,
            'c' => state.choose(Act::Create)?,
            'd' => state.choose(Act::Diff)?,
            'r' => state.choose(Act::Append)?,
            't' => state.choose(Act::List)?,
            'u' => state.choose(Act::Update)?,
            'x' => state.choose(Act::Extract)?,
            DELETE => state.choose(Act::Delete)?,
            'f' => state.archive = text,
            'C' => state.change_directory(&text_or_empty()),
            OPERAND | ADD_FILE => self.add_name(state, text_or_empty()),
            'K' => {
                self.start = text.clone();
                self.add_name(state, text_or_empty());
            }
            'T' => self.add_list(state, &text_or_empty())?,
            NULL => state.null = true,
            NO_NULL => state.null = false,
            VERBATIM => state.verbatim = true,
            'a' => self.by_suffix = true,
            'z' => self.pack(codec::Format::Gzip)?,
            'j' => self.pack(codec::Format::Bzip2)?,
            'J' => self.pack(codec::Format::Xz)?,
            ZSTD => self.pack(codec::Format::Zstd)?,
            LZMA => self.pack(codec::Format::Lzma)?,
            'I' => self.pack_with(&text_or_empty())?,
            'Z' => return Err(fatal("compress: its format is not supported here")),
            'M' | 'F' => return Err(fatal("archives of several volumes are not supported here")),
            'g' | 'G' => return Err(fatal("incremental archives are not supported here")),
            'w' => return Err(fatal("-w is not supported")),
            EXCLUDE | 'X' | EXCLUDE_VCS | EXCLUDE_BACKUPS => self.exclude(state, letter, text)?,
            EXCLUDE_CACHES => self.tags.push((b"CACHEDIR.TAG".to_vec(), Tag::WithItself)),
            EXCLUDE_CACHES_ALL => self.tags.push((b"CACHEDIR.TAG".to_vec(), Tag::Nothing)),
            EXCLUDE_CACHES_UNDER => self.tags.push((b"CACHEDIR.TAG".to_vec(), Tag::Directory)),
            EXCLUDE_TAG => self.tags.push((text_or_empty(), Tag::WithItself)),
            EXCLUDE_TAG_ALL => self.tags.push((text_or_empty(), Tag::Nothing)),
            EXCLUDE_TAG_UNDER => self.tags.push((text_or_empty(), Tag::Directory)),
            WILDCARDS => state.matching.wildcards = Some(true),
            NO_WILDCARDS => state.matching.wildcards = Some(false),
            ANCHORED => state.matching.anchored = Some(true),
            NO_ANCHORED => state.matching.anchored = Some(false),
            IGNORE_CASE => state.matching.fold_case = true,
            NO_IGNORE_CASE => state.matching.fold_case = false,
            MATCH_SLASH => state.matching.stars_match_slash = Some(true),
            NO_MATCH_SLASH => state.matching.stars_match_slash = Some(false),
            'H' => self.set_format(&text_or_empty())?,
            '\u{e0ff}' => self.format = Format::Pax,
            PAX_OPTION => self.set_pax(&text_or_empty())?,
            'b' => self.record = self.block_count(&text_or_empty())? * 512,
            RECORD_SIZE => self.record = record_size(&text_or_empty())?,
            _ => return self.set_more(letter, text),
        }
        Ok(())
    }

    /// The options that are a matter of one field.
    fn set_more(&mut self, letter: char, text: Option<Vec<u8>>) -> Result<(), i32> {
        let text = text.unwrap_or_default();
        match letter {
            'v' => self.verbose += 1,
            'h' => self.dereference = true,
            HARD_DEREFERENCE => self.hard_dereference = true,
            NO_RECURSION => {
                self.recursion = false;
                self.idle.push("--no-recursion".to_owned());
            }
            RECURSION => self.recursion = true,
            ONE_FS => self.one_file_system = true,
            'O' => self.to_stdout = true,
            'k' => self.old = Old::Keep,
            SKIP_OLD => self.old = Old::Skip,
            KEEP_NEWER => self.old = Old::KeepNewer,
            OVERWRITE => self.old = Old::Overwrite,
            OVERWRITE_DIR => self.old = Old::Replace,
            NO_OVERWRITE_DIR => self.old = Old::ReplaceButDirectories,
            'U' => self.unlink_first = true,
            RECURSIVE_UNLINK => self.recursive_unlink = true,
            KEEP_LINKS => self.keeps_directory_links = true,
            'p' => self.keep_mode = Some(true),
            NO_SAME_PERMISSIONS => self.keep_mode = Some(false),
            SAME_OWNER => self.keep_owner = Some(true),
            NO_SAME_OWNER => self.keep_owner = Some(false),
            // When extracting, the owner is left alone; when creating, the format is the oldest.
            'o' => (self.keep_owner, self.format) = (Some(false), Format::V7),
            'm' => self.touch = true,
            'P' => self.absolute = true,
            'i' => self.ignore_zeros = true,
            'W' => self.verify_compare = true,
            'S' => self.sparse = true,
            QUOTING => {
                let style = super::list::Quoting::parse(&text);
                super::list::set_quoting(style.ok_or_else(|| {
                    let shown = shown(&text);
                    fatal(format_args!(
                        "Unknown quoting style '{shown}'. Try 'tar --quoting-style=help' to get a list."
                    ))
                })?);
            }
            CHECKPOINT => return Err(fatal("--checkpoint: not supported here")),
            STRIP => {
                let wrong = || misuse(format_args!("{}: Invalid number of elements", shown(&text)));
                self.strip = toolkit::input::number(&text).ok_or_else(wrong)?;
            }
            TRANSFORM => self.transform.add(&text).ok_or_else(|| misuse("Invalid transform expression"))?,
            OWNER => self.owner = identity(&text, &toolkit::names::Names::users()),
            GROUP => self.group = identity(&text, &toolkit::names::Names::groups()),
            NUMERIC => self.numeric = true,
            MODE => {
                self.mode = Some(Change::parse(&text).ok_or_else(|| fatal("Invalid mode given on option"))?)
            }
            MTIME => self.mtime = Some(date(&text)?),
            CLAMP => self.clamp = true,
            'N' | NEWER_MTIME => {
                self.newer = Some(date(&text)?);
                self.newer_by_change = letter == 'N';
                self.newer_text = Some(text);
            }
            SORT => self.sort(&text)?,
            REMOVE => self.remove = true,
            IGNORE_FAILED => self.ignore_failed_read = true,
            FULL_TIME => self.full_time = true,
            SHOW_TRANSFORMED => self.show_transformed = true,
            TOTALS => self.totals = true,
            UTC => self.utc = true,
            'V' => return Err(fatal("volume labels are not supported here")),
            WARNING => self.tells_future &= !matches!(text.as_slice(), b"no-timestamp" | b"no-all" | b"none"),
            // -l, -R, -s and the rest change nothing that can be seen.
            _ => {}
        }
        Ok(())
    }

    fn add_name(&mut self, state: &State, name: Vec<u8>) {
        self.names.push(Named {
            name,
            directory: state.directory.clone(),
            excludes: self.excludes.len(),
            recursion: self.recursion,
        });
        self.idle.clear();
    }

    fn add_list(&mut self, state: &mut State, file: &[u8]) -> Result<(), i32> {
        let text = match file {
            b"-" => files::read_fd(0),
            file => std::fs::read(files::path(file)).map_err(Errno::from),
        };
        let text = text.map_err(|error| fatal(format_args!("{}: Cannot stat: {error}", shown(file))))?;
        self.has_list = true;
        let end = if state.null { 0 } else { b'\n' };
        let mut next_is_directory = false;
        for line in text.split(|&byte| byte == end).filter(|line| !line.is_empty()) {
            if std::mem::take(&mut next_is_directory) {
                state.change_directory(line);
                continue;
            }
            // A list may change directories, as the command line does.
            match line {
                b"-C" if !state.null && !state.verbatim => next_is_directory = true,
                [b'-', b'C', directory @ ..] if !state.null && !state.verbatim => {
                    state.change_directory(directory.trim_ascii_start());
                }
                line => self.add_name(state, line.to_vec()),
            }
        }
        Ok(())
    }

    fn pack(&mut self, format: codec::Format) -> Result<(), i32> {
        match self.packing {
            Some(packing) if packing.format != format => Err(misuse("Conflicting compression options")),
            _ => {
                self.packing = Some(Packing { format, level: None });
                Ok(())
            }
        }
    }

    /// Takes `xz -9` and the like for what it means.
    fn pack_with(&mut self, command: &[u8]) -> Result<(), i32> {
        let text = shown(command);
        let mut words = text.split_ascii_whitespace();
        let program = words.next().unwrap_or_default();
        let format = match program.rsplit('/').next().unwrap_or_default() {
            "gzip" | "pigz" => codec::Format::Gzip,
            "bzip2" | "pbzip2" | "lbzip2" => codec::Format::Bzip2,
            "xz" | "pixz" => codec::Format::Xz,
            "lzma" => codec::Format::Lzma,
            "zstd" | "zstdmt" => codec::Format::Zstd,
            _ => return Err(fatal(format_args!("{program}: not a compressor that tar has here"))),
        };
        let level = words.filter_map(|word| word.strip_prefix('-')?.parse().ok()).next_back();
        self.packing = Some(Packing { format, level });
        Ok(())
    }

    fn exclude(&mut self, state: &State, letter: char, text: Option<Vec<u8>>) -> Result<(), i32> {
        let text = text.unwrap_or_default();
        match letter {
            EXCLUDE => self.idle.push(format!("--exclude ‘{}’", shown(&text))),
            'X' => self.idle.push(format!("--exclude-from ‘{}’", shown(&text))),
            _ => {}
        }
        let patterns: Vec<Vec<u8>> = match letter {
            EXCLUDE => vec![text],
            EXCLUDE_VCS => VCS.iter().map(|name| name.as_bytes().to_vec()).collect(),
            EXCLUDE_BACKUPS => vec![b".#*".to_vec(), b"*~".to_vec(), b"#*#".to_vec()],
            _ => {
                let list = match text.as_slice() {
                    b"-" => files::read_fd(0),
                    file => std::fs::read(files::path(file)).map_err(Errno::from),
                };
                let list = list.map_err(|error| fatal(format_args!("{}: {error}", shown(&text))))?;
                list.split(|&byte| byte == b'\n')
                    .filter(|line| !line.is_empty())
                    .map(<[u8]>::to_vec)
                    .collect()
            }
        };
        self.excludes.extend(patterns.iter().map(|pattern| Pattern::to_exclude(pattern, &state.matching)));
        Ok(())
    }

    fn set_format(&mut self, name: &[u8]) -> Result<(), i32> {
        self.format = match name {
            b"gnu" | b"oldgnu" => Format::Gnu,
            b"pax" | b"posix" => Format::Pax,
            b"ustar" => Format::Ustar,
            b"v7" => Format::V7,
            _ => return Err(misuse(format_args!("{}: Invalid archive format", shown(name)))),
        };
        Ok(())
    }

    fn set_pax(&mut self, text: &[u8]) -> Result<(), i32> {
        self.format = Format::Pax;
        for keyword in shown(text).split(',') {
            match keyword {
                "delete=atime" | "delete=ctime" => self.pax_times = false,
                "exthdr.name=%d/PaxHeaders/%f" => {}
                _ => return Err(fatal(format_args!("--pax-option={keyword}: not supported here"))),
            }
        }
        Ok(())
    }

    fn block_count(&self, text: &[u8]) -> Result<u64, i32> {
        let count = toolkit::input::number::<u64>(text).filter(|count| (1..1 << 20).contains(count));
        count.ok_or_else(|| misuse(format_args!("{}: Invalid blocking factor", shown(text))))
    }

    fn sort(&mut self, order: &[u8]) -> Result<(), i32> {
        match order {
            b"none" | b"inode" => self.sorted = false,
            b"name" => self.sorted = true,
            _ => {
                let order = shown(order);
                complain(
                    "tar",
                    format_args!(
                        "invalid argument ‘{order}’ for ‘--sort’\nValid arguments are:\n  - ‘none’\n  - ‘name’\n  - ‘inode’"
                    ),
                );
                return Err(2);
            }
        }
        Ok(())
    }
}

impl State {
    fn choose(&mut self, act: Act) -> Result<(), i32> {
        match self.act.replace(act) {
            Some(other) if other != act => Err(misuse(
                "You may not specify more than one '-Acdtrux', '--delete' or  '--test-label' option",
            )),
            _ => Ok(()),
        }
    }

    /// Each directory is meant from the one before.
    fn change_directory(&mut self, directory: &[u8]) {
        self.directory = Some(match &self.directory {
            Some(before) if !directory.starts_with(b"/") => files::join(before, directory),
            _ => directory.to_vec(),
        });
    }
}

const VCS: &[&str] = &[
    "CVS",
    ".cvsignore",
    "RCS",
    "SCCS",
    ".git",
    ".gitignore",
    ".gitattributes",
    ".gitmodules",
    ".svn",
    ".arch-ids",
    "{arch}",
    "=RELEASE-ID",
    "=meta-update",
    "=update",
    ".bzr",
    ".bzrignore",
    ".bzrtags",
    ".hg",
    ".hgignore",
    ".hgtags",
    "_darcs",
];

pub fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

fn record_size(text: &[u8]) -> Result<u64, i32> {
    let size = toolkit::input::number::<u64>(text).filter(|size| *size > 0);
    let size = size.ok_or_else(|| misuse(format_args!("{}: Invalid record size", shown(text))))?;
    if size % 512 == 0 { Ok(size) } else { Err(misuse("Record size must be a multiple of 512.")) }
}

/// `NAME`, `NAME:ID`, `ID` or `+ID`.
fn identity(text: &[u8], names: &toolkit::names::Names) -> Identity {
    let (name, id) = match text.iter().position(|&byte| byte == b':') {
        Some(at) => (&text[..at], toolkit::input::number(&text[at + 1..])),
        None => (text, None),
    };
    let bare = name.strip_prefix(b"+").unwrap_or(name);
    if id.is_none()
        && let Some(id) = toolkit::input::number::<u64>(bare)
    {
        let known = u32::try_from(id).ok().and_then(|id| names.get(id)).unwrap_or_default();
        return Identity { name: Some(known.as_bytes().to_vec()), id: Some(id) };
    }
    let known = names.find(&String::from_utf8_lossy(name)).map(u64::from);
    Identity { name: Some(name.to_vec()), id: id.or(known) }
}

/// A date, or the time of a file that is named with a slash or a dot first.
fn date(text: &[u8]) -> Result<i64, i32> {
    if text.starts_with(b"/") || text.starts_with(b".") {
        let stat = abi::stat(Dir::CWD, text, true);
        return stat
            .map(|stat| stat.mtime)
            .map_err(|error| fatal(format_args!("{}: Cannot stat: {error}", shown(text))));
    }
    let text = shown(text);
    toolkit::clock::parse(&text, toolkit::clock::now())
        .ok_or_else(|| fatal(format_args!("Invalid date format {}", toolkit::quote::word(text.as_bytes()))))
}
