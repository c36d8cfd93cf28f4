//! Zones that are described by a table of their past, and by rules from its end on: files of the format TZif (RFC 9636).

use crate::rules::Rules;
use std::borrow::Cow;
use std::ops::Range;

#[derive(Clone, Debug)]
pub struct Table {
    data: Cow<'static, [u8]>,
    /// Where the moments of change stand, eight bytes each.
    times: Range<usize>,
    /// Where the kind of time after each stands, a byte each.
    kinds: Range<usize>,
    /// Where the kinds of time are described, six bytes each.
    types: Range<usize>,
    names: Range<usize>,
    after: Option<Rules>,
}

/// The numbers of a header: how many of each there are.
struct Header {
    utc: usize,
    standard: usize,
    leaps: usize,
    times: usize,
    types: usize,
    letters: usize,
}

const HEADER: usize = 44;

impl Header {
    fn parse(data: &[u8], at: usize) -> Option<Header> {
        let header = data.get(at..at + HEADER)?;
        if !header.starts_with(b"TZif") {
            return None;
        }
        // More than the file has is refused where it is looked for; more than this cannot be added up.
        let count = |number: usize| {
            let bytes = header.get(20 + 4 * number..24 + 4 * number)?;
            usize::try_from(u32::from_be_bytes(bytes.try_into().ok()?)).ok().filter(|count| *count < 1 << 20)
        };
        Some(Header {
            utc: count(0)?,
            standard: count(1)?,
            leaps: count(2)?,
            times: count(3)?,
            types: count(4)?,
            letters: count(5)?,
        })
    }

    /// How long what follows is, where a moment takes so many bytes.
    fn length(&self, moment: usize) -> usize {
        self.times * (moment + 1)
            + self.types * 6
            + self.letters
            + self.leaps * (moment + 4)
            + self.standard
            + self.utc
    }
}

impl Table {
    /// Reads a file of the second version of the format or a later one.
    pub fn parse(data: Cow<'static, [u8]>) -> Option<Table> {
        let first = Header::parse(&data, 0)?;
        let second_at = HEADER + first.length(4);
        let second = Header::parse(&data, second_at)?;
        let start = second_at + HEADER;
        let times = start..start + second.times * 8;
        let kinds = times.end..times.end + second.times;
        let types = kinds.end..kinds.end + second.types * 6;
        let names = types.end..types.end + second.letters;
        let footer = data.get(start + second.length(8)..)?;
        let footer = footer.strip_prefix(b"\n")?;
        let footer = &footer[..footer.iter().position(|&byte| byte == b'\n')?];
        let after = std::str::from_utf8(footer).ok().and_then(Rules::parse);
        (second.types > 0).then_some(Table { data, times, kinds, types, names, after })
    }

    /// The name, the seconds east of Greenwich, and whether it is summer time.
    pub fn at(&self, seconds: i64) -> (&str, i64, bool) {
        let passed = self.passed(seconds);
        if passed * 8 == self.times.len()
            && let Some(rules) = &self.after
        {
            return rules.at(seconds);
        }
        let kind = match passed {
            0 => 0,
            passed => self.data.get(self.kinds.start + passed - 1).copied().unwrap_or(0),
        };
        self.kind(usize::from(kind)).unwrap_or(("UTC", 0, false))
    }

    /// How many changes lie at or before a moment.
    fn passed(&self, seconds: i64) -> usize {
        let moments = self.data.get(self.times.clone()).unwrap_or_default().as_chunks::<8>().0;
        moments.partition_point(|moment| i64::from_be_bytes(*moment) <= seconds)
    }

    fn kind(&self, kind: usize) -> Option<(&str, i64, bool)> {
        let types = self.data.get(self.types.clone())?;
        let [a, b, c, d, summer, name] = *types.as_chunks::<6>().0.get(kind)?;
        let names = self.data.get(self.names.clone())?.get(usize::from(name)..)?;
        let length = names.iter().position(|&byte| byte == 0).unwrap_or(names.len());
        let name = std::str::from_utf8(&names[..length]).ok()?;
        Some((name, i64::from(i32::from_be_bytes([a, b, c, d])), summer != 0))
    }
}
