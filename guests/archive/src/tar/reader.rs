//! Reads an archive member by member, with the names, sizes and times that other headers give it.

use super::header::{self, BLOCK, Block, Kind, Member, field};
use std::io::{self, Read};

/// Names and lists of headers are kept in memory: no longer than this.
const LONGEST_HEADER: u64 = 4 << 20;

/// What ends the reading of an archive.
#[derive(Debug)]
pub enum Broken {
    /// It stops in the middle of something.
    Cut,
    /// It cannot be read, or what compresses it is damaged.
    Unreadable(io::Error),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Broken {
        Broken::Unreadable(error)
    }
}

/// What comes next in an archive.
pub enum Next {
    Member(Box<Member>),
    /// A block that should be a header and is none.
    Nonsense,
    /// The end; `marked` with the two blocks of zeros.
    End {
        lone_zero_block: bool,
    },
}

/// An archive being read.
pub struct Reader {
    source: Box<dyn Read>,
    /// How many bytes were read.
    pub position: u64,
    /// Where the header of the last member began.
    pub member_at: u64,
    /// Of the current member's content, what was not read yet, and what follows it to the end of a block.
    left: u64,
    padding: u64,
    global: Vec<(Vec<u8>, Vec<u8>)>,
    pub ignores_zeros: bool,
}

impl Reader {
    pub fn new(source: Box<dyn Read>) -> Reader {
        let global = Vec::new();
        Reader { source, position: 0, member_at: 0, left: 0, padding: 0, global, ignores_zeros: false }
    }

    /// Fills a buffer as far as the archive goes.
    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.source.read(&mut buffer[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        self.position += filled as u64;
        Ok(filled)
    }

    fn block(&mut self) -> io::Result<Option<Block>> {
        let mut block = [0; BLOCK];
        Ok((self.fill(&mut block)? == BLOCK).then_some(block))
    }

    /// Goes to the next member, past what was not read of this one.
    pub fn next(&mut self) -> Result<Next, Broken> {
        self.skip_content()?;
        let mut extras = Extras::default();
        self.member_at = self.position;
        loop {
            let Some(block) = self.block()? else { return Ok(Next::End { lone_zero_block: false }) };
            if block.iter().all(|&byte| byte == 0) {
                if self.ignores_zeros {
                    self.member_at = self.position;
                    continue;
                }
                let second = self.block()?;
                let lone = second.is_some_and(|block| block.iter().any(|&byte| byte != 0));
                return Ok(Next::End { lone_zero_block: lone });
            }
            if !header::is_valid(&block) {
                return Ok(Next::Nonsense);
            }
            match block[field::TYPE] {
                b'x' | b'X' => extras.pax.extend(parse_records(&self.long_content(&block)?)),
                b'g' => {
                    let records = parse_records(&self.long_content(&block)?);
                    self.global.extend(records);
                }
                b'L' => extras.name = Some(header::text(&self.long_content(&block)?).to_vec()),
                b'K' => extras.link = Some(header::text(&self.long_content(&block)?).to_vec()),
                _ => {
                    let Some(member) = self.member(&block, extras)? else { return Ok(Next::Nonsense) };
                    return Ok(Next::Member(Box::new(member)));
                }
            }
        }
    }

    /// The content of a header that only describes the next.
    fn long_content(&mut self, block: &Block) -> Result<Vec<u8>, Broken> {
        let size = header::number(&block[field::SIZE]).and_then(|size| u64::try_from(size).ok());
        let size = size.filter(|size| *size <= LONGEST_HEADER).ok_or(Broken::Cut)?;
        let mut content = vec![0; size.next_multiple_of(BLOCK as u64) as usize];
        if self.fill(&mut content)? < content.len() {
            return Err(Broken::Cut);
        }
        content.truncate(size as usize);
        Ok(content)
    }

    fn member(&mut self, block: &Block, extras: Extras) -> Result<Option<Member>, Broken> {
        let Some(mut member) = header::parse(block) else { return Ok(None) };
        if let Some(name) = extras.name {
            member.name = name;
        }
        if let Some(link) = extras.link {
            member.link = link;
        }
        let mut sparse = PaxSparse::default();
        let records: Vec<_> = self.global.iter().chain(&extras.pax).cloned().collect();
        for (key, value) in &records {
            apply(&mut member, &mut sparse, key, value);
        }
        if member.kind == Kind::File && member.name.ends_with(b"/") {
            member.kind = Kind::Directory;
        }
        self.left = member.stored;
        self.padding = member.stored.wrapping_neg() % BLOCK as u64;
        if member.kind == Kind::Sparse {
            member.map = Some(self.gnu_map(block)?);
            member.size =
                header::number(&block[field::REAL_SIZE]).and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
            member.kind = Kind::File;
        }
        if let Some(size) = sparse.size {
            member.size = size;
            member.map = Some(if sparse.in_content { self.content_map()? } else { sparse.map });
        }
        Ok(Some(member))
    }

    /// The map of GNU's own sparse files: in the header, then in blocks after it.
    fn gnu_map(&mut self, block: &Block) -> Result<Vec<(u64, u64)>, Broken> {
        let mut map = Vec::new();
        let mut take = |fields: &[u8]| {
            for pair in fields.chunks_exact(24) {
                let number =
                    |bytes: &[u8]| header::number(bytes).and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
                if pair[12] != 0 {
                    map.push((number(&pair[..12]), number(&pair[12..])));
                }
            }
        };
        take(&block[field::SPARSE]);
        let mut more = block[field::SPARSE_MORE] != 0;
        while more {
            let block = self.block()?.ok_or(Broken::Cut)?;
            take(&block[..504]);
            more = block[504] != 0;
        }
        Ok(map)
    }

    /// The map of pax' sparse files of version 1.0: decimal lines at the start of the content.
    fn content_map(&mut self) -> Result<Vec<(u64, u64)>, Broken> {
        let mut numbers = Vec::new();
        let mut digits = Vec::new();
        let mut wanted = None;
        while wanted != Some(numbers.len()) {
            let mut block = [0; BLOCK];
            if self.left < BLOCK as u64 || self.fill(&mut block)? < BLOCK {
                return Err(Broken::Cut);
            }
            self.left -= BLOCK as u64;
            for &byte in &block {
                if wanted == Some(numbers.len()) {
                    break;
                }
                match byte {
                    b'\n' => {
                        numbers.push(toolkit::input::number::<u64>(&digits).ok_or(Broken::Cut)?);
                        digits.clear();
                    }
                    byte if digits.len() < 20 => digits.push(byte),
                    _ => return Err(Broken::Cut),
                }
                if wanted.is_none() && numbers.len() == 1 {
                    let pairs = usize::try_from(numbers.remove(0)).ok().filter(|pairs| *pairs < 1 << 20);
                    wanted = Some(pairs.ok_or(Broken::Cut)? * 2);
                }
            }
        }
        Ok(numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
    }

    /// Reads content of the current member; nothing at its end.
    pub fn read_content(&mut self, buffer: &mut [u8]) -> Result<usize, Broken> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let count = self.fill(&mut buffer[..most])?;
        // Of an archive that ends too early, only whole blocks count.
        let count = if count < most { count - count % BLOCK } else { count };
        if count == 0 {
            return Err(Broken::Cut);
        }
        self.left -= count as u64;
        Ok(count)
    }

    fn skip_content(&mut self) -> Result<(), Broken> {
        let mut buffer = [0; 16 * 1024];
        let mut large = Vec::new();
        while self.left > 0 {
            let buffer = if self.left > buffer.len() as u64 {
                large.resize(crate::stream::CHUNK, 0);
                large.as_mut_slice()
            } else {
                buffer.as_mut_slice()
            };
            self.read_content(buffer)?;
        }
        let padding = std::mem::take(&mut self.padding) as usize;
        if self.fill(&mut buffer[..padding])? < padding {
            return Err(Broken::Cut);
        }
        Ok(())
    }

    /// Reads what follows the end, so that who writes it is not cut off.
    pub fn drain(&mut self) {
        let mut buffer = [0; 16 * 1024];
        while matches!(self.source.read(&mut buffer), Ok(count) if count > 0) {}
    }
}

/// What headers before a member say of it.
#[derive(Default)]
struct Extras {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    pax: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What pax' records say of a sparse file.
#[derive(Default)]
struct PaxSparse {
    size: Option<u64>,
    in_content: bool,
    map: Vec<(u64, u64)>,
    offset: u64,
}

/// The records `LENGTH KEY=VALUE\n` of an extended header, up to the first that is none.
fn parse_records(content: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut records = Vec::new();
    let mut rest = content;
    while let Some(space) = rest.iter().position(|&byte| byte == b' ') {
        let length = toolkit::input::number::<usize>(&rest[..space]);
        let record = length.and_then(|length| rest.get(space + 1..length.max(space + 1)));
        let Some(record) = record.and_then(|record| record.strip_suffix(b"\n")) else { break };
        let Some(equals) = record.iter().position(|&byte| byte == b'=') else { break };
        records.push((record[..equals].to_vec(), record[equals + 1..].to_vec()));
        rest = &rest[length.unwrap_or(rest.len())..];
    }
    records
}

fn apply(member: &mut Member, sparse: &mut PaxSparse, key: &[u8], value: &[u8]) {
    let number = || toolkit::input::number::<u64>(value);
    match key {
        b"path" => member.name = value.to_vec(),
        b"linkpath" => member.link = value.to_vec(),
        b"size" => {
            if let Some(size) = number() {
                (member.size, member.stored) =
                    (size, if member.stored == 0 && size > 0 && !has_content(member) { 0 } else { size });
            }
        }
        b"mtime" => member.mtime = time(value).unwrap_or(member.mtime),
        b"uid" => member.uid = number().unwrap_or(member.uid),
        b"gid" => member.gid = number().unwrap_or(member.gid),
        b"uname" => member.owner = value.to_vec(),
        b"gname" => member.group = value.to_vec(),
        b"GNU.sparse.size" | b"GNU.sparse.realsize" => sparse.size = number(),
        b"GNU.sparse.name" => member.name = value.to_vec(),
        b"GNU.sparse.major" => sparse.in_content |= value == b"1",
        b"GNU.sparse.offset" => sparse.offset = number().unwrap_or(0),
        b"GNU.sparse.numbytes" => sparse.map.push((sparse.offset, number().unwrap_or(0))),
        b"GNU.sparse.map" => {
            let numbers: Vec<u64> =
                value.split(|&byte| byte == b',').filter_map(toolkit::input::number::<u64>).collect();
            sparse.map = numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        }
        _ => {}
    }
}

fn has_content(member: &Member) -> bool {
    matches!(member.kind, Kind::File | Kind::Sparse | Kind::Unknown(_))
}

/// Seconds with a fraction, as nanoseconds.
pub fn time(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds: i64 = whole.parse().ok()?;
    let mut digits: String = fraction.chars().take(9).collect();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    while digits.len() < 9 {
        digits.push('0');
    }
    let nanos: i64 = digits.parse().ok()?;
    let nanos = if whole.starts_with('-') { -nanos } else { nanos };
    seconds.checked_mul(1_000_000_000)?.checked_add(nanos)
}
