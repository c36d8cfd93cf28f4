//! Reading and writing through handles.

use crate::attr::drop_set_ids;
use crate::content::{FileBody, SIZE_MAX};
use crate::handle::{Handle, Open, OpenFlags};
use crate::inode::Body;
use crate::place::Ino;
use crate::stat::Stat;
use crate::{Caller, Errno, FileKind, Result, Tree, dev};
use cap_std::fs::{File, FileExt};

/// A new offset for [`Tree::seek`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// From the start of the file.
    Start(u64),
    /// From the current offset.
    Current(i64),
    /// From the end of the file.
    End(i64),
    /// To the next byte, from here on, that is not in a hole.
    Data(u64),
    /// To the next hole, from here on; the end of the file counts as one.
    Hole(u64),
}

impl Tree {
    /// Reads from the handle's offset and moves it. Returns zero at the end of the file.
    pub fn read(&self, handle: &mut Handle, buf: &mut [u8]) -> Result<usize> {
        let count = self.read_at(handle, buf, handle.offset)?;
        handle.offset += count as u64;
        Ok(count)
    }

    /// Reads from `offset`, without changing the handle's own.
    pub fn pread(&self, handle: &Handle, buf: &mut [u8], offset: u64) -> Result<usize> {
        if offset > SIZE_MAX {
            return Err(Errno::EINVAL);
        }
        if handle.kind == FileKind::Fifo {
            return Err(Errno::ESPIPE);
        }
        self.read_at(handle, buf, offset)
    }

    /// Reads from `offset` however the file was opened: for the tree's owner, to save what guests leave behind.
    pub fn peek(&self, handle: &Handle, buf: &mut [u8], offset: u64) -> Result<usize> {
        let readable = Handle { flags: handle.flags | OpenFlags::READ, ..handle.clone() };
        self.pread(&readable, buf, offset)
    }

    fn read_at(&self, handle: &Handle, buf: &mut [u8], offset: u64) -> Result<usize> {
        if !handle.flags.contains(OpenFlags::READ) {
            return Err(Errno::EBADF);
        }
        match handle.kind {
            FileKind::File => {}
            FileKind::Dir => return Err(Errno::EISDIR),
            FileKind::Device(device) => return dev::read(device, buf),
            FileKind::Fifo | FileKind::Symlink | FileKind::Socket => return Err(Errno::EINVAL),
        }
        match &handle.open {
            Open::Inode { ino, lower, .. } => {
                let file = self.inode(*ino)?.file().ok_or(Errno::EIO)?;
                match (file.lower_spot(), lower) {
                    (None, _) => file.read_at(buf, offset),
                    (Some(_), Some(lower)) => read_host(lower, buf, offset),
                    (Some(_), None) => Err(Errno::EIO),
                }
            }
            Open::Host { file, .. } => read_host(file.as_ref().ok_or(Errno::EBADF)?, buf, offset),
            Open::Virtual { content, .. } => {
                let rest = usize::try_from(offset).ok().and_then(|from| content.get(from..)).unwrap_or(&[]);
                let count = rest.len().min(buf.len());
                buf[..count].copy_from_slice(&rest[..count]);
                Ok(count)
            }
        }
    }

    /// Writes at the handle's offset (or, with `APPEND`, at the end) and moves it. If the quota allows only a part, that
    /// part is written; if it allows nothing, returns `ENOSPC`.
    pub fn write(&mut self, handle: &mut Handle, data: &[u8]) -> Result<usize> {
        let at = if handle.flags.contains(OpenFlags::APPEND) { self.size_of(handle)? } else { handle.offset };
        let count = self.write_at(handle, data, at)?;
        if count > 0 {
            handle.offset = at + count as u64;
        }
        Ok(count)
    }

    /// Writes at `offset`, without changing the handle's own; with `APPEND` at the end, as Linux does.
    pub fn pwrite(&mut self, handle: &Handle, data: &[u8], offset: u64) -> Result<usize> {
        if offset > SIZE_MAX {
            return Err(Errno::EINVAL);
        }
        if handle.kind == FileKind::Fifo {
            return Err(Errno::ESPIPE);
        }
        let at = if handle.flags.contains(OpenFlags::APPEND) { self.size_of(handle)? } else { offset };
        self.write_at(handle, data, at)
    }

    fn size_of(&self, handle: &Handle) -> Result<u64> {
        match &handle.open {
            Open::Inode { ino, .. } => Ok(self.inode(*ino)?.size()),
            Open::Host { file: Some(file), .. } => Ok(file.metadata()?.len()),
            _ => Ok(0),
        }
    }

    fn write_at(&mut self, handle: &Handle, data: &[u8], offset: u64) -> Result<usize> {
        if !handle.flags.contains(OpenFlags::WRITE) {
            return Err(Errno::EBADF);
        }
        match handle.kind {
            FileKind::File => {}
            FileKind::Device(device) => return dev::write(device, data),
            FileKind::Dir | FileKind::Fifo | FileKind::Symlink | FileKind::Socket => {
                return Err(Errno::EINVAL);
            }
        }
        if data.is_empty() {
            return Ok(0);
        }
        if offset >= SIZE_MAX {
            return Err(Errno::EFBIG);
        }
        let fits = usize::try_from(SIZE_MAX - offset).unwrap_or(usize::MAX).min(data.len());
        match &handle.open {
            Open::Inode { ino, .. } => self.write_inode(*ino, &data[..fits], offset, handle.by_root),
            Open::Host { file, .. } => write_host(file.as_ref().ok_or(Errno::EBADF)?, &data[..fits], offset),
            Open::Virtual { .. } => Err(Errno::EACCES),
        }
    }

    fn write_inode(&mut self, ino: Ino, data: &[u8], offset: u64, by_root: bool) -> Result<usize> {
        self.make_own(ino)?;
        let room = self.room();
        let count = self.update(ino, |inode| {
            let Body::File(file) = &mut inode.body else { return Err(Errno::EIO) };
            let count = file.write_at(data, offset, room)?;
            if count == 0 {
                return Err(Errno::ENOSPC);
            }
            inode.touch();
            if !by_root && inode.mode & 0o6000 != 0 {
                drop_set_ids(inode);
            }
            Ok(count)
        });
        count?
    }

    /// Moves the handle's offset and returns the new one.
    pub fn seek(&self, handle: &mut Handle, to: Seek) -> Result<u64> {
        match handle.kind {
            FileKind::Fifo | FileKind::Socket => return Err(Errno::ESPIPE),
            FileKind::Device(crate::Device::Tty) => return Err(Errno::ESPIPE),
            // Any place in them is as good as another.
            FileKind::Device(_) => return Ok(0),
            _ => {}
        }
        let (from, by) = match to {
            Seek::Start(offset) => (i64::try_from(offset).map_err(|_| Errno::EINVAL)?, 0),
            Seek::Current(by) => (i64::try_from(handle.offset).map_err(|_| Errno::EOVERFLOW)?, by),
            Seek::End(by) => (i64::try_from(self.seek_end(handle)?).map_err(|_| Errno::EOVERFLOW)?, by),
            Seek::Data(from) => (self.seek_hole(handle, from, true)?, 0),
            Seek::Hole(from) => (self.seek_hole(handle, from, false)?, 0),
        };
        let offset = from.checked_add(by).ok_or(Errno::EINVAL)?;
        handle.offset = u64::try_from(offset).map_err(|_| Errno::EINVAL)?;
        Ok(handle.offset)
    }

    fn seek_end(&self, handle: &Handle) -> Result<u64> {
        match (&handle.open, handle.kind) {
            (Open::Virtual { content, .. }, _) => Ok(content.len() as u64),
            (_, FileKind::File) => self.size_of(handle),
            _ => Ok(0),
        }
    }

    fn seek_hole(&self, handle: &Handle, from: u64, data: bool) -> Result<i64> {
        if handle.kind != FileKind::File {
            return Err(Errno::EINVAL);
        }
        let found = match &handle.open {
            Open::Inode { ino, .. } => {
                self.inode(*ino)?.file().and_then(|file| file.find(from, data)).ok_or(Errno::ENXIO)?
            }
            _ => match self.seek_end(handle)? {
                end if from >= end => return Err(Errno::ENXIO),
                end => {
                    if data {
                        from
                    } else {
                        end
                    }
                }
            },
        };
        i64::try_from(found).map_err(|_| Errno::EOVERFLOW)
    }

    /// Sets the length of a file open for writing; new bytes are a hole.
    pub fn truncate(&mut self, handle: &Handle, len: u64) -> Result<()> {
        if len > SIZE_MAX || handle.kind != FileKind::File || !handle.flags.contains(OpenFlags::WRITE) {
            return Err(Errno::EINVAL);
        }
        match &handle.open {
            Open::Inode { ino, .. } => self.truncate_inode(*ino, len, handle.by_root),
            Open::Host { file: Some(file), .. } => Ok(file.set_len(len)?),
            _ => Err(Errno::EINVAL),
        }
    }

    fn truncate_inode(&mut self, ino: Ino, len: u64, by_root: bool) -> Result<()> {
        if len == 0 {
            return self.empty_file(ino, by_root);
        }
        self.make_own(ino)?;
        let file = self.inode(ino)?.file().ok_or(Errno::EINVAL)?;
        let before = file.charge();
        if len > file.size() {
            self.check_room(file.charge_at_size(len).saturating_sub(before), 0)?;
        }
        self.change_file(ino, by_root, |file| file.set_size(len))
    }

    /// Empties a file: its content, even if the tree does not own it, need not be read.
    pub(crate) fn empty_file(&mut self, ino: Ino, by_root: bool) -> Result<()> {
        if !self.inode(ino)?.file().ok_or(Errno::EINVAL)?.is_own() {
            self.start_charging(ino, 0)?;
        }
        self.change_file(ino, by_root, |file| {
            *file = FileBody::empty();
            Ok(())
        })
    }

    /// Changes a charged file's content and updates the counters.
    fn change_file(
        &mut self,
        ino: Ino,
        by_root: bool,
        change: impl FnOnce(&mut FileBody) -> Result<()>,
    ) -> Result<()> {
        let changed = self.update(ino, |inode| {
            let Body::File(file) = &mut inode.body else { return Err(Errno::EINVAL) };
            change(file)?;
            inode.touch();
            if !by_root {
                drop_set_ids(inode);
            }
            Ok(())
        });
        changed?
    }

    /// Makes sure that `[offset, offset + len)` can be written without running out of space, as `fallocate`.
    pub fn allocate(&mut self, handle: &Handle, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Err(Errno::EINVAL);
        }
        if !handle.flags.contains(OpenFlags::WRITE) {
            return Err(Errno::EBADF);
        }
        if handle.kind != FileKind::File {
            return Err(if handle.kind == FileKind::Fifo { Errno::ESPIPE } else { Errno::ENODEV });
        }
        let end = offset.checked_add(len).filter(|end| *end <= SIZE_MAX).ok_or(Errno::EFBIG)?;
        match &handle.open {
            Open::Inode { ino, .. } => self.allocate_inode(*ino, offset, end, handle.by_root),
            Open::Host { file: Some(file), .. } => {
                Ok(rustix::fs::fallocate(&***file, rustix::fs::FallocateFlags::empty(), offset, len)?)
            }
            _ => Err(Errno::ENODEV),
        }
    }

    fn allocate_inode(&mut self, ino: Ino, offset: u64, end: u64, by_root: bool) -> Result<()> {
        self.make_own(ino)?;
        let file = self.inode(ino)?.file().ok_or(Errno::ENODEV)?;
        let more = file.charge_filled(offset, end).saturating_sub(file.charge());
        self.check_room(more.saturating_add(file.map_cost(end)), 0)?;
        let len = file.size().max(end);
        self.change_file(ino, by_root, |file| {
            file.set_size(len)?;
            file.fill_holes(offset, end);
            Ok(())
        })
    }

    /// Waits until what was written is on the host's disk; with `data_only`, not for metadata that reading does not
    /// need. For in-memory files there is nothing to wait for.
    pub fn sync(&self, handle: &Handle, data_only: bool) -> Result<()> {
        let Open::Host { file, .. } = &handle.open else { return Ok(()) };
        let file = file.as_ref().ok_or(Errno::EBADF)?;
        crate::probe::note_sync();
        if data_only {
            file.sync_data()?
        } else {
            file.sync_all()?
        }
        Ok(())
    }

    /// Returns the metadata of an open file.
    pub fn stat_handle(&self, who: &Caller, handle: &Handle) -> Result<Stat> {
        match &handle.open {
            Open::Host { file: Some(file), spot, .. } => {
                let stat = crate::host::show(&file.metadata()?);
                Ok(Stat { dev: u64::from(spot.mount) + 1, ..stat })
            }
            _ => self.stat_place(who, &handle.place()),
        }
    }

    /// Makes the tree own a file's bytes, so that they can be written, and charges them to the quota.
    pub(crate) fn make_own(&mut self, ino: Ino) -> Result<()> {
        let file = self.inode(ino)?.file().ok_or(Errno::EIO)?;
        if file.is_own() {
            return Ok(());
        }
        let (flat, lower) = (file.flat()?, file.lower_spot().cloned());
        let cost = self.cost_to_charge(ino)?;
        self.check_room(cost, u64::from(!self.inode(ino)?.charged))?;
        let room = self.room() - cost;
        let mut own = FileBody::empty();
        match (flat, lower) {
            (Some(bytes), _) if own.write_at(&bytes, 0, room)? < bytes.len() => return Err(Errno::ENOSPC),
            (None, Some(spot)) => self.copy_lower(&spot, &mut own, room)?,
            _ => {}
        }
        self.start_charging(ino, 0)?;
        self.update(ino, |inode| inode.body = Body::File(own))
    }
}

fn read_host(file: &File, buf: &mut [u8], offset: u64) -> Result<usize> {
    Ok(file.read_at(buf, offset)?)
}

fn write_host(file: &File, data: &[u8], offset: u64) -> Result<usize> {
    Ok(file.write_at(data, offset)?)
}
