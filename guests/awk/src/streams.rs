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

/// What makes the environment for a command, if one is started.
pub type Environment<'a> = &'a dyn Fn() -> StringList;

/// All streams of a program.
pub struct Streams {
    stdout: Output,
    outputs: Vec<Output>,
    inputs: Vec<Input>,
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
        Streams { stdout, outputs: Vec::new(), inputs: Vec::new(), opened: 0 }
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
        let is_command = kind == Kind::Command;
        let is_it =
            |output: &Output| output.name.as_bytes() == name && (output.kind == Kind::Command) == is_command;
        if let Some(output) = self.outputs.iter_mut().find(|output| is_it(output)) {
            return output.write(text);
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
            Kind::Append => flag::APPEND,
        };
        let fd = match name {
            b"/dev/stderr" => abi::dup(2, 3, true)?,
            name => abi::open(Dir::CWD, name, flag::WRONLY | flag::CREAT | flag::CLOEXEC | flags, 0o666)?,
        };
        let mut output = Output::new(name, kind, fd, None);
        output.eager |= name == b"/dev/stderr";
        Ok(output)
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
        for output in &mut self.outputs {
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
        let output = self.outputs.iter_mut().find(|output| output.name.as_bytes() == name)?;
        Some(output.flush())
    }

    /// Closes what was opened last by a name; how it ended, or nothing if there is none.
    pub fn close(&mut self, name: &[u8]) -> Option<i32> {
        let output = self.outputs.iter().position(|output| output.name.as_bytes() == name);
        let input = self.inputs.iter().position(|input| input.name.as_bytes() == name);
        let order_of_input = input.map(|at| self.inputs[at].order);
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
        for input in self.inputs.drain(..) {
            input.reader.close();
            input.child.map(wait);
        }
        self.stdout.flush()
    }
}

fn close_output(mut output: Output) -> i32 {
    let flushed = output.flush();
    let closed = abi::close(output.fd);
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
