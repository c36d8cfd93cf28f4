//! Compound commands.

use crate::arith::{Arith, ArithError};
use crate::ast::{CaseArm, CaseEnd, Command, Compound, CompoundKind, List, Word};
use crate::jobs::Launch;
use crate::shell::{Exec, Flow, Shell};
use std::rc::Rc;
use wardian_abi as abi;

impl Shell {
    pub(super) fn run_compound(&mut self, compound: &Compound) -> Exec {
        if compound.redirects.is_empty() {
            return self.run_kind(compound);
        }
        if let CompoundKind::Subshell(_) = &compound.kind {
            return self.run_subshell(compound);
        }
        let mark = self.process_fds.len();
        // Outside of functions and loops bash speaks of the line where it stopped reading.
        let line = self.line;
        if self.loops == 0
            && self.subshell_level == 0
            && self.frames.iter().all(|frame| frame.function.is_none())
        {
            self.line = self.list_end;
        }
        let redirected = self.redirect(&compound.redirects);
        self.line = line;
        let saved = match redirected? {
            Ok(saved) => saved,
            Err(_) => {
                self.status = 1;
                let trapped = self.traps.on_error;
                // Those kinds are looked at as a whole, whatever fails in them.
                return match Self::is_checked_kind(&compound.kind) {
                    true => Ok(1),
                    false => self.finish_command(1, trapped),
                };
            }
        };
        let own_input = self.own_input;
        self.own_input |= compound.redirects.iter().any(reads_input);
        let result = self.run_kind(compound);
        self.own_input = own_input;
        self.restore(saved);
        self.close_process_fds(mark);
        result
    }

    pub(super) fn run_kind(&mut self, compound: &Compound) -> Exec {
        match &compound.kind {
            CompoundKind::Group(list) => self.run_list(list),
            CompoundKind::Subshell(_) => self.run_subshell(compound),
            CompoundKind::If { arms, otherwise } => self.run_if(arms, otherwise.as_ref()),
            CompoundKind::While { condition, body, until } => self.run_while(condition, body, *until),
            CompoundKind::For { name, words, body } => {
                if !self.is_loop_name(name, compound.line) {
                    return Ok(1);
                }
                self.run_for(compound, name, words.as_deref(), body)
            }
            CompoundKind::ArithFor { first, condition, step, body } => {
                self.line = compound.line;
                self.run_arith_for(first.as_ref(), condition.as_ref(), step.as_ref(), body)
            }
            _ => self.run_stepped(compound),
        }
    }

    /// Compounds that are steps themselves: apart from the others, so that what nests deeper needs less of the stack.
    #[inline(never)]
    fn run_stepped(&mut self, compound: &Compound) -> Exec {
        if let CompoundKind::Select { name, .. } = &compound.kind
            && !self.is_loop_name(name, compound.line)
        {
            return Ok(1);
        }
        self.line = compound.line;
        if self.watches_steps() && !self.step(compound.line, || crate::unparse::head_text(compound))? {
            return Ok(0);
        }
        match &compound.kind {
            CompoundKind::Select { name, words, body } => {
                if self.options.xtrace {
                    self.trace(&crate::unparse::head_text(compound));
                }
                self.run_select(name, words.as_deref(), body)
            }
            CompoundKind::Case { word, arms } => self.run_case(word, arms),
            CompoundKind::Arith(arith) => self.run_arith(arith, compound.line),
            CompoundKind::Condition(condition) => {
                let status = self.run_test(condition)?;
                self.status = status;
                Ok(status)
            }
            _ => Ok(0),
        }
    }

    fn run_subshell(&mut self, compound: &Compound) -> Exec {
        self.line = compound.line;
        if self.keeps_command && self.in_trap == 0 {
            let text = crate::unparse::whole_text(&Command::Compound(Rc::new(compound.clone())));
            self.command_text = Some(Rc::new(move || text.clone()));
        }
        self.lead_job(true);
        let forked = self.start_child(|shell| {
            abi::fork(|| {
                shell.enter_job();
                shell.enter_child();
                shell.become_subshell(compound)
            })
        });
        let status = match forked {
            Ok(pid) => {
                self.joined(pid);
                let text = || crate::unparse::whole_text(&Command::Compound(Rc::new(compound.clone())));
                self.wait_in_front(&[pid], text).last().copied().unwrap_or(0)
            }
            Err(errno) => {
                self.launch = Launch::Inside;
                self.complain_errno(b"fork", errno);
                254
            }
        };
        self.status = status;
        self.pipe_status = vec![status];
        Ok(status)
    }

    /// Runs a subshell's commands in a process made for it; answers the exit code.
    pub(super) fn become_subshell(&mut self, compound: &Compound) -> i32 {
        let CompoundKind::Subshell(list) = &compound.kind else { return 0 };
        self.loops = 0;
        self.jobs = crate::jobs::Jobs::default();
        self.own_input |= compound.redirects.iter().any(reads_input);
        match self.redirect_for_good(&compound.redirects) {
            Ok(Ok(())) => self.run_child_list(list),
            Ok(Err(_)) => 1,
            Err(flow) => self.exit_code(Err(flow)),
        }
    }

    fn run_if(&mut self, arms: &[(List, List)], otherwise: Option<&List>) -> Exec {
        for (condition, body) in arms {
            if self.run_condition(condition)? == 0 {
                return self.run_list(body);
            }
        }
        match otherwise {
            Some(body) => self.run_list(body),
            None => {
                self.status = 0;
                Ok(0)
            }
        }
    }

    /// Runs a loop's body once. Says whether the loop goes on, or with `Err` what leaves it.
    fn run_body(&mut self, body: &List, status: &mut i32) -> Exec<bool> {
        match self.run_list(body) {
            Ok(result) => {
                *status = result;
                Ok(true)
            }
            Err(Flow::Break(1)) => {
                *status = std::mem::take(&mut self.break_status);
                Ok(false)
            }
            Err(Flow::Break(n)) => Err(Flow::Break(n - 1)),
            Err(Flow::Continue(1)) => {
                *status = 0;
                Ok(true)
            }
            Err(Flow::Continue(n)) => Err(Flow::Continue(n - 1)),
            Err(other) => Err(other),
        }
    }

    /// Runs a loop, which `break` and `continue` inside it may count on.
    fn in_loop(&mut self, run: impl FnOnce(&mut Shell) -> Exec) -> Exec {
        self.loops += 1;
        let result = run(self);
        self.loops -= 1;
        if let Ok(status) = result {
            self.status = status;
        }
        result
    }

    fn run_while(&mut self, condition: &List, body: &List, until: bool) -> Exec {
        self.in_loop(|shell| {
            let mut status = 0;
            loop {
                let met = match shell.run_condition(condition) {
                    Ok(result) => (result == 0) != until,
                    Err(Flow::Break(1)) => return Ok(0),
                    // It is a success, which is what ends this loop.
                    Err(Flow::Continue(1)) if until => return Ok(status),
                    Err(Flow::Continue(1)) => continue,
                    Err(Flow::Break(n)) => return Err(Flow::Break(n - 1)),
                    Err(Flow::Continue(n)) => return Err(Flow::Continue(n - 1)),
                    Err(other) => return Err(other),
                };
                if !met || !shell.run_body(body, &mut status)? {
                    return Ok(status);
                }
            }
        })
    }

    /// Whether a loop's variable can be one.
    fn is_loop_name(&mut self, name: &[u8], line: u32) -> bool {
        let is_name = crate::parser::is_assignment_name(name);
        if !is_name {
            self.line = line;
            self.complain_parts(&[b"`", name, b"': not a valid identifier"]);
            self.status = 1;
        }
        is_name
    }

    fn run_for(&mut self, compound: &Compound, name: &[u8], words: Option<&[Word]>, body: &List) -> Exec {
        self.line = compound.line;
        let values = match words {
            Some(words) => self.expand_words(words)?,
            None => self.params.clone(),
        };
        self.in_loop(|shell| {
            let mut status = 0;
            for value in values {
                shell.line = compound.line;
                if shell.watches_steps()
                    && !shell.step(compound.line, || crate::unparse::head_text(compound))?
                {
                    continue;
                }
                if shell.options.xtrace {
                    shell.trace(&crate::unparse::head_text(compound));
                }
                if shell.vars.raw(name).is_some_and(|var| var.attrs.has(crate::vars::Attrs::NAMEREF)) {
                    shell.vars.set_raw(name, &value);
                } else {
                    match shell.assign(name, &value) {
                        Err(Flow::Discard(status)) => return Ok(status),
                        other => other?,
                    }
                }
                if !shell.run_body(body, &mut status)? {
                    break;
                }
            }
            Ok(status)
        })
    }

    fn arith_part(&mut self, arith: Option<&Arith>) -> Exec<Option<i64>> {
        let Some(arith) = arith else { return Ok(None) };
        if self.options.xtrace {
            let text = crate::unparse::word_text(&arith.word);
            self.trace(&[b"(( ", text.trim_ascii_start(), b" ))"].concat());
        }
        if self.watches_steps() {
            let text = || [b"((", crate::unparse::word_text(&arith.word).trim_ascii_start(), b"))"].concat();
            self.step(self.line, text)?;
        }
        match self.arith(arith) {
            Ok(value) => Ok(Some(value)),
            Err(ArithError::Flow(flow)) => Err(flow),
            Err(error) => {
                self.complain_arith(b"((: ", &error);
                Err(Flow::Break(0))
            }
        }
    }

    fn run_arith_for(
        &mut self,
        first: Option<&Arith>,
        condition: Option<&Arith>,
        step: Option<&Arith>,
        body: &List,
    ) -> Exec {
        // A wrong expression ends the loop with status 1; `Break(0)` carries that out of the parts.
        let line = self.line;
        let result = self.in_loop(|shell| {
            let mut status = 0;
            shell.arith_part(first)?;
            loop {
                shell.line = line;
                if shell.arith_part(condition)? == Some(0) || !shell.run_body(body, &mut status)? {
                    return Ok(status);
                }
                shell.line = line;
                shell.arith_part(step)?;
            }
        });
        match result {
            Err(Flow::Break(0)) => {
                self.status = 1;
                Ok(1)
            }
            other => other,
        }
    }

    fn run_case(&mut self, word: &Word, arms: &[CaseArm]) -> Exec {
        if self.options.xtrace {
            self.trace(&[b"case ", crate::unparse::word_text(word).as_slice(), b" in"].concat());
        }
        let subject = self.expand_string(word)?;
        let fold = self.shopt.get("nocasematch");
        let mut fall_through = false;
        let mut status = 0;
        for arm in arms {
            let mut chosen = fall_through;
            for pattern in &arm.patterns {
                if chosen {
                    break;
                }
                chosen = match pattern.as_plain() {
                    Some(text) if !fold && !text.iter().any(|byte| b"*?[\\(".contains(byte)) => {
                        text == subject
                    }
                    _ => self.expand_pattern(pattern, fold)?.matches(&subject),
                };
            }
            if !chosen {
                continue;
            }
            status = self.run_list(&arm.body)?;
            match arm.end {
                CaseEnd::Break => return Ok(status),
                CaseEnd::FallThrough => fall_through = true,
                CaseEnd::Continue => fall_through = false,
            }
        }
        self.status = status;
        Ok(status)
    }

    fn run_arith(&mut self, arith: &Arith, line: u32) -> Exec {
        self.line = line;
        if self.options.xtrace {
            let text = crate::unparse::word_text(&arith.word);
            self.trace(&[b"(( ", text.trim_ascii(), b" ))"].concat());
        }
        let status = match self.arith(arith) {
            Ok(value) => i32::from(value == 0),
            Err(ArithError::Flow(flow)) => return Err(flow),
            Err(error) => {
                self.complain_arith(b"((: ", &error);
                1
            }
        };
        self.status = status;
        Ok(status)
    }

    fn run_select(&mut self, name: &[u8], words: Option<&[Word]>, body: &List) -> Exec {
        let values = match words {
            Some(words) => self.expand_words(words)?,
            None => self.params.clone(),
        };
        if values.is_empty() {
            return Ok(0);
        }
        self.in_loop(|shell| {
            let mut status = 0;
            let mut show = true;
            loop {
                if show {
                    let _ = abi::write_all(2, &menu(&values));
                }
                let prompt = shell.text(b"PS3").map_or_else(|| b"#? ".to_vec(), |text| text.to_vec());
                let _ = abi::write_all(2, &prompt);
                let Some(line) = crate::builtins::read_line(0) else {
                    let _ = abi::write_all(1, b"\n");
                    return Ok(1);
                };
                shell.assign(b"REPLY", &line)?;
                show = line.is_empty();
                if show {
                    continue;
                }
                let chosen =
                    std::str::from_utf8(&line).ok().and_then(|text| text.trim().parse::<usize>().ok());
                let value = chosen.and_then(|n| values.get(n.wrapping_sub(1))).cloned().unwrap_or_default();
                shell.assign(name, &value)?;
                if !shell.run_body(body, &mut status)? {
                    return Ok(status);
                }
            }
        })
    }
}

/// Whether a redirection gives standard input.
fn reads_input(redirect: &crate::ast::Redirect) -> bool {
    use crate::ast::RedirectAction::*;
    matches!(redirect.action, Read(_) | ReadWrite(_) | DupInput(_) | HereString(_) | HereDocument(_))
}

/// The numbered list `select` shows, in columns as bash lays them out.
fn menu(values: &[Vec<u8>]) -> Vec<u8> {
    let width = |value: &[u8]| crate::pattern::char_count(value, true);
    let digits = |number: usize| number.to_string().len();
    let widest = values.iter().map(|value| width(value)).max().unwrap_or(0);
    let cell = widest + digits(values.len()) + 4;
    let columns = (80 / cell.max(1)).max(1);
    let mut rows = values.len().div_ceil(columns).max(1);
    if rows == 1 {
        rows = values.len().max(1);
    }
    let mut out = Vec::new();
    for row in 0..rows {
        let mut start = 0;
        for at in (row..values.len()).step_by(rows) {
            let places = if start == 0 { digits(rows) } else { digits(values.len()) };
            out.extend_from_slice(format!("{:>places$}) ", at + 1).as_bytes());
            out.extend_from_slice(&values[at]);
            if at + rows < values.len() {
                indent(&mut out, start + places + 2 + width(&values[at]), start + cell);
                start += cell;
            }
        }
        out.push(b'\n');
    }
    out
}

/// Blanks from one column to another, tabs where they fit.
fn indent(out: &mut Vec<u8>, from: usize, to: usize) {
    let mut at = from;
    while at < to {
        let next_stop = (at / 8 + 1) * 8;
        if next_stop <= to {
            out.push(b'\t');
            at = next_stop;
        } else {
            out.push(b' ');
            at += 1;
        }
    }
}
