//! Stands in for the `crc-fast` crate, with which `cksum` computes its two cyclic redundancy checks.
//!
//! The real one is fast by instructions WebAssembly does not have, and brings tables for a hundred other checks, a
//! tenth of the program. These take eight bytes at a step by eight tables each, which is as fast as it gets without.

const POLYNOMIAL: u32 = 0x04c1_1db7;

/// The checks known by name.
#[derive(Clone, Copy, Debug)]
pub enum CrcAlgorithm {
    /// That of Ethernet, gzip and `cksum -a crc32b`.
    Crc32IsoHdlc,
}

/// The parameters of a check, in the terms of Rocksoft's model.
#[derive(Clone, Copy, Debug)]
pub struct CrcParams {
    initial: u32,
    reflected: bool,
    output_xor: u32,
}

impl CrcParams {
    /// A check of 32 bits with the usual polynomial.
    ///
    /// # Panics
    /// For any other.
    pub fn new(
        name: &'static str,
        width: u8,
        polynomial: u64,
        initial: u64,
        reflected: bool,
        output_xor: u64,
        _check: u64,
    ) -> Self {
        assert!(width == 32 && polynomial == u64::from(POLYNOMIAL), "{name} is not known here");
        Self { initial: initial as u32, reflected, output_xor: output_xor as u32 }
    }
}

/// A check in the making.
#[derive(Clone, Copy, Debug)]
pub struct Digest {
    params: CrcParams,
    state: u32,
}

impl Digest {
    /// Starts a check known by name.
    pub fn new(algorithm: CrcAlgorithm) -> Self {
        match algorithm {
            CrcAlgorithm::Crc32IsoHdlc => Self::new_with_params(CrcParams {
                initial: 0xffff_ffff,
                reflected: true,
                output_xor: 0xffff_ffff,
            }),
        }
    }

    /// Starts a check with these parameters.
    pub fn new_with_params(params: CrcParams) -> Self {
        Self { params, state: params.initial }
    }

    /// Starts again.
    pub fn reset(&mut self) {
        self.state = self.params.initial;
    }

    /// Takes bytes in.
    pub fn update(&mut self, bytes: &[u8]) {
        let update = if self.params.reflected { update_reflected } else { update_straight };
        self.state = update(self.state, bytes);
    }

    /// The check of all bytes taken in so far.
    pub fn finalize(&self) -> u64 {
        u64::from(self.state ^ self.params.output_xor)
    }
}

type Tables = [[u32; 256]; 8];

/// Table N has what a byte does to the check when N more bytes follow it.
const fn tables(reflected: bool) -> Tables {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        tables[0][byte] = after_one_byte(byte as u32, reflected);
        byte += 1;
    }
    let mut at = 256;
    while at < 8 * 256 {
        let before = tables[at / 256 - 1][at % 256];
        tables[at / 256][at % 256] = if reflected {
            (before >> 8) ^ tables[0][(before & 0xff) as usize]
        } else {
            (before << 8) ^ tables[0][(before >> 24) as usize]
        };
        at += 1;
    }
    tables
}

const fn after_one_byte(byte: u32, reflected: bool) -> u32 {
    let mut state = if reflected { byte } else { byte << 24 };
    let mut bit = 0;
    while bit < 8 {
        state = match (reflected, state & 1 != 0, state >> 31 != 0) {
            (true, true, _) => (state >> 1) ^ POLYNOMIAL.reverse_bits(),
            (true, false, _) => state >> 1,
            (false, _, true) => (state << 1) ^ POLYNOMIAL,
            (false, _, false) => state << 1,
        };
        bit += 1;
    }
    state
}

static STRAIGHT: Tables = tables(false);
static REFLECTED: Tables = tables(true);

/// What eight bytes, the first four mixed with the state, do to it.
fn step(tables: &Tables, mixed: [u8; 4], rest: &[u8]) -> u32 {
    let first = mixed.iter().zip([7, 6, 5, 4]);
    let then = rest.iter().zip([3, 2, 1, 0]);
    first.chain(then).fold(0, |state, (byte, table)| state ^ tables[table][usize::from(*byte)])
}

fn update_straight(mut state: u32, bytes: &[u8]) -> u32 {
    let (eights, rest) = bytes.as_chunks::<8>();
    for [a, b, c, d, rest @ ..] in eights {
        let mixed = (state ^ u32::from_be_bytes([*a, *b, *c, *d])).to_be_bytes();
        state = step(&STRAIGHT, mixed, rest);
    }
    rest.iter().fold(state, |state, byte| (state << 8) ^ STRAIGHT[0][usize::from((state >> 24) as u8 ^ byte)])
}

fn update_reflected(mut state: u32, bytes: &[u8]) -> u32 {
    let (eights, rest) = bytes.as_chunks::<8>();
    for [a, b, c, d, rest @ ..] in eights {
        let mixed = (state ^ u32::from_le_bytes([*a, *b, *c, *d])).to_le_bytes();
        state = step(&REFLECTED, mixed, rest);
    }
    rest.iter().fold(state, |state, byte| (state >> 8) ^ REFLECTED[0][usize::from(state as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posix() -> CrcParams {
        CrcParams::new("CRC-32/CKSUM", 32, 0x04c1_1db7, 0, false, 0xffff_ffff, 0)
    }

    /// The catalogue's check values are for these nine digits.
    #[test]
    fn the_catalogues_checks() {
        let mut digest = Digest::new(CrcAlgorithm::Crc32IsoHdlc);
        digest.update(b"123456789");
        assert_eq!(digest.finalize(), 0xcbf4_3926);
        let mut digest = Digest::new_with_params(posix());
        digest.update(b"123456789");
        assert_eq!(digest.finalize(), 0x765e_7680);
    }

    #[test]
    fn how_the_bytes_are_cut_does_not_matter() {
        let bytes: Vec<u8> = (0..1000u32).map(|i| (i * i) as u8).collect();
        for new in [|| Digest::new(CrcAlgorithm::Crc32IsoHdlc), || Digest::new_with_params(posix())] {
            let mut whole = new();
            whole.update(&bytes);
            let mut cut = new();
            bytes.chunks(7).for_each(|chunk| cut.update(chunk));
            assert_eq!(whole.finalize(), cut.finalize());
        }
    }
}
