//! `getsockopt` and `setsockopt`: those that mean something here. Any other is ENOPROTOOPT.

use std::ops::RangeInclusive;
use std::time::Duration;

use wardian_vfs::{Errno, Result};

use super::socket::{Kind, Phase, Socket};
use super::{Domain, channel, inbox};
use crate::proc::UID;

const SOL_SOCKET: u32 = 1;
const IPPROTO_TCP: u32 = 6;
const IPPROTO_UDP: u32 = 17;
const IPPROTO_IPV6: u32 = 41;

const SO_REUSEADDR: u32 = 2;
const SO_TYPE: u32 = 3;
const SO_ERROR: u32 = 4;
const SO_SNDBUF: u32 = 7;
const SO_RCVBUF: u32 = 8;
const SO_KEEPALIVE: u32 = 9;
const SO_LINGER: u32 = 13;
const SO_REUSEPORT: u32 = 15;
const SO_PEERCRED: u32 = 17;
const SO_ACCEPTCONN: u32 = 30;
const SO_PROTOCOL: u32 = 38;
const SO_DOMAIN: u32 = 39;
/// Times with 64 bits, as all programs here have them.
const SO_RCVTIMEO: u32 = 66;
const SO_SNDTIMEO: u32 = 67;
const TCP_NODELAY: u32 = 1;
const TCP_KEEPIDLE: u32 = 4;
const TCP_KEEPINTVL: u32 = 5;
const TCP_KEEPCNT: u32 = 6;
const TCP_USER_TIMEOUT: u32 = 18;
const IPV6_V6ONLY: u32 = 26;

/// The longest option: two numbers of 64 bits.
pub(crate) const LONGEST: u32 = 16;
/// The sizes that a buffer may be set to, as on Linux with its default settings.
const BUFFER: RangeInclusive<usize> = 4608..=425_984;

/// What a socket was told.
#[derive(Clone, Copy, Default)]
pub(super) struct Options {
    pub(super) reuse_address: bool,
    pub(super) reuse_port: bool,
    /// Nothing is ever lost here, so there is nothing to probe; the settings are kept.
    keep_alive: bool,
    probes: Probes,
    /// Every byte is sent at once whatever this says.
    no_delay: bool,
    pub(super) v6_only: bool,
    /// Seconds, if closing is to wait: what was sent has arrived by then. 0 discards it.
    pub(super) linger: Option<i32>,
    pub(super) receive_timeout: Option<Duration>,
    pub(super) send_timeout: Option<Duration>,
    pub(super) receive_buffer: Option<usize>,
    pub(super) send_buffer: Option<usize>,
}

/// When a connection would be probed, how often, and when given up. The defaults are Linux's.
#[derive(Clone, Copy)]
struct Probes {
    /// Seconds.
    idle: i32,
    interval: i32,
    count: i32,
    /// Milliseconds; 0 if nothing was said.
    user_timeout: i32,
}

impl Default for Probes {
    fn default() -> Probes {
        Probes { idle: 7200, interval: 75, count: 9, user_timeout: 0 }
    }
}

impl Probes {
    /// Returns what an option sets, and the values that it may have.
    fn field(&mut self, option: u32) -> Option<(&mut i32, RangeInclusive<i32>)> {
        Some(match option {
            TCP_KEEPIDLE => (&mut self.idle, 1..=32_767),
            TCP_KEEPINTVL => (&mut self.interval, 1..=32_767),
            TCP_KEEPCNT => (&mut self.count, 1..=127),
            TCP_USER_TIMEOUT => (&mut self.user_timeout, 0..=i32::MAX),
            _ => return None,
        })
    }
}

impl Socket {
    /// An accepted socket has the options of the one that listens.
    pub(super) fn take_options_of(&self, listener: &Socket) {
        let options = *listener.options.lock();
        *self.options.lock() = Options { receive_timeout: None, send_timeout: None, ..options };
    }

    pub(crate) fn option(&self, level: u32, option: u32) -> Result<Vec<u8>> {
        let options = *self.options.lock();
        let number = |number: i32| Ok(number.to_le_bytes().to_vec());
        let flag = |value: bool| number(i32::from(value));
        match (level, option) {
            (SOL_SOCKET, SO_TYPE) => number(if self.kind() == Kind::Stream { 1 } else { 2 }),
            (SOL_SOCKET, SO_DOMAIN) => number(i32::from(self.domain().number())),
            (SOL_SOCKET, SO_PROTOCOL) => number(self.protocol() as i32),
            (SOL_SOCKET, SO_ERROR) => number(self.take_error().map_or(0, Errno::raw)),
            (SOL_SOCKET, SO_ACCEPTCONN) => flag(self.is_listening()),
            (SOL_SOCKET, SO_REUSEADDR) => flag(options.reuse_address),
            (SOL_SOCKET, SO_REUSEPORT) => flag(options.reuse_port),
            (SOL_SOCKET, SO_KEEPALIVE) => flag(options.keep_alive),
            (SOL_SOCKET, SO_LINGER) => {
                let seconds = options.linger.unwrap_or(0);
                Ok([i32::from(options.linger.is_some()).to_le_bytes(), seconds.to_le_bytes()].concat())
            }
            (SOL_SOCKET, SO_RCVBUF) => number(self.buffer(options.receive_buffer)),
            (SOL_SOCKET, SO_SNDBUF) => number(self.buffer(options.send_buffer)),
            (SOL_SOCKET, SO_RCVTIMEO) => Ok(encode_time(options.receive_timeout)),
            (SOL_SOCKET, SO_SNDTIMEO) => Ok(encode_time(options.send_timeout)),
            (SOL_SOCKET, SO_PEERCRED) if self.domain() == Domain::Unix => Ok(self.credentials()),
            (IPPROTO_TCP, TCP_NODELAY) if self.is_tcp() => flag(options.no_delay),
            (IPPROTO_TCP, option) if self.is_tcp() => {
                let mut probes = options.probes;
                number(*probes.field(option).ok_or(Errno::ENOPROTOOPT)?.0)
            }
            (IPPROTO_IPV6, IPV6_V6ONLY) if self.domain() == Domain::V6 => flag(options.v6_only),
            _ => Err(self.unknown(level)),
        }
    }

    pub(crate) fn set_option(&self, level: u32, option: u32, raw: &[u8]) -> Result<()> {
        let number = || raw.first_chunk().map(|bytes| i32::from_le_bytes(*bytes)).ok_or(Errno::EINVAL);
        let flag = || number().map(|number| number != 0);
        let mut options = self.options.lock();
        match (level, option) {
            (SOL_SOCKET, SO_REUSEADDR) => options.reuse_address = flag()?,
            (SOL_SOCKET, SO_REUSEPORT) if self.domain() == Domain::Unix => return Err(Errno::ENOTSUP),
            (SOL_SOCKET, SO_REUSEPORT) => options.reuse_port = flag()?,
            (SOL_SOCKET, SO_KEEPALIVE) => options.keep_alive = flag()?,
            (SOL_SOCKET, SO_LINGER) => {
                let raw: &[u8; 8] = raw.first_chunk().ok_or(Errno::EINVAL)?;
                let [on, seconds] = [0, 4].map(|at| i32::from_le_bytes([0, 1, 2, 3].map(|i| raw[at + i])));
                options.linger = (on != 0).then_some(seconds);
            }
            (SOL_SOCKET, SO_RCVBUF) => {
                let size = doubled(number()?);
                options.receive_buffer = Some(size);
                drop(options);
                self.set_capacity(size, false);
            }
            (SOL_SOCKET, SO_SNDBUF) => {
                let size = doubled(number()?);
                options.send_buffer = Some(size);
                drop(options);
                self.set_capacity(size, true);
            }
            (SOL_SOCKET, SO_RCVTIMEO) => options.receive_timeout = decode_time(raw)?,
            (SOL_SOCKET, SO_SNDTIMEO) => options.send_timeout = decode_time(raw)?,
            (IPPROTO_TCP, TCP_NODELAY) if self.is_tcp() => options.no_delay = flag()?,
            (IPPROTO_TCP, option) if self.is_tcp() => {
                let (field, range) = options.probes.field(option).ok_or(Errno::ENOPROTOOPT)?;
                let value = number()?;
                *field = range.contains(&value).then_some(value).ok_or(Errno::EINVAL)?;
            }
            (IPPROTO_IPV6, IPV6_V6ONLY) if self.domain() == Domain::V6 => {
                let value = flag()?;
                drop(options);
                if self.state.lock().local.is_some() {
                    return Err(Errno::EINVAL);
                }
                self.options.lock().v6_only = value;
            }
            _ => return Err(self.unknown(level)),
        }
        Ok(())
    }

    pub(crate) fn protocol(&self) -> u32 {
        match (self.domain(), self.kind()) {
            (Domain::Unix, _) => 0,
            (_, Kind::Stream) => IPPROTO_TCP,
            (_, Kind::Datagram) => IPPROTO_UDP,
        }
    }

    /// Unix sockets have no protocols with options.
    fn unknown(&self, level: u32) -> Errno {
        let other = level != SOL_SOCKET && self.domain() == Domain::Unix;
        if other { Errno::ENOTSUP } else { Errno::ENOPROTOOPT }
    }

    fn buffer(&self, set: Option<usize>) -> i32 {
        let default = if self.kind() == Kind::Stream { channel::CAPACITY } else { inbox::CAPACITY };
        i32::try_from(set.unwrap_or(default)).unwrap_or(i32::MAX)
    }

    fn set_capacity(&self, capacity: usize, sending: bool) {
        match &self.state.lock().phase {
            Phase::Connected(connection) if sending => connection.outgoing.set_capacity(capacity),
            Phase::Connected(connection) => connection.incoming.set_capacity(capacity),
            Phase::Datagram(_) if !sending => self.inbox.set_capacity(capacity),
            _ => {}
        }
    }

    /// `struct ucred` of the process at the other end.
    fn credentials(&self) -> Vec<u8> {
        let state = self.state.lock();
        let known = !matches!(state.phase, Phase::Fresh | Phase::Datagram(None) | Phase::Lost);
        let pid = if matches!(state.phase, Phase::Listening(_)) { self.pid() } else { state.peer_pid };
        let user = if known { UID } else { u32::MAX };
        [if known { pid } else { 0 }, user, user].iter().flat_map(|field| field.to_le_bytes()).collect()
    }
}

/// Linux counts what it needs itself.
fn doubled(size: i32) -> usize {
    usize::try_from(size).unwrap_or(0).saturating_mul(2).clamp(*BUFFER.start(), *BUFFER.end())
}

fn encode_time(time: Option<Duration>) -> Vec<u8> {
    let time = time.unwrap_or_default();
    let [seconds, micros] = [time.as_secs(), u64::from(time.subsec_micros())];
    [seconds.to_le_bytes(), micros.to_le_bytes()].concat()
}

/// Two numbers of 64 bits, seconds and microseconds; none at all are no limit.
fn decode_time(raw: &[u8]) -> Result<Option<Duration>> {
    let raw: &[u8; 16] = raw.first_chunk().ok_or(Errno::EINVAL)?;
    let [seconds, micros] = [0, 8].map(|at| {
        let mut word = [0; 8];
        word.copy_from_slice(&raw[at..at + 8]);
        i64::from_le_bytes(word)
    });
    if !(0..1_000_000).contains(&micros) {
        return Err(Errno::EDOM);
    }
    match (u64::try_from(seconds), micros) {
        // As on Linux, a negative time is one that has passed.
        (Err(_), _) => Ok(Some(Duration::ZERO)),
        (Ok(0), 0) => Ok(None),
        // What outlives everything needs no timer.
        (Ok(seconds), _) if seconds > 1_000_000_000 => Ok(None),
        (Ok(seconds), micros) => Ok(Some(Duration::new(seconds, micros as u32 * 1000))),
    }
}
