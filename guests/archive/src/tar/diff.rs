//! `tar -d`: where files differ from what an archive has of them.

use super::header::{Kind, Member};
use super::list::{Lister, complain, quoted};
use super::options::Options;
use super::select::{Matching, Wanted};
use super::{Report, Source, enter, is_excluded, tell_missing};
use crate::squeeze::Opened;
use crate::stream::CHUNK;
use std::io::Read;
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Stat};

pub fn diff(options: &Options, matching: &Matching, report: &mut Report) -> Result<(), i32> {
    compare_all(options, matching, report, "")
}

/// `-W`: looks whether all is in the archive as it is on disk.
pub fn verify(options: &Options, report: &mut Report) -> Result<(), i32> {
    compare_all(options, &Matching::default(), report, "Verify ")
}

/// Compares members; each name shown follows a word.
fn compare_all(options: &Options, matching: &Matching, report: &mut Report, word: &str) -> Result<(), i32> {
    let mut source = Source::open(options)?;
    if let Some(directory) = &options.directory {
        enter(directory, &abi::getcwd().unwrap_or_default())?;
    }
    let mut wanted = Wanted::new(&options.names, matching);
    let mut lister = Lister::new(options, 1);
    while let Some(member) = source.next(report)? {
        if is_excluded(options, &member.name) || wanted.find(&member.name).is_none() {
            continue;
        }
        if lister.level() > 0 {
            lister.put(word);
            lister.show(&member, &member.name, lister.level() > 1 && word.is_empty());
        }
        let name = report.safe_name(&member.name, options.absolute, "member names");
        let differences = match compare(&mut source, &member, &name) {
            Ok(differences) => differences,
            Err(broken) => {
                return Err(source.give_up(broken));
            }
        };
        for difference in differences {
            match difference {
                Difference::Missing(error) => {
                    complain(format_args!("{}: Warning: Cannot stat: {error}", quoted(&member.name)));
                }
                Difference::Words(words) => lister.line(&format!("{}: {words}", quoted(&member.name))),
            }
            report.set_code(1);
        }
    }
    if word.is_empty() {
        source.tell_total(options);
    }
    tell_missing(&wanted, report);
    Ok(())
}

enum Difference {
    Missing(Errno),
    Words(String),
}

fn compare(
    source: &mut Source,
    member: &Member,
    name: &[u8],
) -> Result<Vec<Difference>, super::reader::Broken> {
    let words = |words: &str| Difference::Words(words.to_owned());
    let stat = match abi::stat(Dir::CWD, name, false) {
        Ok(stat) => stat,
        Err(error) => return Ok(vec![Difference::Missing(error)]),
    };
    let is_same_kind = match member.kind {
        Kind::File | Kind::Sparse | Kind::Unknown(_) => stat.is_file(),
        Kind::Directory => stat.is_dir(),
        Kind::Symlink => stat.is_symlink(),
        Kind::Fifo => stat.is_fifo(),
        Kind::Character => stat.is_char(),
        Kind::BlockDevice => stat.is_block(),
        Kind::HardLink => return Ok(compare_link(member, &stat)),
        Kind::VolumeLabel => return Ok(Vec::new()),
    };
    if !is_same_kind {
        return Ok(vec![words("File type differs")]);
    }
    let mut found = Vec::new();
    if member.kind == Kind::Symlink {
        if abi::readlink(Dir::CWD, name).ok().as_deref() != Some(&member.link) {
            found.push(words("Symlink differs"));
        }
        return Ok(found);
    }
    if stat.mode & 0o7777 != member.mode {
        found.push(words("Mode differs"));
    }
    if member.kind == Kind::Directory {
        return Ok(found);
    }
    if u64::from(stat.uid) != member.uid {
        found.push(words("Uid differs"));
    }
    if u64::from(stat.gid) != member.gid {
        found.push(words("Gid differs"));
    }
    if stat.mtime.div_euclid(1_000_000_000) != member.mtime.div_euclid(1_000_000_000) {
        found.push(words("Mod time differs"));
    }
    if stat.size != member.size {
        found.push(words("Size differs"));
    } else if member.map.is_none() && !has_same_content(source, name)? {
        found.push(words("Contents differ"));
    }
    Ok(found)
}

fn compare_link(member: &Member, stat: &Stat) -> Vec<Difference> {
    let target = abi::stat(Dir::CWD, &member.link, false);
    if target.is_ok_and(|target| (target.dev, target.ino) == (stat.dev, stat.ino)) {
        return Vec::new();
    }
    vec![Difference::Words(format!("Not linked to {}", quoted(&member.link)))]
}

fn has_same_content(source: &mut Source, name: &[u8]) -> Result<bool, super::reader::Broken> {
    let Ok(opened) = Opened::read(name) else { return Ok(false) };
    let mut file = crate::stream::Input::of(opened.0);
    let (mut ours, mut theirs) = (vec![0; CHUNK], vec![0; CHUNK]);
    loop {
        let count = source.reader.read_content(&mut theirs)?;
        if count == 0 {
            return Ok(true);
        }
        if file.read_exact(&mut ours[..count]).is_err() || ours[..count] != theirs[..count] {
            return Ok(false);
        }
    }
}
