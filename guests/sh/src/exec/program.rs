//! Programs: finding them in PATH, starting them, becoming one.

use crate::ast::{
    Arg, AssignedValue, List, Param, ParamName, ParamOp, Piece, Redirect, RedirectAction, RedirectFd, Simple,
    Word,
};
use crate::builtins::Builtin;
use crate::shell::{Exec, Shell};
use abi::Errno;
use wardian_abi as abi;

/// A program that was started, or the status its failing to start comes to.
pub enum Spawned {
    Ok(abi::Pid),
    Err(i32),
}

impl Spawned {
    pub fn ok(self) -> Option<abi::Pid> {
        match self {
            Spawned::Ok(pid) => Some(pid),
            Spawned::Err(_) => None,
        }
    }
}

impl Shell {
    /// The program that is all there is to a list.
    pub fn only_program<'l>(&self, list: &'l List) -> Option<&'l Simple> {
        self.only_simple(list).filter(|simple| self.is_program(simple))
    }

    /// The builtin that is all there is to a list, if it does nothing but print: run here or in a copy of the shell,
    /// nobody can tell.
    pub fn only_printing<'l>(&self, list: &'l List) -> Option<(Builtin, &'l Simple)> {
        let simple = self.only_simple(list)?;
        let Some(Arg::Word(first)) = simple.words.first() else { return None };
        let name = first.as_plain()?;
        let prints = matches!(name, b":" | b"echo" | b"false" | b"printf" | b"pwd" | b"true")
            && simple.assignments.is_empty()
            && simple.redirects.is_empty()
            && !self.options.xtrace
            && self.traps.get(crate::traps::DEBUG).is_none()
            && self.traps.get(crate::traps::ERR).is_none()
            && !self.functions.contains_key(name)
            && simple.words.iter().all(|word| matches!(word, Arg::Word(word) if self.is_pure(word)));
        let builtin = self.enabled_builtin(name).filter(|_| prints)?;
        Some((builtin, simple))
    }

    fn only_simple<'l>(&self, list: &'l List) -> Option<&'l Simple> {
        let [item] = list.items.as_slice() else { return None };
        let plain =
            item.rest.is_empty() && !item.background && !item.first.negated && item.first.timed.is_none();
        match item.first.stages.as_slice() {
            [crate::ast::Command::Simple(simple)] if plain => Some(simple),
            _ => None,
        }
    }

    /// Whether a command is surely a program, and expanding it here rather than in a copy of the shell is no
    /// different: nothing in it changes the shell or can fail.
    pub fn is_program(&self, simple: &Simple) -> bool {
        let Some(Arg::Word(first)) = simple.words.first() else { return false };
        let Some(name) = first.as_plain() else { return false };
        !name.is_empty()
            && !self.restricted
            && !self.options.xtrace
            && !self.options.keyword
            && self.traps.get(crate::traps::EXIT).is_none()
            && self.traps.get(crate::traps::DEBUG).is_none()
            && !self.functions.contains_key(name)
            && crate::builtins::find(name).is_none()
            && simple.words.iter().all(|word| matches!(word, Arg::Word(word) if self.is_pure(word)))
            && simple.redirects.iter().all(|redirect| self.is_pure_redirect(redirect))
            && simple.assignments.iter().all(|assignment| {
                assignment.subscript.is_none()
                    && !assignment.append
                    && matches!(&assignment.value, AssignedValue::Scalar(word) if self.is_pure(word))
            })
    }

    /// Whether it can be started beside the shell without a copy of the shell: it is surely a program, and opening
    /// what it is redirected to does not wait for anybody. A FIFO does, and the shell must not be the one who waits.
    pub fn starts_at_once(&mut self, simple: &Simple) -> bool {
        self.is_program(simple) && !simple.redirects.iter().any(|redirect| self.is_to_fifo(redirect))
    }

    fn is_to_fifo(&mut self, redirect: &Redirect) -> bool {
        use RedirectAction::*;
        let (Read(word) | Write(word) | Clobber(word) | Append(word) | ReadWrite(word) | WriteBoth(word)
        | AppendBoth(word)) = &redirect.action
        else {
            return false;
        };
        let mut fields = Vec::new();
        let expanded = self.expand_fields(word, &mut fields);
        let is_fifo = |path: &Vec<u8>| abi::stat(abi::Dir::CWD, path, true).is_ok_and(|stat| stat.is_fifo());
        expanded.is_ok() && fields.iter().any(is_fifo)
    }

    pub(super) fn is_pure_redirect(&self, redirect: &Redirect) -> bool {
        use RedirectAction::*;
        !matches!(redirect.fd, RedirectFd::Variable(_))
            && match &redirect.action {
                Read(word) | Write(word) | Clobber(word) | Append(word) | ReadWrite(word)
                | WriteBoth(word) | AppendBoth(word) | DupInput(word) | DupOutput(word)
                | HereString(word) => self.is_pure(word),
                HereDocument(document) => document.body.get().is_none_or(|word| self.is_pure(word)),
            }
    }

    fn is_pure(&self, word: &Word) -> bool {
        self.are_pure(&word.pieces)
    }

    fn are_pure(&self, pieces: &[Piece]) -> bool {
        pieces.iter().all(|piece| match piece {
            Piece::Text(_) | Piece::Quoted(_) | Piece::Tilde(_) => true,
            Piece::Double(inner) => self.are_pure(inner),
            Piece::Param(param) => self.is_pure_param(param),
            Piece::Command(_) | Piece::Arith(_) | Piece::Process { .. } => false,
        })
    }

    fn is_pure_param(&self, param: &Param) -> bool {
        if param.indirect || matches!(param.subscript, Some(crate::ast::ParamSubscript::One(_))) {
            return false;
        }
        let set = match &param.name {
            ParamName::Variable(name) => {
                !matches!(name.as_ref(), b"BASHPID" | b"BASH_SUBSHELL" | b"RANDOM" | b"SRANDOM")
                    && (!self.options.nounset || self.vars.text(name).is_some())
            }
            ParamName::Positional(at) => !self.options.nounset || *at <= self.params.len(),
            ParamName::Special(_) => true,
        };
        set && match &param.op {
            ParamOp::None | ParamOp::Length => true,
            ParamOp::Alternative { kind, word, .. } => matches!(kind, b'-' | b'+') && self.is_pure(word),
            ParamOp::Remove { pattern, .. } => self.is_pure(pattern),
            _ => false,
        }
    }

    /// Starts a program; `map` says what its descriptors are before its own redirections.
    pub fn spawn_simple(&mut self, simple: &Simple, map: &[abi::FdMap]) -> Exec<Spawned> {
        self.spawn_simple_at(simple.line, simple, map)
    }

    /// The same for a program that counts as standing on another line.
    pub fn spawn_simple_at(&mut self, line: u32, simple: &Simple, map: &[abi::FdMap]) -> Exec<Spawned> {
        self.line = line;
        let args = self.expand_args(&simple.words)?;
        if args.is_empty() {
            return Ok(Spawned::Err(0));
        }
        let restore = self.assign_for_command(&simple.assignments, true)?;
        let spawned = self.spawn_args(&args, &simple.redirects, map);
        self.undo_assignments(restore);
        spawned
    }

    pub(super) fn spawn_args(
        &mut self,
        args: &[Vec<u8>],
        redirects: &[Redirect],
        map: &[abi::FdMap],
    ) -> Exec<Spawned> {
        let (mut map, mut opened) = (map.to_vec(), Vec::new());
        let redirected =
            if redirects.is_empty() { Ok(()) } else { self.redirect_map(redirects, &mut map, &mut opened)? };
        let spawned = match redirected {
            Ok(()) => self.spawn_found(args, &map),
            Err(_) => Spawned::Err(1),
        };
        for fd in opened {
            let _ = abi::close(fd);
        }
        Ok(spawned)
    }

    fn spawn_found(&mut self, args: &[Vec<u8>], map: &[abi::FdMap]) -> Spawned {
        let path = match self.program_path(&args[0]) {
            Ok(path) => path,
            Err(status) => {
                return Spawned::Err(self.with_stderr(map, |shell| shell.report_missing(&args[0], status)));
            }
        };
        let argv: abi::StringList = args.iter().collect();
        let mut env = abi::StringList::new();
        self.environment(&mut env, &path);
        match self.launch_program(&path, &argv, &env, map) {
            Ok(pid) => Spawned::Ok(pid),
            Err(Errno::NOEXEC) => self.spawn_script(args, &path, &env, map),
            Err(errno) => {
                self.hash.remove(&args[0]);
                Spawned::Err(self.with_stderr(map, |shell| shell.report_unrunnable(&path, errno)))
            }
        }
    }

    /// A file without `#!` is a script for this very shell.
    fn spawn_script(
        &mut self,
        args: &[Vec<u8>],
        path: &[u8],
        env: &abi::StringList,
        map: &[abi::FdMap],
    ) -> Spawned {
        if looks_binary(path) {
            return Spawned::Err(self.with_stderr(map, |shell| {
                shell.complain_parts(&[path, b": cannot execute binary file: Exec format error"]);
                126
            }));
        }
        let mut argv = abi::StringList::new();
        argv.push(b"bash");
        argv.push(path);
        args[1..].iter().for_each(|arg| argv.push(arg));
        let shell = self.own_path();
        match self.launch_program(&shell, &argv, env, map) {
            Ok(pid) => Spawned::Ok(pid),
            Err(errno) => Spawned::Err(self.report_unrunnable(path, errno)),
        }
    }

    /// Starts a program as part of the job being launched.
    fn launch_program(
        &mut self,
        path: &[u8],
        argv: &abi::StringList,
        env: &abi::StringList,
        fds: &[abi::FdMap],
    ) -> abi::Result<abi::Pid> {
        let group = self.launch.group();
        let (argv, env) = (argv.as_bytes(), env.as_bytes());
        let request = abi::Spawn { path, argv, env, fds, group, ..abi::Spawn::default() };
        let pid = self.start_child(|_| abi::spawn(&request))?;
        self.joined(pid);
        Ok(pid)
    }

    /// Where this shell's own program is.
    fn own_path(&self) -> Vec<u8> {
        self.text(b"BASH").map_or_else(|| b"/bin/bash".to_vec(), |path| path.to_vec())
    }

    /// Runs something with the standard error a program would have had.
    fn with_stderr(&mut self, map: &[abi::FdMap], report: impl FnOnce(&mut Shell) -> i32) -> i32 {
        let target = map.iter().find(|entry| entry.to == 2).map(|entry| entry.from);
        let Some(from) = target.filter(|from| *from >= 0) else { return report(self) };
        let saved = abi::dup(2, 100, true);
        let _ = abi::dup2(from, 2, false);
        let status = report(self);
        match saved {
            Ok(saved) => {
                let _ = abi::dup2(saved, 2, false);
                let _ = abi::close(saved);
            }
            Err(_) => drop(abi::close(2)),
        }
        status
    }

    /// Becomes a program, in a process made for it. Answers only when that fails.
    pub(super) fn exec_simple(&mut self, simple: &Simple) -> Exec {
        self.line = simple.line;
        let args = self.expand_args(&simple.words)?;
        self.assign_for_command(&simple.assignments, true)?;
        if self.redirect_for_good(&simple.redirects)?.is_err() {
            return Ok(1);
        }
        if args.is_empty() {
            return Ok(0);
        }
        Ok(self.become_named(&args, &args[0], false, false))
    }

    /// `exec`: answers the status of failing to.
    pub fn become_program(&mut self, args: &[Vec<u8>], name: &[u8], clean: bool) -> i32 {
        self.become_named(args, name, clean, true)
    }

    /// Becomes a program, asked to by `exec` or as all that is left to do.
    fn become_named(&mut self, args: &[Vec<u8>], name: &[u8], clean: bool, explicit: bool) -> i32 {
        let path = match self.program_path(name) {
            Ok(path) => path,
            Err(127) if !name.contains(&b'/') && explicit => {
                self.complain_parts(&[b"exec: ", name, b": not found"]);
                return 127;
            }
            Err(status) => return self.report_missing(name, status),
        };
        let argv: abi::StringList = args.iter().collect();
        let mut env = abi::StringList::new();
        if !clean {
            self.environment(&mut env, &path);
        }
        let request =
            abi::Spawn { path: &path, argv: argv.as_bytes(), env: env.as_bytes(), ..abi::Spawn::default() };
        let mut errno = abi::exec(&request);
        if errno == Errno::NOEXEC && looks_binary(&path) {
            self.complain_parts(&[&path, b": cannot execute binary file: Exec format error"]);
            return 126;
        }
        if errno == Errno::NOEXEC {
            let mut argv = abi::StringList::new();
            argv.push(b"bash");
            argv.push(&path);
            args.iter().skip(1).for_each(|arg| argv.push(arg));
            let shell = self.own_path();
            errno = abi::exec(&abi::Spawn { path: &shell, argv: argv.as_bytes(), ..request });
        }
        self.report_unrunnable(&path, errno)
    }

    fn environment(&self, env: &mut abi::StringList, path: &[u8]) {
        self.vars.environment(env);
        env.push_pair(b"_", path);
        for (name, attrs) in &self.function_attrs {
            if attrs.has(crate::vars::Attrs::EXPORT)
                && let Some(function) = self.functions.get(name)
            {
                let key = [b"BASH_FUNC_", name.as_slice(), b"%%"].concat();
                env.push_pair(&key, &[b"() ", crate::unparse::function_body(function).as_slice()].concat());
            }
        }
    }

    fn report_missing(&mut self, name: &[u8], status: i32) -> i32 {
        match status {
            127 if name.contains(&b'/') || self.vars.text(b"PATH").is_none_or(|path| path.is_empty()) => {
                self.complain_errno(name, Errno::NOENT);
            }
            127 => {
                self.complain_parts(&[&crate::expand::quote::shown(name), b": command not found"]);
                if let Some(advice) = super::absent::advice(name) {
                    // There is nowhere left to say that this failed.
                    let _ = abi::write_all(2, advice.as_bytes());
                }
            }
            _ if abi::stat(abi::Dir::CWD, name, true).is_ok_and(|stat| stat.is_dir())
                && name.contains(&b'/') =>
            {
                self.complain_errno(name, Errno::ISDIR);
            }
            _ => self.complain_errno(name, Errno::ACCES),
        }
        status
    }

    fn report_unrunnable(&mut self, path: &[u8], errno: Errno) -> i32 {
        match errno {
            Errno::NOENT if abi::stat(abi::Dir::CWD, path, true).is_ok() => {
                let interpreter = interpreter(path);
                let parts = [path, b": ", &interpreter, b": bad interpreter: No such file or directory"];
                self.complain(&parts.concat());
                127
            }
            Errno::NOENT => {
                self.complain_errno(path, errno);
                127
            }
            errno => {
                self.complain_errno(path, errno);
                126
            }
        }
    }

    /// The file of a program. The error is the status: 127 not found, 126 not to be run.
    pub fn program_path(&mut self, name: &[u8]) -> Result<Vec<u8>, i32> {
        if name.contains(&b'/') {
            return match abi::stat(abi::Dir::CWD, name, true) {
                Ok(stat) if stat.is_dir() => Err(126),
                Ok(_) if abi::access(abi::Dir::CWD, name, 1).is_err() => Err(126),
                Ok(_) | Err(Errno::ACCES | Errno::LOOP) => Ok(name.to_vec()),
                Err(_) => Err(127),
            };
        }
        if self.hash_version != self.vars.path_version {
            self.hash.clear();
            self.hash_version = self.vars.path_version;
        }
        if let Some((path, hits)) = self.hash.get_mut(name) {
            *hits += 1;
            return Ok(path.clone());
        }
        let path = self.vars.text(b"PATH").cloned().unwrap_or_default();
        match lookup(&path, name) {
            Ok(found) => {
                if self.options.hashall {
                    self.hash.insert(name.to_vec(), (found.clone(), 1));
                }
                Ok(found)
            }
            Err(status) => Err(status),
        }
    }
}

/// Searches a PATH for a program.
pub fn lookup(path: &[u8], name: &[u8]) -> Result<Vec<u8>, i32> {
    let mut status = 127;
    if name.is_empty() {
        return Err(status);
    }
    for directory in path.split(|&byte| byte == b':') {
        let candidate = join(directory, name);
        match abi::stat(abi::Dir::CWD, &candidate, true) {
            Ok(stat) if stat.is_dir() => {}
            Ok(_) if abi::access(abi::Dir::CWD, &candidate, 1).is_ok() => return Ok(candidate),
            Ok(_) => status = 126,
            Err(_) => {}
        }
    }
    Err(status)
}

/// The file that a name in `PATH` means to those who only ask: a program, or else the first file that is none.
pub fn lookup_any(path: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    if let Ok(program) = lookup(path, name) {
        return Some(program);
    }
    let is_file =
        |candidate: &Vec<u8>| abi::stat(abi::Dir::CWD, candidate, true).is_ok_and(|stat| !stat.is_dir());
    path.split(|&byte| byte == b':').map(|directory| join(directory, name)).find(is_file)
}

/// Every program of that name.
pub fn lookup_all(path: &[u8], name: &[u8]) -> Vec<Vec<u8>> {
    let runnable = |candidate: &Vec<u8>| {
        abi::stat(abi::Dir::CWD, candidate, true).is_ok_and(|stat| !stat.is_dir())
            && abi::access(abi::Dir::CWD, candidate, 1).is_ok()
    };
    path.split(|&byte| byte == b':').map(|directory| join(directory, name)).filter(runnable).collect()
}

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let directory = if directory.is_empty() { b"." } else { directory };
    [directory, b"/", name].concat()
}

/// The first bytes of a file.
fn head(path: &[u8]) -> Vec<u8> {
    let flags = abi::open_flags::RDONLY | abi::open_flags::CLOEXEC;
    let Ok(fd) = abi::open(abi::Dir::CWD, path, flags, 0) else { return Vec::new() };
    let mut buffer = vec![0; 128];
    let n = abi::read(fd, &mut buffer).unwrap_or(0);
    let _ = abi::close(fd);
    buffer.truncate(n);
    buffer
}

/// A NUL in the first line means it is no script, and so does the mark of an ELF file.
fn looks_binary(path: &[u8]) -> bool {
    let head = head(path);
    if head.starts_with(b"\x7fELF") {
        return true;
    }
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    line.contains(&0)
}

fn interpreter(path: &[u8]) -> Vec<u8> {
    let head = head(path);
    let line = head.strip_prefix(b"#!").unwrap_or_default().trim_ascii_start();
    line.split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default().to_vec()
}
