//! Writes an archive: headers, the longer headers before them, and content in whole blocks.

use super::header::{self, BLOCK, Format, Kind, Member, field};
use crate::stream::CHUNK;
use std::io::{self, Write};

/// An archive being written, collected into large pieces.
pub struct Writer {
    sink: Box<dyn Write>,
    buffer: Vec<u8>,
    pub written: u64,
    format: Format,
    /// An archive is a multiple of this long.
    record: u64,
    pub pax: PaxTimes,
}

/// Which times a pax archive keeps to the nanosecond, besides that of the last change.
#[derive(Clone, Copy, Default)]
pub struct PaxTimes {
    pub atime: Option<i64>,
    pub ctime: Option<i64>,
}

impl Writer {
    pub fn new(sink: Box<dyn Write>, format: Format, record: u64) -> Writer {
        let pax = PaxTimes::default();
        Writer { sink, buffer: Vec::with_capacity(CHUNK + BLOCK), written: 0, format, record, pax }
    }

    pub fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        if self.buffer.len() + bytes.len() > CHUNK {
            self.sink.write_all(&self.buffer)?;
            self.buffer.clear();
            if bytes.len() >= CHUNK {
                return self.sink.write_all(bytes);
            }
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Fills the last block of a content of this length.
    pub fn pad(&mut self, length: u64) -> io::Result<()> {
        let padding = (length.wrapping_neg() % BLOCK as u64) as usize;
        self.put(&[0; BLOCK][..padding])
    }

    /// Marks the end and fills the last record.
    pub fn finish(mut self) -> io::Result<()> {
        self.put(&[0; 2 * BLOCK])?;
        while !self.written.is_multiple_of(self.record) {
            self.put(&[0; BLOCK])?;
        }
        self.sink.write_all(&self.buffer)?;
        self.sink.flush()
    }

    /// Writes a member's header and those before it. The error is what cannot be said in this format.
    pub fn member(&mut self, member: &Member) -> Result<io::Result<()>, &'static str> {
        match self.format {
            Format::Gnu => Ok(self.gnu_member(member)),
            Format::Pax => Ok(self.pax_member(member)),
            Format::Ustar | Format::V7 => self.plain_member(member),
        }
    }

    fn gnu_member(&mut self, member: &Member) -> io::Result<()> {
        if member.link.len() > field::LINK.len() {
            self.long(b'K', &member.link)?;
        }
        if member.name.len() > field::NAME.len() {
            self.long(b'L', &member.name)?;
        }
        self.put(&header::compose(member, Format::Gnu))?;
        header::more_pieces(member).iter().try_for_each(|block| self.put(block))
    }

    /// A name too long for a header, as the content of one before it.
    fn long(&mut self, letter: u8, text: &[u8]) -> io::Result<()> {
        let mut header = Member::named(b"././@LongLink", Kind::Unknown(letter));
        header.stored = text.len() as u64 + 1;
        (header.owner, header.group) = (b"root".to_vec(), b"root".to_vec());
        header.mode = 0o644;
        self.put(&header::compose(&header, Format::Gnu))?;
        self.put(text)?;
        self.put(b"\0")?;
        self.pad(text.len() as u64 + 1)
    }

    /// Whether a link's name will be cut, for the format has no place for the rest.
    pub fn is_link_too_long(&self, member: &Member) -> bool {
        matches!(self.format, Format::Ustar | Format::V7) && member.link.len() > field::LINK.len()
    }

    fn plain_member(&mut self, member: &Member) -> Result<io::Result<()>, &'static str> {
        let mut short = member.clone();
        let mut prefix = Vec::new();
        if member.name.len() > field::NAME.len() {
            let at = if self.format == Format::Ustar { split(&member.name) } else { None };
            let Some(at) = at else {
                return Err(if self.format == Format::Ustar {
                    "file name is too long (cannot be split); not dumped"
                } else {
                    "file name is too long (max 99); not dumped"
                });
            };
            prefix = member.name[..at].to_vec();
            short.name = member.name[at + 1..].to_vec();
        }
        if !header::fits(member.stored, 12) {
            return Err("value out of range; not dumped");
        }
        let mut block = header::compose(&short, self.format);
        header::put_text(&mut block[field::PREFIX], &prefix);
        header::seal(&mut block);
        Ok(self.put(&block))
    }

    fn pax_member(&mut self, member: &Member) -> io::Result<()> {
        let mut records = Vec::new();
        let fits_in = |text: &[u8], length: usize| text.len() <= length && text.is_ascii();
        if !fits_in(&member.link, field::LINK.len()) {
            add_record(&mut records, "linkpath", &member.link);
        }
        if !fits_in(&member.name, field::NAME.len()) {
            add_record(&mut records, "path", &member.name);
        }
        for (key, value, length) in
            [("uid", member.uid, 8), ("gid", member.gid, 8), ("size", member.stored, 12)]
        {
            if !header::fits(value, length) {
                add_record(&mut records, key, value.to_string().as_bytes());
            }
        }
        let seconds = member.mtime.div_euclid(1_000_000_000);
        if member.mtime.rem_euclid(1_000_000_000) != 0 || seconds < 0 || !header::fits(seconds as u64, 12) {
            add_record(&mut records, "mtime", time_text(member.mtime).as_bytes());
        }
        for (key, time) in [("atime", self.pax.atime), ("ctime", self.pax.ctime)] {
            if let Some(time) = time {
                add_record(&mut records, key, time_text(time).as_bytes());
            }
        }
        for (key, name) in [("uname", &member.owner), ("gname", &member.group)] {
            if !fits_in(name, 31) {
                add_record(&mut records, key, name);
            }
        }
        if !records.is_empty() {
            self.extended_header(member, &records)?;
        }
        self.put(&header::compose(member, Format::Pax))
    }

    fn extended_header(&mut self, member: &Member, records: &[u8]) -> io::Result<()> {
        let name = member.name.strip_suffix(b"/").unwrap_or(&member.name);
        let directory = toolkit::files::parent(name);
        let base = toolkit::files::base_name(name);
        let mut header =
            Member::named(&[&directory, b"/PaxHeaders/".as_slice(), base].concat(), Kind::Unknown(b'x'));
        header.mode = 0o644;
        header.stored = records.len() as u64;
        header.mtime = member.mtime;
        let mut block = header::compose(&header, Format::Pax);
        block[field::MAJOR].fill(0);
        block[field::MINOR].fill(0);
        header::seal(&mut block);
        self.put(&block)?;
        self.put(records)?;
        self.pad(records.len() as u64)
    }
}

/// Where to split a name so that both parts fit into a header.
fn split(name: &[u8]) -> Option<usize> {
    let longest = name.len().min(field::PREFIX.len() + 1);
    let within = name.strip_suffix(b"/").unwrap_or(name).len().min(longest);
    let at = name[..within].iter().rposition(|&byte| byte == b'/').filter(|at| *at > 0)?;
    let rest = name.len() - at - 1;
    (rest > 0 && rest <= field::NAME.len()).then_some(at)
}

/// Adds `LENGTH KEY=VALUE\n`, whose length counts itself.
fn add_record(records: &mut Vec<u8>, key: &str, value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while rest + length.to_string().len() != length {
        length = rest + length.to_string().len();
    }
    records.extend(format!("{length} {key}=").bytes());
    records.extend(value);
    records.push(b'\n');
}

/// Seconds, and what is left of a second without zeros at its end.
fn time_text(nanos: i64) -> String {
    let (seconds, rest) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
    if rest == 0 {
        return seconds.to_string();
    }
    // What lies before 1970 counts from zero, too.
    let (sign, seconds, rest) = match seconds < 0 {
        true => ("-", -(seconds + 1), 1_000_000_000 - rest),
        false => ("", seconds, rest),
    };
    format!("{sign}{seconds}.{rest:09}").trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_its_own_length() {
        let mut records = Vec::new();
        add_record(&mut records, "path", b"abc");
        assert_eq!(records, b"12 path=abc\n");
        records.clear();
        add_record(&mut records, "path", &[b'x'; 91]);
        assert_eq!(records.len(), 101);
        assert!(records.starts_with(b"101 path="));
    }

    #[test]
    fn times_before_1970_are_read_back() {
        for nanos in [0, 1, 1_500_000_000, -1, -500_000_000, -1_500_000_000, -2_000_000_000] {
            assert_eq!(super::super::reader::time(time_text(nanos).as_bytes()), Some(nanos), "{nanos}");
        }
    }
}
