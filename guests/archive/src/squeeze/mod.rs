//! The programs that replace a file by its compressed form, and back.

pub mod bzip2;
pub mod gzip;
pub mod xz;
pub mod zstd;

use crate::codec::{Decode, Encode, Flaw};
use crate::stream::{CHUNK, Input, Raw};
use std::io::{Read, Write};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, Stat, open_flags as flags};

/// Why a stream did not get through.
pub enum Trouble {
    /// What was read is at fault.
    Input(Flaw),
    /// What was written could not be.
    Output(Errno),
}

impl From<Flaw> for Trouble {
    fn from(flaw: Flaw) -> Trouble {
        Trouble::Input(flaw)
    }
}

/// Decompresses everything; into nothing, where there is no sink. Answers how much it was.
pub fn unpack(
    decoder: &mut dyn Decode,
    input: &mut Input,
    mut sink: Option<&mut dyn Write>,
) -> Result<u64, Trouble> {
    let mut buffer = vec![0; CHUNK];
    let mut total = 0;
    loop {
        let count = decoder.decode(input, &mut buffer)?;
        if count == 0 {
            return Ok(total);
        }
        total += count as u64;
        if let Some(sink) = &mut sink {
            sink.write_all(&buffer[..count]).map_err(|error| Trouble::Output(error.into()))?;
        }
    }
}

/// Compresses everything. Answers how much it was.
pub fn pack(input: &mut Input, mut encoder: Box<dyn Encode>) -> Result<u64, Trouble> {
    let total = pour(input, &mut encoder)?;
    encoder.finish().map_err(|error| Trouble::Output(error.into()))?;
    Ok(total)
}

/// Copies everything as it is. Answers how much it was.
pub fn pour(input: &mut Input, mut sink: impl Write) -> Result<u64, Trouble> {
    let mut buffer = vec![0; CHUNK];
    let mut total = 0;
    loop {
        let count = input.read(&mut buffer).map_err(Flaw::from)?;
        if count == 0 {
            return Ok(total);
        }
        total += count as u64;
        sink.write_all(&buffer[..count]).map_err(|error| Trouble::Output(error.into()))?;
    }
}

/// A new file that is only there in the end if all went well.
pub struct Product {
    fd: Fd,
    path: Vec<u8>,
    done: bool,
}

impl Product {
    /// Makes the file, readable by its owner alone until it is finished.
    pub fn create(path: &[u8]) -> Result<Product, Errno> {
        let fd =
            abi::open(Dir::CWD, path, flags::WRONLY | flags::CREAT | flags::EXCL | flags::CLOEXEC, 0o600)?;
        Ok(Product { fd, path: path.to_vec(), done: false })
    }

    pub fn writer(&self) -> Raw {
        Raw(self.fd)
    }

    /// Keeps the file, with the mode, the owner and the times of what it was made from.
    pub fn finish(mut self, like: &Stat, mtime: i64) -> Result<(), Errno> {
        self.done = true;
        // Only root may give files away; the rest keep what they can.
        let _ = abi::chown(Dir::CWD, &self.path, false, Some(like.uid), Some(like.gid));
        abi::fchmod(self.fd, like.mode & 0o777)?;
        abi::close(self.fd)?;
        abi::set_times(Dir::CWD, &self.path, false, Some(like.atime), Some(mtime))
    }

    /// Keeps the file as any new file.
    pub fn finish_plainly(mut self, mode: u32) -> Result<(), Errno> {
        self.done = true;
        abi::fchmod(self.fd, mode)?;
        abi::close(self.fd)
    }
}

impl Drop for Product {
    fn drop(&mut self) {
        if !self.done {
            // Nothing more can be done about a file that will not go away.
            let _ = abi::close(self.fd);
            let _ = abi::unlink(Dir::CWD, &self.path);
        }
    }
}

/// A descriptor that is closed at the end.
pub struct Opened(pub Fd);

impl Opened {
    pub fn read(path: &[u8]) -> Result<Opened, Errno> {
        abi::open(Dir::CWD, path, flags::RDONLY | flags::CLOEXEC, 0).map(Opened)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let _ = abi::close(self.0);
    }
}

/// The permission bits that new files do not get.
pub fn umask() -> u32 {
    let mask = abi::umask(0);
    abi::umask(mask);
    mask
}

/// A name as it stands in messages of programs that do not quote.
pub fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Says something on standard error, as it is.
pub fn say(text: impl AsRef<[u8]>) {
    // There is nowhere left to say that this failed.
    let _ = abi::write_all(2, text.as_ref());
}
