//! `FILE.head`: where the log ends, kept in a separate file so that records missing at its end are noticed.
//!
//! ```text
//! slot 0   FIRST LAST SIZE HASH CHECK     the end after a record with an even number
//! slot 1   FIRST LAST SIZE HASH CHECK     the end after one with an odd number
//! ```
//!
//! Records alternate between the slots, so an interrupted write damages only a slot that no longer counts: that of the
//! record before the last.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::disk::Disk;
use super::{NO_HASH, hash};

/// Three numbers of 20 digits, a hash, the first digits of the hash of all this, and separators.
const SLOT: usize = 3 * 21 + 65 + CHECK + 1;
const CHECK: usize = 16;
/// The size of a log that is being recovered: no file is that large, so the next reader checks again.
pub(super) const UNSETTLED: u64 = u64::MAX;

/// Where a log ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The oldest record that is kept.
    pub(super) first: u64,
    /// The last one, 0 if there is none yet.
    pub(super) last: u64,
    /// The length of the file that it is in.
    pub(super) size: u64,
    /// Its hash.
    pub(super) hash: String,
}

/// What was found in place of a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Written(Head),
    /// Nothing: no record was ever acknowledged, or the file was removed.
    Nothing,
    /// Something that no log wrote.
    Damaged,
}

impl Head {
    /// The head of a log without records.
    pub(super) fn none() -> Head {
        Head { first: 1, last: 0, size: 0, hash: NO_HASH.to_owned() }
    }

    /// Always the same length, so that one write replaces it.
    fn slot(&self) -> String {
        let text = format!("{:020} {:020} {:020} {}", self.first, self.last, self.size, self.hash);
        format!("{text} {}\n", check(&text))
    }

    fn parse_slot(slot: &[u8]) -> Option<Head> {
        let text = std::str::from_utf8(slot).ok()?.strip_suffix('\n')?;
        let (text, claimed) = text.rsplit_once(' ')?;
        let mut words = text.split(' ');
        let head = Head {
            first: words.next()?.parse().ok()?,
            last: words.next()?.parse().ok()?,
            size: words.next()?.parse().ok()?,
            hash: words.next()?.to_owned(),
        };
        // No log gets there, and adding to it must not overflow.
        let sane = head.first < u64::MAX && head.last < u64::MAX;
        (words.next().is_none() && sane && claimed == check(text)).then_some(head)
    }

    /// Reads `FIRST LAST HASH`, the one-line format used before there were slots. The log must be read to know its size.
    fn parse_line(bytes: &[u8]) -> Option<Head> {
        let mut words = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?.split(' ');
        let (first, last) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let head = Head { first, last, size: UNSETTLED, hash: words.next()?.to_owned() };
        let sane = first < u64::MAX && last < u64::MAX && head.hash.len() == NO_HASH.len();
        (words.next().is_none() && sane).then_some(head)
    }

    fn parse(bytes: &[u8]) -> Found {
        let slot = |number: u64| {
            let at = number as usize * SLOT;
            let head = Head::parse_slot(bytes.get(at..at + SLOT)?)?;
            // Where both slots hold the same record, the one in its own place is newer.
            let own = head.last % 2 == number;
            Some((head.last, own, head))
        };
        let newest = [slot(0), slot(1)].into_iter().flatten().max_by_key(|(last, own, _)| (*last, *own));
        match newest.map(|(_, _, head)| head).or_else(|| Head::parse_line(bytes)) {
            Some(head) => Found::Written(head),
            // The first write of all was interrupted, if there was one.
            None if bytes.len() < 2 * SLOT => Found::Nothing,
            None => Found::Damaged,
        }
    }

    /// Makes this the end of the log, replacing `before`. A slot is overwritten only while the other one is good.
    pub(super) fn write(&self, before: &Head, file: &File, disk: &Disk) -> io::Result<()> {
        let at = |slot: u64| slot * SLOT as u64;
        let (own, other) = (self.last % 2, 1 - self.last % 2);
        let bytes = read_bytes(file)?;
        if bytes.len() > 2 * SLOT {
            disk.set_len(file, 0)?;
        }
        let slot = bytes.get(at(other) as usize..at(other + 1) as usize);
        if slot.and_then(Head::parse_slot).is_none() {
            disk.write_at(file, before.slot().as_bytes(), at(other))?;
        }
        disk.write_at(file, self.slot().as_bytes(), at(own))
    }
}

/// Reads the head from its open file.
pub(super) fn read(file: &File) -> io::Result<Found> {
    let bytes = read_bytes(file)?;
    Ok(if bytes.len() > 2 * SLOT { Found::Damaged } else { Head::parse(&bytes) })
}

/// Both slots. A longer file is not a head; one more byte shows it.
fn read_bytes(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 2 * SLOT + 1];
    let mut length = 0;
    loop {
        match file.read_at(&mut bytes[length..], length as u64)? {
            0 => break,
            more => length += more,
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// Returns the path of a log's head.
pub(super) fn head_path(path: &Path) -> PathBuf {
    super::with_suffix(path, "head")
}

fn check(text: &str) -> String {
    let mut check = hash(text.as_bytes());
    check.truncate(CHECK);
    check
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(last: u64) -> Head {
        if last == 0 {
            return Head::none();
        }
        Head { first: 1, last, size: last * 100, hash: hash(&last.to_le_bytes()) }
    }

    #[test]
    fn a_write_that_stops_anywhere_leaves_the_new_head_or_the_one_before() {
        let directory = tempfile::tempdir().unwrap();
        // Over the heads of records 0 to 4, over nothing, and over what another interrupted write left.
        for (last, rest) in
            [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (3, 1), (3, 100), (3, SLOT + 9), (4, SLOT + 9)]
        {
            for budget in 0.. {
                let file = directory.path().join("head");
                let file =
                    File::options().create(true).truncate(true).read(true).write(true).open(file).unwrap();
                let (plenty, short) = (failing(PLENTY), failing(budget));
                for before in 1..=last {
                    head(before).write(&head(before - 1), &file, &plenty).unwrap();
                }
                // Spoils the slot of the one before the last.
                let spoilt = vec![b'?'; rest.min(SLOT)];
                file.write_all_at(&spoilt, (last + 1) % 2 * SLOT as u64).unwrap();
                let written = head(last + 1).write(&head(last), &file, &short);
                match read(&file).unwrap() {
                    // All but the last bytes may be enough: those can be the same.
                    Found::Written(found) if found == head(last + 1) => assert!(budget + 2 >= SLOT),
                    Found::Written(found) => {
                        assert!(found == head(last) && written.is_err(), "{last}, after {budget} bytes")
                    }
                    Found::Nothing => assert!(last == 0 && budget < 2 * SLOT, "{last}, after {budget} bytes"),
                    Found::Damaged => panic!("{last}, after {budget} bytes"),
                }
                if written.is_ok() {
                    break;
                }
            }
        }
    }

    const PLENTY: usize = 1 << 20;

    fn failing(budget: usize) -> Disk {
        use crate::disk::fault::{Fault, Kind};
        Disk { fault: Some(std::sync::Arc::new(Fault::after(Kind::Killed, budget))) }
    }
}
