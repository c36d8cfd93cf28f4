//! `unzip`.

use super::content::{self, Trouble};
use super::format::{self, Directory, Entry, Flaw};
use super::list::{self, shown};
use crate::squeeze::{Opened, Product, say, umask};
use crate::stream::Raw;
use std::io::Write;
use toolkit::args::bytes_of;
use toolkit::out::Out;
use toolkit::{Arguments, files, glob};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno};

const USAGE: &str = "\
Usage: unzip [OPTION]... ARCHIVE[.zip] [NAME]... [-x NAME...] [-d DIRECTORY]
Takes files out of an archive; NAMEs may have wildcards. zipinfo, or -Z as the
first option, shows what is in it.

  -d DIRECTORY  where to, in place of here
  -x NAME...    but not these
  -l, -v        list, at more length with -v
  -p            contents to standard output and nothing else; -c with names
  -t            only see whether everything can be taken out
  -z            only the archive's comment
  -f, -u        only files that are older here; -u also those that are not here
  -n, -o        never write over a file; always, without asking
  -j            without the directories of names
  -C, -L        names in any case; names in lower case
  -q, -qq       fewer messages
  -h            this text
";

#[derive(Clone, Copy, PartialEq)]
enum Act {
    Extract,
    Pipe,
    Show,
    List,
    LongList,
    Test,
    Comment,
    Info,
}

#[derive(Clone, Copy, PartialEq)]
enum Overwrite {
    Ask,
    Always,
    Never,
}

/// Of which entries the ends of lines become this system's.
#[derive(Clone, Copy, PartialEq)]
enum Text {
    AsItIs,
    /// Those that say they are text.
    Flagged,
    All,
}

/// Writes lines that end in a newline, however they end: in CR, LF or both. The sign that ended a text is left out.
struct Lines<W> {
    inner: W,
    after_return: bool,
}

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut text = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            match byte {
                b'\n' if self.after_return => {}
                b'\r' => text.push(b'\n'),
                0x1a => {}
                byte => text.push(byte),
            }
            self.after_return = byte == b'\r';
        }
        self.inner.write_all(&text)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

struct Job {
    act: Act,
    text: Text,
    overwrite: Overwrite,
    freshen: bool,
    update: bool,
    junk_paths: bool,
    fold_case: bool,
    lower: bool,
    keep_all_bits: bool,
    absolute: bool,
    quiet: u32,
    names_only: bool,
    directory: Option<Vec<u8>>,
    archive: Vec<u8>,
    wanted: Vec<Vec<u8>>,
    excluded: Vec<Vec<u8>>,
    code: i32,
    /// Links are made last, so that nothing is written through them.
    links: Vec<(Vec<u8>, Vec<u8>)>,
    directories: Vec<(Vec<u8>, Entry)>,
    skipped_for_password: u64,
}

pub fn main(arguments: Arguments) -> i32 {
    start(bytes_of(arguments), Act::Extract)
}

pub fn zipinfo(arguments: Arguments) -> i32 {
    start(bytes_of(arguments), Act::Info)
}

fn start(arguments: Vec<Vec<u8>>, act: Act) -> i32 {
    let mut job = Job {
        act,
        text: Text::AsItIs,
        overwrite: Overwrite::Ask,
        freshen: false,
        update: false,
        junk_paths: false,
        fold_case: false,
        lower: false,
        keep_all_bits: false,
        absolute: false,
        quiet: 0,
        names_only: false,
        directory: None,
        archive: Vec::new(),
        wanted: Vec::new(),
        excluded: Vec::new(),
        code: 0,
        links: Vec::new(),
        directories: Vec::new(),
        skipped_for_password: 0,
    };
    if let Err(code) = job.take_arguments(arguments) {
        return code;
    }
    job.run()
}

impl Job {
    fn take_arguments(&mut self, arguments: Vec<Vec<u8>>) -> Result<(), i32> {
        let mut rest = arguments.into_iter();
        let mut archive = None;
        let mut excluding = false;
        while let Some(word) = rest.next() {
            match word.as_slice() {
                b"--help" => return Err(usage(0)),
                b"-x" => excluding = true,
                [b'-', b'd', attached @ ..] if archive.is_some() || !attached.is_empty() || word == b"-d" => {
                    let directory = if attached.is_empty() { rest.next() } else { Some(attached.to_vec()) };
                    let Some(directory) = directory else {
                        say("error:  must specify directory to which to extract with -d option\n");
                        return Err(10);
                    };
                    self.directory = Some(directory);
                    excluding = false;
                }
                b"-P" => drop(rest.next()),
                [b'-', letters @ ..] if !letters.is_empty() && archive.is_none() => {
                    for (at, &letter) in letters.iter().enumerate() {
                        if letter == b'd' && at + 1 == letters.len() {
                            self.directory = rest.next();
                        } else if letter == b'P' {
                            rest.next();
                        } else {
                            self.take_letter(letter)?;
                        }
                    }
                }
                _ if archive.is_none() => archive = Some(word),
                _ if excluding => self.excluded.push(word),
                // Options may also stand after the archive.
                [b'-', letters @ ..] if !letters.is_empty() => {
                    for &letter in letters {
                        self.take_letter(letter)?;
                    }
                }
                _ => self.wanted.push(word),
            }
        }
        match archive {
            Some(archive) => self.archive = archive,
            None if self.act == Act::LongList => {
                let version = format!("UnZip (Wardian) {}\n", env!("CARGO_PKG_VERSION"));
                return Err(i32::from(abi::write_all(1, version.as_bytes()).is_err()));
            }
            None => return Err(usage(if self.act == Act::Extract { 0 } else { 10 })),
        }
        Ok(())
    }

    fn take_letter(&mut self, letter: u8) -> Result<(), i32> {
        let is_info = self.act == Act::Info;
        match letter {
            b'Z' => self.act = Act::Info,
            b'1' if is_info => self.names_only = true,
            b'l' | b's' | b'm' | b'2' | b'h' | b't' | b'T' | b'z' if is_info => {}
            b'p' => self.act = Act::Pipe,
            b'c' => self.act = Act::Show,
            b'l' if self.act != Act::LongList => self.act = Act::List,
            b'l' => {}
            b'v' => self.act = Act::LongList,
            b't' => self.act = Act::Test,
            b'z' => self.act = Act::Comment,
            b'o' => self.overwrite = Overwrite::Always,
            b'n' => self.overwrite = Overwrite::Never,
            b'f' => self.freshen = true,
            b'u' => self.update = true,
            b'j' => self.junk_paths = true,
            b'C' => self.fold_case = true,
            b'L' => self.lower = true,
            b'K' => self.keep_all_bits = true,
            b':' => self.absolute = true,
            b'q' => self.quiet += 1,
            b'a' => self.text = if self.text == Text::Flagged { Text::All } else { Text::Flagged },
            b'b' => self.text = Text::AsItIs,
            b'X' => {
                say("error:  -X: owners cannot be restored here\n");
                return Err(10);
            }
            b'U' | b'D' | b'B' | b'M' | b'W' | b'O' | b'I' => {}
            b'h' => return Err(usage(0)),
            _ => {
                say(USAGE);
                return Err(10);
            }
        }
        Ok(())
    }

    fn run(&mut self) -> i32 {
        let (name, opened) = match self.open() {
            Ok(found) => found,
            Err(code) => return code,
        };
        let mut out = Out::new("unzip");
        let speaks = !matches!(self.act, Act::Pipe | Act::Info) && self.quiet == 0;
        if speaks {
            out.put(format!("Archive:  {}\n", shown(&name)));
        }
        out.flush();
        let directory = match format::read(opened.0) {
            Ok(directory) => directory,
            Err(flaw) => return self.tell_flaw(&name, &flaw),
        };
        if !directory.comment.is_empty() && speaks {
            out.put(&directory.comment);
            out.put("\n");
        }
        if self.act == Act::Comment {
            return 0;
        }
        if directory.before > 0 {
            out.flush();
            say(format!(
                "warning [{}]:  {} extra bytes at beginning or within zipfile\n  (attempting to process anyway)\n",
                shown(&name),
                directory.before
            ));
            self.code = 1;
        }
        if directory.entries.is_empty() {
            out.flush();
            say(format!("warning [{}]:  zipfile is empty\n", shown(&name)));
            return 1;
        }
        self.work(&name, &opened, &directory, &mut out)
    }

    fn work(&mut self, name: &[u8], opened: &Opened, directory: &Directory, out: &mut Out) -> i32 {
        let mut found = vec![false; self.wanted.len()];
        let chosen: Vec<&Entry> =
            directory.entries.iter().filter(|entry| self.is_wanted(entry, &mut found)).collect();
        match self.act {
            Act::List => list::short(out, &chosen, self.quiet),
            Act::LongList => list::long(out, &chosen, self.quiet),
            Act::Info => {
                list::info(out, name, directory, &chosen, (self.names_only, !self.wanted.is_empty()))
            }
            _ => {
                for entry in &chosen {
                    if !self.extract(opened, entry, out) {
                        break;
                    }
                }
                self.finish(out);
            }
        }
        if self.act == Act::Test {
            self.tell_test(name, directory, &chosen, out);
        }
        out.flush();
        let lists = matches!(self.act, Act::List | Act::LongList | Act::Info);
        for (pattern, _) in self.wanted.iter().zip(&found).filter(|(_, found)| !**found) {
            if !lists {
                say(format!("caution: filename not matched:  {}\n", shown(pattern)));
            }
            self.code = self.code.max(11);
        }
        if self.skipped_for_password > 0 && self.code == 0 {
            self.code = 5;
        }
        self.code
    }

    fn tell_test(&self, name: &[u8], directory: &Directory, chosen: &[&Entry], out: &mut Out) {
        if self.quiet > 1 {
            return;
        }
        if self.code > 1 {
            out.put(format!("At least one error was detected in {}.\n", shown(name)));
        } else if chosen.len() == directory.entries.len() && self.wanted.is_empty() {
            out.put(format!("No errors detected in compressed data of {}.\n", shown(name)));
        } else {
            let plural = if chosen.len() == 1 { "" } else { "s" };
            out.put(format!(
                "No errors detected in {} for the {} file{plural} tested.\n",
                shown(name),
                chosen.len()
            ));
        }
    }

    fn open(&self) -> Result<(Vec<u8>, Opened), i32> {
        for ending in [b"".as_slice(), b".zip", b".ZIP"] {
            let name = [self.archive.as_slice(), ending].concat();
            if abi::stat(Dir::CWD, &name, true).is_ok_and(|stat| !stat.is_dir())
                && let Ok(opened) = Opened::read(&name)
            {
                return Ok((name, opened));
            }
        }
        let name = shown(&self.archive);
        say(format!(
            "{}:  cannot find or open {name}, {name}.zip or {name}.ZIP.\n",
            if self.act == Act::Info { "zipinfo" } else { "unzip" }
        ));
        Err(9)
    }

    fn tell_flaw(&self, name: &[u8], flaw: &Flaw) -> i32 {
        let (full, given) = (shown(name), shown(&self.archive));
        let who = if self.act == Act::Info { "zipinfo" } else { "unzip" };
        match flaw {
            Flaw::NoEnd => {
                say(format!(
                    "  End-of-central-directory signature not found.  Either this file is not\n  a zipfile, or it constitutes one disk of a multi-part archive.  In the\n  latter case the central directory and zipfile comment will be found on\n  the last disk(s) of this archive.\n{who}:  cannot find zipfile directory in one of {given} or\n        {given}.zip, and cannot find {given}.ZIP, period.\n"
                ));
                9
            }
            Flaw::Damaged => {
                say(format!("error [{full}]:  its directory is damaged; the archive cannot be read\n"));
                3
            }
            Flaw::Unreadable(error) => {
                say(format!("error [{full}]:  {error}\n"));
                9
            }
        }
    }

    fn is_wanted(&self, entry: &Entry, found: &mut [bool]) -> bool {
        if self.excluded.iter().any(|pattern| glob::matches(pattern, &entry.name, self.fold_case)) {
            return false;
        }
        if self.wanted.is_empty() {
            return true;
        }
        let mut is_wanted = false;
        for (pattern, found) in self.wanted.iter().zip(found) {
            if glob::matches(pattern, &entry.name, self.fold_case) {
                *found = true;
                is_wanted = true;
            }
        }
        is_wanted
    }

    /// Takes one file out of the archive. Answers whether there is more to be done.
    fn extract(&mut self, opened: &Opened, entry: &Entry, out: &mut Out) -> bool {
        let name = shown(&entry.name);
        if entry.is_encrypted() {
            out.flush();
            say(format!("   skipping: {}  unable to get password\n", padded(&name)));
            self.skipped_for_password += 1;
            return true;
        }
        match self.act {
            Act::Test => {
                if self.quiet == 0 {
                    out.put(format!("    testing: {}  ", padded(&name)));
                }
                let result = content::copy(opened.0, entry, None);
                let went_well = self.tell(out, entry, result);
                if went_well && self.quiet == 0 {
                    out.put(" OK\n");
                }
                true
            }
            Act::Pipe | Act::Show => self.show(opened, entry, out),
            _ => self.extract_file(opened, entry, out),
        }
    }

    fn show(&mut self, opened: &Opened, entry: &Entry, out: &mut Out) -> bool {
        if entry.is_dir() {
            return true;
        }
        if self.act == Act::Show && self.quiet == 0 {
            let kind = self.kind(entry);
            out.put(format!("{} {}  {kind}\n", verb(entry), padded(&shown(&entry.name))));
        }
        out.flush();
        let result = self.copy(opened, entry, &mut Raw(1));
        if let Err(Trouble::Output(_)) = result {
            self.code = 50;
            return false;
        }
        self.tell(out, entry, result);
        if self.act == Act::Show && self.quiet == 0 {
            out.put("\n");
        }
        true
    }

    /// Says what is wrong with a file's content, if something is.
    fn tell(&mut self, out: &mut Out, entry: &Entry, result: Result<(), Trouble>) -> bool {
        let Err(trouble) = result else { return true };
        out.flush();
        let name = shown(&entry.name);
        let (words, code) = match &trouble {
            Trouble::Checksum(found) => (format!(" bad CRC {found:08x}  (should be {:08x})\n", entry.crc), 2),
            Trouble::Damaged | Trouble::Cut => {
                ("\n  error:  invalid compressed data to inflate\n".to_owned(), 2)
            }
            Trouble::Lost => {
                (format!("file #{name}:  bad zipfile offset (local header sig):  {}\n", entry.offset), 2)
            }
            Trouble::Method => (
                format!("   skipping: {}  unsupported compression method {}\n", padded(&name), entry.method),
                81,
            ),
            Trouble::Output(error) => (format!("\n{name}:  write error ({error})\n"), 50),
            Trouble::Input(error) => (format!("\n{name}:  read error ({error})\n"), 51),
        };
        // Where names are not shown, what is wrong is said with one.
        if self.act == Act::Pipe && matches!(trouble, Trouble::Checksum(_)) {
            say(format!("{} ", padded(&name)));
        }
        say(words);
        self.code = self.code.max(code);
        false
    }

    /// The path of a file, below the directory it goes to. Nothing for what has none.
    fn target(&mut self, entry: &Entry, out: &mut Out) -> Option<Vec<u8>> {
        let mut name = entry.name.clone();
        if self.lower && entry.made_by >> 8 != 3 {
            name.make_ascii_lowercase();
        }
        if self.junk_paths {
            if entry.is_dir() {
                return None;
            }
            name = files::base_name(&name).to_vec();
        }
        let is_absolute = name.starts_with(b"/");
        let parts: Vec<&[u8]> = name.split(|&byte| byte == b'/').filter(|part| !part.is_empty()).collect();
        let leads_up = parts.contains(&b"..".as_slice());
        let kept: Vec<&[u8]> = parts
            .into_iter()
            .filter(|part| self.absolute || *part != b"..")
            .filter(|part| *part != b".")
            .collect();
        if is_absolute {
            self.warn(out, format!("warning:  stripped absolute path spec from {}\n", shown(&name)));
        }
        if leads_up && !self.absolute {
            self.warn(out, format!("warning:  skipped \"../\" path component(s) in {}\n", shown(&name)));
        }
        let path = kept.join(&b'/');
        if path.is_empty() || path.contains(&0) {
            self.warn(out, format!("mapname:  conversion of {} failed\n", shown(&name)));
            return None;
        }
        Some(match &self.directory {
            Some(directory) => files::join(directory, &path),
            None => path,
        })
    }

    fn warn(&mut self, out: &mut Out, text: String) {
        out.flush();
        say(text);
        self.code = self.code.max(1);
    }

    /// What `-a` takes an entry for.
    fn kind(&self, entry: &Entry) -> &'static str {
        match (self.text, entry.is_text) {
            (Text::Flagged, true) => "[text]  ",
            (Text::Flagged, false) => "[binary]",
            _ => "",
        }
    }

    fn copy(&self, opened: &Opened, entry: &Entry, sink: &mut dyn Write) -> Result<(), Trouble> {
        match self.text == Text::All || self.text == Text::Flagged && entry.is_text {
            true => content::copy(opened.0, entry, Some(&mut Lines { inner: sink, after_return: false })),
            false => content::copy(opened.0, entry, Some(sink)),
        }
    }

    fn extract_file(&mut self, opened: &Opened, entry: &Entry, out: &mut Out) -> bool {
        let Some(target) = self.target(entry, out) else { return true };
        if entry.is_dir() {
            self.make_directory(entry, target, out);
            return true;
        }
        match self.may_write(entry, &target, out) {
            Some(true) => {}
            Some(false) => return true,
            None => return false,
        }
        self.make_parents(&target);
        if entry.is_symlink() {
            self.extract_link(opened, entry, target, out);
            return true;
        }
        if self.quiet == 0 {
            out.put(format!("{} {}  {}", verb(entry), padded(&shown(&target)), self.kind(entry)));
        }
        let product = match Product::create(&target) {
            Ok(product) => product,
            Err(error) => {
                out.put("\n");
                out.flush();
                say(format!("error:  cannot create {}\n        {error}\n", shown(&target)));
                self.code = self.code.max(50);
                return true;
            }
        };
        let result = self.copy(opened, entry, &mut product.writer());
        let is_damaged = matches!(result, Err(Trouble::Checksum(_)));
        if self.tell(out, entry, result) {
            if self.quiet == 0 {
                out.put("\n");
            }
        } else if !is_damaged {
            return self.code < 50;
        }
        let mode = entry
            .mode
            .map_or(0o666 & !umask(), |mode| mode & if self.keep_all_bits { 0o7777 } else { 0o777 });
        let finished = product.finish_plainly(mode).and_then(|()| {
            abi::set_times(Dir::CWD, &target, false, None, Some(entry.mtime.saturating_mul(1_000_000_000)))
        });
        if let Err(error) = finished {
            self.warn(out, format!("warning:  {}: {error}\n", shown(&target)));
        }
        true
    }

    fn make_directory(&mut self, entry: &Entry, target: Vec<u8>, out: &mut Out) {
        if abi::stat(Dir::CWD, &target, true).is_ok_and(|stat| stat.is_dir()) {
            return;
        }
        if self.freshen {
            return;
        }
        self.make_parents(&target);
        if self.quiet == 0 {
            out.put(format!("   creating: {}/\n", shown(&target)));
        }
        match abi::mkdir(Dir::CWD, &target, 0o777) {
            Ok(()) => self.directories.push((target, entry.clone())),
            Err(error) => {
                self.warn(
                    out,
                    format!(
                        "checkdir:  cannot create extraction directory: {}\n           {error}\n",
                        shown(&target)
                    ),
                );
                self.code = self.code.max(2);
            }
        }
    }

    fn make_parents(&self, target: &[u8]) {
        for (at, _) in target.iter().enumerate().filter(|(at, byte)| **byte == b'/' && *at > 0) {
            // What cannot be made will be missed when the file is.
            let _ = abi::mkdir(Dir::CWD, &target[..at], 0o777);
        }
    }

    /// Whether a file may be written: `None` when no further file may be.
    fn may_write(&mut self, entry: &Entry, target: &[u8], out: &mut Out) -> Option<bool> {
        let there = match abi::stat(Dir::CWD, target, false) {
            Ok(there) => there,
            Err(_) => return Some(!self.freshen),
        };
        if there.is_dir() {
            self.warn(out, format!("error:  cannot create {}\n        {}\n", shown(target), Errno::ISDIR));
            self.code = self.code.max(50);
            return Some(false);
        }
        let is_newer = entry.mtime > there.mtime.div_euclid(1_000_000_000);
        if (self.freshen || self.update) && !is_newer {
            return Some(false);
        }
        let agreed = match self.overwrite {
            Overwrite::Always => true,
            Overwrite::Never => false,
            Overwrite::Ask => self.asks(target, out)?,
        };
        if agreed {
            // The new file takes the place of the old, and of a link rather than what that leads to.
            let _ = abi::unlink(Dir::CWD, target);
        }
        Some(agreed)
    }

    fn asks(&mut self, target: &[u8], out: &mut Out) -> Option<bool> {
        out.flush();
        loop {
            say(format!("replace {}? [y]es, [n]o, [A]ll, [N]one, [r]ename: ", shown(target)));
            let mut answer = String::new();
            let length = std::io::stdin().read_line(&mut answer).unwrap_or(0);
            if length == 0 {
                say(" NULL\n(EOF or read error, treating as \"[N]one\" ...)\n");
                self.overwrite = Overwrite::Never;
                self.code = self.code.max(1);
                return Some(false);
            }
            match answer.chars().next() {
                Some('y' | 'Y') => return Some(true),
                Some('n') => return Some(false),
                Some('A') => {
                    self.overwrite = Overwrite::Always;
                    return Some(true);
                }
                Some('N') => {
                    self.overwrite = Overwrite::Never;
                    return Some(false);
                }
                _ => say(format!("error:  invalid response [{}]\n", answer.trim_end())),
            }
        }
    }

    fn extract_link(&mut self, opened: &Opened, entry: &Entry, target: Vec<u8>, out: &mut Out) {
        let mut link = Vec::new();
        // No file system takes longer ones.
        let result = match entry.unpacked {
            0..=4096 => content::copy(opened.0, entry, Some(&mut link)),
            _ => Err(Trouble::Damaged),
        };
        let shown_target = shown(&target);
        if self.quiet == 0 {
            out.put(format!("    linking: {}  ", padded(&shown_target)));
        }
        if !self.tell(out, entry, result) {
            return;
        }
        if self.quiet == 0 {
            out.put(format!("-> {} \n", shown(&link)));
        }
        // An empty file holds its place.
        match Product::create(&target).and_then(|product| product.finish_plainly(0o600)) {
            Ok(()) => self.links.push((target, link)),
            Err(error) => self.warn(out, format!("error:  cannot create {shown_target}\n        {error}\n")),
        }
    }

    /// Makes the links, then gives directories their modes and times.
    fn finish(&mut self, out: &mut Out) {
        let links = std::mem::take(&mut self.links);
        if !links.is_empty() && self.quiet == 0 {
            out.put("finishing deferred symbolic links:\n");
        }
        for (path, target) in links {
            if self.quiet == 0 {
                out.put(format!("  {} -> {}\n", padded(&shown(&path)), shown(&target)));
            }
            let made = abi::unlink(Dir::CWD, &path).and_then(|()| abi::symlink(&target, Dir::CWD, &path));
            if let Err(error) = made {
                self.warn(out, format!("symlink error: {}: {error}\n", shown(&path)));
            }
        }
        for (path, entry) in std::mem::take(&mut self.directories).into_iter().rev() {
            let time = entry.mtime.saturating_mul(1_000_000_000);
            let set =
                abi::set_times(Dir::CWD, &path, false, None, Some(time)).and_then(|()| match entry.mode {
                    Some(mode) => abi::chmod(Dir::CWD, &path, true, mode & 0o777),
                    None => Ok(()),
                });
            if let Err(error) = set {
                self.warn(out, format!("warning:  {}: {error}\n", shown(&path)));
            }
        }
    }
}

/// A name in its column, which is as wide in bytes for every name.
fn padded(name: &str) -> String {
    format!("{name}{}", " ".repeat(22usize.saturating_sub(name.len())))
}

fn verb(entry: &Entry) -> &'static str {
    match entry.method {
        format::STORED => " extracting:",
        _ => "  inflating:",
    }
}

fn usage(code: i32) -> i32 {
    let written = abi::write_all(1, USAGE.as_bytes());
    if written.is_err() { 50 } else { code }
}
