//! Uploads in parts (`multipart/form-data`) and compressed ones, once they are there as a whole.

use std::ops::Range;

use memchr::memmem;

/// A part: the name of its file, and where in the body its content is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) file: Option<String>,
    pub(super) content: Range<usize>,
}

/// How many parts are read.
const PARTS: usize = 10_000;
/// The longest head of a part.
const HEAD: usize = 16 << 10;

/// Returns what separates the parts, if a content type says that there are some.
pub(super) fn boundary(content_type: &str) -> Option<String> {
    let (kind, rest) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let value = rest.split(';').find_map(|field| field.trim().strip_prefix("boundary="))?;
    let value = value.trim_matches('"');
    (1..=70).contains(&value.len()).then(|| value.to_owned())
}

/// Returns the parts that are files.
pub(super) fn parts(body: &[u8], boundary: &str) -> Result<Vec<Part>, &'static str> {
    let separator = format!("\r\n--{boundary}");
    let mut rest =
        body.strip_prefix(&separator.as_bytes()[2..]).ok_or("the body does not begin with its boundary")?;
    let mut parts = Vec::new();
    loop {
        if rest.starts_with(b"--") {
            return Ok(parts);
        }
        rest = rest.strip_prefix(b"\r\n").ok_or("a boundary has no end of line")?;
        let head = memmem::find(&rest[..rest.len().min(HEAD)], b"\r\n\r\n");
        let head = head.ok_or("a part has no head, or a long one")?;
        let (fields, after) = (&rest[..head], &rest[head + 4..]);
        let end = memmem::find(after, separator.as_bytes()).ok_or("a part has no end")?;
        if let Some(file) = file_name(fields) {
            let start = body.len() - after.len();
            parts.push(Part { file, content: start..start + end });
        }
        if parts.len() > PARTS {
            return Err("there are too many parts");
        }
        rest = &after[end + separator.len()..];
    }
}

/// The name of a part's file, if it has one; nothing if it is no file.
fn file_name(head: &[u8]) -> Option<Option<String>> {
    let head = String::from_utf8_lossy(head);
    let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with("content-disposition:"))?;
    let is_file = line.contains("name=\"file\"") || line.contains("filename=");
    let start = line.find("filename=\"").map(|at| at + "filename=\"".len());
    let name = start.and_then(|start| {
        let rest = &line[start..];
        // Quotes in a name are escaped in one of two ways.
        let end = rest.char_indices().find(|(at, letter)| *letter == '"' && !rest[..*at].ends_with('\\'));
        let name = &rest[..end?.0];
        Some(name.replace("%22", "\"").replace("\\\"", "\"").replace("%0D", "\r").replace("%0A", "\n"))
    });
    is_file.then_some(name)
}

/// Returns how many bytes gzip says that it has, decompressed.
pub(super) fn gunzipped_length(bytes: &[u8]) -> Option<usize> {
    Some(u32::from_le_bytes(*bytes.last_chunk::<4>()?) as usize)
}

/// Decompresses gzip; nothing if it is not that, or would have more than `most` bytes.
pub(super) fn gunzip(bytes: &[u8], most: usize) -> Option<Vec<u8>> {
    let (head, mut rest) = bytes.split_first_chunk::<10>()?;
    if head[..3] != [0x1f, 0x8b, 8] {
        return None;
    }
    let flags = head[3];
    if flags & 4 != 0 {
        let (length, after) = rest.split_first_chunk::<2>()?;
        rest = after.get(usize::from(u16::from_le_bytes(*length))..)?;
    }
    // A name and a comment, each with a zero at its end.
    for flag in [8, 16] {
        if flags & flag != 0 {
            let end = rest.iter().position(|&byte| byte == 0)?;
            rest = &rest[end + 1..];
        }
    }
    if flags & 2 != 0 {
        rest = rest.get(2..)?;
    }
    let (deflated, length) = rest.split_last_chunk::<4>()?;
    let deflated = &deflated[..deflated.len().checked_sub(4)?];
    let content = miniz_oxide::inflate::decompress_to_vec_with_limit(deflated, most).ok()?;
    (content.len() as u32 == u32::from_le_bytes(*length)).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_apart_where_the_boundary_is_and_nowhere_else() {
        let body = b"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"/tmp/a \\\"b\\\"\"\r\n\
            Content-Type: text/plain\r\n\r\none\r\n--y\r\n--x\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\nno file\
            \r\n--x\r\ncontent-disposition: form-data; name=\"file\"\r\n\r\n\r\n--x--\r\n";
        let file = Some("/tmp/a \"b\"".to_owned());
        let found = parts(body, "x").unwrap();
        let found: Vec<_> = found.into_iter().map(|part| (part.file, &body[part.content])).collect();
        assert_eq!(found, [(file, &b"one\r\n--y"[..]), (None, b"")]);
        for cut in 0..body.len() - 4 {
            assert!(parts(&body[..cut], "x").is_err(), "cut at {cut}");
        }
        assert_eq!(boundary("multipart/form-data; charset=utf-8; boundary=\"x y\""), Some("x y".to_owned()));
        assert_eq!(boundary("application/json"), None);
    }

    #[test]
    fn gzip_is_what_gzip_writes() {
        // printf 'hello\n' | gzip -n
        let hello = [
            0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0xe7, 2, 0, 0x20, 0x30, 0x3a,
            0x36, 6, 0, 0, 0,
        ];
        assert_eq!(gunzip(&hello, 100).as_deref(), Some(&b"hello\n"[..]));
        assert_eq!(gunzip(&hello, 3), None, "too long");
        assert!((0..hello.len()).all(|cut| gunzip(&hello[..cut], 100).is_none()));
    }
}
