//! How much a server may send that is part of no body: interim responses, frames without data, extensions of chunks.
//!
//! Nobody gets such bytes, so no limit of the policy counts them; without a limit of their own, a server could keep this machine
//! busy with them for as long as a request may take.

use std::io;
use std::sync::atomic::{AtomicI64, Ordering};

/// What may be read before any of a body: a head, and what is in buffers and windows on its way.
const FIRST: i64 = 4 << 20;

/// What may be read for each byte of a body, in either direction: a frame or chunk with a single byte has ten.
const EACH: i64 = 16;

/// What is left. Reading spends it, bodies earn it.
#[derive(Debug)]
pub(crate) struct Allowance(AtomicI64);

impl Allowance {
    pub(crate) fn new() -> Allowance {
        Allowance(AtomicI64::new(FIRST))
    }

    /// A request begins.
    pub(crate) fn renew(&self) {
        self.0.store(FIRST, Ordering::Relaxed);
    }

    /// So much of a body was moved.
    pub(crate) fn earn(&self, bytes: usize) {
        self.0.fetch_add(EACH * bytes as i64, Ordering::Relaxed);
    }

    /// Every byte counts by itself from now on: the connection is opaque.
    pub(crate) fn lift(&self) {
        self.0.store(i64::MAX, Ordering::Relaxed);
    }

    /// So much was read.
    pub(crate) fn spend(&self, bytes: usize) -> io::Result<()> {
        match self.0.fetch_sub(bytes as i64, Ordering::Relaxed) < bytes as i64 {
            true => Err(io::Error::other("the server sends too much that is not a response")),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_earn_what_comes_with_them() {
        let allowance = Allowance::new();
        assert!(allowance.spend(FIRST as usize).is_ok() && allowance.spend(1).is_err());
        allowance.renew();
        for _ in 0..FIRST {
            assert!(allowance.spend(10).is_ok());
            allowance.earn(1);
        }
        allowance.lift();
        assert!(allowance.spend(usize::MAX >> 2).is_ok());
    }
}
