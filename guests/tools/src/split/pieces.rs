//! Where the pieces go: files, or commands that read them.

use super::names::Names;
use super::options::Options;
use toolkit::out::Out;
use toolkit::{complain, program, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, FdMap, Pid, Spawn, Stat, open_flags};

pub struct Pieces {
    names: Names,
    filter: Option<Filter>,
    /// The input, which no piece may be.
    input: Option<Stat>,
    is_verbose: bool,
    is_unbuffered: bool,
    out: Out,
    /// Those begun and not ended; all of them when they take turns.
    open: Vec<Piece>,
}

struct Filter {
    command: Vec<u8>,
    shell: Vec<u8>,
    environment: Vec<Vec<u8>>,
}

struct Piece {
    name: Vec<u8>,
    state: State,
    buffer: Vec<u8>,
}

enum State {
    New,
    /// Written to; a child reads it if there is a filter.
    Open(Fd, Option<Pid>),
    /// Closed to make room for others, to be opened again.
    Paused,
    /// A filter that reads no more.
    Deaf(Option<Pid>),
}

const ENOUGH: usize = 16 * 1024;

impl Pieces {
    pub fn new(options: &Options, input: Fd) -> Result<Pieces, i32> {
        let filter = options.filter.clone().map(|command| {
            let environment = abi::environ();
            let shell = program::value_of(&environment, b"SHELL").unwrap_or(b"/bin/sh").to_vec();
            Filter { command, shell, environment }
        });
        if filter.is_some() {
            // A filter that ends early is no reason to end, too; flagged rather than ignored, it is the filter's own again.
            let _ = abi::sigaction(SIGPIPE, abi::Disposition::Flag);
        }
        Ok(Pieces {
            names: Names::new(options)?,
            filter,
            input: abi::fstat(input).ok(),
            is_verbose: options.is_verbose,
            is_unbuffered: options.is_unbuffered,
            out: Out::new("split"),
            open: Vec::new(),
        })
    }

    /// Ends the piece before and begins the next.
    pub fn begin(&mut self) -> Result<(), i32> {
        self.end_all()?;
        let name = self.names.next()?;
        let state = self.open(&name, open_flags::TRUNC)?;
        self.open.push(Piece { name, state, buffer: Vec::new() });
        Ok(())
    }

    /// Writes to the piece begun last.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), i32> {
        let Some(piece) = self.open.last_mut() else { return Ok(()) };
        piece.write(bytes)
    }

    /// Names pieces that take turns.
    pub fn name_all(&mut self, number: u64) -> Result<(), i32> {
        for _ in 0..number {
            self.open.push(Piece { name: self.names.next()?, state: State::New, buffer: Vec::new() });
        }
        Ok(())
    }

    pub fn write_to(&mut self, at: usize, bytes: &[u8]) -> Result<(), i32> {
        let piece = &mut self.open[at];
        piece.buffer.extend_from_slice(bytes);
        if self.is_unbuffered || piece.buffer.len() >= ENOUGH {
            self.flush(at)?;
        }
        Ok(())
    }

    /// Whether no filter reads any more.
    pub fn are_deaf(&self) -> bool {
        !self.open.is_empty() && self.open.iter().all(|piece| matches!(piece.state, State::Deaf(_)))
    }

    fn flush(&mut self, at: usize) -> Result<(), i32> {
        let flags = match self.open[at].state {
            State::New => Some(open_flags::TRUNC),
            State::Paused => Some(open_flags::APPEND),
            _ => None,
        };
        if let Some(flags) = flags {
            let name = self.open[at].name.clone();
            self.open[at].state = self.open(&name, flags)?;
        }
        let bytes = std::mem::take(&mut self.open[at].buffer);
        self.open[at].write(&bytes)
    }

    /// Opens a file or starts a filter; makes room for it if too many are open.
    fn open(&mut self, name: &[u8], flags: u32) -> Result<State, i32> {
        if self.is_verbose && flags != open_flags::APPEND {
            match self.filter {
                Some(_) => self.out.put(format!("executing with FILE={}\n", quote::if_needed(name))),
                None => self.out.put(format!("creating file {}\n", quote::always(name))),
            }
        }
        loop {
            let opened = match &self.filter {
                Some(filter) => filter.start(name).map(|(fd, child)| State::Open(fd, Some(child))),
                None => self.open_file(name, flags)?.map(|fd| State::Open(fd, None)),
            };
            match opened {
                Ok(state) => return Ok(state),
                Err(Errno::MFILE | Errno::NFILE) if self.pause_one() => {}
                Err(error) => {
                    complain("split", format_args!("{}: {error}", quote::if_needed(name)));
                    return Err(1);
                }
            }
        }
    }

    fn open_file(&self, name: &[u8], flags: u32) -> Result<Result<Fd, Errno>, i32> {
        if let (Some(input), Ok(there)) = (&self.input, abi::stat(Dir::CWD, name, true))
            && (there.dev, there.ino) == (input.dev, input.ino)
        {
            complain("split", format_args!("{} would overwrite input; aborting", quote::always(name)));
            return Err(1);
        }
        let flags = open_flags::WRONLY | open_flags::CREAT | open_flags::CLOEXEC | flags;
        Ok(abi::open(Dir::CWD, name, flags, 0o666))
    }

    /// Closes a file that is open; a filter must be kept.
    fn pause_one(&mut self) -> bool {
        for piece in &mut self.open {
            if let State::Open(fd, None) = piece.state {
                let _ = abi::close(fd);
                piece.state = State::Paused;
                return true;
            }
        }
        false
    }

    fn end_all(&mut self) -> Result<(), i32> {
        for piece in std::mem::take(&mut self.open) {
            self.end(piece)?;
        }
        Ok(())
    }

    fn end(&self, piece: Piece) -> Result<(), i32> {
        let shown = quote::if_needed(&piece.name);
        let child = match piece.state {
            State::Open(fd, child) => {
                if let Err(error) = abi::close(fd) {
                    complain("split", format_args!("{shown}: {error}"));
                    return Err(1);
                }
                child
            }
            State::Deaf(child) => child,
            State::New | State::Paused => None,
        };
        let (Some(child), Some(filter)) = (child, &self.filter) else { return Ok(()) };
        let status = program::wait_for(child);
        let command = String::from_utf8_lossy(&filter.command);
        match (status.signal(), status.code()) {
            (Some(signal), _) if signal != SIGPIPE => {
                let name = abi::SIGNALS.iter().find(|(number, _)| *number == signal).map(|(_, name)| *name);
                let name = name.map_or_else(|| signal.to_string(), str::to_owned);
                complain("split", format_args!("with FILE={shown}, signal {name} from command: {command}"));
                Err(128 + signal)
            }
            (None, Some(code)) if code != 0 => {
                complain("split", format_args!("with FILE={shown}, exit {code} from command: {command}"));
                Err(code)
            }
            _ => Ok(()),
        }
    }

    /// Ends all; those that nothing was written to are made now, unless they are to be left out.
    pub fn finish(mut self, skips_empty: bool) -> Result<i32, i32> {
        for at in 0..self.open.len() {
            let is_new = matches!(self.open[at].state, State::New);
            if !self.open[at].buffer.is_empty() || is_new && !skips_empty {
                self.flush(at)?;
            }
        }
        self.end_all()?;
        Ok(0)
    }
}

const SIGPIPE: i32 = 13;

impl Piece {
    fn write(&mut self, bytes: &[u8]) -> Result<(), i32> {
        let State::Open(fd, child) = self.state else { return Ok(()) };
        match abi::write_all(fd, bytes) {
            Ok(()) => Ok(()),
            Err(Errno::PIPE) if child.is_some() => {
                let _ = abi::close(fd);
                self.state = State::Deaf(child);
                Ok(())
            }
            Err(error) => {
                complain("split", format_args!("{}: {error}", quote::if_needed(&self.name)));
                Err(1)
            }
        }
    }
}

impl Filter {
    /// Starts the command with a piece's name in `FILE`; answers where to write the piece.
    fn start(&self, name: &[u8]) -> Result<(Fd, Pid), Errno> {
        let pipe = abi::pipe(true)?;
        let mut environment: Vec<Vec<u8>> =
            self.environment.iter().filter(|pair| !pair.starts_with(b"FILE=")).cloned().collect();
        environment.push([b"FILE=", name].concat());
        let command = [self.shell.clone(), b"-c".to_vec(), self.command.clone()];
        let fds = [FdMap { to: 0, from: pipe.read }];
        let started = program::spawn(&command, &environment, Spawn { fds: &fds, ..Spawn::default() });
        let _ = abi::close(pipe.read);
        match started {
            Ok(child) => Ok((pipe.write, child)),
            Err(error) => {
                let _ = abi::close(pipe.write);
                Err(error)
            }
        }
    }
}

/// Prints what is to go to standard output.
pub fn write_out(bytes: &[u8]) -> Result<(), i32> {
    abi::write_all(1, bytes).map_err(|error| {
        complain("split", format_args!("write error: {error}"));
        1
    })
}
