//! `tr`: changes, deletes and squeezes bytes.

mod pairing;
mod set;

use pairing::Given;
use set::Set;
use toolkit::args::{Parsed, Tool, bytes_of};
use toolkit::out::Out;
use toolkit::source::Source;
use toolkit::{Arguments, complain, hint_at_help, quote};

const TOOL: Tool = Tool {
    name: "tr",
    short: "+AcCdst",
    long: &[("complement", 'c'), ("delete", 'd'), ("squeeze-repeats", 's'), ("truncate-set1", 't')],
    help: "\
Usage: tr [OPTION]... STRING1 [STRING2]
Copy standard input to standard output, each byte of STRING1 as the one in its place in STRING2.

  -c, -C, --complement    STRING1 stands for all bytes that are not in it
  -d, --delete            delete the bytes of STRING1
  -s, --squeeze-repeats   of repeated bytes that the last STRING has, write one
  -t, --truncate-set1     STRING1 ends where STRING2 does
      --help        display this help and exit
      --version     output version information and exit

In a STRING there may be: \\NNN (octal), \\\\ \\a \\b \\f \\n \\r \\t \\v, ranges like a-z, classes like
[:alpha:] (alnum alpha blank cntrl digit graph lower print punct space upper xdigit), [=c=],
[c*N] for N times c (octal with a leading 0), and in STRING2 [c*] for as many as STRING1 needs.
If STRING2 is the shorter one, its last byte stands for the rest. Deleting or changing comes before squeezing.
",
    misuse: 1,
};

#[derive(Default)]
struct Options {
    complement: bool,
    delete: bool,
    squeeze: bool,
    truncate: bool,
}

/// What becomes of each byte.
struct Plan {
    /// What each becomes, where not all stay what they are.
    change: Option<[u8; 256]>,
    deleted: Option<[bool; 256]>,
    /// Of which a repetition is dropped.
    squeezed: Option<[bool; 256]>,
}

pub fn main(arguments: Arguments) -> i32 {
    let parsed = TOOL.parse(bytes_of(arguments));
    match parsed.and_then(|parsed| make_plan(&parsed)) {
        Ok(plan) => plan.carry_out(),
        Err(code) => code,
    }
}

fn make_plan(parsed: &Parsed) -> Result<Plan, i32> {
    let mut options = Options::default();
    for (letter, _) in &parsed.options {
        match letter {
            'c' | 'C' => options.complement = true,
            'd' => options.delete = true,
            's' => options.squeeze = true,
            't' => options.truncate = true,
            _ => {}
        }
    }
    check_count(&options, &parsed.operands)?;
    let says = |message: String| {
        complain("tr", message);
        1
    };
    let sets = parsed.operands.iter().map(|text| Set::parse(text).map_err(says));
    let mut sets = sets.collect::<Result<Vec<Set>, i32>>()?.into_iter();
    let first = sets.next().unwrap_or_default();
    let mut given =
        Given { complement: options.complement, truncate: options.truncate, first, second: sets.next() };
    let translates = given.second.is_some() && !options.delete;
    given.check(translates).map_err(says)?;
    let Given { first, second, .. } = &given;
    let last = second.as_ref().unwrap_or(first);
    Ok(Plan {
        change: translates.then(|| given.changes()),
        deleted: options.delete.then(|| first.members(options.complement)),
        squeezed: options.squeeze.then(|| last.members(options.complement && second.is_none())),
    })
}

/// Complains if there are not as many strings as the options want.
fn check_count(options: &Options, operands: &[Vec<u8>]) -> Result<(), i32> {
    let (delete, squeeze) = (options.delete, options.squeeze);
    let least = 1 + usize::from(delete == squeeze);
    let most = 1 + usize::from(delete <= squeeze);
    let message = match (operands.get(most), operands.last()) {
        (Some(extra), _) if operands.len() == 2 => format!(
            "extra operand {}\nOnly one string may be given when deleting without squeezing repeats.",
            quote::word(extra)
        ),
        (Some(extra), _) => format!("extra operand {}", quote::word(extra)),
        _ if operands.len() >= least => return Ok(()),
        (_, None) => "missing operand".to_owned(),
        (_, Some(last)) => {
            let reason = match squeeze {
                true => "Two strings must be given when both deleting and squeezing repeats.",
                false => "Two strings must be given when translating.",
            };
            format!("missing operand after {}\n{reason}", quote::word(last))
        }
    };
    complain("tr", message);
    hint_at_help("tr");
    Err(1)
}

impl Plan {
    fn carry_out(&self) -> i32 {
        let mut out = Out::new("tr");
        let (mut left, mut last) = (Vec::new(), None);
        let done = Source::open(b"-").and_then(|source| {
            source.for_blocks(|block| {
                if let Some(change) = &self.change {
                    translate(block, change);
                }
                match (&self.deleted, &self.squeezed) {
                    (None, None) => out.buffer().extend_from_slice(block),
                    (Some(deleted), None) => delete(block, deleted, out.buffer()),
                    (None, Some(squeezed)) => squeeze(block, squeezed, &mut last, out.buffer()),
                    (Some(deleted), Some(squeezed)) => {
                        left.clear();
                        delete(block, deleted, &mut left);
                        squeeze(&left, squeezed, &mut last, out.buffer());
                    }
                }
                out.settle();
            })
        });
        match done {
            Ok(()) => 0,
            Err(error) => {
                out.complain(format_args!("read error: {error}"));
                1
            }
        }
    }
}

fn translate(block: &mut [u8], change: &[u8; 256]) {
    let (eights, rest) = block.as_chunks_mut::<8>();
    // Eight at a time, so that the loop itself costs little.
    for bytes in eights {
        *bytes = bytes.map(|byte| change[usize::from(byte)]);
    }
    for byte in rest {
        *byte = change[usize::from(*byte)];
    }
}

/// How much is filtered at a time: a power of two, so that a mask keeps every place within it.
const PART: usize = 4096;

/// Copies what is to be kept.
fn filter(block: &[u8], mut keeps: impl FnMut(u8) -> bool, out: &mut Vec<u8>) {
    let mut kept = [0; PART];
    for part in block.chunks(PART) {
        let mut count = 0;
        for &byte in part {
            // Written even where it does not stay: that is quicker than to decide.
            kept[count % PART] = byte;
            count += usize::from(keeps(byte));
        }
        out.extend_from_slice(&kept[..count]);
    }
}

/// Eight bytes at a time: a turn of a loop costs as much as a byte.
fn delete(block: &[u8], deleted: &[bool; 256], out: &mut Vec<u8>) {
    let stays = deleted.map(|deleted| u8::from(!deleted));
    let mut kept = [0; PART];
    for part in block.chunks(PART) {
        let mut count = 0;
        let (eights, rest) = part.as_chunks();
        for &[a, b, c, d, e, f, g, h] in eights {
            count = keep(a, &stays, count, &mut kept);
            count = keep(b, &stays, count, &mut kept);
            count = keep(c, &stays, count, &mut kept);
            count = keep(d, &stays, count, &mut kept);
            count = keep(e, &stays, count, &mut kept);
            count = keep(f, &stays, count, &mut kept);
            count = keep(g, &stays, count, &mut kept);
            count = keep(h, &stays, count, &mut kept);
        }
        for &byte in rest {
            count = keep(byte, &stays, count, &mut kept);
        }
        out.extend_from_slice(&kept[..count]);
    }
}

/// Writes a byte even where it does not stay: that is quicker than to decide. Answers how many stay by now.
#[inline(always)]
fn keep(byte: u8, stays: &[u8; 256], count: usize, kept: &mut [u8; PART]) -> usize {
    kept[count % PART] = byte;
    count + usize::from(stays[usize::from(byte)])
}

/// Copies a block without repetitions; what came last before it counts.
fn squeeze(block: &[u8], squeezed: &[bool; 256], last: &mut Option<u8>, out: &mut Vec<u8>) {
    // No byte is like one that is not there.
    let mut before = last.map_or(u16::MAX, u16::from);
    let keeps = |byte: u8| {
        let same = std::mem::replace(&mut before, u16::from(byte)) == u16::from(byte);
        !(same & squeezed[usize::from(byte)])
    };
    filter(block, keeps, out);
    *last = block.last().copied().or(*last);
}
