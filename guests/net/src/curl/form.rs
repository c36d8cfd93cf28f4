//! Fields of `-F`, and a body of many parts.

use super::upload::{Piece, Upload};

/// A field of a form.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: String,
    pub contents: Vec<Content>,
    /// Headers of the part.
    pub headers: Vec<String>,
}

/// What a field holds, with its type and file name if they are given.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    pub source: Source,
    pub kind: Option<String>,
    pub file_name: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    Text(Vec<u8>),
    /// A file that is sent as one.
    File(Vec<u8>),
    /// A file whose content is the value.
    ValueOf(Vec<u8>),
}

/// Reads `NAME=VALUE`, `NAME=@FILE[,FILE…]` or `NAME=<FILE`, with `;type=` and the like behind.
pub fn parse(text: &[u8], literal: bool) -> Option<Field> {
    let at = text.iter().position(|&byte| byte == b'=')?;
    let name = String::from_utf8_lossy(&text[..at]).into_owned();
    let value = &text[at + 1..];
    let mut field = Field { name, contents: Vec::new(), headers: Vec::new() };
    if literal {
        let source = Source::Text(value.to_vec());
        field.contents.push(Content { source, kind: None, file_name: None });
        return Some(field);
    }
    match value {
        [sign @ (b'@' | b'<'), rest @ ..] => {
            let mut rest = rest;
            loop {
                let (word, next) = word(rest, if *sign == b'@' { b",;" } else { b";" });
                let source = if *sign == b'@' { Source::File(word) } else { Source::ValueOf(word) };
                let mut content = Content { source, kind: None, file_name: None };
                rest = attributes(next, &mut content, &mut field.headers, *sign == b'@')?;
                field.contents.push(content);
                match rest {
                    [b',', more @ ..] => rest = more,
                    _ => return Some(field),
                }
            }
        }
        value => {
            let (word, rest) = word(value, b";");
            let mut content = Content { source: Source::Text(word), kind: None, file_name: None };
            attributes(rest, &mut content, &mut field.headers, false)?;
            field.contents.push(content);
            Some(field)
        }
    }
}

/// Takes a word, in quotes or up to one of some bytes; with what follows.
fn word<'a>(text: &'a [u8], ends: &[u8]) -> (Vec<u8>, &'a [u8]) {
    if text.first() == Some(&b'"') {
        let mut word = Vec::new();
        let mut at = 1;
        while at < text.len() {
            match text[at] {
                b'"' => return (word, &text[at + 1..]),
                b'\\' if matches!(text.get(at + 1), Some(b'"' | b'\\')) => {
                    word.push(text[at + 1]);
                    at += 2;
                }
                byte => {
                    word.push(byte);
                    at += 1;
                }
            }
        }
        // Without its end the quote is a letter.
    }
    let end = text.iter().position(|byte| ends.contains(byte)).unwrap_or(text.len());
    (text[..end].to_vec(), &text[end..])
}

/// Takes `;type=…;filename=…;headers=…`; returns what follows.
fn attributes<'a>(
    mut rest: &'a [u8],
    content: &mut Content,
    headers: &mut Vec<String>,
    several: bool,
) -> Option<&'a [u8]> {
    while let [b';', next @ ..] = rest {
        let next = next.trim_ascii_start();
        let at = next.iter().position(|&byte| byte == b'=')?;
        let key = next[..at].to_ascii_lowercase();
        // A type may have parameters of its own: it ends where a known attribute begins.
        let ends: &[u8] = if several { b",;" } else { b";" };
        let (mut value, mut after) = word(&next[at + 1..], ends);
        while key == b"type" && after.first() == Some(&b';') && !starts_attribute(&after[1..]) {
            let (more, behind) = word(&after[1..], ends);
            value.push(b';');
            value.extend_from_slice(&more);
            after = behind;
        }
        let value = String::from_utf8_lossy(&value).into_owned();
        match &key[..] {
            b"type" => content.kind = Some(value),
            b"filename" => content.file_name = Some(value),
            b"headers" => headers.push(value),
            _ => return None,
        }
        rest = after;
    }
    Some(rest)
}

fn starts_attribute(text: &[u8]) -> bool {
    let text = text.trim_ascii_start().to_ascii_lowercase();
    [&b"type="[..], b"filename=", b"headers=", b"encoder="].iter().any(|key| text.starts_with(key))
}

/// Makes the body of a form.
pub fn upload(fields: &[Field], boundary: &str) -> std::io::Result<Upload> {
    let mut pieces = Vec::new();
    for field in fields {
        match &field.contents[..] {
            [content] => part(
                &mut pieces,
                boundary,
                &disposition(Some(&field.name), content),
                content,
                &field.headers,
            )?,
            several => {
                // Many files of one name are parts of a part.
                let inner = format!("{boundary}x");
                pieces.push(Piece::Text(
                    format!(
                        "--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"\r\n\
                         Content-Type: multipart/mixed; boundary={inner}\r\n\r\n",
                        escape(&field.name)
                    )
                    .into_bytes(),
                ));
                for content in several {
                    part(&mut pieces, &inner, &disposition(None, content), content, &field.headers)?;
                }
                pieces.push(Piece::Text(format!("--{inner}--\r\n\r\n").into_bytes()));
            }
        }
    }
    pieces.push(Piece::Text(format!("--{boundary}--\r\n").into_bytes()));
    Ok(Upload::of(pieces, Some(format!("multipart/form-data; boundary={boundary}"))))
}

fn part(
    pieces: &mut Vec<Piece>,
    boundary: &str,
    disposition: &str,
    content: &Content,
    headers: &[String],
) -> std::io::Result<()> {
    let mut head = format!("--{boundary}\r\nContent-Disposition: {disposition}\r\n");
    if let Some(kind) = content.kind.clone().or_else(|| guess(content)) {
        head += &format!("Content-Type: {kind}\r\n");
    }
    for header in headers {
        head += &format!("{header}\r\n");
    }
    head += "\r\n";
    pieces.push(Piece::Text(head.into_bytes()));
    pieces.push(match &content.source {
        Source::Text(text) => Piece::Text(text.clone()),
        Source::File(file) | Source::ValueOf(file) => Piece::file(file)?,
    });
    pieces.push(Piece::Text(b"\r\n".to_vec()));
    Ok(())
}

fn escape(text: &str) -> String {
    text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

fn file_name(content: &Content) -> Option<String> {
    let own = match &content.source {
        Source::File(file) => Some(String::from_utf8_lossy(toolkit::files::base_name(file)).into_owned()),
        _ => None,
    };
    content.file_name.clone().or(own)
}

fn disposition(name: Option<&str>, content: &Content) -> String {
    let kind = match name {
        Some(name) => format!("form-data; name=\"{}\"", escape(name)),
        None => "attachment".to_owned(),
    };
    match file_name(content) {
        Some(file) => format!("{kind}; filename=\"{}\"", escape(&file)),
        None => kind,
    }
}

/// The type of a file by the end of its name.
fn guess(content: &Content) -> Option<String> {
    let name = file_name(content)?.to_ascii_lowercase();
    let known = [
        (".gif", "image/gif"),
        (".jpg", "image/jpeg"),
        (".jpeg", "image/jpeg"),
        (".png", "image/png"),
        (".svg", "image/svg+xml"),
        (".txt", "text/plain"),
        (".htm", "text/html"),
        (".html", "text/html"),
        (".pdf", "application/pdf"),
        (".xml", "application/xml"),
    ];
    let found = known.iter().find(|(end, _)| name.ends_with(end)).map(|(_, kind)| *kind);
    Some(found.unwrap_or("application/octet-stream").to_owned())
}
