//! Redirections: worked out once, then done either to the shell itself or in a new program's descriptors.

use crate::ast::{HereDocument, Redirect, RedirectAction, RedirectFd, Word};
use crate::shell::{Exec, Shell};
use abi::open_flags as flags;
use wardian_abi as abi;

/// A step of a redirection.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// `to` becomes the file just opened as `fd`, which is then closed.
    Take {
        to: abi::Fd,
        fd: abi::Fd,
    },
    /// `to` becomes a copy of `from`.
    Copy {
        to: abi::Fd,
        from: abi::Fd,
    },
    Close {
        to: abi::Fd,
    },
}

/// What redirections of the shell itself replaced.
#[derive(Default)]
pub struct Saved {
    /// A descriptor, and its copy if it was open.
    entries: Vec<(abi::Fd, Option<abi::Fd>)>,
}

/// Where the shell keeps its copies: above the numbers scripts use.
const SAVE_ABOVE: abi::Fd = 100;

/// A here-document up to this size fits any pipe.
const PIPE_SIZE: usize = 4096;

/// A redirection that failed; its message is out.
pub struct Failed;

impl Shell {
    /// What a redirection comes down to. `None` when it failed.
    fn redirect_steps(&mut self, redirect: &Redirect) -> Exec<Result<Vec<Step>, Failed>> {
        use RedirectAction::*;
        let default = match redirect.action {
            Read(_) | ReadWrite(_) | DupInput(_) | HereString(_) | HereDocument(_) => 0,
            _ => 1,
        };
        let (to, variable) = match &redirect.fd {
            RedirectFd::Default => (default, None),
            RedirectFd::Number(fd) => (*fd, None),
            RedirectFd::Variable(name) => (-1, Some(name.clone())),
        };
        let write = flags::WRONLY | flags::CREAT;
        let opened = match &redirect.action {
            Read(word) => self.open_target(word, flags::RDONLY)?,
            Write(word) | WriteBoth(word) if self.options.noclobber => self.open_new(word)?,
            Write(word) | Clobber(word) | WriteBoth(word) => self.open_target(word, write | flags::TRUNC)?,
            Append(word) | AppendBoth(word) => self.open_target(word, write | flags::APPEND)?,
            ReadWrite(word) => self.open_target(word, flags::RDWR | flags::CREAT)?,
            HereString(word) => {
                let mut text = self.expand_value(word)?;
                text.push(b'\n');
                self.here_file(&text)
            }
            HereDocument(document) => self.open_here_document(document)?,
            DupInput(word) | DupOutput(word) => return self.duplicate(word, to, variable, default == 1),
        };
        let Ok(fd) = opened else { return Ok(Err(Failed)) };
        Ok(Ok(match (&redirect.action, variable) {
            (action, Some(name)) => return self.open_in_variable(&name, fd, &shown_target(action)),
            (WriteBoth(_) | AppendBoth(_), None) => {
                vec![Step::Take { to: 1, fd }, Step::Copy { to: 2, from: 1 }]
            }
            (_, None) => vec![Step::Take { to, fd }],
        }))
    }

    /// `{name}>file`: a free number from 10 up, told to the variable. It stays open.
    fn open_in_variable(
        &mut self,
        name: &[u8],
        fd: abi::Fd,
        shown: &[u8],
    ) -> Exec<Result<Vec<Step>, Failed>> {
        let moved = self.move_to_variable(name, fd, shown);
        let _ = abi::close(fd);
        moved
    }

    /// A copy of a descriptor at a free number from 10 up, told to the variable.
    fn move_to_variable(
        &mut self,
        name: &[u8],
        fd: abi::Fd,
        shown: &[u8],
    ) -> Exec<Result<Vec<Step>, Failed>> {
        let base = name.split(|&byte| byte == b'[').next().unwrap_or_default();
        let target = self.vars.resolve(base).into_owned();
        if self.vars.raw(&target).is_some_and(|var| var.attrs.has(crate::vars::Attrs::READONLY)) {
            self.complain_parts(&[name, b": readonly variable"]);
            self.complain_parts(&[name, b": cannot assign fd to variable"]);
            return Ok(Err(Failed));
        }
        match abi::dup(fd, 10, false) {
            Ok(free) => {
                self.assign_target(name, free.to_string().as_bytes())?;
                if self.shopt.get("varredir_close") {
                    self.variable_fds.push(free);
                }
                Ok(Ok(Vec::new()))
            }
            Err(errno) => {
                let message = [
                    b": redirection error: cannot duplicate fd: ".as_slice(),
                    errno.message().as_bytes(),
                    b"\n",
                ];
                let _ = abi::write_all(2, &[self.name.as_slice(), &message.concat()].concat());
                self.complain_errno(shown, errno);
                Ok(Err(Failed))
            }
        }
    }

    /// The one word a target expands to.
    pub fn target(&mut self, word: &Word) -> Exec<Option<Vec<u8>>> {
        // POSIX looks for files by pattern there only at the prompt.
        let globs = !self.options.posix || self.interactive;
        let noglob = self.options.noglob;
        self.options.noglob = noglob || !globs;
        let target = self.target_fields(word);
        self.options.noglob = noglob;
        target
    }

    fn target_fields(&mut self, word: &Word) -> Exec<Option<Vec<u8>>> {
        let mut fields = Vec::new();
        let words = self.options.braceexpand.then(|| crate::parser::expand_braces(word)).flatten();
        for word in words.as_deref().unwrap_or(std::slice::from_ref(word)) {
            self.expand_fields(word, &mut fields)?;
        }
        match fields.len() {
            1 => Ok(fields.pop()),
            _ => {
                let shown = crate::unparse::word_text(word);
                self.complain_parts(&[&shown, b": ambiguous redirect"]);
                Ok(None)
            }
        }
    }

    fn open_target(&mut self, word: &Word, how: u32) -> Exec<Result<abi::Fd, Failed>> {
        let Some(path) = self.target(word)? else { return Ok(Err(Failed)) };
        if how & flags::CREAT != 0 && self.refuses_output(&path) {
            return Ok(Err(Failed));
        }
        Ok(self.open_path(&path, how))
    }

    fn open_path(&mut self, path: &[u8], how: u32) -> Result<abi::Fd, Failed> {
        if let Some(peer) = self.open_peer(path) {
            return peer;
        }
        abi::open(abi::Dir::CWD, path, how | flags::CLOEXEC, 0o666).map_err(|errno| {
            self.complain_errno(path, errno);
            Failed
        })
    }

    /// `>` under `set -C`: never over an existing file, but devices may be written.
    fn open_new(&mut self, word: &Word) -> Exec<Result<abi::Fd, Failed>> {
        let Some(path) = self.target(word)? else { return Ok(Err(Failed)) };
        if self.refuses_output(&path) {
            return Ok(Err(Failed));
        }
        let regular = abi::stat(abi::Dir::CWD, &path, true).is_ok_and(|stat| stat.is_file());
        if regular {
            self.complain_parts(&[&path, b": cannot overwrite existing file"]);
            return Ok(Err(Failed));
        }
        Ok(self.open_path(&path, flags::WRONLY | flags::CREAT | flags::TRUNC))
    }

    fn open_here_document(&mut self, document: &HereDocument) -> Exec<Result<abi::Fd, Failed>> {
        let text = match document.body.get() {
            Some(word) => self.expand_string(word)?,
            None => Vec::new(),
        };
        Ok(self.here_file(&text))
    }

    /// Something that reads as `text`: a pipe when it fits, else a file without a name.
    fn here_file(&mut self, text: &[u8]) -> Result<abi::Fd, Failed> {
        let made = if text.len() <= PIPE_SIZE { here_pipe(text) } else { here_unlinked(text) };
        made.map_err(|errno| {
            self.complain_errno(b"cannot create temp file for here-document", errno);
            Failed
        })
    }

    /// `<&word`, `>&word`.
    fn duplicate(
        &mut self,
        word: &Word,
        to: abi::Fd,
        variable: Option<std::rc::Rc<[u8]>>,
        output: bool,
    ) -> Exec<Result<Vec<Step>, Failed>> {
        let Some(text) = self.target(word)? else { return Ok(Err(Failed)) };
        if text == b"-" {
            let to = match &variable {
                Some(name) => match self.fd_in_variable(name)? {
                    Some(fd) => fd,
                    None => {
                        self.complain_parts(&[name, b": ambiguous redirect"]);
                        return Ok(Err(Failed));
                    }
                },
                None => to,
            };
            return Ok(Ok(vec![Step::Close { to }]));
        }
        let (digits, moves) = match text.strip_suffix(b"-") {
            Some(digits) => (digits, true),
            None => (text.as_slice(), false),
        };
        let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<abi::Fd>().ok());
        let Some(from) = number else {
            if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
                self.complain_errno(&crate::unparse::word_text(word), abi::Errno::BADF);
                return Ok(Err(Failed));
            }
            if output && to == 1 && variable.is_none() {
                if self.refuses_output(&text) {
                    return Ok(Err(Failed));
                }
                let opened = self.open_path(&text, flags::WRONLY | flags::CREAT | flags::TRUNC);
                return Ok(opened.map(|fd| vec![Step::Take { to: 1, fd }, Step::Copy { to: 2, from: 1 }]));
            }
            self.complain_parts(&[&text, b": ambiguous redirect"]);
            return Ok(Err(Failed));
        };
        if let Some(name) = variable {
            if abi::cloexec(from).is_err() {
                self.complain_errno(&crate::unparse::word_text(word), abi::Errno::BADF);
                return Ok(Err(Failed));
            }
            let shown = crate::unparse::word_text(word);
            let Ok(mut steps) = self.move_to_variable(&name, from, &shown)? else { return Ok(Err(Failed)) };
            if moves {
                steps.push(Step::Close { to: from });
            }
            return Ok(Ok(steps));
        }
        let shown = crate::unparse::word_text(word);
        // A descriptor that was named stands for a word that had to be expanded.
        let explicit = to > 1 && word.as_literal().is_none();
        self.copied_word = Some(if explicit { to.to_string().into_bytes() } else { shown });
        let mut steps = vec![Step::Copy { to, from }];
        if moves && from != to {
            steps.push(Step::Close { to: from });
        }
        Ok(Ok(steps))
    }

    fn fd_in_variable(&mut self, name: &[u8]) -> Exec<Option<abi::Fd>> {
        let text = self.value_of(name)?.unwrap_or_default();
        Ok(std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()))
    }

    /// Says that a descriptor to be copied is none, by the word that named it.
    fn complain_of_copy(&mut self, from: abi::Fd) {
        let shown = self.copied_word.take().unwrap_or_else(|| from.to_string().into_bytes());
        self.complain_errno(&shown, abi::Errno::BADF);
    }

    /// Redirects the shell itself. What it replaced is put back by [`Shell::restore`].
    pub fn redirect(&mut self, redirects: &[Redirect]) -> Exec<Result<Saved, Failed>> {
        let mut saved = Saved::default();
        for redirect in redirects {
            let steps = match self.redirect_steps(redirect) {
                Ok(Ok(steps)) => steps,
                Ok(Err(failed)) => {
                    self.restore(saved);
                    return Ok(Err(failed));
                }
                Err(flow) => {
                    self.restore(saved);
                    return Err(flow);
                }
            };
            for step in steps {
                if self.do_step(step, Some(&mut saved)).is_err() {
                    self.restore(saved);
                    return Ok(Err(Failed));
                }
            }
        }
        Ok(Ok(saved))
    }

    /// Redirects the shell itself for good, as `exec` does.
    pub fn redirect_for_good(&mut self, redirects: &[Redirect]) -> Exec<Result<(), Failed>> {
        let result = self.redirect_each(redirects);
        self.variable_fds.clear();
        result
    }

    fn redirect_each(&mut self, redirects: &[Redirect]) -> Exec<Result<(), Failed>> {
        for redirect in redirects {
            let Ok(steps) = self.redirect_steps(redirect)? else { return Ok(Err(Failed)) };
            for step in steps {
                if self.do_step(step, None).is_err() {
                    return Ok(Err(Failed));
                }
            }
        }
        Ok(Ok(()))
    }

    fn do_step(&mut self, step: Step, saved: Option<&mut Saved>) -> Result<(), Failed> {
        let to = match step {
            Step::Take { to, .. } | Step::Copy { to, .. } | Step::Close { to } => to,
        };
        if let Step::Copy { from, .. } = step
            && from == to
        {
            return Ok(());
        }
        if let Step::Copy { from, .. } = step
            && abi::cloexec(from).is_err()
        {
            self.complain_of_copy(from);
            return Err(Failed);
        }
        let is_for_good = saved.is_none();
        if let Some(saved) = saved
            && !saved.entries.iter().any(|(fd, _)| *fd == to)
        {
            let copy = abi::dup(to, SAVE_ABOVE, true).or_else(|errno| match errno {
                abi::Errno::BADF => Err(errno),
                _ => abi::dup(to, 10, true),
            });
            saved.entries.push((to, copy.ok()));
        }
        let done = match step {
            Step::Take { to, fd } if to == fd => abi::set_cloexec(fd, false).map(drop),
            Step::Take { to, fd } => {
                let done = abi::dup2(fd, to, false);
                let _ = abi::close(fd);
                done
            }
            Step::Copy { to, from } => abi::dup2(from, to, false),
            Step::Close { to } => {
                let _ = abi::close(to);
                if !self.coprocs.is_empty() && is_for_good {
                    self.note_closed(to);
                }
                Ok(())
            }
        };
        done.map_err(|errno| {
            self.complain_errno(to.to_string().as_bytes(), errno);
            Failed
        })
    }

    /// Puts back what redirections replaced.
    pub fn restore(&mut self, saved: Saved) {
        for fd in self.variable_fds.drain(..) {
            let _ = abi::close(fd);
        }
        for (fd, copy) in saved.entries.into_iter().rev() {
            match copy {
                Some(copy) => {
                    let _ = abi::dup2(copy, fd, false);
                    let _ = abi::close(copy);
                }
                None => drop(abi::close(fd)),
            }
        }
    }

    /// The redirections of a program about to be started, as a map of its descriptors. The files opened for it
    /// are added to `opened`, for the caller to close.
    pub fn redirect_map(
        &mut self,
        redirects: &[Redirect],
        map: &mut Vec<abi::FdMap>,
        opened: &mut Vec<abi::Fd>,
    ) -> Exec<Result<(), Failed>> {
        for redirect in redirects {
            let Ok(steps) = self.redirect_steps(redirect)? else { return Ok(Err(Failed)) };
            for step in steps {
                match step {
                    Step::Take { to, fd } => {
                        opened.push(fd);
                        set_mapping(map, to, fd);
                    }
                    Step::Copy { to, from } => {
                        let source =
                            map.iter().find(|entry| entry.to == from).map_or(from, |entry| entry.from);
                        if source < 0 || abi::cloexec(source).is_err() {
                            self.complain_of_copy(from);
                            return Ok(Err(Failed));
                        }
                        set_mapping(map, to, source);
                    }
                    Step::Close { to } => set_mapping(map, to, -1),
                }
            }
        }
        Ok(Ok(()))
    }
}

/// What messages call the file of a redirection.
fn shown_target(action: &RedirectAction) -> Vec<u8> {
    use RedirectAction::*;
    match action {
        Read(word) | Write(word) | Clobber(word) | Append(word) | ReadWrite(word) | WriteBoth(word)
        | AppendBoth(word) | DupInput(word) | DupOutput(word) | HereString(word) => {
            crate::unparse::word_text(word)
        }
        HereDocument(document) => document.delimiter.clone(),
    }
}

fn set_mapping(map: &mut Vec<abi::FdMap>, to: abi::Fd, from: abi::Fd) {
    match map.iter_mut().find(|entry| entry.to == to) {
        Some(entry) => entry.from = from,
        None => map.push(abi::FdMap { to, from }),
    }
}

fn here_pipe(text: &[u8]) -> abi::Result<abi::Fd> {
    let pipe = abi::pipe(true)?;
    let written = abi::write_all(pipe.write, text);
    let _ = abi::close(pipe.write);
    match written {
        Ok(()) => Ok(pipe.read),
        Err(errno) => {
            let _ = abi::close(pipe.read);
            Err(errno)
        }
    }
}

/// A file that is removed as soon as it is written and opened again for reading.
fn here_unlinked(text: &[u8]) -> abi::Result<abi::Fd> {
    let now = crate::dynamic::since_epoch().as_nanos();
    let path = format!("/tmp/sh-thd.{}.{now}", abi::getpid());
    let write = flags::WRONLY | flags::CREAT | flags::EXCL | flags::CLOEXEC;
    let fd = abi::open(abi::Dir::CWD, path.as_bytes(), write, 0o600)?;
    let written = abi::write_all(fd, text);
    let _ = abi::close(fd);
    let reader = abi::open(abi::Dir::CWD, path.as_bytes(), flags::RDONLY | flags::CLOEXEC, 0);
    let _ = std::fs::remove_file(&path);
    written.and(reader)
}
