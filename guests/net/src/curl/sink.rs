//! Where a body goes.

use super::Failure;
use std::fs::{File, OpenOptions};
use std::io::Write;
use wardian_abi as abi;

/// What is written, and where.
pub struct Sink {
    /// The file to write; none is standard output.
    pub path: Option<Vec<u8>>,
    file: Option<File>,
    pub append: bool,
    pub create_dirs: bool,
    /// An existing file is left alone and a number added to the name.
    pub no_clobber: bool,
    /// An existing file is an error: its name came from the server.
    pub exclusive: bool,
    /// Standard output is a terminal, which binary data would confuse.
    careful: bool,
    pub written: u64,
}

impl Sink {
    pub fn new(path: Option<Vec<u8>>) -> Sink {
        let careful = path.is_none() && abi::isatty(1);
        let path = path.filter(|path| path != b"-");
        Sink {
            path,
            file: None,
            append: false,
            create_dirs: false,
            no_clobber: false,
            exclusive: false,
            careful,
            written: 0,
        }
    }

    /// Whether it shows on a terminal.
    pub fn is_terminal(&self) -> bool {
        self.path.is_none() && abi::isatty(1)
    }

    /// Opens the file, if that has not been done.
    pub fn open(&mut self) -> Result<(), Failure> {
        let Some(path) = self.path.clone().filter(|_| self.file.is_none()) else { return Ok(()) };
        let failed = || Failure::new(23, "Failure writing output to destination");
        if self.create_dirs {
            let parent = toolkit::files::parent(&path);
            if !parent.is_empty() && std::fs::create_dir_all(toolkit::files::path(&parent)).is_err() {
                return Err(failed());
            }
        }
        if self.no_clobber {
            return self.open_numbered(&path).map_err(|()| failed());
        }
        let mut options = OpenOptions::new();
        options.write(true);
        match (self.exclusive, self.append) {
            (true, _) => options.create_new(true),
            (_, true) => options.append(true).create(true),
            _ => options.create(true).truncate(true),
        };
        self.file = Some(options.open(toolkit::files::path(&path)).map_err(|_| failed())?);
        Ok(())
    }

    fn open_numbered(&mut self, path: &[u8]) -> Result<(), ()> {
        for number in 0..=100 {
            let mut name = path.to_vec();
            if number > 0 {
                name.extend_from_slice(format!(".{number}").as_bytes());
            }
            match OpenOptions::new().write(true).create_new(true).open(toolkit::files::path(&name)) {
                Ok(file) => {
                    (self.file, self.path) = (Some(file), Some(name));
                    return Ok(());
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(_) => return Err(()),
            }
        }
        Err(())
    }

    /// Writes bytes of a body or of its headers.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.careful && bytes.contains(&0) {
            toolkit::complain(
                "Warning",
                "Binary output can mess up your terminal. Use \"--output -\" to tell \nWarning: curl to output it to \
                 your terminal anyway, or consider \"--output \nWarning: <FILE>\" to save to a file.",
            );
            return Err(Failure::new(23, "Failure writing output to destination"));
        }
        self.careful = false;
        self.open()?;
        let done = match &mut self.file {
            Some(file) => file.write_all(bytes).is_ok(),
            None => abi::write_all(1, bytes).is_ok(),
        };
        if !done {
            return Err(Failure::new(23, "Failure writing output to destination"));
        }
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Empties the file, before another attempt.
    pub fn reset(&mut self) {
        if let Some(file) = self.file.take()
            && !self.append
        {
            // What cannot be emptied is overwritten by the next attempt.
            let _ = file.set_len(0);
        }
        self.written = 0;
    }
}
