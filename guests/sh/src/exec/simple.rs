//! Simple commands: expand, look up, run.

use super::program::Spawned;
use crate::ast::{Arg, AssignedValue, Assignment, Piece, Simple, Word};
use crate::builtins::{self, Builtin};
use crate::expand::quote;
use crate::jobs::Launch;
use crate::shell::{Exec, Flow, Shell};
use crate::vars::{Attrs, Var};
use std::rc::Rc;

/// The status of a builtin that was used wrongly.
const USAGE_ERROR: i32 = 2;

/// Variables as they were before a command's own assignments.
pub type Undo = Vec<(Vec<u8>, Option<Var>)>;

impl Shell {
    pub(super) fn run_simple(&mut self, simple: &Simple) -> Exec {
        self.line = simple.line;
        let stepped = std::mem::take(&mut self.stepped);
        if self.watches_steps()
            && !stepped
            && !self.step(simple.line, || crate::unparse::simple_text(simple))?
        {
            return Ok(0);
        }
        let mark = self.process_fds.len();
        let result = self.run_expanded(simple);
        if self.process_fds.len() > mark {
            self.close_process_fds(mark);
        }
        result
    }

    fn run_expanded(&mut self, simple: &Simple) -> Exec {
        self.substitution_status = None;
        if self.options.keyword && self.has_late_assignments(simple) {
            return self.run_expanded(&assignments_first(simple));
        }
        let args = self.expand_args(&simple.words)?;
        if args.is_empty() {
            return self.run_assignments(simple);
        }
        if self.options.xtrace {
            return self.run_traced(simple, args);
        }
        self.run_words(simple, args)
    }

    /// With `set -x`: a command's own assignments are shown before it.
    fn run_traced(&mut self, simple: &Simple, args: Vec<Vec<u8>>) -> Exec {
        if simple.assignments.is_empty() {
            self.trace_command(&args);
            self.trace_declarations(&args);
            return self.run_words(simple, args);
        }
        // The assignments are made, and so shown, when the command is set up: its line waits for them.
        self.line_to_trace = Some(args.clone());
        let result = self.run_words(simple, args);
        self.line_to_trace = None;
        result
    }

    /// Runs a command whose words are known.
    fn run_words(&mut self, simple: &Simple, args: Vec<Vec<u8>>) -> Exec {
        let Some(name) = args.first() else { return Ok(0) };
        if let Some(function) = self.functions.get(name.as_slice())
            && !(self.options.posix && builtins::is_special(name))
        {
            let function = function.clone();
            return self.with_setup(simple, args, |shell, undo, mut args| {
                args.remove(0);
                shell.vars.temporaries = std::mem::take(undo);
                let redirected = usize::from(!simple.redirects.is_empty());
                shell.redirected_calls += redirected;
                let result = shell.call_function(&function, args);
                shell.redirected_calls -= redirected;
                *undo = std::mem::take(&mut shell.vars.temporaries);
                result
            });
        }
        if let Some(builtin) = self.enabled_builtin(name) {
            return self.run_builtin(simple, builtin, args);
        }
        if self.options.monitor && name.starts_with(b"%") {
            return self.run_named_job(simple, args);
        }
        self.run_program(simple, args)
    }

    /// A job by itself is brought to the front.
    #[inline(never)]
    fn run_named_job(&mut self, simple: &Simple, args: Vec<Vec<u8>>) -> Exec {
        let args = [vec![b"fg".to_vec()], args].concat();
        self.with_setup(simple, args, |shell, _, args| {
            builtins::find(b"fg").map_or(Ok(127), |fg| builtins::run(shell, fg, &args, simple))
        })
    }

    /// With `set -k`: whether assignments stand behind the command's name.
    fn has_late_assignments(&self, simple: &Simple) -> bool {
        simple.words.iter().skip(1).any(|word| late_assignment(word).is_some())
    }

    pub fn enabled_builtin(&self, name: &[u8]) -> Option<Builtin> {
        let builtin = builtins::find(name)?;
        if !self.disabled_builtins.is_empty()
            && self.disabled_builtins.iter().any(|disabled| disabled == name)
        {
            return None;
        }
        Some(builtin)
    }

    /// Assignments without a command: they stay.
    fn run_assignments(&mut self, simple: &Simple) -> Exec {
        for assignment in &simple.assignments {
            self.run_assignment(assignment)?;
        }
        // The values were expanded before, so that `x=$(cmd) 2>file` does not catch what cmd says.
        let names_a_descriptor =
            |redirect: &crate::ast::Redirect| matches!(redirect.fd, crate::ast::RedirectFd::Variable(_));
        if simple.redirects.iter().any(names_a_descriptor) {
            return self.redirect_nothing_apart(simple);
        }
        if !simple.redirects.is_empty() {
            match self.redirect(&simple.redirects)? {
                Ok(saved) => self.restore(saved),
                Err(_) => {
                    self.status = 1;
                    return Ok(1);
                }
            }
        }
        self.last_arg.clear();
        let status = self.substitution_status.unwrap_or(0);
        self.status = status;
        Ok(status)
    }

    /// `{name}>file` without a command: bash opens it in a process of its own, so that the variable stays as it was.
    #[inline(never)]
    fn redirect_nothing_apart(&mut self, simple: &Simple) -> Exec {
        let spawned = self.fork_into(|shell| match shell.redirect_for_good(&simple.redirects) {
            Ok(Ok(())) => 0,
            Ok(Err(_)) => 1,
            Err(flow) => shell.exit_code(Err(flow)),
        });
        let status = self.wait_program(Ok(spawned), || crate::unparse::simple_text(simple))?;
        self.status = status;
        Ok(status)
    }

    /// Runs something of the shell's own with a command's redirections and assignments in force.
    fn with_setup(
        &mut self,
        simple: &Simple,
        args: Vec<Vec<u8>>,
        run: impl FnOnce(&mut Shell, &mut Undo, Vec<Vec<u8>>) -> Exec,
    ) -> Exec {
        let saved = match simple.redirects.is_empty() {
            true => None,
            false => match self.redirect_command(simple, &args[0])? {
                Some(saved) => Some(saved),
                None => return Ok(1),
            },
        };
        let last = args.last().cloned().unwrap_or_default();
        let mut undo = match self.assign_for_command(&simple.assignments, true) {
            Ok(undo) => undo,
            Err(flow) => {
                if let Some(saved) = saved {
                    self.restore(saved);
                }
                return Err(flow);
            }
        };
        let keep = self.options.posix && builtins::is_special(&args[0]);
        let declared = if undo.is_empty() { Vec::new() } else { declared_names(&args) };
        // Variables that are not local yet, and whether they are there for the call of the current function.
        let outer: Vec<(Vec<u8>, bool)> = undo
            .iter()
            .map(|(name, _)| (name.clone(), self.vars.is_temporary(name)))
            .filter(|(name, temporary)| *temporary || !self.vars.is_local(name))
            .collect();
        let result = run(self, &mut undo, args);
        // What the command made local hides what was there before the command, and stays.
        undo.retain_mut(|(name, old)| match outer.iter().find(|(outer, _)| outer == name) {
            Some((_, false)) if self.vars.is_local(name) => !self.vars.hide_instead(name, old.take()),
            Some((_, true)) => self.vars.is_temporary(name) || !self.vars.is_local(name),
            _ => true,
        });
        if !declared.is_empty() {
            undo.retain(|(name, _)| !declared.contains(name));
        }
        if !keep {
            self.undo_assignments(undo);
        }
        if let Some(saved) = saved {
            self.restore(saved);
        }
        self.last_arg = last;
        if let Ok(status) = result {
            self.status = status;
        }
        result
    }

    /// The redirections of a command of the shell's own; none when they failed.
    #[inline(never)]
    fn redirect_command(&mut self, simple: &Simple, name: &[u8]) -> Exec<Option<crate::redirect::Saved>> {
        match self.redirect(&simple.redirects)? {
            Ok(saved) => Ok(Some(saved)),
            Err(_) => {
                self.status = 1;
                let ends = self.options.posix && builtins::is_special(name);
                if ends { Err(Flow::Exit(1)) } else { Ok(None) }
            }
        }
    }

    fn run_builtin(&mut self, simple: &Simple, builtin: Builtin, args: Vec<Vec<u8>>) -> Exec {
        if args[0] == b"exec" {
            return self.run_exec(simple, &args);
        }
        // Redirections stay behind `command exec` too.
        if let [command, exec] = args.as_slice()
            && command == b"command"
            && exec == b"exec"
        {
            return self.run_exec(simple, &args[1..]);
        }
        if self.options.posix && builtins::is_special(&args[0]) {
            return self.run_special(simple, builtin, args);
        }
        if simple.redirects.is_empty() && simple.assignments.is_empty() {
            let result = builtins::run(self, builtin, &args, simple);
            // Only now: the builtin may show the last command's last argument.
            if let Some(last) = args.into_iter().last() {
                self.last_arg = last;
            }
            if let Ok(status) = result {
                self.status = status;
            }
            return result;
        }
        self.with_setup(simple, args, |shell, _, args| builtins::run(shell, builtin, &args, simple))
    }

    /// In POSIX mode a special builtin that is used wrongly ends the shell.
    fn run_special(&mut self, simple: &Simple, builtin: Builtin, args: Vec<Vec<u8>>) -> Exec {
        // What they run may end with that status too.
        let runs_others = matches!(args[0].as_slice(), b"." | b"source" | b"eval");
        let result =
            self.with_setup(simple, args, |shell, _, args| builtins::run(shell, builtin, &args, simple));
        match result {
            Ok(USAGE_ERROR) if !runs_others => Err(Flow::Exit(USAGE_ERROR)),
            other => other,
        }
    }

    /// `exec`: its redirections stay.
    fn run_exec(&mut self, simple: &Simple, args: &[Vec<u8>]) -> Exec {
        let command = match builtins::exec_command(args) {
            Ok(command) => command,
            Err(letter) => {
                return self.with_setup(simple, args.to_vec(), |shell, _, _| {
                    Ok(builtins::invalid_exec_option(shell, letter))
                });
            }
        };
        if !command.args.is_empty() && self.refuses(b"exec", b"") {
            return Ok(1);
        }
        if command.args.is_empty() {
            return match self.redirect_for_good(&simple.redirects)? {
                Ok(()) => {
                    self.status = 0;
                    Ok(0)
                }
                Err(_) => {
                    self.status = 1;
                    if self.options.posix { Err(Flow::Exit(1)) } else { Ok(1) }
                }
            };
        }
        let saved = match self.redirect(&simple.redirects)? {
            Ok(saved) => saved,
            Err(_) => {
                self.status = 1;
                return Ok(1);
            }
        };
        let undo = self.assign_for_command(&simple.assignments, true)?;
        let status = if self.invocation == crate::shell::Invocation::Session && self.subshell_level == 0 {
            // A session is not replaced: the program runs, and its end is the script's end.
            self.run_replaced(&command)?
        } else {
            self.become_command(&command)
        };
        self.undo_assignments(undo);
        self.restore(saved);
        self.status = status;
        if self.shopt.get("execfail") && self.subshell_level == 0 && matches!(status, 126 | 127) {
            Ok(status)
        } else {
            Err(Flow::Exit(status))
        }
    }

    fn run_replaced(&mut self, command: &builtins::ExecCommand<'_>) -> Exec {
        match self.fork_into(|shell| shell.become_command(command)) {
            Spawned::Ok(pid) => Ok(self.wait_for(pid)),
            Spawned::Err(status) => Ok(status),
        }
    }

    fn become_command(&mut self, command: &builtins::ExecCommand<'_>) -> i32 {
        let mut argv = command.args.to_vec();
        if let Some(given) = &command.name {
            argv[0].clone_from(given);
        }
        self.become_program(&argv, &command.args[0], command.clean)
    }

    fn run_program(&mut self, simple: &Simple, args: Vec<Vec<u8>>) -> Exec {
        if self.refuses_name(&args[0]) {
            self.status = 127;
            return Ok(127);
        }
        if let Some(handler) = self.missing_handler(&args[0]) {
            let mut with_name = vec![b"command_not_found_handle".to_vec()];
            with_name.extend(args);
            return self.with_setup(simple, with_name, |shell, _, mut args| {
                args.remove(0);
                shell.call_function(&handler, args)
            });
        }
        let undo = self.assign_for_command(&simple.assignments, true)?;
        self.lead_job(true);
        let spawned = if simple.redirects.iter().all(|redirect| self.is_pure_redirect(redirect)) {
            self.spawn_args(&args, &simple.redirects, &[])
        } else {
            Ok(self.fork_program(simple, &args))
        };
        self.undo_assignments(undo);
        let waited = self.wait_program(spawned, || crate::unparse::simple_text(simple));
        let status = match waited {
            // A program's redirections are its own: an error in them ends it, not the shell.
            Err(Flow::Exit(status) | Flow::Discard(status)) => status,
            waited => waited?,
        };
        if let Some(last) = args.into_iter().last() {
            self.last_arg = last;
        }
        self.status = status;
        Ok(status)
    }

    /// Starts a program whose redirections may change the shell or fail: they do so in its own process.
    fn fork_program(&mut self, simple: &Simple, args: &[Vec<u8>]) -> Spawned {
        self.fork_into(|shell| match shell.redirect_for_good(&simple.redirects) {
            Ok(Ok(())) => shell.become_program(args, &args[0], false),
            Ok(Err(_)) => 1,
            Err(flow) => shell.exit_code(Err(flow)),
        })
    }

    /// Does something in a child of its own.
    fn fork_into(&mut self, work: impl Fn(&mut Shell) -> i32) -> Spawned {
        let forked = self.start_child(|shell| {
            wardian_abi::fork(|| {
                shell.enter_job();
                shell.enter_child();
                work(shell)
            })
        });
        match forked {
            Ok(pid) => {
                self.joined(pid);
                Spawned::Ok(pid)
            }
            Err(errno) => {
                self.complain_errno(b"fork", errno);
                Spawned::Err(254)
            }
        }
    }

    /// Runs a program with these arguments, no functions or builtins looked at.
    pub fn run_program_now(&mut self, args: &[Vec<u8>]) -> Exec {
        self.lead_job(true);
        let spawned = self.spawn_args(args, &[], &[]);
        self.wait_program(spawned, || args.join(&b' '))
    }

    fn wait_program(&mut self, spawned: Exec<Spawned>, text: impl FnOnce() -> Vec<u8>) -> Exec {
        match spawned {
            Ok(Spawned::Ok(pid)) => Ok(self.wait_in_front(&[pid], text).last().copied().unwrap_or(0)),
            Ok(Spawned::Err(status)) => {
                self.launch = Launch::Inside;
                Ok(status)
            }
            Err(flow) => {
                self.launch = Launch::Inside;
                Err(flow)
            }
        }
    }

    /// The function scripts may define for commands that do not exist.
    fn missing_handler(&mut self, name: &[u8]) -> Option<Rc<crate::ast::Function>> {
        let handler = self.functions.get(&b"command_not_found_handle"[..])?.clone();
        (!name.contains(&b'/') && self.program_path(name) == Err(127)).then_some(handler)
    }

    /// `x=1 command`: assigns and exports, and says how to undo it.
    pub(super) fn assign_for_command(&mut self, assignments: &[Assignment], export: bool) -> Exec<Undo> {
        let mut undo = Undo::new();
        for assignment in assignments {
            let old = self.vars.raw(&assignment.name).cloned();
            let readonly = old.as_ref().is_some_and(|var| var.attrs.has(Attrs::READONLY));
            if readonly {
                let _ = self.readonly_error(&assignment.name);
                if self.options.posix {
                    self.undo_assignments(undo);
                    return Err(Flow::Discard(1));
                }
                // The command still runs, without it.
                continue;
            }
            undo.push((assignment.name.to_vec(), old));
            if let Err(flow) = self.run_assignment(assignment) {
                self.undo_assignments(undo);
                return Err(flow);
            }
            if export && let Some(var) = self.vars.raw_mut(&assignment.name) {
                var.attrs.set(Attrs::EXPORT, true);
            }
        }
        if let Some(args) = self.line_to_trace.take() {
            self.trace_command(&args);
        }
        Ok(undo)
    }

    pub(super) fn undo_assignments(&mut self, undo: Undo) {
        for (name, old) in undo.into_iter().rev() {
            match old {
                Some(var) => self.vars.insert(&name, var),
                None => drop(self.vars.remove(&name)),
            }
        }
    }

    // --- set -x ---

    /// Writes a line of trace.
    pub fn trace(&mut self, text: &[u8]) {
        let prompt = self.text(b"PS4").map(|text| text.to_vec()).unwrap_or_default();
        let status = self.status;
        self.options.xtrace = false;
        let mut line = self.expand_prompt(&prompt);
        self.options.xtrace = true;
        self.status = status;
        if let Some(first) = line.first().copied() {
            line.splice(0..0, std::iter::repeat_n(first, self.trace_depth));
        }
        line.extend_from_slice(text);
        line.push(b'\n');
        let fd = self.text(b"BASH_XTRACEFD").and_then(|text| std::str::from_utf8(&text).ok()?.parse().ok());
        let _ = wardian_abi::write_all(fd.unwrap_or(2), &line);
    }

    fn trace_command(&mut self, args: &[Vec<u8>]) {
        let words: Vec<Vec<u8>> = args.iter().map(|arg| quote::for_trace(arg)).collect();
        self.trace(&words.join(&b' '));
    }

    pub fn trace_assignment(&mut self, assignment: &Assignment, text: &[u8]) {
        if !self.options.xtrace {
            return;
        }
        let shown = match &assignment.value {
            AssignedValue::Scalar(_) if text.is_empty() => Vec::new(),
            AssignedValue::Scalar(_) => quote::for_trace(text),
            AssignedValue::Array(_) => return,
        };
        let subscript = match &assignment.subscript {
            Some(subscript) => [b"[", crate::unparse::word_text(&subscript.word).as_slice(), b"]"].concat(),
            None => Vec::new(),
        };
        let operator: &[u8] = if assignment.append { b"+=" } else { b"=" };
        self.trace(&[&assignment.name, subscript.as_slice(), operator, &shown].concat());
    }

    /// `export x=1` shows what it assigns a second time.
    fn trace_declarations(&mut self, args: &[Vec<u8>]) {
        if !matches!(args[0].as_slice(), b"export" | b"readonly") {
            return;
        }
        for arg in &args[1..] {
            let Some(at) = arg.iter().position(|&byte| byte == b'=') else { continue };
            if crate::parser::is_assignment_name(&arg[..at]) {
                let value = if arg.len() == at + 1 { Vec::new() } else { quote::for_trace(&arg[at + 1..]) };
                self.trace(&[&arg[..=at], &value].concat());
            }
        }
    }

    /// An assignment given to `declare` and the like, as its text.
    pub fn assignment_as_text(&mut self, assignment: &Assignment) -> Exec<Vec<u8>> {
        let mut text = assignment.name.to_vec();
        if let Some(subscript) = &assignment.subscript {
            text.push(b'[');
            text.extend(self.expand_string(&subscript.word)?);
            text.push(b']');
        }
        text.extend_from_slice(if assignment.append { b"+=" } else { b"=" });
        match &assignment.value {
            AssignedValue::Scalar(word) => text.extend(self.expand_value(word)?),
            // The builtin takes the array itself from the command.
            AssignedValue::Array(_) => text.extend_from_slice(b"()"),
        }
        Ok(text)
    }
}

/// The names that a command exports or makes read-only: what was assigned to them before the command stays.
fn declared_names(args: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let options = || args[1..].iter().take_while(|arg| arg.starts_with(b"-"));
    let declares = match args[0].as_slice() {
        b"export" | b"readonly" => !options().any(|arg| arg.contains(&b'p') || arg.contains(&b'f')),
        b"declare" | b"typeset" => {
            options().any(|arg| arg.contains(&b'x') || arg.contains(&b'r'))
                && !options().any(|arg| arg.contains(&b'p'))
        }
        _ => false,
    };
    if !declares {
        return Vec::new();
    }
    args[1..].iter().filter(|arg| crate::parser::is_assignment_name(arg)).cloned().collect()
}

/// A word that reads as an assignment, as one.
fn late_assignment(word: &Arg) -> Option<Assignment> {
    let Arg::Word(word) = word else { return None };
    let (Piece::Text(text), rest) = word.pieces.split_first()? else { return None };
    let at = text.iter().position(|&byte| byte == b'=')?;
    if !crate::parser::is_assignment_name(&text[..at]) {
        return None;
    }
    let mut pieces = vec![Piece::Text(text[at + 1..].to_vec())];
    pieces.extend_from_slice(rest);
    Some(Assignment {
        name: text[..at].into(),
        subscript: None,
        append: false,
        value: AssignedValue::Scalar(Word { pieces, raw: None }),
    })
}

/// With `set -k`: the command as if all its assignments had stood before its name.
fn assignments_first(simple: &Simple) -> Simple {
    let mut ordered = simple.clone();
    ordered.words.clear();
    for (at, word) in simple.words.iter().enumerate() {
        match late_assignment(word).filter(|_| at > 0) {
            Some(assignment) => ordered.assignments.push(assignment),
            None => ordered.words.push(word.clone()),
        }
    }
    ordered
}
