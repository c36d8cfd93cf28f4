//! The codes: groups of bytes to groups of characters, and back.

use memchr::{memchr, memchr2};
use toolkit::digits;

/// A code.
#[derive(Clone, Copy)]
pub enum Code {
    /// Each character stands for so many bits, the most significant first; groups are padded with `=`.
    Bits { bits: u32, alphabet: &'static [u8] },
    /// Eight characters for a byte; which bit comes first.
    Binary { most_first: bool },
    /// Five characters for four bytes, a number to the base of 85.
    Z85,
}

const DIGITS85: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

impl Code {
    pub const BASE64: Code = Code::Bits { bits: 6, alphabet: digits::BASE64 };
    pub const BASE64URL: Code =
        Code::Bits { bits: 6, alphabet: b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" };
    pub const BASE32: Code = Code::Bits { bits: 5, alphabet: digits::BASE32 };
    pub const BASE32HEX: Code = Code::Bits { bits: 5, alphabet: b"0123456789ABCDEFGHIJKLMNOPQRSTUV" };
    pub const BASE16: Code = Code::Bits { bits: 4, alphabet: b"0123456789ABCDEF" };

    /// By the letter that stands for its option.
    pub fn by_letter(letter: char) -> Option<Code> {
        Some(match letter {
            '6' => Code::BASE64,
            'u' => Code::BASE64URL,
            '3' => Code::BASE32,
            'h' => Code::BASE32HEX,
            'x' => Code::BASE16,
            'm' => Code::Binary { most_first: true },
            'l' => Code::Binary { most_first: false },
            '8' => Code::Z85,
            _ => return None,
        })
    }

    pub fn encoder(self) -> Encoder {
        let mut pairs = Box::new([0; 1 << 12]);
        if let Code::Bits { bits, alphabet } = self {
            let mask = (1 << bits) - 1;
            for (value, pair) in pairs.iter_mut().enumerate().take(1 << (2 * bits)) {
                *pair = u16::from_le_bytes([alphabet[value >> bits], alphabet[value & mask]]);
            }
        }
        Encoder { code: self, pairs }
    }

    fn alphabet(self) -> &'static [u8] {
        match self {
            Code::Bits { alphabet, .. } => alphabet,
            Code::Binary { .. } => b"01",
            Code::Z85 => DIGITS85,
        }
    }

    fn is_for_urls(self) -> bool {
        matches!(self, Code::Bits { alphabet, .. } if alphabet.ends_with(b"-_"))
    }

    /// How many characters make a group.
    fn group(self) -> usize {
        match self {
            Code::Bits { bits: 6, .. } => 4,
            Code::Bits { bits: 4, .. } => 2,
            Code::Bits { .. } | Code::Binary { .. } => 8,
            Code::Z85 => 5,
        }
    }
}

pub struct Encoder {
    code: Code,
    /// Two characters for each value of their bits; the first is the lower byte.
    pairs: Box<[u16; 1 << 12]>,
}

impl Encoder {
    /// Encodes whole groups; only the last block may end with a part of one.
    pub fn encode(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        match self.code {
            Code::Bits { bits: 6, .. } => self.encode_bits::<6, 3, 4>(bytes, out),
            Code::Bits { bits: 5, .. } => self.encode_bits::<5, 5, 8>(bytes, out),
            Code::Bits { .. } => self.encode_bits::<4, 1, 2>(bytes, out),
            Code::Binary { most_first } => encode_binary(bytes, most_first, out),
            Code::Z85 => return encode_z85(bytes, out),
        }
        Ok(())
    }

    fn encode_bits<const BITS: usize, const BYTES: usize, const CHARS: usize>(
        &self,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) {
        let (groups, rest) = bytes.as_chunks::<BYTES>();
        let start = out.len();
        out.resize(start + groups.len() * CHARS, 0);
        let (chars, _) = out[start..].as_chunks_mut::<CHARS>();
        for (group, chars) in groups.iter().zip(chars) {
            let value = group.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
            let mut text = 0_u64;
            for at in 0..CHARS / 2 {
                let shift = 8 * BYTES - 2 * BITS * (at + 1);
                let pair = self.pairs[(value >> shift) as usize & ((1 << (2 * BITS)) - 1)];
                text |= u64::from(pair) << (16 * at);
            }
            // All at once: each copy of a few bytes would cost as much as the rest.
            let text = text.to_le_bytes();
            *chars = std::array::from_fn(|at| text[at]);
        }
        if !rest.is_empty() {
            let mut last = [0; BYTES];
            last[..rest.len()].copy_from_slice(rest);
            self.encode_bits::<BITS, BYTES, CHARS>(&last, out);
            let used = (rest.len() * 8).div_ceil(BITS);
            let end = out.len();
            out[end - CHARS + used..].fill(b'=');
        }
    }
}

fn encode_binary(bytes: &[u8], most_first: bool, out: &mut Vec<u8>) {
    for &byte in bytes {
        let byte = if most_first { byte } else { byte.reverse_bits() };
        out.extend((0..8).rev().map(|bit| b'0' + (byte >> bit & 1)));
    }
}

fn encode_z85(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let groups = bytes.chunks_exact(4);
    let is_whole = groups.remainder().is_empty();
    for group in groups {
        let mut value = group.iter().fold(0_u32, |value, byte| value << 8 | u32::from(*byte));
        let mut digits = [0; 5];
        for digit in digits.iter_mut().rev() {
            *digit = DIGITS85[(value % 85) as usize];
            value /= 85;
        }
        out.extend_from_slice(&digits);
    }
    match is_whole {
        true => Ok(()),
        false => Err("invalid input (length must be multiple of 4 characters)".into()),
    }
}

/// What stands for a character that is none of the alphabet's.
const NONE: u8 = 0xff;

pub struct Decoder {
    code: Code,
    ignore_garbage: bool,
    /// The value of each character.
    values: [u8; 256],
    /// The characters of a group that is not yet whole.
    group: Vec<u8>,
}

impl Decoder {
    pub fn new(code: Code, ignore_garbage: bool) -> Decoder {
        let mut values = [NONE; 256];
        for (value, char) in (0..).zip(code.alphabet()) {
            values[usize::from(*char)] = value;
        }
        Decoder { code, ignore_garbage, values, group: Vec::new() }
    }

    /// Decodes a block; says whether it was good. What comes before an error is decoded all the same.
    pub fn decode(&mut self, block: &mut [u8], out: &mut Vec<u8>) -> bool {
        let mut rest = match self.ignore_garbage {
            true => self.without_garbage(block),
            false => &*block,
        };
        // GNU's looks for what the other alphabet has before it decodes anything.
        if self.code.is_for_urls() && memchr2(b'+', b'/', rest).is_some() {
            return false;
        }
        loop {
            if self.group.is_empty() {
                let used = self.decode_run(rest, out);
                rest = &rest[used..];
            }
            let [char, after @ ..] = rest else { return true };
            rest = after;
            if *char == b'\n' {
                continue;
            }
            self.group.push(*char);
            if self.group.len() == self.code.group() {
                let group = std::mem::take(&mut self.group);
                if !self.decode_group(&group, out) {
                    return false;
                }
            }
        }
    }

    /// After the last block: says whether a part of a group is left, which is an error.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> bool {
        let rest = std::mem::take(&mut self.group);
        if let Code::Bits { bits: 6, .. } = self.code {
            self.decode_group(&rest, out);
        }
        rest.is_empty()
    }

    /// Moves what is of the alphabet, and what may pad it, to the front.
    fn without_garbage<'a>(&self, block: &'a mut [u8]) -> &'a [u8] {
        let mut kept = 0;
        for at in 0..block.len() {
            let char = block[at];
            block[kept] = char;
            let is_good = self.values[usize::from(char)] != NONE || char == b'=';
            kept += usize::from(is_good);
        }
        &block[..kept]
    }

    /// Decodes whole groups up to the first that has anything special; answers how many characters they are.
    fn decode_run(&self, text: &[u8], out: &mut Vec<u8>) -> usize {
        // To the end of the line: what is decoded at once must not be much more than what is good.
        let text = &text[..memchr(b'\n', text).unwrap_or(text.len())];
        match self.code {
            Code::Bits { bits: 6, .. } => self.decode_bits::<6, 3, 4>(text, out),
            Code::Bits { bits: 5, .. } => self.decode_bits::<5, 5, 8>(text, out),
            Code::Bits { .. } => self.decode_bits::<4, 1, 2>(text, out),
            Code::Binary { .. } | Code::Z85 => 0,
        }
    }

    fn decode_bits<const BITS: usize, const BYTES: usize, const CHARS: usize>(
        &self,
        text: &[u8],
        out: &mut Vec<u8>,
    ) -> usize {
        let start = out.len();
        out.resize(start + text.len() / CHARS * BYTES, 0);
        let mut groups = 0;
        let (bytes, _) = out[start..].as_chunks_mut::<BYTES>();
        for (chars, bytes) in text.as_chunks::<CHARS>().0.iter().zip(bytes) {
            let (mut value, mut all) = (0_u64, 0);
            for char in chars {
                let bits = self.values[usize::from(*char)];
                value = value << BITS | u64::from(bits);
                all |= bits;
            }
            if all & 0x80 != 0 {
                break;
            }
            *bytes = std::array::from_fn(|at| (value >> (8 * (BYTES - 1 - at))) as u8);
            groups += 1;
        }
        out.truncate(start + groups * BYTES);
        groups * CHARS
    }

    /// Decodes a group with care; says whether it was good.
    fn decode_group(&self, group: &[u8], out: &mut Vec<u8>) -> bool {
        let values = group.iter().map(|char| self.values[usize::from(*char)]);
        let values: Vec<u64> = values.take_while(|value| *value != NONE).map(u64::from).collect();
        match self.code {
            Code::Bits { bits, .. } => {
                let mut value = values.iter().fold(0, |value, bits_of_char| value << bits | bits_of_char);
                let used = values.len() as u32 * bits;
                value <<= 64 - used.max(1);
                out.extend_from_slice(&value.to_be_bytes()[..used as usize / 8]);
                let is_end = group[values.len()..].iter().all(|char| *char == b'=');
                // So many characters as a number of bytes needs, and no bit more.
                let fits = used >= 8 && used % 8 < bits;
                is_end && fits
            }
            Code::Binary { most_first } => {
                let bits = values.iter().fold(0, |byte, bit| byte << 1 | *bit as u8);
                let whole = values.len() == group.len();
                out.extend(whole.then_some(if most_first { bits } else { bits.reverse_bits() }));
                whole
            }
            Code::Z85 => {
                let value = values.iter().fold(0, |value, digit| value * 85 + digit);
                let number = u32::try_from(value).ok().filter(|_| values.len() == group.len());
                out.extend(number.iter().flat_map(|number| number.to_be_bytes()));
                number.is_some()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that look like chance, the same each time.
    fn bytes(count: usize) -> Vec<u8> {
        let step = |seed: &u32| Some(seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        std::iter::successors(Some(count as u32), step)
            .skip(1)
            .take(count)
            .map(|seed| (seed >> 24) as u8)
            .collect()
    }

    #[test]
    fn what_is_encoded_is_decoded_wherever_it_is_cut() {
        for letter in "6u3hxml8".chars() {
            let code = Code::by_letter(letter).expect("a code");
            for count in (0..300).filter(|count| letter != '8' || count % 4 == 0) {
                let original = bytes(count);
                let mut text = Vec::new();
                code.encoder().encode(&original, &mut text).expect("it fits");
                let (mut decoder, mut decoded) = (Decoder::new(code, false), Vec::new());
                let pieces = text.chunks(1 + count % 11).flat_map(|piece| [piece, b"\n"].concat());
                let pieces: Vec<u8> = pieces.collect();
                let good = pieces
                    .chunks(1 + count % 7)
                    .all(|block| decoder.decode(&mut block.to_vec(), &mut decoded));
                assert!(good && decoder.finish(&mut decoded), "{letter} {count}");
                assert_eq!(decoded, original, "{letter} {count}");
            }
        }
    }
}
