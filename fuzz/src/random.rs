//! Random inputs, the same for the same seed.

/// Numbers to go by (splitmix64).
pub struct Random(u64);

impl Random {
    /// Begins with a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below a limit; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// Noise.
    pub fn noise(&mut self) -> Vec<u8> {
        (0..self.below(1600)).map(|_| self.next() as u8).collect()
    }

    /// A mutation of an archive, or noise.
    pub fn archive(&mut self, sample: &[u8]) -> Vec<u8> {
        if self.below(20) == 0 {
            return self.noise();
        }
        let mut data = sample.to_vec();
        for _ in 0..=self.below(6) {
            self.mutate(&mut data);
        }
        data
    }

    fn mutate(&mut self, data: &mut Vec<u8>) {
        if data.is_empty() {
            return;
        }
        let at = self.below(data.len());
        let block = at / 512 * 512;
        let block_end = (block + 512).min(data.len());
        match self.below(8) {
            0 => data.truncate(at),
            1 => drop(data.drain(block..block_end)),
            2 => {
                let copy = data[block..block_end].to_vec();
                let to = self.below(data.len()) / 512 * 512;
                data.splice(to..to, copy);
            }
            3 => data[at] ^= 1 << self.below(8),
            // Interesting fields of a header: name, size, kind, link, sparse map.
            4 => {
                let in_name = block + self.below(20);
                self.overwrite(data, in_name, 4);
            }
            5 => self.overwrite(data, block + 124, 12),
            6 => {
                const KINDS: &[u8] = b"0123456789xgLKSZ";
                let kind = KINDS[self.below(KINDS.len())];
                if let Some(byte) = data.get_mut(block + 156) {
                    *byte = kind;
                }
            }
            _ => self.overwrite(data, block + 386, 100),
        }
    }

    fn overwrite(&mut self, data: &mut [u8], at: usize, len: usize) {
        const BYTES: &[u8] = b"0017/.\0\x80\xff x";
        for offset in 0..self.below(len) + 1 {
            let byte = BYTES[self.below(BYTES.len())];
            if let Some(place) = data.get_mut(at + offset) {
                *place = byte;
            }
        }
    }
}
