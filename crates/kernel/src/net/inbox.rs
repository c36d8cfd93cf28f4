//! The datagrams that a socket has not received yet.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;
use wardian_vfs::{Errno, Result};

use super::address::Address;
use super::rights::Rights;
use crate::limits::{Charge, Meter};

/// The largest datagram of UDP.
pub(crate) const LARGEST_UDP: usize = 65_507;
/// The largest datagram of a Unix socket, about as on Linux.
pub(crate) const LARGEST_UNIX: usize = 200 * 1024;
/// What a socket keeps unless it says otherwise.
pub(crate) const CAPACITY: usize = 208 * 1024;
/// The most datagrams that a Unix socket keeps: Linux's `max_dgram_qlen` and one.
const MOST_UNIX: usize = 11;
/// The most that any socket keeps: each costs something, however short.
const MOST: usize = 256;
/// What a datagram costs in addition to its bytes.
const OVERHEAD: usize = 256;

/// A datagram.
pub(crate) struct Message {
    pub(crate) from: Address,
    pub(crate) data: Vec<u8>,
    pub(crate) rights: Option<Rights>,
    _charge: Charge,
}

/// What one socket has been sent.
pub(crate) struct Inbox {
    state: Mutex<State>,
}

struct State {
    messages: VecDeque<Message>,
    bytes: usize,
    capacity: usize,
    most: usize,
    closed: bool,
    /// Those who found it full.
    waiting: Vec<Weak<Notify>>,
}

impl State {
    fn wait(&mut self, waiter: &Arc<Notify>) {
        let known = |known: &Weak<Notify>| std::ptr::eq(known.as_ptr(), Arc::as_ptr(waiter));
        if !self.waiting.iter().any(known) {
            self.waiting.retain(|waiting| waiting.strong_count() > 0);
            self.waiting.push(Arc::downgrade(waiter));
        }
    }
}

/// Why a datagram was not taken.
pub(crate) enum Refusal {
    /// There is no space yet.
    Full,
    /// Nobody will ever receive it.
    Closed,
    /// The sandbox has no memory for it.
    NoMemory,
}

impl Inbox {
    pub(crate) fn new(unix: bool) -> Inbox {
        let most = if unix { MOST_UNIX } else { MOST };
        let state = State {
            messages: VecDeque::new(),
            bytes: 0,
            capacity: CAPACITY,
            most,
            closed: false,
            waiting: Vec::new(),
        };
        Inbox { state: Mutex::new(state) }
    }

    pub(crate) fn put(
        &self,
        meter: &Arc<Meter>,
        from: &Address,
        data: &[u8],
        rights: &mut Option<Rights>,
    ) -> std::result::Result<(), Refusal> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(Refusal::Closed);
        }
        let full = state.messages.len() >= state.most
            || (!state.messages.is_empty() && state.bytes + data.len() > state.capacity);
        if full {
            return Err(Refusal::Full);
        }
        let charge = meter.hold(OVERHEAD + data.len()).ok_or(Refusal::NoMemory)?;
        state.bytes += data.len();
        let rights = rights.take();
        state.messages.push_back(Message {
            from: from.clone(),
            data: data.to_vec(),
            rights,
            _charge: charge,
        });
        Ok(())
    }

    /// Copies the next datagram into `buf`, as much as fits: returns who sent it, how many bytes were copied, how long it
    /// is, and its descriptors.
    pub(crate) fn take(&self, buf: &mut [u8], peek: bool) -> Option<(Address, usize, usize, Option<Rights>)> {
        let mut state = self.state.lock();
        let message = state.messages.front()?;
        let n = buf.len().min(message.data.len());
        buf[..n].copy_from_slice(&message.data[..n]);
        let (from, len) = (message.from.clone(), message.data.len());
        if peek {
            return Some((from, n, len, None));
        }
        let message = state.messages.pop_front()?;
        state.bytes -= len;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.iter().filter_map(Weak::upgrade).for_each(|notify| notify.notify_waiters());
        Some((from, n, len, message.rights))
    }

    /// The length of the next datagram.
    pub(crate) fn next_len(&self) -> Option<usize> {
        self.state.lock().messages.front().map(|message| message.data.len())
    }

    /// Returns whether it takes a small datagram now; otherwise `waiter` is notified when it may.
    pub(crate) fn has_room(&self, waiter: &Arc<Notify>) -> bool {
        let mut state = self.state.lock();
        if state.closed || (state.messages.len() < state.most && state.bytes < state.capacity) {
            return true;
        }
        state.wait(waiter);
        false
    }

    /// Has `waiter` notified when a datagram is received.
    pub(crate) fn wait(&self, waiter: &Arc<Notify>) {
        self.state.lock().wait(waiter);
    }

    pub(crate) fn set_capacity(&self, capacity: usize) {
        self.state.lock().capacity = capacity;
    }

    /// Drops what is there and takes no more.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let (messages, waiting) = (std::mem::take(&mut state.messages), std::mem::take(&mut state.waiting));
        drop(state);
        drop(messages);
        waiting.iter().filter_map(Weak::upgrade).for_each(|notify| notify.notify_waiters());
    }

    /// Drops descriptors that nobody has received.
    pub(crate) fn forget_rights(&self) {
        let rights: Vec<_> =
            self.state.lock().messages.iter_mut().filter_map(|message| message.rights.take()).collect();
        drop(rights);
    }
}

/// Checks the length of a datagram before anything is done with it.
pub(crate) fn check_length(unix: bool, len: usize) -> Result<()> {
    let largest = if unix { LARGEST_UNIX } else { LARGEST_UDP };
    if len > largest { Err(Errno::EMSGSIZE) } else { Ok(()) }
}
