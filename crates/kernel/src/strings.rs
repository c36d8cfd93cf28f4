//! Lists of strings as guests pass them: arguments and environment.
//!
//! A list is the block of bytes that the guest passed, each string followed by a NUL, copied once and shared by
//! everything that needs it. Two million empty strings are two million bytes, wherever they are kept.

use std::sync::Arc;

use wardian_vfs::{Errno, Result};

use crate::limits::{Charge, Meter};
use crate::run::Run;

/// Arguments and environment together may not be larger, pointers to them included, as on Linux.
pub(crate) const MAX_ARGUMENTS: usize = 2 << 20;
/// The longest single string, its NUL included, as on Linux.
const MAX_STRING: usize = 128 * 1024;
/// What a guest's pointer to a string costs.
const POINTER: usize = 4;

/// A list of strings without NULs in them.
#[derive(Clone, Default)]
pub(crate) struct Strings {
    block: Arc<[u8]>,
    count: usize,
    /// What the sandbox is charged, once for everything that shares it. Nothing reads it: it is returned with the last
    /// of them.
    charge: Option<Arc<Charge>>,
}

impl Strings {
    /// Creates a list from the host, which is not charged. Returns EINVAL if a string has a NUL in it.
    pub(crate) fn given(strings: &[Vec<u8>]) -> Result<Strings> {
        let mut block = Vec::with_capacity(strings.iter().map(|string| string.len() + 1).sum());
        for string in strings {
            if string.contains(&0) {
                return Err(Errno::EINVAL);
            }
            block.extend_from_slice(string);
            block.push(0);
        }
        Ok(Strings { block: block.into(), count: strings.len(), charge: None })
    }

    /// A list of one string, up to its first NUL.
    pub(crate) fn one(string: &[u8]) -> Strings {
        let string = string.split(|&byte| byte == 0).next().unwrap_or_default();
        Strings { block: [string, b"\0"].concat().into(), count: 1, charge: None }
    }

    /// Copies a guest's block, not charged yet. Returns EINVAL unless it ends with a NUL, E2BIG if it or a string in it
    /// is too large.
    pub(crate) fn copied(block: &[u8]) -> Result<Strings> {
        match block.last() {
            None => return Ok(Strings::default()),
            Some(0) => {}
            Some(_) => return Err(Errno::EINVAL),
        }
        let count = count_nuls(block);
        if size(block.len(), count) > MAX_ARGUMENTS || has_string_longer_than(block, MAX_STRING) {
            return Err(Errno::E2BIG);
        }
        Ok(Strings { block: block.into(), count, charge: None })
    }

    /// Returns the same list with `front` in place of its first string.
    pub(crate) fn with_front(&self, front: &[&[u8]]) -> Strings {
        let rest = memchr::memchr(0, &self.block).map_or(&[][..], |at| &self.block[at + 1..]);
        let mut block =
            Vec::with_capacity(rest.len() + front.iter().map(|part| part.len() + 1).sum::<usize>());
        for part in front {
            block.extend_from_slice(part);
            block.push(0);
        }
        block.extend_from_slice(rest);
        let count = front.len() + self.count.saturating_sub(1);
        Strings { block: block.into(), count, charge: None }
    }

    /// Charges the sandbox for this list and for `env`, which belongs to it, until the last copy of this list is gone. A
    /// process drops its arguments when it ends, and its environment soon after.
    pub(crate) fn charged_with(mut self, env: &Strings, meter: &Arc<Meter>, run: &Run) -> Result<Strings> {
        let bytes = self.block.len() + env.block.len();
        self.charge = Some(Arc::new(meter.hold_for(run, bytes)?));
        Ok(self)
    }

    /// Returns what counts against [`MAX_ARGUMENTS`].
    pub(crate) fn size(&self) -> usize {
        size(self.block.len(), self.count)
    }

    /// Returns the number of strings.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// All of it, each string followed by a NUL.
    pub(crate) fn block(&self) -> &[u8] {
        &self.block
    }

    pub(crate) fn first(&self) -> Option<&[u8]> {
        self.iter().next()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.block[..];
        std::iter::from_fn(move || {
            let end = memchr::memchr(0, rest)?;
            let (string, behind) = rest.split_at(end);
            rest = &behind[1..];
            Some(string)
        })
    }

    /// A vector for each string. For lists that are known to be short.
    pub(crate) fn to_vecs(&self) -> Vec<Vec<u8>> {
        self.iter().map(<[u8]>::to_vec).collect()
    }
}

impl std::fmt::Debug for Strings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} strings, {} bytes", self.count, self.block.len())
    }
}

fn size(bytes: usize, count: usize) -> usize {
    bytes.saturating_add(count.saturating_mul(POINTER))
}

fn count_nuls(block: &[u8]) -> usize {
    block.iter().map(|&byte| usize::from(byte == 0)).sum()
}

/// Whether a string, its NUL included, takes more than `most`. Each step skips all strings that end within the next
/// `most` bytes, so that many short ones cost no more than a few long ones.
fn has_string_longer_than(block: &[u8], most: usize) -> bool {
    let mut rest = block;
    while rest.len() > most {
        match memchr::memrchr(0, &rest[..most]) {
            Some(at) => rest = &rest[at + 1..],
            None => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_its_strings() {
        let strings = Strings::copied(b"a\0\0bc\0").expect("a block");
        assert_eq!(strings.to_vecs(), [&b"a"[..], b"", b"bc"]);
        assert_eq!((strings.len(), strings.size()), (3, 6 + 12));
        assert_eq!(Strings::copied(b"").expect("a block").len(), 0);
        assert_eq!(Strings::copied(b"a").unwrap_err(), Errno::EINVAL);
        assert_eq!(Strings::given(&[b"a\0b".to_vec()]).unwrap_err(), Errno::EINVAL);
        assert_eq!(Strings::given(&strings.to_vecs()).expect("a list").block(), strings.block());
    }

    #[test]
    fn a_script_gets_its_interpreter_in_front() {
        let strings = Strings::copied(b"script\0one\0two\0").expect("a block");
        let front = strings.with_front(&[b"/bin/sh", b"-e", b"/tmp/script"]);
        assert_eq!(front.to_vecs(), [&b"/bin/sh"[..], b"-e", b"/tmp/script", b"one", b"two"]);
        assert_eq!(front.len(), 5);
        assert_eq!(Strings::default().with_front(&[b"sh", b"x"]).to_vecs(), [&b"sh"[..], b"x"]);
    }

    #[test]
    fn a_string_has_linuxs_length_at_most() {
        let of = |length: usize| [&vec![b'x'; length][..], b"\0"].concat();
        assert!(Strings::copied(&of(MAX_STRING - 1)).is_ok());
        assert_eq!(Strings::copied(&of(MAX_STRING)).unwrap_err(), Errno::E2BIG);
        let between = [of(70_000), of(MAX_STRING - 1), of(3), of(MAX_STRING), of(3)].concat();
        assert_eq!(Strings::copied(&between).unwrap_err(), Errno::E2BIG);
        let below = [of(70_000), of(MAX_STRING - 1), of(3), of(MAX_STRING - 1), of(3)].concat();
        assert!(Strings::copied(&below).is_ok());
    }

    #[test]
    fn many_empty_strings_are_too_many() {
        assert!(Strings::copied(&vec![0; MAX_ARGUMENTS / (1 + POINTER)]).is_ok());
        assert_eq!(Strings::copied(&vec![0; MAX_ARGUMENTS / (1 + POINTER) + 1]).unwrap_err(), Errno::E2BIG);
    }
}
