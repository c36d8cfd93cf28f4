//! Sockets on Linux: libc.

use super::{check, last};
use crate::socket::{AF_UNIX, LookUpError, Received};
use crate::{Errno, Fd, Result};
use std::net::{IpAddr, ToSocketAddrs};

fn kind_bits(kind: i32, cloexec: bool) -> i32 {
    kind | if cloexec { libc::SOCK_CLOEXEC } else { 0 }
}

/// An answer that counts bytes: negative is an error.
fn counted(answer: isize) -> Result<usize> {
    usize::try_from(answer).map_err(|_| last())
}

fn length(len: usize) -> libc::socklen_t {
    libc::socklen_t::try_from(len).unwrap_or(libc::socklen_t::MAX)
}

pub fn socket(family: i32, kind: i32, protocol: i32, cloexec: bool) -> Result<Fd> {
    call!(libc::socket(family, kind_bits(kind, cloexec), protocol))
}

pub fn socketpair(kind: i32, cloexec: bool) -> Result<(Fd, Fd)> {
    let mut fds = [0; 2];
    call!(libc::socketpair(AF_UNIX, kind_bits(kind, cloexec), 0, fds.as_mut_ptr()))?;
    Ok((fds[0], fds[1]))
}

pub fn bind(fd: Fd, address: &[u8]) -> Result<()> {
    call!(libc::bind(fd, address.as_ptr().cast(), length(address.len()))).map(drop)
}

pub fn listen(fd: Fd, backlog: i32) -> Result<()> {
    call!(libc::listen(fd, backlog)).map(drop)
}

pub fn accept(fd: Fd, cloexec: bool, address: &mut [u8]) -> Result<(Fd, usize)> {
    let mut len = length(address.len());
    let flags = if cloexec { libc::SOCK_CLOEXEC } else { 0 };
    let new = call!(libc::accept4(fd, address.as_mut_ptr().cast(), &mut len, flags))?;
    Ok((new, len as usize))
}

pub fn connect(fd: Fd, address: &[u8]) -> Result<()> {
    call!(libc::connect(fd, address.as_ptr().cast(), length(address.len()))).map(drop)
}

/// Room for the most descriptors that a message can have.
const CONTROL: usize = 2048;

pub fn send(fd: Fd, data: &[u8], flags: i32, address: &[u8], rights: &[Fd]) -> Result<usize> {
    let mut part = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
    let mut control = [0u64; CONTROL / 8];
    // SAFETY: an all-zero msghdr is a valid one.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    if !address.is_empty() {
        message.msg_name = address.as_ptr().cast_mut().cast();
        message.msg_namelen = length(address.len());
    }
    let bytes = size_of_val(rights) as u32;
    if !rights.is_empty() {
        // SAFETY: computes a number.
        let space = unsafe { libc::CMSG_SPACE(bytes) } as usize;
        if space > CONTROL {
            return Err(Errno::INVAL);
        }
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = space;
        // SAFETY: the control buffer is aligned and has the space for one header and the descriptors.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(bytes) as usize;
            std::ptr::copy_nonoverlapping(rights.as_ptr().cast(), libc::CMSG_DATA(header), bytes as usize);
        }
    }
    // SAFETY: everything the message points to is alive.
    counted(unsafe { libc::sendmsg(fd, &message, flags) })
}

pub fn recv(
    fd: Fd,
    buffer: &mut [u8],
    flags: i32,
    address: &mut [u8],
    rights: &mut [Fd],
) -> Result<Received> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut control = [0u64; CONTROL / 8];
    // SAFETY: an all-zero msghdr is a valid one.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    if !address.is_empty() {
        message.msg_name = address.as_mut_ptr().cast();
        message.msg_namelen = length(address.len());
    }
    if !rights.is_empty() {
        message.msg_control = control.as_mut_ptr().cast();
        // SAFETY: computes a number.
        message.msg_controllen =
            (unsafe { libc::CMSG_LEN(size_of_val(rights) as u32) } as usize).min(CONTROL);
    }
    // SAFETY: everything the message points to is alive.
    let count = counted(unsafe { libc::recvmsg(fd, &mut message, flags) })?;
    let mut given = 0;
    // SAFETY: the kernel wrote whole headers, each as long as it says.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        if !header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS {
            let bytes = (*header).cmsg_len - libc::CMSG_LEN(0) as usize;
            given = (bytes / size_of::<Fd>()).min(rights.len());
            std::ptr::copy_nonoverlapping(libc::CMSG_DATA(header).cast(), rights.as_mut_ptr(), given);
        }
    }
    Ok(Received { count, address: message.msg_namelen as usize, rights: given, flags: message.msg_flags })
}

pub fn shutdown(fd: Fd, how: i32) -> Result<()> {
    call!(libc::shutdown(fd, how)).map(drop)
}

pub fn getsockname(fd: Fd, address: &mut [u8]) -> Result<usize> {
    let mut len = length(address.len());
    call!(libc::getsockname(fd, address.as_mut_ptr().cast(), &mut len))?;
    Ok(len as usize)
}

pub fn getpeername(fd: Fd, address: &mut [u8]) -> Result<usize> {
    let mut len = length(address.len());
    call!(libc::getpeername(fd, address.as_mut_ptr().cast(), &mut len))?;
    Ok(len as usize)
}

pub fn getsockopt(fd: Fd, level: i32, option: i32, value: &mut [u8]) -> Result<usize> {
    let mut len = length(value.len());
    call!(libc::getsockopt(fd, level, option, value.as_mut_ptr().cast(), &mut len))?;
    Ok(len as usize)
}

pub fn setsockopt(fd: Fd, level: i32, option: i32, value: &[u8]) -> Result<()> {
    call!(libc::setsockopt(fd, level, option, value.as_ptr().cast(), length(value.len()))).map(drop)
}

pub fn look_up(name: &str) -> std::result::Result<Vec<IpAddr>, LookUpError> {
    let found = (name, 0).to_socket_addrs().map_err(|_| LookUpError::Unknown)?;
    Ok(found.map(|address| address.ip()).collect())
}
