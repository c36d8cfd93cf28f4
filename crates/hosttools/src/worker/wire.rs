//! The messages between the pool and a worker: frames of a length (`u32`, little-endian) and a `postcard` message.
//!
//! A frame with a job carries descriptors, in the order of [`Descriptors`], attached to its first byte.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use uuid::Uuid;
use wardian_confine::Confinement;

/// The maximum length of a message: the kernel allows about 2 MiB of arguments and environment.
const LONGEST: usize = 16 << 20;
/// The version in `Ready`. Increase it with every change of the messages: the two sides may be different files.
pub(crate) const VERSION: u32 = 3;
/// Bytes before each message.
const HEADER: usize = 4;

/// An order to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Start this.
    Run(Box<Job>),
    /// Sends SIGTERM to the job and all its descendants.
    Terminate(Uuid),
    /// Sends SIGKILL to the job and all its descendants.
    Kill(Uuid),
}

/// A worker's report.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The worker is ready, and speaks this version.
    Ready(u32),
    /// The job and all its descendants have ended.
    Ended(Uuid, Ending),
    /// The job was not started.
    NotStarted(Uuid, Obstacle),
}

/// How the program itself ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Ending {
    Exit(i32),
    Signal(i32),
}

/// At which step, and with which errno (0: not supported by the kernel), a program could not be started.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Obstacle {
    pub step: Step,
    pub errno: i32,
}

/// From fork to exec, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    Prepare,
    Fork,
    Session,
    Streams,
    Directory,
    Privileges,
    Landlock,
    Limits,
    Seccomp,
    Exec,
}

impl Step {
    const ALL: [Step; 10] = [
        Step::Prepare,
        Step::Fork,
        Step::Session,
        Step::Streams,
        Step::Directory,
        Step::Privileges,
        Step::Landlock,
        Step::Limits,
        Step::Seccomp,
        Step::Exec,
    ];
}

impl Obstacle {
    /// Encodes it in the child of the fork, without allocating.
    pub fn to_bytes(self) -> [u8; 5] {
        let errno = self.errno.to_le_bytes();
        [self.step as u8, errno[0], errno[1], errno[2], errno[3]]
    }

    pub fn from_bytes(bytes: [u8; 5]) -> Obstacle {
        let step = Step::ALL.get(usize::from(bytes[0])).copied().unwrap_or(Step::Fork);
        Obstacle { step, errno: i32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]) }
    }
}

/// A program to start.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub id: Uuid,
    pub program: OsString,
    /// Its `argv[0]`.
    pub name: OsString,
    pub args: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    /// The pool enforces the timeout; this is for a pool that does not.
    pub ceiling_ms: u64,
    /// The jail is sent as a descriptor.
    pub confinement: Confinement<()>,
}

/// The descriptors of a job.
#[derive(Debug)]
pub(crate) struct Descriptors<F> {
    pub cwd: F,
    pub jail: F,
    pub stdout: F,
    pub stderr: F,
}

impl<F: AsFd> Descriptors<F> {
    fn numbers(&self) -> [RawFd; 4] {
        [&self.cwd, &self.jail, &self.stdout, &self.stderr].map(|held| held.as_fd().as_raw_fd())
    }
}

/// Returns the frame of a message.
pub(crate) fn frame(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = postcard::to_extend(message, vec![0; HEADER]).map_err(io::Error::other)?;
    let length = frame.len() - HEADER;
    if length > LONGEST {
        return Err(io::Error::other("the message is too long"));
    }
    frame[..HEADER].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(frame)
}

/// Takes the message from the start of `bytes`; `None` until it is complete.
pub(crate) fn unframe<M: DeserializeOwned>(bytes: &mut Vec<u8>) -> io::Result<Option<M>> {
    let Some(header) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
    let end = HEADER + length(*header)?;
    if bytes.len() < end {
        return Ok(None);
    }
    let message = postcard::from_bytes(&bytes[HEADER..end]).map_err(io::Error::other)?;
    bytes.drain(..end);
    Ok(Some(message))
}

fn length(header: [u8; HEADER]) -> io::Result<usize> {
    let length = u32::from_le_bytes(header) as usize;
    if length > LONGEST { Err(io::Error::other("the message is too long")) } else { Ok(length) }
}

/// Sends the beginning of a frame with `descriptors`, and returns how much of it was sent.
pub(crate) fn send_with(
    socket: &impl AsFd,
    frame: &[u8],
    descriptors: &Descriptors<impl AsFd>,
) -> io::Result<usize> {
    let numbers = descriptors.numbers();
    let rights = [ControlMessage::ScmRights(&numbers)];
    let bytes = [IoSlice::new(frame)];
    Ok(sendmsg::<()>(socket.as_fd().as_raw_fd(), &bytes, &rights, MsgFlags::MSG_NOSIGNAL, None)?)
}

/// Returns the next order, with its descriptors; `None` when the pool has closed the socket.
pub(crate) fn receive(socket: &mut UnixStream) -> io::Result<Option<(Order, Option<Descriptors<OwnedFd>>)>> {
    let mut header = [0; HEADER];
    let (read, descriptors) = receive_with(socket, &mut header)?;
    if read == 0 {
        return Ok(None);
    }
    socket.read_exact(&mut header[read..])?;
    let mut message = vec![0; length(header)?];
    socket.read_exact(&mut message)?;
    let order = postcard::from_bytes(&message).map_err(io::Error::other)?;
    let descriptors: Option<[OwnedFd; 4]> = descriptors.try_into().ok();
    let descriptors =
        descriptors.map(|[cwd, jail, stdout, stderr]| Descriptors { cwd, jail, stdout, stderr });
    Ok(Some((order, descriptors)))
}

fn receive_with(socket: &UnixStream, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = nix::cmsg_space!([RawFd; 4]);
    let mut bytes = [IoSliceMut::new(bytes)];
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut bytes, Some(&mut space), flags)?;
    let mut descriptors = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = control {
            // SAFETY: the kernel has just made these descriptors for us, and nobody else knows their numbers.
            descriptors.extend(numbers.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) }));
        }
    }
    Ok((message.bytes, descriptors))
}

/// Sends a report to the pool.
pub(crate) fn report(socket: &mut UnixStream, report: &Report) -> io::Result<()> {
    socket.write_all(&frame(report)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tests of the pool have a worker that is a script and writes these bytes.
    #[test]
    fn a_report_is_these_bytes() {
        assert_eq!(frame(&Report::Ready(VERSION)).expect("a frame"), b"\x02\0\0\0\0\x03");
        let id = Uuid::from_bytes(*b"0123456789abcdef");
        let ended = frame(&Report::Ended(id, Ending::Exit(0))).expect("a frame");
        assert_eq!(ended, b"\x14\0\0\0\x01\x100123456789abcdef\0\0");
    }

    #[test]
    fn a_message_is_read_when_it_is_all_there() {
        let whole = frame(&Order::Kill(Uuid::from_u128(7))).expect("a frame");
        let mut bytes = whole.clone();
        bytes.truncate(whole.len() - 1);
        assert!(unframe::<Order>(&mut bytes).expect("no error").is_none());
        bytes.push(whole[whole.len() - 1]);
        bytes.push(9);
        let order = unframe(&mut bytes).expect("no error");
        assert!(matches!(order, Some(Order::Kill(id)) if id == Uuid::from_u128(7)));
        assert_eq!(bytes, [9]);
    }

    #[test]
    fn nonsense_is_an_error() {
        assert!(unframe::<Order>(&mut vec![0xff; 8]).is_err(), "too long");
        assert!(unframe::<Order>(&mut vec![1, 0, 0, 0, 77]).is_err(), "there is no such order");
    }
}
