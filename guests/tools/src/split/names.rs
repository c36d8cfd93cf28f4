//! What the pieces are called: the prefix, a suffix that counts up, and what is to follow it.

use super::options::{Options, TOOL};
use toolkit::complain;

pub struct Names {
    prefix: Vec<u8>,
    additional_suffix: Vec<u8>,
    alphabet: &'static [u8],
    /// Places in the alphabet.
    suffix: Vec<usize>,
    /// The suffix gets longer before it runs out.
    grows: bool,
    is_first: bool,
}

/// How long a suffix is if nothing else is asked for.
const USUAL_LENGTH: usize = 2;

impl Names {
    pub fn new(options: &Options) -> Result<Names, i32> {
        let needed = needed_length(options);
        if options.suffix_length > 0 && options.suffix_length < needed {
            complain("split", format_args!("the suffix length needs to be at least {needed}"));
            return Err(1);
        }
        let length = match options.suffix_length {
            0 => needed.max(USUAL_LENGTH),
            // No name may be longer than this, and none that is as long can be made.
            length => length.min(64 * 1024),
        };
        let mut suffix = vec![0; length];
        if let Some(first) = &options.first {
            let Some(start) = length.checked_sub(first.len()) else {
                return Err(TOOL.wrong("numerical suffix start value is too large for the suffix length"));
            };
            for (place, digit) in suffix[start..].iter_mut().zip(first) {
                *place = options.alphabet.iter().position(|other| other == digit).unwrap_or(0);
            }
        }
        Ok(Names {
            prefix: options.prefix.clone(),
            additional_suffix: options.additional_suffix.clone(),
            alphabet: options.alphabet,
            suffix,
            grows: options.suffix_length == 0 && options.first.is_none() && options.number().is_none(),
            is_first: true,
        })
    }

    pub fn next(&mut self) -> Result<Vec<u8>, i32> {
        if !std::mem::take(&mut self.is_first) {
            self.advance()?;
        }
        let suffix = self.suffix.iter().map(|place| self.alphabet[*place]);
        Ok(self.prefix.iter().copied().chain(suffix).chain(self.additional_suffix.iter().copied()).collect())
    }

    fn advance(&mut self) -> Result<(), i32> {
        for at in (0..self.suffix.len()).rev() {
            self.suffix[at] += 1;
            if self.grows && at == 0 && self.suffix[0] + 1 == self.alphabet.len() {
                // Names stay in order: all that follow begin with the last character, which none has begun with.
                self.prefix.push(self.alphabet[self.suffix[0]]);
                self.suffix = vec![0; self.suffix.len() + 1];
                return Ok(());
            }
            if self.suffix[at] < self.alphabet.len() {
                return Ok(());
            }
            self.suffix[at] = 0;
        }
        complain("split", "output file suffixes exhausted");
        Err(1)
    }
}

/// How long suffixes must be for all pieces to have one, where their number is known.
fn needed_length(options: &Options) -> usize {
    let Some(number) = options.number() else { return 0 };
    let mut last = number - 1;
    let start = options.first.as_deref().and_then(|text| std::str::from_utf8(text).ok()?.parse::<u64>().ok());
    // Several runs that go on where the last one stopped shall not have longer and longer suffixes.
    if let Some(start) = start.filter(|start| *start < number) {
        last = last.saturating_add(start);
    }
    let mut length = 1;
    while last >= options.alphabet.len() as u64 {
        last /= options.alphabet.len() as u64;
        length += 1;
    }
    length
}
