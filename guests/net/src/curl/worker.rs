//! A transfer of `-Z`, which is a process of its own: what it tells its parent, and when it gives up.
//!
//! All transfers write to one pipe, in pieces that are short enough to arrive whole.

use super::Failure;
use crate::http::wire;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use wardian_abi as abi;

/// The exit code of a transfer that another one's failure ended.
pub const ABORTED: i32 = 42;

/// The signal that asks a transfer to give up.
pub const GIVE_UP: i32 = 15;

/// The longest piece, header included: a pipe does not mix pieces up to this length.
const PIECE: usize = 4096;
/// The number of the transfer, a kind, and how many bytes follow.
const HEADER: usize = 8 + 1 + 2;

/// The process that waits for this one; 0 in that one itself.
static PARENT: AtomicI32 = AtomicI32::new(0);
static GIVES_UP: AtomicBool = AtomicBool::new(false);

/// What a transfer has to say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Its server takes one request at a time, so others need not wait for its connection.
    Answered = 1,
    /// Four numbers: received, of how many, sent, of how many.
    Progress = 2,
    /// A part of the cookies it has in the end.
    Cookies = 3,
    /// It ends.
    End = 4,
}

impl Kind {
    pub fn of(byte: u8) -> Option<Kind> {
        [Kind::Answered, Kind::Progress, Kind::Cookies, Kind::End]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// The way to the parent.
#[derive(Clone, Copy)]
pub struct Teller {
    pub pipe: abi::Fd,
    pub number: u64,
}

impl Teller {
    pub fn tell(&self, kind: Kind, bytes: &[u8]) {
        let mut rest = bytes;
        loop {
            let (piece, more) = rest.split_at(rest.len().min(PIECE - HEADER));
            let mut message = self.number.to_le_bytes().to_vec();
            message.push(kind as u8);
            message.extend_from_slice(&(piece.len() as u16).to_le_bytes());
            message.extend_from_slice(piece);
            // A parent that is gone wants to know nothing.
            let _ = abi::write_all(self.pipe, &message);
            rest = more;
            if rest.is_empty() {
                return;
            }
        }
    }

    pub fn progress(&self, numbers: [u64; 4]) {
        self.tell(Kind::Progress, &numbers.map(u64::to_le_bytes).concat());
    }
}

/// Reads a message: its transfer, its kind, its bytes, and what comes after it. `None` if it is not complete.
pub fn message(bytes: &[u8]) -> Option<(u64, Kind, &[u8], &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    let (kind, rest) = rest.split_first()?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (payload, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    Some((u64::from_le_bytes(*number), Kind::of(*kind)?, payload, rest))
}

/// Makes this process a transfer of the given one, which has set [`GIVE_UP`] to be flagged.
pub fn begin(parent: abi::Pid) {
    PARENT.store(parent, Ordering::Relaxed);
    wire::interrupt_if(gives_up);
}

/// Whether this transfer is to end. Without its parent, nobody wants it.
fn gives_up() -> bool {
    let parent = PARENT.load(Ordering::Relaxed);
    if parent == 0 {
        return false;
    }
    if abi::getppid() != parent {
        abi::exit(128 + GIVE_UP);
    }
    if abi::sigpending() & 1 << GIVE_UP != 0 {
        GIVES_UP.store(true, Ordering::Relaxed);
    }
    GIVES_UP.load(Ordering::Relaxed)
}

/// Returns why this transfer ends, if another one did that.
pub fn aborted() -> Option<Failure> {
    let words = "Transfer aborted due to critical error in another transfer";
    gives_up().then(|| Failure::new(ABORTED, words))
}
