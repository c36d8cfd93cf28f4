//! Files and commands that a program reads and writes by name, and standard output.

use crate::input::Reader;
use crate::text::Str;
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, FdMap, Spawn, Status, StringList, open_flags as flag};

/// So much output is kept back before it is written.
const ENOUGH: usize = 64 << 10;

/// How a stream was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A file written from its start.
    File,
    /// A file written at its end.
    Append,
    /// A command.
    Command,
    /// A command that is read from too.
    Coprocess,
}

/// Something that is written to.
struct Output {
    name: Str,
    kind: Kind,
    /// How many streams were opened before it.
    order: usize,
    fd: abi::Fd,
    child: Option<abi::Pid>,
    buffer: Vec<u8>,
    /// Whether each print is written at once: somebody may be watching.
    eager: bool,
}

/// Something that is read from.
struct Input {
    name: Str,
    is_command: bool,
    order: usize,
    child: Option<abi::Pid>,
    reader: Reader,
}

/// A command that is both written to and read from.
struct Coprocess {
    name: Str,
    /// How many streams were opened before it.
    order: usize,
    output: Option<Output>,
    reader: Option<Reader>,
    child: abi::Pid,
}

/// What makes the environment for a command, if one is started.
pub type Environment<'a> = &'a dyn Fn() -> StringList;

/// All streams of a program.
pub struct Streams {
    stdout: Output,
    outputs: Vec<Output>,
    inputs: Vec<Input>,
    coprocesses: Vec<Coprocess>,
    opened: usize,
}

impl Output {
    fn new(name: &[u8], kind: Kind, fd: abi::Fd, child: Option<abi::Pid>) -> Output {
        let eager = fd == 2 || abi::isatty(fd);
        Output { name: Str::new(name), kind, order: 0, fd, child, buffer: Vec::new(), eager }
    }

    #[inline]
    fn write(&mut self, text: &[u8]) -> abi::Result<()> {
        self.buffer.extend_from_slice(text);
        if self.buffer.len() >= ENOUGH || self.eager { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> abi::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = abi::write_all(self.fd, &self.buffer);
        self.buffer.clear();
        written
    }
}

impl Streams {
    /// Standard output, and nothing else yet.
    pub fn new() -> Streams {
        let stdout = Output::new(b"/dev/stdout", Kind::File, 1, None);
        Streams { stdout, outputs: Vec::new(), inputs: Vec::new(), coprocesses: Vec::new(), opened: 0 }
    }

    /// Writes to standard output.
    #[inline]
    pub fn print(&mut self, text: &[u8]) -> abi::Result<()> {
        self.stdout.write(text)
    }

    /// Writes to a file or command, which is opened when it is first named.
    pub fn print_to(
        &mut self,
        name: &[u8],
        kind: Kind,
        text: &[u8],
        env: Environment<'_>,
    ) -> abi::Result<()> {
        if kind != Kind::Command && matches!(name, b"/dev/stdout" | b"-") {
            return self.print(text);
        }
        if kind == Kind::Coprocess {
            let at = self.coprocess(name, env)?;
            return self.coprocesses[at]
                .output
                .as_mut()
                .map_or(Err(Errno::PIPE), |output| output.write(text));
        }
        let is_command = kind == Kind::Command;
        let is_it =
            |output: &Output| output.name.as_bytes() == name && (output.kind == Kind::Command) == is_command;
        if let Some(at) = self.outputs.iter().position(is_it) {
            if self.outputs[at].fd == PARKED {
                self.outputs[at].fd = self.open_file(name, flag::APPEND)?;
            }
            return self.outputs[at].write(text);
        }
        let mut output = self.open_output(name, kind, env)?;
        let written = output.write(text);
        self.opened += 1;
        output.order = self.opened;
        self.outputs.push(output);
        written
    }

    fn open_output(&mut self, name: &[u8], kind: Kind, env: Environment<'_>) -> abi::Result<Output> {
        let flags = match kind {
            Kind::Command => {
                self.flush_all()?;
                let pipe = abi::pipe(true)?;
                let child = spawn(name, &[FdMap { to: 0, from: pipe.read }], &env());
                let _ = abi::close(pipe.read);
                return Ok(Output::new(name, kind, pipe.write, Some(child?)));
            }
            Kind::File => flag::TRUNC,
            Kind::Append | Kind::Coprocess => flag::APPEND,
        };
        let fd = match name {
            b"/dev/stderr" => abi::dup(2, 3, true)?,
            name => self.open_file(name, flags)?,
        };
        let mut output = Output::new(name, kind, fd, None);
        output.eager |= name == b"/dev/stderr";
        Ok(output)
    }

    /// Opens a file to write. If there are no descriptors left, a file that is open gives up its own until it is
    /// written to again.
    fn open_file(&mut self, name: &[u8], flags: u32) -> abi::Result<abi::Fd> {
        loop {
            let opened = abi::open(Dir::CWD, name, flag::WRONLY | flag::CREAT | flag::CLOEXEC | flags, 0o666);
            if !matches!(opened, Err(Errno::MFILE | Errno::NFILE)) {
                return opened;
            }
            let is_file = |output: &&mut Output| {
                output.child.is_none() && output.fd > 2 && !output.name.as_bytes().starts_with(b"/dev/")
            };
            let Some(output) = self.outputs.iter_mut().find(is_file) else { return opened };
            output.flush()?;
            abi::close(output.fd)?;
            output.fd = PARKED;
        }
    }

    /// The place of a coprocess, which is started when it is first named.
    fn coprocess(&mut self, name: &[u8], env: Environment<'_>) -> abi::Result<usize> {
        if let Some(at) = self.coprocesses.iter().position(|process| process.name.as_bytes() == name) {
            return Ok(at);
        }
        self.flush_all()?;
        let (to, from) = (abi::pipe(true)?, abi::pipe(true)?);
        let fds = [FdMap { to: 0, from: to.read }, FdMap { to: 1, from: from.write }];
        let child = spawn(name, &fds, &env());
        let _ = abi::close(to.read);
        let _ = abi::close(from.write);
        let output = Some(Output::new(name, Kind::Coprocess, to.write, None));
        let reader = Some(Reader::new(from.read));
        self.opened += 1;
        let (name, order) = (Str::new(name), self.opened);
        self.coprocesses.push(Coprocess { name, order, output, reader, child: child? });
        Ok(self.coprocesses.len() - 1)
    }

    /// What a coprocess writes. It has all that was written to it first.
    pub fn coprocess_reader(&mut self, name: &[u8], env: Environment<'_>) -> abi::Result<&mut Reader> {
        let at = self.coprocess(name, env)?;
        let process = &mut self.coprocesses[at];
        if let Some(output) = &mut process.output {
            // One that does not read any more may still have something to say.
            let _ = output.flush();
        }
        process.reader.as_mut().ok_or(Errno::BADF)
    }

    /// Whether a coprocess is there whose one end was closed.
    pub fn is_half_closed(&self, name: &[u8], written: bool) -> bool {
        let found = self.coprocesses.iter().find(|process| process.name.as_bytes() == name);
        found.is_some_and(|process| if written { process.output.is_none() } else { process.reader.is_none() })
    }

    /// Closes one end of a coprocess: the one that is written to, or the one that is read. With both it ends.
    pub fn close_end(&mut self, name: &[u8], written: bool) -> Option<i32> {
        let at = self.coprocesses.iter().position(|process| process.name.as_bytes() == name)?;
        let process = &mut self.coprocesses[at];
        if written {
            process.output.take().map(close_output);
        } else if let Some(reader) = process.reader.take() {
            reader.close();
        }
        match (&process.output, &process.reader) {
            (None, None) => Some(wait(self.coprocesses.remove(at).child)),
            _ => Some(0),
        }
    }

    /// Something to read from, which is opened when it is first named.
    pub fn reader(
        &mut self,
        name: &[u8],
        is_command: bool,
        env: Environment<'_>,
    ) -> abi::Result<&mut Reader> {
        let is_it = |input: &Input| input.name.as_bytes() == name && input.is_command == is_command;
        if let Some(index) = self.inputs.iter().position(is_it) {
            return Ok(&mut self.inputs[index].reader);
        }
        let (fd, child) = if is_command {
            self.flush_all()?;
            let pipe = abi::pipe(true)?;
            let child = spawn(name, &[FdMap { to: 1, from: pipe.write }], &env());
            let _ = abi::close(pipe.write);
            (pipe.read, Some(child?))
        } else {
            (open_to_read(name)?, None)
        };
        self.opened += 1;
        let (name, reader) = (Str::new(name), Reader::new(fd));
        self.inputs.push(Input { name, is_command, order: self.opened, child, reader });
        let last = self.inputs.len() - 1;
        Ok(&mut self.inputs[last].reader)
    }

    /// Writes what was kept back.
    pub fn flush_all(&mut self) -> abi::Result<()> {
        let mut answer = self.stdout.flush();
        let coprocesses = self.coprocesses.iter_mut().filter_map(|process| process.output.as_mut());
        for output in self.outputs.iter_mut().chain(coprocesses) {
            let flushed = output.flush();
            answer = answer.and(flushed);
        }
        answer
    }

    /// Writes what was kept back for one name; nothing if it is not being written to.
    pub fn flush(&mut self, name: &[u8]) -> Option<abi::Result<()>> {
        if name == b"/dev/stdout" {
            return Some(self.stdout.flush());
        }
        let coprocesses = self.coprocesses.iter_mut().filter_map(|process| process.output.as_mut());
        let mut outputs = self.outputs.iter_mut().chain(coprocesses);
        let output = outputs.find(|output| output.name.as_bytes() == name)?;
        Some(output.flush())
    }

    /// Closes what was opened last by a name; how it ended, or nothing if there is none.
    pub fn close(&mut self, name: &[u8]) -> Option<i32> {
        let output = self.outputs.iter().position(|output| output.name.as_bytes() == name);
        let input = self.inputs.iter().position(|input| input.name.as_bytes() == name);
        let order_of_input = input.map(|at| self.inputs[at].order);
        let coprocess = self.coprocesses.iter().position(|process| process.name.as_bytes() == name);
        let order_of_others = output.map(|at| self.outputs[at].order).max(order_of_input);
        if let Some(at) = coprocess.filter(|at| Some(self.coprocesses[*at].order) > order_of_others) {
            return Some(end_coprocess(self.coprocesses.remove(at)));
        }
        match output.filter(|at| Some(self.outputs[*at].order) > order_of_input) {
            Some(at) => Some(close_output(self.outputs.remove(at))),
            None => {
                let input = self.inputs.remove(input?);
                input.reader.close();
                Some(input.child.map_or(0, wait))
            }
        }
    }

    /// Closes everything: commands first, which are waited for, then standard output, which the answer is about.
    pub fn close_all(&mut self) -> abi::Result<()> {
        for output in self.outputs.drain(..) {
            close_output(output);
        }
        for process in self.coprocesses.drain(..) {
            end_coprocess(process);
        }
        for input in self.inputs.drain(..) {
            input.reader.close();
            input.child.map(wait);
        }
        self.stdout.flush()
    }
}

/// In place of the descriptor of a file that gave it up.
const PARKED: abi::Fd = -1;

fn end_coprocess(process: Coprocess) -> i32 {
    process.output.map(close_output);
    if let Some(reader) = process.reader {
        reader.close();
    }
    wait(process.child)
}

fn close_output(mut output: Output) -> i32 {
    let flushed = output.flush();
    let closed = if output.fd == PARKED { Ok(()) } else { abi::close(output.fd) };
    match output.child {
        Some(child) => wait(child),
        None if flushed.and(closed).is_err() => -1,
        None => 0,
    }
}

/// Opens a file to read.
pub fn open_to_read(name: &[u8]) -> abi::Result<abi::Fd> {
    match name {
        b"-" | b"/dev/stdin" => Ok(0),
        name => abi::open(Dir::CWD, name, flag::RDONLY | flag::CLOEXEC, 0),
    }
}

/// Starts a command in a shell.
pub fn spawn(command: &[u8], fds: &[FdMap], env: &StringList) -> abi::Result<abi::Pid> {
    let argv: StringList = [b"sh".as_slice(), b"-c", command].into_iter().collect();
    let request =
        Spawn { path: b"/bin/sh", argv: argv.as_bytes(), env: env.as_bytes(), fds, ..Spawn::default() };
    abi::spawn(&request)
}

/// Waits for a command; its exit code, or 256 and the signal that ended it.
pub fn wait(child: abi::Pid) -> i32 {
    loop {
        match abi::wait(abi::Who::Child(child), abi::WaitFlags::default()) {
            Ok(Some((_, status))) => return answer_of(status),
            Err(Errno::INTR) | Ok(None) => {}
            Err(_) => return -1,
        }
    }
}

fn answer_of(status: Status) -> i32 {
    status.code().or(status.signal().map(|signal| 256 + signal)).unwrap_or(-1)
}
