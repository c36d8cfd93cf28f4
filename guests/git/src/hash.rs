//! The names of objects.

use sha1::{Digest, Sha1};
use std::fmt;

/// The SHA-1 of an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Oid(pub [u8; 20]);

impl Oid {
    /// No object.
    pub const NULL: Oid = Oid([0; 20]);

    pub fn is_null(&self) -> bool {
        *self == Oid::NULL
    }

    /// From exactly 20 bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Oid> {
        Some(Oid(bytes.try_into().ok()?))
    }

    /// From exactly 40 hexadecimal digits.
    pub fn from_hex(text: &[u8]) -> Option<Oid> {
        if text.len() != 40 {
            return None;
        }
        let mut oid = Oid::NULL;
        for (at, pair) in text.chunks(2).enumerate() {
            oid.0[at] = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(oid)
    }

    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hex())
    }
}

/// The SHA-1 of some pieces, one after the other.
pub fn sha1(pieces: &[&[u8]]) -> Oid {
    let mut hasher = Sha1::new();
    for piece in pieces {
        hasher.update(piece);
    }
    Oid(hasher.finalize().into())
}

/// The name of an object with this kind and content.
pub fn of_object(kind: &str, data: &[u8]) -> Oid {
    sha1(&[format!("{kind} {}\0", data.len()).as_bytes(), data])
}
