//! Whether two paths lead to one file. The crate of this name cannot tell on WASI, so that nobody who walks directories
//! with it follows links there.

use std::fs::File;
use std::io;
use std::path::Path;
use wardian_abi as abi;
use wardian_abi::{Dir, Stat};

/// A file, by what tells it from all others.
#[derive(Debug)]
pub struct Handle {
    device: u64,
    number: u64,
    /// Standard output; of the others nobody asks for more than whether they are the same.
    file: Option<File>,
}

impl PartialEq for Handle {
    fn eq(&self, other: &Handle) -> bool {
        (self.device, self.number) == (other.device, other.number)
    }
}

impl Eq for Handle {}

impl Handle {
    /// The file that a path leads to, through links.
    pub fn from_path<P: AsRef<Path>>(path: P) -> io::Result<Handle> {
        let path = path.as_ref().as_os_str().as_encoded_bytes();
        Ok(Handle::of(abi::stat(Dir::CWD, path, true)?, None))
    }

    /// The file that is standard output.
    pub fn stdout() -> io::Result<Handle> {
        let file = File::open("/dev/stdout")?;
        Ok(Handle::of(abi::fstat(1)?, Some(file)))
    }

    /// The file itself, of a handle of standard output.
    pub fn as_file(&self) -> &File {
        self.file.as_ref().expect("a handle of standard output")
    }

    /// The number of the file on its device.
    pub fn ino(&self) -> u64 {
        self.number
    }

    /// The number of its device.
    pub fn dev(&self) -> u64 {
        self.device
    }

    fn of(stat: Stat, file: Option<File>) -> Handle {
        Handle { device: stat.dev, number: stat.ino, file }
    }
}

/// Whether two paths lead to the same file.
pub fn is_same_file<P: AsRef<Path>, Q: AsRef<Path>>(left: P, right: Q) -> io::Result<bool> {
    Ok(Handle::from_path(left)? == Handle::from_path(right)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_the_same_file_by_whatever_name() {
        assert!(is_same_file("src", "./src/../src").unwrap());
        assert!(!is_same_file("src", "src/lib.rs").unwrap());
        assert!(Handle::from_path("src/nothing").is_err());
    }
}
