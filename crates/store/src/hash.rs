//! The name of an object: a hash of what it links to and of its bytes.

use std::fmt;
use std::str::FromStr;

/// A BLAKE3 hash. In an encrypted store it is keyed, so that it says nothing about the content to those without the key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// How many bytes it has.
    pub const LENGTH: usize = 32;

    /// Takes one from the beginning of some bytes.
    pub fn from_slice(bytes: &[u8]) -> Option<Hash> {
        Some(Hash(bytes.try_into().ok()?))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Hash {
    type Err = ();

    fn from_str(text: &str) -> Result<Hash, ()> {
        let digits = text.as_bytes();
        if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| ())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| ())?;
        }
        Ok(Hash(bytes))
    }
}

/// Computes names.
#[derive(Clone)]
pub(crate) struct Namer {
    key: Option<[u8; 32]>,
}

impl Namer {
    pub(crate) fn new(key: Option<[u8; 32]>) -> Namer {
        Namer { key }
    }

    pub(crate) fn hasher(&self) -> blake3::Hasher {
        match &self.key {
            Some(key) => blake3::Hasher::new_keyed(key),
            None => blake3::Hasher::new(),
        }
    }

    /// Returns the name of an object.
    pub(crate) fn name(&self, links: &[Hash], bytes: &[u8]) -> Hash {
        let mut hasher = self.hasher();
        hasher.update(&(links.len() as u32).to_le_bytes());
        for link in links {
            hasher.update(&link.0);
        }
        hasher.update(bytes);
        Hash(*hasher.finalize().as_bytes())
    }
}
