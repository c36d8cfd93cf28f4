//! Sockets in the sandbox: the kernel's imports.

use super::check;
use crate::socket::{LookUpError, Received};
use crate::{Errno, Fd, Result};
use std::net::IpAddr;

#[link(wasm_import_module = "wardian")]
unsafe extern "C" {
    fn socket(family: i32, kind: i32, protocol: i32, flags: i32, fd: *mut i32) -> i32;
    fn socketpair(family: i32, kind: i32, protocol: i32, flags: i32, fds: *mut i32) -> i32;
    fn bind(fd: i32, address: *const u8, len: usize) -> i32;
    fn listen(fd: i32, backlog: i32) -> i32;
    fn accept(fd: i32, flags: i32, new: *mut i32, address: *mut u8, room: usize, need: *mut usize) -> i32;
    fn connect(fd: i32, address: *const u8, len: usize) -> i32;
    fn send(
        fd: i32,
        parts: *const Part,
        count: usize,
        flags: i32,
        address: *const u8,
        len: usize,
        rights: *const i32,
        rights_count: usize,
        out: *mut usize,
    ) -> i32;
    fn recv(
        fd: i32,
        parts: *const Part,
        count: usize,
        flags: i32,
        address: *mut u8,
        room: usize,
        rights: *mut i32,
        rights_room: usize,
        out: *mut [u32; 4],
    ) -> i32;
    fn shutdown(fd: i32, how: i32) -> i32;
    fn getsockname(fd: i32, address: *mut u8, room: usize, need: *mut usize) -> i32;
    fn getpeername(fd: i32, address: *mut u8, room: usize, need: *mut usize) -> i32;
    fn getsockopt(fd: i32, level: i32, option: i32, value: *mut u8, room: usize, need: *mut usize) -> i32;
    fn setsockopt(fd: i32, level: i32, option: i32, value: *const u8, len: usize) -> i32;
    fn look_up(name: *const u8, len: usize, out: *mut Found, room: usize, need: *mut usize) -> i32;
}

/// An address of a look-up.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Found {
    family: u32,
    address: [u8; 16],
}

/// A part of a message. Its layout is that of WASI's `iovec`.
#[repr(C)]
struct Part(*mut u8, usize);

/// Each call is named like its import, in a module of its own.
pub mod calls {
    use super::*;

    pub fn socket(family: i32, kind: i32, protocol: i32, cloexec: bool) -> Result<Fd> {
        call!(fd = 0; super::socket(family, kind, protocol, cloexec.into(), &mut fd))
    }

    pub fn socketpair(kind: i32, cloexec: bool) -> Result<(Fd, Fd)> {
        let [one, other] = call!(fds = [0; 2]; super::socketpair(crate::socket::AF_UNIX, kind, 0, cloexec.into(), fds.as_mut_ptr()))?;
        Ok((one, other))
    }

    pub fn bind(fd: Fd, address: &[u8]) -> Result<()> {
        call!(super::bind(fd, address.as_ptr(), address.len()))
    }

    pub fn listen(fd: Fd, backlog: i32) -> Result<()> {
        call!(super::listen(fd, backlog))
    }

    pub fn accept(fd: Fd, cloexec: bool, address: &mut [u8]) -> Result<(Fd, usize)> {
        let (room, at) = (address.len(), address.as_mut_ptr());
        call!(out = (0, 0); super::accept(fd, cloexec.into(), &mut out.0, at, room, &mut out.1))
    }

    pub fn connect(fd: Fd, address: &[u8]) -> Result<()> {
        call!(super::connect(fd, address.as_ptr(), address.len()))
    }

    pub fn send(fd: Fd, data: &[u8], flags: i32, address: &[u8], rights: &[Fd]) -> Result<usize> {
        let part = Part(data.as_ptr().cast_mut(), data.len());
        let parts = &raw const part;
        let (to, len) = (address.as_ptr(), address.len());
        call!(sent = 0; super::send(fd, parts, 1, flags, to, len, rights.as_ptr(), rights.len(), &mut sent))
    }

    pub fn recv(
        fd: Fd,
        buffer: &mut [u8],
        flags: i32,
        address: &mut [u8],
        rights: &mut [Fd],
    ) -> Result<Received> {
        let part = Part(buffer.as_mut_ptr(), buffer.len());
        let parts = &raw const part;
        let (from, room) = (address.as_mut_ptr(), address.len());
        let (given, most) = (rights.as_mut_ptr(), rights.len());
        let [count, address, rights, flags] =
            call!(out = [0; 4]; super::recv(fd, parts, 1, flags, from, room, given, most, &mut out))?;
        Ok(Received {
            count: count as usize,
            address: address as usize,
            rights: rights as usize,
            flags: flags as i32,
        })
    }

    pub fn shutdown(fd: Fd, how: i32) -> Result<()> {
        call!(super::shutdown(fd, how))
    }

    pub fn getsockname(fd: Fd, address: &mut [u8]) -> Result<usize> {
        let (at, room) = (address.as_mut_ptr(), address.len());
        call!(need = 0; super::getsockname(fd, at, room, &mut need))
    }

    pub fn getpeername(fd: Fd, address: &mut [u8]) -> Result<usize> {
        let (at, room) = (address.as_mut_ptr(), address.len());
        call!(need = 0; super::getpeername(fd, at, room, &mut need))
    }

    pub fn getsockopt(fd: Fd, level: i32, option: i32, value: &mut [u8]) -> Result<usize> {
        let (at, room) = (value.as_mut_ptr(), value.len());
        call!(need = 0; super::getsockopt(fd, level, option, at, room, &mut need))
    }

    pub fn setsockopt(fd: Fd, level: i32, option: i32, value: &[u8]) -> Result<()> {
        call!(super::setsockopt(fd, level, option, value.as_ptr(), value.len()))
    }

    pub fn look_up(name: &str) -> std::result::Result<Vec<IpAddr>, LookUpError> {
        let mut found = [Found::default(); 2];
        let (at, len, out) = (name.as_ptr(), name.len(), found.as_mut_ptr());
        let count = call!(count = 0; super::look_up(at, len, out, 2, &mut count));
        let count = count.map_err(|errno| match errno {
            Errno::NOENT => LookUpError::Unknown,
            Errno::AGAIN => LookUpError::Again,
            _ => LookUpError::Refused,
        })?;
        let address = |found: &Found| match (found.family, found.address) {
            (2, [a, b, c, d, ..]) => IpAddr::from([a, b, c, d]),
            (_, six) => IpAddr::from(six),
        };
        Ok(found.iter().take(count).map(address).collect())
    }
}
