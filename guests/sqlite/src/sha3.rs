//! SHA-3, for `sha3()` and `.sha3sum`.

/// Constants that break the symmetry of the rounds.
const ROUNDS: [u64; 24] = [
    0x0000000000000001,
    0x0000000000008082,
    0x800000000000808a,
    0x8000000080008000,
    0x000000000000808b,
    0x0000000080000001,
    0x8000000080008081,
    0x8000000000008009,
    0x000000000000008a,
    0x0000000000000088,
    0x0000000080008009,
    0x000000008000000a,
    0x000000008000808b,
    0x800000000000008b,
    0x8000000000008089,
    0x8000000000008003,
    0x8000000000008002,
    0x8000000000000080,
    0x000000000000800a,
    0x800000008000000a,
    0x8000000080008081,
    0x8000000000008080,
    0x0000000080000001,
    0x8000000080008008,
];

/// The hash of a text, of 224, 256, 384 or 512 bits.
pub fn hash(text: &[u8], bits: usize) -> Vec<u8> {
    let rate = 200 - bits / 4;
    let mut padded = text.to_vec();
    padded.push(0x06);
    padded.resize(padded.len().next_multiple_of(rate), 0);
    if let Some(last) = padded.last_mut() {
        *last |= 0x80;
    }
    let mut state = [0u64; 25];
    for block in padded.chunks_exact(rate) {
        for (lane, bytes) in state.iter_mut().zip(block.chunks_exact(8)) {
            *lane ^= u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        }
        permute(&mut state);
    }
    state.iter().flat_map(|lane| lane.to_le_bytes()).take(bits / 8).collect()
}

fn permute(state: &mut [u64; 25]) {
    for constant in ROUNDS {
        let parity: [u64; 5] = std::array::from_fn(|x| (0..5).fold(0, |sum, y| sum ^ state[x + 5 * y]));
        for (index, lane) in state.iter_mut().enumerate() {
            *lane ^= parity[(index + 4) % 5] ^ parity[(index + 1) % 5].rotate_left(1);
        }
        let (mut x, mut y, mut carried) = (1, 0, state[1]);
        for step in 0..24 {
            (x, y) = (y, (2 * x + 3 * y) % 5);
            let turned = carried.rotate_left((step + 1) * (step + 2) / 2 % 64);
            carried = std::mem::replace(&mut state[x + 5 * y], turned);
        }
        for row in state.chunks_exact_mut(5) {
            let old: [u64; 5] = std::array::from_fn(|x| row[x]);
            for x in 0..5 {
                row[x] = old[x] ^ (!old[(x + 1) % 5] & old[(x + 2) % 5]);
            }
        }
        state[0] ^= constant;
    }
}
