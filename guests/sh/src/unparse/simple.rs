//! Conditions, simple commands and redirections.

use super::{Printer, assignment_text, is_brace_tail, word_text};
use crate::ast::*;

impl Printer {
    pub(super) fn condition(&mut self, condition: &Condition) {
        match condition {
            Condition::Not(inner) => {
                self.text(b"! ");
                self.condition(inner);
            }
            Condition::And(left, right) => {
                self.condition(left);
                self.text(b" && ");
                self.condition(right);
            }
            Condition::Or(left, right) => {
                self.condition(left);
                self.text(b" || ");
                self.condition(right);
            }
            Condition::Group(inner) => {
                self.text(b"( ");
                self.condition(inner);
                self.text(b" )");
            }
            Condition::Unary(operator, word) => {
                self.text(operator);
                self.text(b" ");
                self.text(&word_text(word));
            }
            Condition::Binary(left, operator, right) => {
                let text = [word_text(left), operator.clone(), word_text(right)].join(&b' ');
                self.text(&text);
            }
            Condition::Word(word) => {
                self.text(b"-n ");
                self.text(&word_text(word));
            }
        }
    }

    pub(super) fn simple(&mut self, simple: &Simple) {
        let mut parts: Vec<Vec<u8>> = simple.assignments.iter().map(assignment_text).collect();
        for word in &simple.words {
            match word {
                Arg::Word(word) if is_brace_tail(word) => {}
                Arg::Word(word) => parts.push(word_text(word)),
                Arg::Assignment(assignment) => parts.push(assignment_text(assignment)),
            }
        }
        let empty = parts.is_empty();
        self.text(&parts.join(&b' '));
        let start = self.out.len();
        self.redirects(&simple.redirects);
        if empty && self.out.get(start) == Some(&b' ') {
            self.out.remove(start);
        }
    }

    pub(super) fn redirects(&mut self, redirects: &[Redirect]) {
        if !redirects.is_empty() {
            self.had_body = false;
        }
        for redirect in redirects {
            self.out.push(b' ');
            self.redirect(redirect);
        }
    }

    fn redirect(&mut self, redirect: &Redirect) {
        use RedirectAction::*;
        let fd = match &redirect.fd {
            RedirectFd::Default => Vec::new(),
            RedirectFd::Number(fd) => fd.to_string().into_bytes(),
            RedirectFd::Variable(name) => [b"{", name.as_ref(), b"}"].concat(),
        };
        let (operator, word): (&[u8], &Word) = match &redirect.action {
            Read(word) => (b"< ", word),
            Write(word) => (b"> ", word),
            Clobber(word) => (b">| ", word),
            Append(word) => (b">> ", word),
            ReadWrite(word) => (b"<> ", word),
            WriteBoth(word) => (b"&> ", word),
            AppendBoth(word) => (b"&>> ", word),
            HereString(word) => (b"<<< ", word),
            DupInput(word) | DupOutput(word) => {
                let input = matches!(redirect.action, DupInput(_));
                let default: &[u8] = if input { b"0" } else { b"1" };
                let fd = if fd.is_empty() { default } else { &fd };
                let input = input && word.as_plain() != Some(b"-");
                let operator: &[u8] = if input { b"<&" } else { b">&" };
                let text = [fd, operator, &word_text(word)].concat();
                return self.text(&text);
            }
            HereDocument(document) => {
                let operator: &[u8] = if document.strip_tabs { b"<<-" } else { b"<<" };
                let quote: &[u8] = if document.quoted { b"'" } else { b"" };
                let text = [&fd, operator, quote, &document.delimiter, quote].concat();
                self.documents.push(document.clone());
                return self.text(&text);
            }
        };
        let fd = match redirect.action {
            ReadWrite(_) if fd.is_empty() => b"0".to_vec(),
            _ => fd,
        };
        // bash drops the number that an operator implies.
        let implied = matches!(
            (&redirect.action, fd.as_slice()),
            (Read(_) | HereString(_), b"0") | (Write(_) | Append(_), b"1")
        );
        let fd = if implied { Vec::new() } else { fd };
        let text = [fd.as_slice(), operator, &word_text(word)].concat();
        self.text(&text);
    }
}
