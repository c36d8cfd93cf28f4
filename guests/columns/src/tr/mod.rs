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
    change: Option<Change>,
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
        change: translates.then(|| Change::new(given.changes())),
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
        let mut last = None;
        let done = Source::open(b"-").and_then(|source| {
            source.for_blocks(|block| {
                let kept = match &self.deleted {
                    Some(deleted) => delete(block, deleted),
                    None => block.len(),
                };
                let block = &mut block[..kept];
                if let Some(change) = &self.change {
                    change.apply(block);
                }
                match &self.squeezed {
                    Some(squeezed) => squeeze(block, squeezed, &mut last, out.buffer()),
                    None => out.buffer().extend_from_slice(block),
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

/// What each byte becomes.
struct Change {
    table: [u8; 256],
    /// The same as runs of bytes that are moved by the same distance, where they are few.
    runs: Option<[Run; FEW]>,
}

#[derive(Clone, Copy, Default)]
struct Run {
    first: u8,
    length: u8,
    distance: u8,
}

impl Run {
    fn goes_on_with(self, byte: u8, distance: u8) -> bool {
        self.distance == distance
            && self.first.checked_add(self.length) == Some(byte)
            && self.length < u8::MAX
    }
}

/// So many runs are quicker than a look at the table: the compiler does them for many bytes at once.
const FEW: usize = 3;

impl Change {
    fn new(table: [u8; 256]) -> Change {
        let mut runs: Vec<Run> = Vec::new();
        for (byte, to) in (0..=u8::MAX).zip(table) {
            let distance = to.wrapping_sub(byte);
            match runs.last_mut() {
                _ if distance == 0 => {}
                Some(run) if run.goes_on_with(byte, distance) => run.length += 1,
                _ => runs.push(Run { first: byte, length: 1, distance }),
            }
        }
        let few = runs.len() <= FEW;
        runs.resize(FEW, Run::default());
        Change { table, runs: runs.try_into().ok().filter(|_| few) }
    }

    fn apply(&self, block: &mut [u8]) {
        match &self.runs {
            Some(runs) => {
                for byte in block {
                    let moved = runs.iter().map(|run| match byte.wrapping_sub(run.first) < run.length {
                        true => run.distance,
                        false => 0,
                    });
                    *byte = byte.wrapping_add(moved.fold(0, |sum, distance| sum | distance));
                }
            }
            None => {
                for byte in block {
                    *byte = self.table[usize::from(*byte)];
                }
            }
        }
    }
}

/// Moves what stays to the front; answers how much that is.
fn delete(block: &mut [u8], deleted: &[bool; 256]) -> usize {
    let mut kept = 0;
    for at in 0..block.len() {
        let byte = block[at];
        // Written even where it does not stay: that is quicker than to decide.
        block[kept] = byte;
        kept += usize::from(!deleted[usize::from(byte)]);
    }
    kept
}

/// Copies a block without repetitions; what came last before it counts.
fn squeeze(block: &[u8], squeezed: &[bool; 256], last: &mut Option<u8>, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + block.len(), 0);
    let room = &mut out[start..];
    let mut kept = 0;
    // A byte that is not squeezed may be repeated: any other stands for none before.
    let mut before = last.map_or(u16::MAX, u16::from);
    for &byte in block {
        room[kept] = byte;
        let drop = squeezed[usize::from(byte)] && before == u16::from(byte);
        kept += usize::from(!drop);
        before = u16::from(byte);
    }
    out.truncate(start + kept);
    *last = block.last().copied().or(*last);
}
