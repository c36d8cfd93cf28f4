//! Functions and sourced files.

use crate::ast::Function;
use crate::shell::{Exec, Flow, Frame, Invocation, Shell};
use crate::vars::Attrs;
use std::rc::Rc;

/// Where bash says that functions come from that no file defined.
const FROM_ENVIRONMENT: &[u8] = b"environment";

impl Shell {
    pub(super) fn define_function(&mut self, function: &Rc<Function>) -> Exec {
        if self.function_attrs.get(function.name.as_ref()).is_some_and(|attrs| attrs.has(Attrs::READONLY)) {
            self.complain_at(function.end, &[&function.name, &b": readonly function"[..]].concat());
            self.status = 1;
            return Ok(1);
        }
        if !self.may_be_function(&function.name) {
            let message = [&b"`"[..], &function.name, b"': not a valid identifier"].concat();
            self.complain_at(function.end, &message);
            self.status = 1;
            return if self.options.posix { Err(Flow::Exit(2)) } else { Ok(1) };
        }
        if self.options.allexport {
            self.function_attrs.entry(function.name.to_vec()).or_default().set(Attrs::EXPORT, true);
        }
        function.source.get_or_init(|| self.defining_source());
        self.functions.insert(function.name.to_vec(), function.clone());
        self.status = 0;
        Ok(0)
    }

    /// Where a function that is defined now comes from, as `BASH_SOURCE` has it.
    fn defining_source(&self) -> Rc<[u8]> {
        match self.invocation {
            _ if !self.frames.is_empty() => self.source.clone(),
            Invocation::File => self.source.clone(),
            Invocation::Command => FROM_ENVIRONMENT.into(),
            Invocation::Stdin | Invocation::Session => b"main"[..].into(),
        }
    }

    /// Almost anything is a name for a function, except in POSIX's eyes.
    fn may_be_function(&self, name: &[u8]) -> bool {
        if self.options.posix {
            return crate::parser::is_assignment_name(name);
        }
        !name.iter().any(|byte| b"$`'\"\\ \t\n".contains(byte))
    }

    /// Calls a function with arguments, its name not among them.
    pub fn call_function(&mut self, function: &Rc<Function>, args: Vec<Vec<u8>>) -> Exec {
        self.check_function_limit(function)?;
        if std::mem::take(&mut self.pending_level) {
            self.subshell_level += 1;
        }
        let params = std::mem::replace(&mut self.params, args);
        let loops = std::mem::take(&mut self.loops);
        let call_line = self.line;
        let source = self.enter_function(function, call_line);
        let getopts = (self.getopts_at, self.getopts_index);
        let result = self.run_function_body(function);
        let result = self.say_goodbye_inside(result);
        self.leave_function(getopts);
        self.source = source;
        self.loops = loops;
        self.params = params;
        self.line = call_line;
        match result {
            Err(Flow::Return(status)) => {
                self.status = status;
                Ok(status)
            }
            other => other,
        }
    }

    /// Apart from the call itself, as is leaving: calls nest, and what they keep on the stack counts.
    ///
    /// Answers the file of the caller.
    #[inline(never)]
    fn enter_function(&mut self, function: &Function, call_line: u32) -> Rc<[u8]> {
        let source = function.source.get_or_init(|| FROM_ENVIRONMENT.into()).clone();
        let args = self.shopt.extdebug().then(|| self.params.clone());
        self.frames.push(Frame {
            function: Some(function.name.clone()),
            source: source.clone(),
            call_line,
            args,
        });
        self.vars.push_scope();
        std::mem::replace(&mut self.source, source)
    }

    #[inline(never)]
    fn leave_function(&mut self, getopts: (usize, i64)) {
        if self.vars.is_local(b"OPTIND") {
            // The caller's `getopts` goes on where it was, inside a word too.
            (self.getopts_at, self.getopts_index) = getopts;
        }
        if let Some(scope) = self.vars.pop_scope()
            && let Some(options) = scope.saved_options
        {
            self.options = options;
        }
        self.frames.pop();
    }

    /// The EXIT trap of a shell that leaves from inside a function still sees the function, its locals and where it was
    /// called. As in bash, not if `set -e` ended it and a call has redirections, which are undone first.
    fn say_goodbye_inside(&mut self, result: Exec) -> Exec {
        match result {
            Err(Flow::Exit(code)) if !(self.leaves_by_error && self.redirected_calls > 0) => {
                Err(Flow::Exit(self.run_exit_trap(code)))
            }
            result => result,
        }
    }

    fn run_function_body(&mut self, function: &Rc<Function>) -> Exec {
        let body = function.body.clone();
        let traced = self.options.functrace
            || self.function_attrs.get(function.name.as_ref()).is_some_and(|attrs| attrs.has(Attrs::TRACE));
        let hidden = self.traps.hide_from_function(self.options.errtrace, traced);
        if self.traps.on_step {
            self.line = body.line;
            self.run_trap(crate::traps::DEBUG)?;
        }
        let result = self.run_compound(&body);
        if self.traps.get(crate::traps::RETURN).is_some() && !matches!(result, Err(Flow::Exit(_))) {
            self.line = body.line;
            self.run_trap(crate::traps::RETURN)?;
        }
        self.traps.show_again(hidden);
        result
    }

    /// `FUNCNEST`
    #[inline(never)]
    fn check_function_limit(&self, function: &Function) -> Exec<()> {
        let Some(limit) = self.function_limit().filter(|limit| self.frames.len() >= *limit) else {
            return Ok(());
        };
        let message = format!(": maximum function nesting level exceeded ({limit})");
        self.complain_parts(&[&function.name, message.as_bytes()]);
        Err(Flow::Discard(1))
    }

    fn function_limit(&self) -> Option<usize> {
        let text = self.vars.text(b"FUNCNEST")?;
        std::str::from_utf8(text).ok()?.parse().ok().filter(|limit| *limit > 0)
    }

    /// Runs a file's text in this shell, as `source` does.
    pub fn source_text(&mut self, path: &[u8], text: Vec<u8>, args: Option<Vec<Vec<u8>>>) -> Exec {
        let params = args.map(|args| std::mem::replace(&mut self.params, args));
        let source = std::mem::replace(&mut self.source, path.into());
        let call_line = self.line;
        let params_set = std::mem::take(&mut self.params_set);
        let args = self.shopt.extdebug().then(|| match &params {
            Some(_) => self.params.clone(),
            None => vec![path.to_vec()],
        });
        self.frames.push(Frame { function: None, source: path.into(), call_line, args });
        // A file does not inherit the trap on steps, unless asked to.
        let hidden = if self.options.functrace { Vec::new() } else { self.traps.hide_steps() };
        self.depth += 20;
        let result = if self.depth > super::MAX_DEPTH {
            self.complain(b"maximum source nesting level exceeded");
            Err(Flow::Discard(1))
        } else {
            self.trace_depth += 1;
            let reading = std::mem::take(&mut self.reading);
            let result = self.run_text(text, 1);
            self.reading = reading;
            self.trace_depth -= 1;
            result
        };
        self.depth -= 20;
        let result = self.say_goodbye_inside(result);
        self.frames.pop();
        self.source = source;
        self.line = call_line;
        let returned = match result {
            Err(Flow::Exit(_)) => Ok(0),
            _ => self.run_trap(crate::traps::RETURN),
        };
        self.traps.show_again(hidden);
        returned?;
        // Parameters the file set itself stay.
        let kept = self.params_set && self.frames.iter().all(|frame| frame.function.is_none());
        if let (Some(params), false) = (params, kept) {
            self.params = params;
        }
        self.params_set |= params_set;
        match result {
            Err(Flow::Return(status)) => Ok(status),
            other => other,
        }
    }
}
