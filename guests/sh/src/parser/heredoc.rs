//! Here-documents.

use super::*;

impl Parser {
    /// After `<<` or `<<-`: the delimiter. The body comes with the end of the line.
    pub(super) fn here_document(&mut self, strip_tabs: bool) -> Parsed<RedirectAction> {
        self.blanks();
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
        let mut body = Vec::new();
        let mut continued = false;
        while self.peek().is_some() {
            let rest = &self.src[self.at..];
            let end = rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |at| at + 1);
            let mut line = &rest[..end];
            if document.strip_tabs && !continued {
                let tabs = line.iter().take_while(|&&byte| byte == b'\t').count();
                line = &line[tabs..];
            }
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            let done = !continued && text == document.delimiter;
            let slashes = text.iter().rev().take_while(|&&byte| byte == b'\\').count();
            continued = !document.quoted && slashes % 2 == 1;
            if !done {
                body.extend_from_slice(line);
            }
            self.at += end;
            self.line += 1;
            if done {
                return body;
            }
        }
        let start = document.line;
        let text = format!("warning: here-document at line {start} delimited by end-of-file (wanted `");
        let last = self.line.saturating_sub(1).max(start);
        self.warnings.push((last, [text.as_bytes(), &document.delimiter, b"')"].concat()));
        if !body.is_empty() && !body.ends_with(b"\n") {
            body.push(b'\n');
        }
        body
    }
}
