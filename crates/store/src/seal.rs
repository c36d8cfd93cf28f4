//! How an object lies on the disk: compressed if that helps, and encrypted if the store has a key.
//!
//! ```text
//! count of links  links  bytes        ── zstd ──►        ── XChaCha20-Poly1305, the hash as associated data ──►
//! ```
//! The hash is bound to the ciphertext, so objects cannot be swapped for each other.

use std::fmt;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

use crate::hash::Namer;
use crate::{Hash, Object, StoreError};

/// The most bytes that an object may unpack to.
pub(crate) const LARGEST: usize = 64 << 20;
const COMPRESSION: i32 = 1;
/// Shorter ones are not worth compressing.
const WORTH_COMPRESSING: usize = 128;
const NONCE: usize = 24;

/// The bits of an object's kind.
pub(crate) const COMPRESSED: i64 = 1;
/// Its bytes are a file of their own.
pub(crate) const IN_FILE: i64 = 2;
/// It links to others.
pub(crate) const LINKS: i64 = 4;

/// A key to encrypt a store with: 32 bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// Takes 32 bytes, or 64 hexadecimal digits and perhaps a newline: what a key file or a variable holds.
    pub fn from_bytes(bytes: &[u8]) -> Result<Key, StoreError> {
        if let Ok(raw) = bytes.try_into() {
            return Ok(Key(raw));
        }
        let text = std::str::from_utf8(bytes).ok().and_then(|text| text.trim().parse::<Hash>().ok());
        match text {
            Some(Hash(raw)) => Ok(Key(raw)),
            None => Err(StoreError::Key("a key is 32 bytes, or 64 hexadecimal digits".to_owned())),
        }
    }

    fn derive(&self, purpose: &str) -> [u8; 32] {
        blake3::derive_key(purpose, &self.0)
    }
}

/// Packs and unpacks objects.
pub(crate) struct Sealer {
    pub(crate) namer: Namer,
    cipher: Option<XChaCha20Poly1305>,
}

impl Sealer {
    pub(crate) fn new(key: Option<&Key>) -> Sealer {
        let cipher = key.map(|key| XChaCha20Poly1305::new(&key.derive("wardian store 2026 objects").into()));
        Sealer { namer: Namer::new(key.map(|key| key.derive("wardian store 2026 names"))), cipher }
    }

    pub(crate) fn encrypts(&self) -> bool {
        self.cipher.is_some()
    }

    /// Returns the kind and the bytes to store.
    pub(crate) fn seal(
        &self,
        hash: &Hash,
        links: &[Hash],
        bytes: &[u8],
    ) -> Result<(i64, Vec<u8>), StoreError> {
        let mut plain = Vec::with_capacity(4 + links.len() * Hash::LENGTH + bytes.len());
        plain.extend_from_slice(&(links.len() as u32).to_le_bytes());
        links.iter().for_each(|link| plain.extend_from_slice(&link.0));
        plain.extend_from_slice(bytes);
        let mut kind = if links.is_empty() { 0 } else { LINKS };
        if plain.len() >= WORTH_COMPRESSING {
            let packed = zstd::bulk::compress(&plain, COMPRESSION)?;
            if packed.len() < plain.len() {
                (kind, plain) = (kind | COMPRESSED, packed);
            }
        }
        let Some(cipher) = &self.cipher else { return Ok((kind, plain)) };
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(|error| StoreError::Io(format!("no randomness: {error}")))?;
        let sealed = cipher
            .encrypt(&XNonce::from(nonce), Payload { msg: &plain, aad: &hash.0 })
            .map_err(|_| StoreError::Io("an object could not be encrypted".to_owned()))?;
        Ok((kind, [&nonce[..], &sealed].concat()))
    }

    /// Returns the object, if what is stored is undamaged.
    pub(crate) fn open(&self, hash: &Hash, kind: i64, stored: &[u8]) -> Result<Object, StoreError> {
        let damaged = |why: &str| StoreError::Damaged { hash: *hash, why: why.to_owned() };
        let decrypted;
        let mut packed = stored;
        if let Some(cipher) = &self.cipher {
            let (nonce, sealed) = stored.split_first_chunk::<NONCE>().ok_or_else(|| damaged("too short"))?;
            decrypted = cipher
                .decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: &hash.0 })
                .map_err(|_| damaged("it does not decrypt"))?;
            packed = &decrypted;
        }
        let unpacked;
        if kind & COMPRESSED != 0 {
            unpacked = zstd::bulk::decompress(packed, upper_bound(packed).min(LARGEST))
                .map_err(|_| damaged("it does not decompress"))?;
            packed = &unpacked;
        }
        let (count, rest) = packed.split_first_chunk::<4>().ok_or_else(|| damaged("too short"))?;
        let count = u32::from_le_bytes(*count) as usize;
        let (links, bytes) = count
            .checked_mul(Hash::LENGTH)
            .and_then(|length| rest.split_at_checked(length))
            .ok_or_else(|| damaged("too short"))?;
        let links: Vec<Hash> = links.chunks_exact(Hash::LENGTH).filter_map(Hash::from_slice).collect();
        if self.namer.name(&links, bytes) != *hash {
            return Err(damaged("its content does not match its hash"));
        }
        Ok(Object { links, bytes: bytes.to_vec() })
    }
}

/// Returns how long the content is, as its header says; the decompressor checks it.
fn upper_bound(packed: &[u8]) -> usize {
    match zstd::zstd_safe::get_frame_content_size(packed) {
        Ok(Some(size)) => usize::try_from(size).unwrap_or(LARGEST),
        _ => LARGEST,
    }
}
