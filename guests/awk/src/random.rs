//! Numbers that look random, the same ones for the same seed.

/// A generator (SplitMix64) and the seed it began with.
pub struct Random {
    state: u64,
    /// The seed.
    pub seed: f64,
}

impl Random {
    /// Begins with a seed.
    pub fn new(seed: f64) -> Random {
        Random { state: seed as i64 as u64, seed }
    }

    /// A number from 0 up to but not including 1.
    pub fn draw(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        (word >> 11) as f64 / (1u64 << 53) as f64
    }
}
