//! Here-documents.

use super::*;

/// As many as bash takes on a line.
const MAX_PENDING: usize = 16;

impl Parser {
    /// After `<<` or `<<-`: the delimiter. The body comes with the end of the line.
    pub(super) fn here_document(&mut self, strip_tabs: bool) -> Parsed<RedirectAction> {
        self.blanks();
        if self.pending.len() == MAX_PENDING {
            return Err(self.other("maximum here-document count exceeded"));
        }
        let start = self.at;
        let Some(word) = self.word()? else { return Err(self.unexpected()) };
        let raw = &self.src[start..self.at];
        let quoted = raw.iter().any(|byte| matches!(byte, b'\'' | b'"' | b'\\'));
        let delimiter = if quoted { word.as_literal().unwrap_or_else(|| raw.to_vec()) } else { raw.to_vec() };
        let document = Rc::new(HereDocument {
            delimiter,
            quoted,
            strip_tabs,
            line: self.line,
            ..HereDocument::default()
        });
        self.pending.push(document.clone());
        Ok(RedirectAction::HereDocument(document))
    }

    /// Reads the bodies announced on the line that just ended.
    pub(super) fn read_pending_bodies(&mut self) -> Parsed<()> {
        for document in std::mem::take(&mut self.pending) {
            let body = self.here_body(&document);
            let word = if document.quoted {
                Word { pieces: vec![Piece::Quoted(body)], raw: None }
            } else {
                let mut inner = Parser::new(body, self.line);
                inner.dialect = self.dialect.clone();
                inner.depth = self.depth;
                inner.here_word()?
            };
            let _ = document.body.set(word);
        }
        Ok(())
    }

    /// The lines up to the delimiter, which the end of the script stands in for.
    fn here_body(&mut self, document: &HereDocument) -> Vec<u8> {
        let start = self.line.saturating_sub(1).max(document.line);
        let mut body = Vec::new();
        while self.peek().is_some() {
            if self.substitution_ends_document(document) {
                self.warn_of_end(document, start, self.line);
                return body;
            }
            // The delimiter may begin with a tab itself.
            let rest = &self.src[self.at..];
            let whole = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            let unstripped = document.strip_tabs && rest[..whole] == document.delimiter;
            let line = self.here_line(document);
            if unstripped {
                return body;
            }
            if line.strip_suffix(b"\n").unwrap_or(&line) == document.delimiter {
                return body;
            }
            body.extend(line);
        }
        self.warn_of_end(document, start, self.line.saturating_sub(1).max(start));
        if !body.is_empty() && !body.ends_with(b"\n") {
            body.push(b'\n');
        }
        body
    }

    /// A line of a body, with those that continue it unless the delimiter was quoted.
    fn here_line(&mut self, document: &HereDocument) -> Vec<u8> {
        let mut line = Vec::new();
        loop {
            self.peek();
            let rest = &self.src[self.at..];
            let end = rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |at| at + 1);
            let mut part = &rest[..end];
            if document.strip_tabs && line.is_empty() {
                let tabs = part.iter().take_while(|&&byte| byte == b'\t').count();
                part = &part[tabs..];
            }
            self.at += end;
            self.line += 1;
            line.extend_from_slice(part);
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            let slashes = text.iter().rev().take_while(|&&byte| byte == b'\\').count();
            let continued = !document.quoted && slashes % 2 == 1 && line.ends_with(b"\n");
            if !continued || self.peek().is_none() {
                return line;
            }
            line.truncate(line.len() - 2);
        }
    }

    /// In `$(…)` the delimiter may be followed by the parenthesis, though bash does not like it.
    fn substitution_ends_document(&mut self, document: &HereDocument) -> bool {
        if !self.in_substitution {
            return false;
        }
        let rest = &self.src[self.at..];
        let end = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        let tabs = rest[..end].iter().take_while(|&&byte| document.strip_tabs && byte == b'\t').count();
        let Some(after) = rest[tabs..end].strip_prefix(document.delimiter.as_slice()) else { return false };
        let ends = after.contains(&b')');
        if ends {
            self.at += tabs + document.delimiter.len();
        }
        ends
    }

    fn warn_of_end(&mut self, document: &HereDocument, start: u32, last: u32) {
        let text = format!("warning: here-document at line {start} delimited by end-of-file (wanted `");
        self.warnings.push((last, [text.as_bytes(), &document.delimiter, b"')"].concat()));
    }
}
