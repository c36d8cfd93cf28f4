//! Functions and sourced files.

use crate::ast::Function;
use crate::shell::{Exec, Flow, Frame, Shell};
use crate::vars::Attrs;
use std::rc::Rc;

impl Shell {
    pub(super) fn define_function(&mut self, function: &Rc<Function>) -> Exec {
        if self.function_attrs.get(function.name.as_ref()).is_some_and(|attrs| attrs.has(Attrs::READONLY)) {
            self.complain_parts(&[&function.name, b": readonly function"]);
            self.status = 1;
            return Ok(1);
        }
        self.functions.insert(function.name.to_vec(), function.clone());
        self.status = 0;
        Ok(0)
    }

    /// Calls a function with arguments, its name not among them.
    pub fn call_function(&mut self, function: &Rc<Function>, args: Vec<Vec<u8>>) -> Exec {
        if let Some(limit) = self.function_limit()
            && self.frames.len() >= limit
        {
            let message = format!(": maximum function nesting level exceeded ({limit})");
            self.complain_parts(&[&function.name, message.as_bytes()]);
            return Err(Flow::Discard(1));
        }
        let params = std::mem::replace(&mut self.params, args);
        let loops = std::mem::take(&mut self.loops);
        let call_line = self.line;
        self.frames.push(Frame {
            function: Some(function.name.clone()),
            source: self.source.clone(),
            call_line,
        });
        self.vars.push_scope();
        let result = self.run_function_body(function);
        if let Some(scope) = self.vars.pop_scope()
            && let Some(options) = scope.saved_options
        {
            self.options = options;
        }
        self.frames.pop();
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

    fn run_function_body(&mut self, function: &Rc<Function>) -> Exec {
        let body = function.body.clone();
        let hidden = self.traps.hide_from_function(self.options.errtrace, self.options.functrace);
        let result = self.run_compound(&body);
        if self.traps.get(crate::traps::RETURN).is_some() && !matches!(result, Err(Flow::Exit(_))) {
            if let Err(Flow::Return(status)) = result {
                self.status = status;
            }
            self.run_trap(crate::traps::RETURN)?;
        }
        self.traps.show_again(hidden);
        result
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
        self.frames.push(Frame { function: None, source: path.into(), call_line });
        self.depth += 20;
        let result = if self.depth > super::MAX_DEPTH {
            self.complain(b"maximum source nesting level exceeded");
            Err(Flow::Discard(1))
        } else {
            self.trace_depth += 1;
            let result = self.run_text(text, 1);
            self.trace_depth -= 1;
            result
        };
        self.depth -= 20;
        self.frames.pop();
        self.source = source;
        self.line = call_line;
        if let Some(params) = params {
            self.params = params;
        }
        match result {
            Err(Flow::Return(status)) => Ok(status),
            other => other,
        }
    }
}
