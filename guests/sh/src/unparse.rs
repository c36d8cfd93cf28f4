//! Commands back to text, laid out as bash does it in `declare -f` and `jobs`.

mod simple;

use crate::arith::Arith;
use crate::ast::*;
use std::rc::Rc;

/// A word as it was written.
pub fn word_text(word: &Word) -> Vec<u8> {
    if let Some(raw) = &word.raw {
        return raw.to_vec();
    }
    word.as_literal().unwrap_or_default()
}

pub fn simple_text(simple: &Simple) -> Vec<u8> {
    let mut printer = Printer::default();
    printer.simple(simple);
    printer.out
}

/// All of a command, for lists of jobs.
pub fn whole_text(command: &Command) -> Vec<u8> {
    let mut printer = Printer::default();
    printer.command(command);
    printer.out
}

/// The commands of `$(…)`, where lines stay lines.
pub fn substitution_text(list: &List) -> Vec<u8> {
    let mut printer = Printer { in_substitution: true, ..Printer::default() };
    printer.inline(list);
    printer.bodies();
    printer.out
}

pub fn and_or_text(item: &AndOr) -> Vec<u8> {
    let mut printer = Printer::default();
    printer.and_or(item);
    printer.out
}

pub fn command_text(command: &Command) -> Vec<u8> {
    match command {
        Command::Compound(compound) => head_text(compound),
        _ => {
            let mut printer = Printer::default();
            printer.command(command);
            printer.out
        }
    }
}

/// What stands for a compound in `BASH_COMMAND` and traces: its head if it has a body, else all of it.
pub fn head_text(compound: &Compound) -> Vec<u8> {
    let words = |keyword: &[u8], name: &[u8], words: &Option<Vec<Word>>| {
        let shown: Vec<Vec<u8>> = match words {
            Some(words) => words.iter().filter(|word| !is_brace_tail(word)).map(word_text).collect(),
            None => vec![b"\"$@\"".to_vec()],
        };
        [keyword, b" ", name, b" in ", &shown.join(&b' ')].concat()
    };
    match &compound.kind {
        CompoundKind::For { name, words: list, .. } => words(b"for", name, list),
        CompoundKind::Select { name, words: list, .. } => words(b"select", name, list),
        CompoundKind::Case { word, .. } => [b"case ", word_text(word).as_slice(), b" in "].concat(),
        _ => {
            let mut printer = Printer::default();
            printer.kind(compound);
            printer.out
        }
    }
}

/// `name () …`, as `declare -f` prints it.
pub fn function_text(function: &Function) -> Vec<u8> {
    let mut text = [&function.name, b" () \n".as_slice()].concat();
    text.extend(function_body(function));
    text.push(b'\n');
    text
}

pub fn function_body(function: &Function) -> Vec<u8> {
    let mut printer = Printer { in_function: true, ..Printer::default() };
    printer.function_body(&function.body);
    printer.out
}

#[derive(Default)]
struct Printer {
    out: Vec<u8>,
    indent: usize,
    /// Only in a function do the commands of a group stand one below another.
    in_function: bool,
    /// Here-documents whose bodies come when the line ends.
    documents: Vec<Rc<HereDocument>>,
    /// A body was printed, after which bash leaves out the next semicolon between commands.
    had_body: bool,
    /// In `$(…)`, where commands on lines of their own stay so.
    in_substitution: bool,
}

impl Printer {
    fn text(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
    }

    fn newline(&mut self) {
        self.out.push(b'\n');
        self.out.extend(std::iter::repeat_n(b' ', self.indent));
    }

    /// A semicolon, unless what is there ends in a way that needs none.
    fn semicolon(&mut self) {
        self.bodies();
        if !self.out.ends_with(b"\n") && !self.out.ends_with(b"&") {
            self.out.push(b';');
        }
    }

    /// A semicolon between two commands.
    fn separator(&mut self) {
        if !self.documents.is_empty() {
            self.text(if self.in_function || self.in_substitution { b"" } else { b";" });
            self.bodies();
        } else if !std::mem::take(&mut self.had_body) {
            self.out.push(b';');
        }
    }

    /// The bodies of here-documents so far; says whether there were any.
    fn bodies(&mut self) -> bool {
        let documents = std::mem::take(&mut self.documents);
        for document in &documents {
            self.out.push(b'\n');
            let body = document.body.get().map(word_text).unwrap_or_default();
            self.out.extend(body);
            self.out.extend_from_slice(&document.delimiter);
        }
        if !documents.is_empty() {
            self.out.push(b'\n');
            self.had_body = true;
        }
        !documents.is_empty()
    }

    /// Commands one below another.
    fn list(&mut self, list: &List) {
        for (at, item) in list.items.iter().enumerate() {
            self.and_or(item);
            if at + 1 == list.items.len() {
                break;
            }
            if item.background {
                self.out.push(b' ');
                continue;
            }
            if self.in_substitution && item.ends_line {
                self.line_end();
                continue;
            }
            self.separator();
            self.newline();
        }
    }

    /// The end of a line that was one.
    fn line_end(&mut self) {
        if !self.bodies() {
            self.out.push(b'\n');
        }
    }

    /// Commands on one line, as conditions are.
    fn inline(&mut self, list: &List) {
        if self.in_function {
            return self.list(list);
        }
        for (at, item) in list.items.iter().enumerate() {
            self.and_or(item);
            if at + 1 == list.items.len() {
                break;
            }
            if self.in_substitution && item.ends_line {
                self.line_end();
                continue;
            }
            if !item.background {
                self.separator();
            }
            self.out.push(b' ');
        }
    }

    /// A body one level in, every command of it ended.
    fn body(&mut self, list: &List) {
        self.indent += 4;
        self.newline();
        self.list(list);
        self.semicolon();
        self.indent -= 4;
        self.newline();
    }

    fn and_or(&mut self, item: &AndOr) {
        self.pipeline(&item.first);
        for (connector, pipeline) in &item.rest {
            self.text(if *connector == Connector::And { b" && " } else { b" || " });
            if self.bodies() {
                self.text(b" ");
                self.had_body = true;
            }
            self.pipeline(pipeline);
        }
        if item.background {
            self.text(b" &");
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        match pipeline.timed {
            Some(Timing::Bash) => self.text(b"time "),
            Some(Timing::Posix) => self.text(b"time -p "),
            None => {}
        }
        if pipeline.negated {
            self.text(b"! ");
        }
        for (at, stage) in pipeline.stages.iter().enumerate() {
            if at > 0 {
                self.text(b" |");
                if self.bodies() {
                    self.text(b" ");
                    self.had_body = true;
                }
                self.text(b" ");
            }
            self.command(stage);
        }
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Compound(compound) => self.compound(compound),
            Command::Function(function) => {
                self.text(b"function ");
                self.text(&function.name);
                self.text(b" () ");
                self.newline();
                self.function_body(&function.body);
            }
            Command::Coproc(coproc) => {
                self.text(b"coproc ");
                self.text(&coproc.name);
                self.text(b" ");
                self.command(&coproc.body);
            }
        }
    }

    fn function_body(&mut self, body: &Compound) {
        self.text(b"{ ");
        self.indent += 4;
        self.newline();
        match &body.kind {
            CompoundKind::Group(list) => {
                self.list(list);
                self.bodies();
            }
            _ => self.compound(body),
        }
        self.indent -= 4;
        self.newline();
        self.text(b"}");
        if matches!(body.kind, CompoundKind::Group(_)) {
            self.redirects(&body.redirects);
        }
    }

    fn compound(&mut self, compound: &Compound) {
        self.kind(compound);
        self.redirects(&compound.redirects);
    }

    fn kind(&mut self, compound: &Compound) {
        match &compound.kind {
            CompoundKind::Group(list) if !self.in_function => {
                self.text(b"{ ");
                self.inline(list);
                self.semicolon();
                self.text(b" }");
            }
            CompoundKind::Group(list) => {
                self.text(b"{ ");
                self.indent += 4;
                self.newline();
                self.list(list);
                self.bodies();
                self.indent -= 4;
                self.newline();
                self.text(b"}");
            }
            CompoundKind::Subshell(list) => {
                self.text(b"( ");
                if self.in_function {
                    self.list(list);
                } else {
                    self.inline(list);
                }
                self.bodies();
                self.text(b" )");
            }
            CompoundKind::If { arms, otherwise } => self.if_arms(arms, otherwise.as_ref()),
            CompoundKind::While { condition, body, until } => {
                self.text(if *until { b"until " } else { b"while " });
                self.inline(condition);
                self.semicolon();
                self.text(b" do");
                self.body(body);
                self.text(b"done");
            }
            CompoundKind::For { name, words, body } => self.for_words(b"for ", name, words.as_deref(), body),
            CompoundKind::Select { name, words, body } => {
                self.for_words(b"select ", name, words.as_deref(), body)
            }
            CompoundKind::ArithFor { first, condition, step, body } => {
                let part = |arith: &Option<Arith>| arith.as_ref().map_or_else(|| b"1".to_vec(), arith_text);
                let head =
                    [b"((", part(first).as_slice(), b"; ", &part(condition), b"; ", &part(step), b"))"]
                        .concat();
                self.text(b"for ");
                self.text(&head);
                self.newline();
                self.text(b"do");
                self.body(body);
                self.text(b"done");
            }
            CompoundKind::Case { word, arms } => self.case(word, arms),
            CompoundKind::Arith(arith) => {
                let text = [b"((", arith_raw(arith).as_slice(), b"))"].concat();
                self.text(&text);
            }
            CompoundKind::Condition(condition) => {
                self.text(b"[[ ");
                self.condition(condition);
                self.text(b" ]]");
            }
        }
    }

    fn if_arms(&mut self, arms: &[(List, List)], otherwise: Option<&List>) {
        let Some(((condition, body), rest)) = arms.split_first() else { return };
        self.text(b"if ");
        self.inline(condition);
        self.text(b"; then");
        self.body(body);
        if !rest.is_empty() {
            self.text(b"else");
            self.indent += 4;
            self.newline();
            self.if_arms(rest, otherwise);
            self.semicolon();
            self.indent -= 4;
            self.newline();
        } else if let Some(otherwise) = otherwise {
            self.text(b"else");
            self.body(otherwise);
        }
        self.text(b"fi");
    }

    fn for_words(&mut self, keyword: &[u8], name: &[u8], words: Option<&[Word]>, body: &List) {
        self.text(keyword);
        self.text(name);
        self.text(b" in ");
        match words {
            Some(words) => self.words(words.iter()),
            None => self.text(b"\"$@\""),
        }
        self.text(b";");
        self.newline();
        self.text(b"do");
        self.body(body);
        self.text(b"done");
    }

    fn words<'w>(&mut self, words: impl Iterator<Item = &'w Word>) {
        let shown: Vec<Vec<u8>> = words.filter(|word| !is_brace_tail(word)).map(word_text).collect();
        self.text(&shown.join(&b' '));
    }

    fn case(&mut self, word: &Word, arms: &[CaseArm]) {
        self.text(b"case ");
        self.text(&word_text(word));
        self.text(b" in ");
        self.indent += 4;
        for arm in arms {
            self.newline();
            let patterns: Vec<Vec<u8>> = arm.patterns.iter().map(word_text).collect();
            self.text(&patterns.join(&b" | "[..]));
            self.text(b")");
            self.indent += 4;
            if arm.body.items.is_empty() {
                self.out.push(b'\n');
            } else {
                self.newline();
            }
            self.list(&arm.body);
            self.bodies();
            self.indent -= 4;
            self.newline();
            self.text(match arm.end {
                CaseEnd::Break => b";;",
                CaseEnd::FallThrough => b";&",
                CaseEnd::Continue => b";;&",
            });
        }
        self.indent -= 4;
        self.newline();
        self.text(b"esac");
    }
}

/// Of the words a brace expression became, only the first is printed, as it was written.
fn is_brace_tail(word: &Word) -> bool {
    word.raw.as_deref() == Some(b"") && !word.pieces.is_empty()
}

fn arith_raw(arith: &Arith) -> Vec<u8> {
    word_text(&arith.word)
}

fn arith_text(arith: &Arith) -> Vec<u8> {
    arith_raw(arith).trim_ascii_start().to_vec()
}

pub fn assignment_text(assignment: &Assignment) -> Vec<u8> {
    let mut text = assignment.name.to_vec();
    if let Some(subscript) = &assignment.subscript {
        text.extend([b"[", word_text(&subscript.word).as_slice(), b"]"].concat());
    }
    text.extend_from_slice(if assignment.append { b"+=" } else { b"=" });
    match &assignment.value {
        AssignedValue::Scalar(word) => text.extend(word_text(word)),
        AssignedValue::Array(elements) => {
            let shown: Vec<Vec<u8>> =
                elements.iter().filter(|e| !is_brace_tail(&e.value)).map(element_text).collect();
            text.push(b'(');
            text.extend(shown.join(&b' '));
            text.push(b')');
        }
    }
    text
}

fn element_text(element: &Element) -> Vec<u8> {
    match &element.subscript {
        Some(subscript) => {
            let operator: &[u8] = if element.append { b"+=" } else { b"=" };
            [b"[", word_text(&subscript.word).as_slice(), b"]", operator, &word_text(&element.value)].concat()
        }
        None => word_text(&element.value),
    }
}
