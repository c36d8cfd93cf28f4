//! poll_oneoff: waiting for clocks and descriptors together.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use wardian_vfs::{Errno, Result};

use super::MODULE;
use super::process::now;
use crate::call::{Call, Outcome, waiting_calls};
use crate::fd::OpenFile;
use crate::imports::Imports;
use crate::limits::SCRATCH;
use crate::net::Ready;
use crate::outlet::Outlet;
use crate::pipe::Readiness;
use crate::stream::Standard;

pub(super) fn add_to_linker(imports: &mut Imports<'_>) -> wasmtime::Result<()> {
    waiting_calls! { imports, MODULE;
        poll_oneoff(subscriptions: u32, events: u32, count: u32, out: u32);
    }
    Ok(())
}

const SUBSCRIPTION: usize = 48;
const EVENT: u32 = 32;
/// More than this in one call is a broken program.
const MAX_SUBSCRIPTIONS: u32 = 4096;
/// What the kernel keeps for one of them while the call waits: as passed, parsed, and listening.
const COST: usize = SUBSCRIPTION + size_of::<Subscription>() + size_of::<Event>() + 128;

enum Wanted {
    Clock {
        left: Duration,
    },
    Descriptor {
        file: Result<Arc<OpenFile>>,
        write: bool,
    },
    /// The other side of a pipe is gone.
    HangUp {
        file: Result<Arc<OpenFile>>,
    },
}

struct Subscription {
    userdata: u64,
    kind: u8,
    wanted: Wanted,
}

/// Something that happened.
struct Event {
    userdata: u64,
    kind: u8,
    error: u16,
    bytes: u64,
    /// 1: hang-up. Of sockets also 2: it is ready, whatever `bytes` says; 4: an error; 8 always.
    flags: u16,
}

async fn poll_oneoff(call: &mut Call<'_>, subscriptions: u32, events: u32, count: u32, out: u32) -> Outcome {
    if count == 0 || count > MAX_SUBSCRIPTIONS {
        return Err(Errno::EINVAL.into());
    }
    call.bytes(events, count * EVENT)?;
    call.bytes(out, 4)?;
    let kept = count as usize * COST;
    let _charge = if kept > SCRATCH { Some(call.charge(kept)?) } else { None };
    let list = (count, SUBSCRIPTION as u32);
    let raw = call.list(subscriptions, list, MAX_SUBSCRIPTIONS, Errno::EINVAL)?.to_vec();
    let wanted: Vec<Subscription> =
        raw.chunks_exact(SUBSCRIPTION).map(|raw| subscription(call, raw)).collect::<Result<_>>()?;
    let process = call.process().clone();
    let happened = match ready(&wanted, Duration::ZERO) {
        happened if !happened.is_empty() => happened,
        _ => process.interruptible(wait_for(&wanted)).await?,
    };
    for (at, event) in (events..).step_by(EVENT as usize).zip(&happened) {
        call.put(at, &encode(event))?;
    }
    Ok(call.put_u32(out, happened.len() as u32)?)
}

fn subscription(call: &Call<'_>, raw: &[u8]) -> Result<Subscription> {
    let u64_at = |at: usize| u64::from_le_bytes(raw[at..at + 8].try_into().expect("eight bytes"));
    let u32_at = |at: usize| u32::from_le_bytes(raw[at..at + 4].try_into().expect("four bytes"));
    let kind = raw[8];
    let wanted = match kind {
        0 => {
            let (clock, timeout, absolute) = (u32_at(16), u64_at(24), raw[40] & 1 != 0);
            let left = if absolute { timeout.saturating_sub(now(call, clock)?) } else { timeout };
            Wanted::Clock { left: Duration::from_nanos(left) }
        }
        1 | 2 => Wanted::Descriptor { file: call.file(u32_at(16)), write: kind == 2 },
        // Not WASI's: what Linux tells who polls a write end for nothing but errors.
        3 if call.is_native() => Wanted::HangUp { file: call.file(u32_at(16)) },
        _ => return Err(Errno::EINVAL),
    };
    Ok(Subscription { userdata: u64_at(0), kind, wanted })
}

/// The events that are there when `passed` has gone by since the call.
fn ready(wanted: &[Subscription], passed: Duration) -> Vec<Event> {
    let told = |s: &Subscription, error: u16, bytes: u64, flags: u16| {
        Some(Event { userdata: s.userdata, kind: s.kind, error, bytes, flags })
    };
    let event = |s: &Subscription, error: u16, bytes: u64, hangup: bool| {
        told(s, error, bytes, if hangup { HANGUP } else { 0 })
    };
    let check = |s: &Subscription| match &s.wanted {
        Wanted::Clock { left } if *left <= passed => event(s, 0, 0, false),
        Wanted::Clock { .. } => None,
        Wanted::Descriptor { file: Ok(file), write } if file.socket().is_some() => {
            let state = file.socket()?.ready(*write);
            let flags = flags_of(&state);
            if flags != 0 { told(s, 0, state.bytes as u64, flags | SOCKET) } else { None }
        }
        Wanted::HangUp { file: Ok(file) } if file.socket().is_some() => {
            let flags = flags_of(&file.socket()?.ready(false)) & (HANGUP | ERROR);
            if flags != 0 { told(s, 0, 0, flags | SOCKET) } else { None }
        }
        Wanted::HangUp { file: Ok(file) } => match has_hung_up(file) {
            true => event(s, 0, 0, true),
            false => None,
        },
        Wanted::Descriptor { file: Err(errno), .. } | Wanted::HangUp { file: Err(errno) } => {
            event(s, super::errno_number(*errno), 0, false)
        }
        Wanted::Descriptor { file: Ok(file), write } => match readiness(file, *write) {
            Ok(Some(state)) if state.bytes > 0 || state.hangup => {
                event(s, 0, state.bytes as u64, state.hangup)
            }
            Ok(Some(_)) => None,
            // Files never keep one waiting in a way that could be told beforehand.
            Ok(None) => event(s, 0, 1, false),
            Err(errno) => event(s, super::errno_number(errno), 0, false),
        },
    };
    wanted.iter().filter_map(check).collect()
}

fn readiness(file: &OpenFile, write: bool) -> Result<Option<Readiness>> {
    match (file, write) {
        (OpenFile::Reader(reader) | OpenFile::Both(reader, _), false) => Ok(Some(reader.readiness())),
        (OpenFile::Writer(writer) | OpenFile::Both(_, writer), true) => Ok(Some(writer.readiness())),
        (OpenFile::Terminal(tty, ..), false) => Ok(Some(tty.readiness())),
        (OpenFile::Input(input, _), false) => Ok(Some(input.readiness())),
        (OpenFile::Terminal(tty, ..), true) => Ok(Some(room(tty.has_room()))),
        (OpenFile::Output(outlet, which, _), true) => Ok(Some(room(outlet.has_room(which.stream())))),
        (OpenFile::Tree(_), _) => Ok(None),
        _ => Err(Errno::EBADF),
    }
}

/// What is told of a stream that takes a write now, or does not.
fn room(is_there: bool) -> Readiness {
    Readiness { bytes: usize::from(is_there), hangup: false }
}

/// Flags of an event.
const HANGUP: u16 = 1;
const READY: u16 = 2;
const ERROR: u16 = 4;
const SOCKET: u16 = 8;

fn flags_of(state: &Ready) -> u16 {
    let flags = [(state.hangup, HANGUP), (state.ready, READY), (state.error, ERROR)];
    flags.into_iter().filter(|(set, _)| *set).map(|(_, flag)| flag).sum()
}

fn has_hung_up(file: &OpenFile) -> bool {
    match file {
        OpenFile::Reader(reader) => reader.readiness().hangup,
        OpenFile::Writer(writer) => writer.readiness().hangup,
        _ => false,
    }
}

/// Ends when something may have changed.
type Change<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

async fn wait_for(wanted: &[Subscription]) -> Result<Vec<Event>> {
    let start = tokio::time::Instant::now();
    let first = wanted.iter().filter_map(|s| match s.wanted {
        Wanted::Clock { left } => Some(left),
        Wanted::Descriptor { .. } | Wanted::HangUp { .. } => None,
    });
    let first = first.min();
    let sources = sources(wanted);
    loop {
        let changes: Vec<_> = sources.iter().map(Source::change).collect();
        let happened = ready(wanted, start.elapsed());
        if !happened.is_empty() {
            return Ok(happened);
        }
        match first {
            Some(left) => drop(tokio::time::timeout_at(start + left, any(changes)).await),
            None => any(changes).await,
        }
    }
}

/// What to wait for, each once: whoever changes something wakes all who wait for it, and must not be held up by how often
/// they ask.
fn sources(wanted: &[Subscription]) -> Vec<Source<'_>> {
    let mut known = HashSet::new();
    wanted.iter().filter_map(Source::of).filter(|source| known.insert(source.key())).collect()
}

/// What notifies of changes.
enum Source<'a> {
    Notice(&'a Notify),
    /// A run's output, where a write must not wait.
    Room(&'a Outlet, Standard),
}

impl<'a> Source<'a> {
    fn of(s: &'a Subscription) -> Option<Source<'a>> {
        let (file, write) = match &s.wanted {
            Wanted::Descriptor { file: Ok(file), write } => (file, *write),
            Wanted::HangUp { file: Ok(file) } => (file, matches!(**file, OpenFile::Writer(_))),
            _ => return None,
        };
        let notice = match (&**file, write) {
            (OpenFile::Reader(reader) | OpenFile::Both(reader, _), false) => reader.changed(),
            (OpenFile::Writer(writer) | OpenFile::Both(_, writer), true) => writer.changed(),
            (OpenFile::Terminal(tty, ..), false) => tty.changed(),
            (OpenFile::Terminal(tty, ..), true) => tty.drained(),
            (OpenFile::Input(input, _), false) => input.changed(),
            (OpenFile::Socket(socket), _) => socket.socket().changed(),
            (OpenFile::Output(outlet, which, _), true) => return Some(Source::Room(outlet, *which)),
            _ => return None,
        };
        Some(Source::Notice(notice))
    }

    /// Identifies it.
    fn key(&self) -> (usize, Option<Standard>) {
        match self {
            Source::Notice(notice) => (std::ptr::from_ref(*notice).addr(), None),
            Source::Room(outlet, which) => (std::ptr::from_ref(*outlet).addr(), Some(*which)),
        }
    }

    /// Listens from now on.
    fn change(&self) -> Change<'a> {
        match *self {
            Source::Notice(notice) => {
                let mut notified = Box::pin(notice.notified());
                notified.as_mut().enable();
                notified
            }
            // Nothing is missed: it ends whenever there is room.
            Source::Room(outlet, which) => Box::pin(outlet.room(which.stream())),
        }
    }
}

/// Ends with the first of them; never, where there are none.
async fn any(mut futures: Vec<Change<'_>>) {
    std::future::poll_fn(|cx| {
        let done = futures.iter_mut().any(|future| future.as_mut().poll(cx).is_ready());
        if done { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

fn encode(event: &Event) -> [u8; EVENT as usize] {
    let mut out = [0; EVENT as usize];
    out[..8].copy_from_slice(&event.userdata.to_le_bytes());
    out[8..10].copy_from_slice(&event.error.to_le_bytes());
    out[10] = event.kind;
    out[16..24].copy_from_slice(&event.bytes.to_le_bytes());
    out[24..26].copy_from_slice(&event.flags.to_le_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Meter;

    #[test]
    fn a_descriptor_polled_many_times_is_waited_for_once() {
        let (reader, writer) =
            crate::pipe::pipe(&Arc::new(Meter::new(1 << 20))).expect("there is memory for one");
        // Each opens the same pipe anew, as with a FIFO.
        let reopened = reader.pipe().open_reader();
        let files =
            [OpenFile::Reader(reader), OpenFile::Reader(reopened), OpenFile::Writer(writer)].map(Arc::new);
        let asked = |number: usize| {
            let (file, write) = (Ok(files[number % 3].clone()), number % 3 == 2);
            Subscription { userdata: 0, kind: 1, wanted: Wanted::Descriptor { file, write } }
        };
        let wanted: Vec<_> = (0..300).map(asked).collect();
        assert_eq!(sources(&wanted).len(), 2, "the pipe's readers and its writers");
    }
}
