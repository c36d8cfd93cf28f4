//! `FILE.head`: where the log ends, kept in a separate file so that records missing at its end are noticed.
//!
//! ```text
//! sector 1   NUMBER FIRST LAST SIZE SYNCED BOOT HASH CHECK     a head with an odd number
//! sector 2   NUMBER FIRST LAST SIZE SYNCED BOOT HASH CHECK     one with an even number
//! ```
//!
//! Heads alternate between two sectors, so an interrupted write damages only the one that no longer counts, and the head
//! with the highest number counts. Sector 0 is where heads were before they were numbered: it is read, never written.
//!
//! SYNCED and BOOT tell what a power failure can have done. In the same boot of the machine nothing that was written is
//! lost. In a later one, everything after the first SYNCED bytes of `FILE` may be missing, and the head itself may be an
//! older one than the last that was written.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::disk::Disk;
use super::{NO_HASH, hash};

/// Where slots begin, each in a sector of its own: a disk writes a sector whole or not at all.
const SECTOR: usize = 512;
/// Five numbers of 20 digits, the boot, a hash, the first digits of the hash of all this, and separators.
const SLOT: usize = 5 * 21 + BOOT + 1 + 65 + CHECK + 1;
const CHECK: usize = 16;
const BOOT: usize = 36;
/// A complete file's length.
const WHOLE: usize = 2 * SECTOR + SLOT;
/// The slots of the time before heads were numbered: without NUMBER, SYNCED and BOOT, one after the other.
const OLD_SLOT: usize = 3 * 21 + 65 + CHECK + 1;
/// The size of a log that is being recovered: no file is that large, so the next reader checks again.
pub(super) const UNSETTLED: u64 = u64::MAX;

/// Where a log ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Its own number; 0 if it has none yet.
    pub(super) number: u64,
    /// The oldest record that is kept.
    pub(super) first: u64,
    /// The last one, 0 if there is none yet.
    pub(super) last: u64,
    /// The length of the file that it is in.
    pub(super) size: u64,
    /// How much of that file a power failure leaves.
    pub(super) synced: u64,
    /// The boot of the machine in which it was written; empty if that is not known.
    pub(super) boot: String,
    /// The hash of the last record.
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
        Head::at(1, 0, 0, NO_HASH.to_owned())
    }

    /// A head that is not written yet.
    pub(super) fn at(first: u64, last: u64, size: u64, hash: String) -> Head {
        Head { number: 0, first, last, size, synced: 0, boot: String::new(), hash }
    }

    /// Returns whether it is in the current format.
    pub(super) fn is_numbered(&self) -> bool {
        self.number > 0
    }

    /// Always the same length, so that one write replaces it.
    fn slot(&self) -> String {
        let Head { number, first, last, size, synced, boot, hash } = self;
        let boot = if boot.is_empty() { "-" } else { boot };
        let text = format!("{number:020} {first:020} {last:020} {size:020} {synced:020} {boot:BOOT$} {hash}");
        format!("{text} {}\n", check(&text))
    }

    /// Returns the text of a slot, if its check is right.
    fn checked(slot: &[u8]) -> Option<&str> {
        let text = std::str::from_utf8(slot).ok()?.strip_suffix('\n')?;
        let (text, claimed) = text.rsplit_once(' ')?;
        (claimed == check(text)).then_some(text)
    }

    fn parse_slot(slot: &[u8]) -> Option<Head> {
        let mut words = Head::checked(slot)?.split_ascii_whitespace();
        let mut number = || words.next()?.parse().ok();
        let (number, first, last, size, synced) = (number()?, number()?, number()?, number()?, number()?);
        let boot = words.next().filter(|boot| *boot != "-").unwrap_or_default().to_owned();
        let hash = words.next()?.to_owned();
        let head = Head { number, first, last, size, synced, boot, hash };
        (words.next().is_none() && number > 0).then_some(head)?.sane()
    }

    /// Reads `FIRST LAST SIZE HASH CHECK`.
    fn parse_old_slot(slot: &[u8]) -> Option<Head> {
        let mut words = Head::checked(slot)?.split(' ');
        let mut number = || words.next()?.parse().ok();
        let (first, last, size) = (number()?, number()?, number()?);
        let head = Head::at(first, last, size, words.next()?.to_owned());
        words.next().is_none().then_some(head)?.sane()
    }

    /// Reads `FIRST LAST HASH`, the one-line format used before there were slots. The log must be read to know its size.
    fn parse_line(bytes: &[u8]) -> Option<Head> {
        let mut words = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?.split(' ');
        let (first, last) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let head = Head::at(first, last, UNSETTLED, words.next()?.to_owned());
        words.next().is_none().then_some(head)?.sane()
    }

    /// No log gets to the last number, and adding to it must not overflow.
    fn sane(self) -> Option<Head> {
        let numbers = [self.number, self.first, self.last];
        (numbers.iter().all(|number| *number < u64::MAX) && self.hash.len() == NO_HASH.len()).then_some(self)
    }

    fn newest_slot(bytes: &[u8]) -> Option<Head> {
        let slot = |sector: usize| Head::parse_slot(bytes.get(sector * SECTOR..sector * SECTOR + SLOT)?);
        [slot(1), slot(2)].into_iter().flatten().max_by_key(|head| head.number)
    }

    fn parse_old(bytes: &[u8]) -> Option<Head> {
        let slot = |number: usize| {
            let head = Head::parse_old_slot(bytes.get(number * OLD_SLOT..(number + 1) * OLD_SLOT)?)?;
            // Where both slots hold the same record, the one in its own place is newer.
            let own = head.last as usize % 2 == number;
            Some((head.last, own, head))
        };
        let newest = [slot(0), slot(1)].into_iter().flatten().max_by_key(|(last, own, _)| (*last, *own));
        let line = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes, |end| &bytes[..=end]);
        newest.map(|(_, _, head)| head).or_else(|| Head::parse_line(line))
    }

    fn parse(bytes: &[u8]) -> Found {
        match Head::newest_slot(bytes).or_else(|| Head::parse_old(bytes)) {
            Some(head) => Found::Written(head),
            // The first write of all was interrupted, if there was one.
            None if bytes.is_empty() || Head::is_begun(bytes) => Found::Nothing,
            None => Found::Damaged,
        }
    }

    /// Returns whether the very first write to the file can have left this.
    fn is_begun(bytes: &[u8]) -> bool {
        (SECTOR..SECTOR + SLOT).contains(&bytes.len()) && bytes[..SECTOR].iter().all(|byte| *byte == 0)
    }

    /// Makes this the end of the log, as of now.
    pub(super) fn write(&mut self, file: &File, disk: &Disk) -> io::Result<()> {
        self.boot = disk.boot().to_owned();
        self.put(file, disk)
    }

    /// Returns whether the power may have failed since it was written: its boot and this one are known, and differ.
    pub(super) fn is_of_another_boot(&self, disk: &Disk) -> bool {
        ![disk.boot(), ""].contains(&self.boot.as_str()) && !disk.boot().is_empty()
    }

    /// Says that the log is being recovered, and leaves everything else as it was found: the next writer must see it.
    pub(super) fn write_unsettled(&self, file: &File, disk: &Disk) -> io::Result<()> {
        Head { size: UNSETTLED, ..self.clone() }.put(file, disk)
    }

    /// Writes it in the place of the head before the one that counts now.
    fn put(&mut self, file: &File, disk: &Disk) -> io::Result<()> {
        let bytes = read_bytes(file)?;
        let newest = Head::newest_slot(&bytes);
        let counts = bytes.is_empty() || newest.is_some() || Head::parse_old(&bytes).is_some();
        if bytes.len() > WHOLE || !counts {
            disk.set_len(file, 0)?;
        }
        self.number = newest.map_or(0, |newest| newest.number) + 1;
        let sector = if self.number.is_multiple_of(2) { 2 } else { 1 };
        disk.write_at(file, self.slot().as_bytes(), sector * SECTOR as u64)
    }
}

/// Reads the head from its open file.
pub(super) fn read(file: &File) -> io::Result<Found> {
    let bytes = read_bytes(file)?;
    Ok(if bytes.len() > WHOLE { Found::Damaged } else { Head::parse(&bytes) })
}

/// Everything in the file. A longer one is not a head; one more byte shows it.
fn read_bytes(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; WHOLE + 1];
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
        Head::at(1, last, last * 100, hash(&last.to_le_bytes()))
    }

    #[test]
    fn a_write_that_stops_anywhere_leaves_the_new_head_or_the_one_before() {
        let directory = tempfile::tempdir().unwrap();
        // Over the heads of records 0 to 4, over nothing, and over what another interrupted write left.
        for (last, rest) in [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (3, 1), (3, 100), (3, SLOT), (4, SLOT)] {
            for budget in 0.. {
                let file = directory.path().join("head");
                let file =
                    File::options().create(true).truncate(true).read(true).write(true).open(file).unwrap();
                let (plenty, short) = (failing(PLENTY), failing(budget));
                let mut before = head(last);
                for last in 1..=last {
                    before = head(last);
                    before.write(&file, &plenty).unwrap();
                }
                // Spoils the place of the one before the last.
                if rest > 0 {
                    let sector = if last % 2 == 0 { 1 } else { 2 };
                    file.write_all_at(&vec![b'?'; rest], sector * SECTOR as u64).unwrap();
                }
                let mut next = head(last + 1);
                let written = next.write(&file, &short);
                match read(&file).unwrap() {
                    // All but the last bytes may be enough: those can be the same.
                    Found::Written(found) if found == next => assert!(budget + 2 >= SLOT),
                    Found::Written(found) => {
                        assert!(found == before && written.is_err(), "{last}, after {budget} bytes")
                    }
                    Found::Nothing => assert!(last == 0 && budget < SLOT, "{last}, after {budget} bytes"),
                    Found::Damaged => panic!("{last}, after {budget} bytes"),
                }
                if written.is_ok() {
                    break;
                }
            }
        }
    }

    #[test]
    fn older_formats_are_read_and_replaced_without_a_gap() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("head");
        let old_slot = |head: &Head| {
            let text = format!("{:020} {:020} {:020} {}", head.first, head.last, head.size, head.hash);
            format!("{text} {}\n", check(&text))
        };
        let line = |head: &Head| format!("{:020} {:020} {}\n", head.first, head.last, head.hash);
        let unsettled = Head { size: UNSETTLED, ..head(4) };
        for (old, meant) in [(old_slot(&head(4)) + &old_slot(&head(3)), head(4)), (line(&head(4)), unsettled)]
        {
            for budget in 0..=SLOT {
                std::fs::write(&path, &old).unwrap();
                let file = File::options().read(true).write(true).open(&path).unwrap();
                assert_eq!(read(&file).unwrap(), Found::Written(meant.clone()));
                let mut next = head(5);
                let written = next.write(&file, &failing(budget));
                let found = read(&file).unwrap();
                assert_eq!(found, Found::Written(if written.is_ok() { next } else { meant.clone() }));
            }
        }
    }

    const PLENTY: usize = 1 << 20;

    fn failing(budget: usize) -> Disk {
        use crate::disk::fault::{Fault, Kind};
        Disk::failing(std::sync::Arc::new(Fault::after(Kind::Killed, budget)))
    }
}
