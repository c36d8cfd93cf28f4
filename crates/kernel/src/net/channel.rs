//! One direction of a stream: the bytes between the socket that sends and the socket that receives.
//!
//! A channel starts without a buffer. The buffer grows in steps as it fills up, and its sandbox is charged for it until both
//! ends are gone. If the sandbox has no memory left, the buffer stays as it is: senders wait earlier, and nothing is lost.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use wardian_vfs::{Errno, Result};

use super::rights::Rights;
use crate::limits::{Charge, Meter};

/// How much a channel holds unless its socket says otherwise.
pub(crate) const CAPACITY: usize = 256 * 1024;
/// The smallest buffer.
const SMALLEST: usize = 4096;
/// A sender is woken, and a poll says writable, when at least this part of the buffer is free.
const WRITABLE_PART: usize = 4;

pub(crate) struct Channel {
    state: Mutex<State>,
    /// Notified when there is something to receive.
    receiver: Arc<Notify>,
    /// Notified when there is space to send.
    sender: Arc<Notify>,
}

struct State {
    bytes: VecDeque<u8>,
    /// The current size of the buffer, which is charged.
    room: usize,
    /// The most that it may become.
    capacity: usize,
    /// It should have grown, but the sandbox has no memory for that.
    starved: bool,
    charge: Charge,
    /// Descriptors that were sent, each with where the bytes that it was sent with begin and end.
    rights: VecDeque<(std::ops::Range<u64>, Rights)>,
    sent: u64,
    received: u64,
    /// Nothing more is sent.
    ended: bool,
    /// Nothing more is received.
    deaf: bool,
    /// The sender closed its socket without having received everything: the receiver is told once.
    reset: bool,
    /// What is sent first after the receiver has closed is lost silently, as TCP cannot know yet.
    forgives: bool,
}

/// What can be done with one end of a channel now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    /// Bytes that can be moved without waiting.
    pub(crate) bytes: usize,
    /// The call would not wait, also where that is for an end or an error.
    pub(crate) ready: bool,
    /// The other end is gone for good.
    pub(crate) hangup: bool,
    /// An error is waiting to be reported.
    pub(crate) error: bool,
}

impl State {
    /// Makes space for `more` bytes or as many as possible; returns how many those are.
    fn make_room(&mut self, more: usize) -> usize {
        let wanted = self.bytes.len().saturating_add(more).min(self.capacity);
        if wanted > self.room {
            let mut size = wanted.next_power_of_two().clamp(SMALLEST, self.capacity.max(SMALLEST));
            while size > self.room && !self.charge.grow_to(size) {
                size /= 2;
            }
            self.room = self.room.max(size);
            self.starved = self.room < wanted;
            self.bytes.reserve_exact(self.room.saturating_sub(self.bytes.len()));
        }
        self.room.min(wanted).saturating_sub(self.bytes.len())
    }

    fn left(&self) -> usize {
        let most = if self.starved { self.room } else { self.capacity };
        most.saturating_sub(self.bytes.len())
    }

    /// Returns whether a sender that waited can go on: waking it for each byte would cost more than the bytes.
    fn is_writable(&self) -> bool {
        let most = if self.starved { self.room } else { self.capacity };
        self.deaf || self.left() * WRITABLE_PART >= most.max(1)
    }

    /// The number of bytes that can be received at once: those that descriptors belong to come alone, as on Linux.
    fn before_rights(&self) -> usize {
        let Some((with, _)) = self.rights.front() else { return usize::MAX };
        let end = if with.start == self.received { with.end } else { with.start };
        usize::try_from(end.saturating_sub(self.received)).unwrap_or(usize::MAX)
    }
}

impl Channel {
    pub(crate) fn new(meter: &Arc<Meter>, sender: &Arc<Notify>, receiver: &Arc<Notify>) -> Arc<Channel> {
        let state = State {
            bytes: VecDeque::new(),
            room: 0,
            capacity: CAPACITY,
            starved: false,
            charge: Charge::nothing(meter),
            rights: VecDeque::new(),
            sent: 0,
            received: 0,
            ended: false,
            deaf: false,
            reset: false,
            forgives: false,
        };
        Arc::new(Channel { state: Mutex::new(state), receiver: receiver.clone(), sender: sender.clone() })
    }

    /// Sends as much as fits, perhaps nothing. Descriptors go with the first byte, or not yet.
    pub(crate) fn try_send(&self, data: &[u8], rights: &mut Option<Rights>) -> Result<usize> {
        let mut state = self.state.lock();
        if state.ended {
            return Err(Errno::EPIPE);
        }
        if state.deaf {
            return if std::mem::take(&mut state.forgives) { Ok(data.len()) } else { Err(Errno::EPIPE) };
        }
        let n = state.make_room(data.len()).min(data.len());
        if n == 0 {
            return Ok(0);
        }
        if let Some(rights) = rights.take() {
            let with = state.sent..state.sent + n as u64;
            state.rights.push_back((with, rights));
        }
        let was_empty = state.bytes.is_empty();
        state.bytes.extend(&data[..n]);
        state.sent += n as u64;
        drop(state);
        if was_empty {
            self.receiver.notify_waiters();
        }
        Ok(n)
    }

    /// Receives what is there, with the descriptors sent along; `None` if there is nothing yet. With `peek` it stays.
    pub(crate) fn try_receive(&self, buf: &mut [u8], peek: bool) -> Option<Result<(usize, Option<Rights>)>> {
        let mut state = self.state.lock();
        if state.bytes.is_empty() || buf.is_empty() {
            return match () {
                () if buf.is_empty() => Some(Ok((0, None))),
                () if std::mem::take(&mut state.reset) => Some(Err(Errno::ECONNRESET)),
                () if state.ended || state.deaf => Some(Ok((0, None))),
                () => None,
            };
        }
        let n = buf.len().min(state.bytes.len()).min(state.before_rights());
        copy_front(&state.bytes, &mut buf[..n]);
        if peek {
            return Some(Ok((n, None)));
        }
        let was_writable = state.is_writable();
        state.bytes.drain(..n);
        if state.bytes.is_empty() && state.bytes.capacity() <= SMALLEST {
            // A thousand connections that wait need none. It stays charged, so that it can always be had again.
            state.bytes = VecDeque::new();
        }
        let here = state.received;
        let has_rights = state.rights.front().is_some_and(|(with, _)| with.start == here);
        let rights = if has_rights { state.rights.pop_front().map(|(_, rights)| rights) } else { None };
        state.received += n as u64;
        let wake = !was_writable && state.is_writable();
        drop(state);
        if wake {
            self.sender.notify_waiters();
        }
        Some(Ok((n, rights)))
    }

    /// The sender is done: the receiver gets what is there and then the end.
    pub(crate) fn end(&self) {
        self.state.lock().ended = true;
        self.receiver.notify_waiters();
    }

    /// The sender is gone without having received everything: the receiver gets what is there, an error and then the end.
    pub(crate) fn reset(&self) {
        let mut state = self.state.lock();
        (state.ended, state.reset) = (true, true);
        drop(state);
        self.receiver.notify_waiters();
    }

    /// The receiver takes no more. Returns whether something was left. With `forgives`, what is sent next is lost silently.
    pub(crate) fn stop_receiving(&self, forgives: bool) -> bool {
        let mut state = self.state.lock();
        let left = !state.bytes.is_empty();
        state.deaf = true;
        state.forgives = forgives && !left && !state.ended;
        let rights = std::mem::take(&mut state.rights);
        (state.bytes, state.room) = (VecDeque::new(), 0);
        drop(state);
        // Dropping them may close other sockets.
        drop(rights);
        self.sender.notify_waiters();
        self.receiver.notify_waiters();
        left
    }

    /// Drops descriptors that nobody has received: they may be what keeps this channel itself.
    pub(crate) fn forget_rights(&self) {
        let rights = std::mem::take(&mut self.state.lock().rights);
        drop(rights);
    }

    /// Takes the error for the receiver, if any.
    pub(crate) fn take_reset(&self) -> bool {
        std::mem::take(&mut self.state.lock().reset)
    }

    pub(crate) fn set_capacity(&self, capacity: usize) {
        self.state.lock().capacity = capacity;
        self.sender.notify_waiters();
    }

    /// Returns whether nobody will receive anything any more.
    pub(crate) fn is_deaf(&self) -> bool {
        self.state.lock().deaf
    }

    pub(crate) fn is_starved(&self) -> bool {
        self.state.lock().starved
    }

    pub(crate) fn receivable(&self) -> Ready {
        let state = self.state.lock();
        Ready {
            bytes: state.bytes.len(),
            ready: !state.bytes.is_empty() || state.ended || state.deaf,
            hangup: state.ended || state.deaf,
            error: state.reset,
        }
    }

    pub(crate) fn sendable(&self) -> Ready {
        let state = self.state.lock();
        let ready = state.ended || state.is_writable();
        // A receiver that TCP has not heard of yet is not known to be gone.
        let hangup = state.ended || (state.deaf && !state.forgives);
        Ready { bytes: if ready { state.left() } else { 0 }, ready, hangup, error: false }
    }
}

fn copy_front(bytes: &VecDeque<u8>, buf: &mut [u8]) {
    let (front, back) = bytes.as_slices();
    let from_front = buf.len().min(front.len());
    let (first, second) = buf.split_at_mut(from_front);
    first.copy_from_slice(&front[..from_front]);
    second.copy_from_slice(&back[..second.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(limit: u64) -> (Arc<Channel>, Arc<Meter>) {
        let (meter, notify) = (Arc::new(Meter::new(limit)), Arc::new(Notify::new()));
        (Channel::new(&meter, &notify, &notify), meter)
    }

    fn received(channel: &Channel, len: usize) -> Option<Result<usize>> {
        let mut buf = vec![0; len];
        channel.try_receive(&mut buf, false).map(|got| got.map(|(n, _)| n))
    }

    #[test]
    fn a_channel_is_charged_for_its_buffers_until_it_is_dropped() {
        let (channel, meter) = channel(1 << 20);
        assert_eq!(meter.used(), 0);
        assert_eq!(channel.try_send(&[1; 10], &mut None), Ok(10));
        assert_eq!(meter.used(), SMALLEST as u64);
        assert_eq!(channel.try_send(&[1; CAPACITY], &mut None), Ok(CAPACITY - 10));
        assert_eq!(meter.used(), CAPACITY as u64);
        drop(channel);
        assert_eq!(meter.used(), 0);
    }

    #[test]
    fn a_channel_without_memory_is_smaller_and_loses_nothing() {
        let (channel, _meter) = channel(20_000);
        assert_eq!(channel.try_send(&[1; CAPACITY], &mut None), Ok(16_384));
        assert!(channel.is_starved() && !channel.sendable().ready);
        assert_eq!(received(&channel, CAPACITY), Some(Ok(16_384)));
        assert!(channel.sendable().ready);
    }

    #[test]
    fn the_end_comes_after_the_bytes() {
        let (channel, _meter) = channel(1 << 20);
        assert_eq!(received(&channel, 1), None);
        assert_eq!(channel.try_send(b"ab", &mut None), Ok(2));
        channel.reset();
        assert_eq!(received(&channel, 8), Some(Ok(2)));
        assert_eq!(received(&channel, 8), Some(Err(Errno::ECONNRESET)));
        assert_eq!(received(&channel, 8), Some(Ok(0)));
    }

    #[test]
    fn sending_to_nobody_fails_at_once_or_the_second_time() {
        let (unix, _meter) = channel(1 << 20);
        assert!(!unix.stop_receiving(false));
        assert_eq!(unix.try_send(b"x", &mut None), Err(Errno::EPIPE));
        let (tcp, _meter) = channel(1 << 20);
        assert!(!tcp.stop_receiving(true));
        assert_eq!(tcp.try_send(b"x", &mut None), Ok(1));
        assert_eq!(tcp.try_send(b"x", &mut None), Err(Errno::EPIPE));
    }
}
