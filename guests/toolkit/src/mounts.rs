//! What is mounted where, from `/proc/mounts`.

use super::files;

/// One line of `/proc/mounts`.
pub struct Mounted {
    pub source: String,
    pub point: Vec<u8>,
    pub kind: String,
}

/// Everything mounted, in the order it was.
pub fn all() -> Vec<Mounted> {
    let text = std::fs::read("/proc/mounts").unwrap_or_default();
    text.split(|&byte| byte == b'\n').filter_map(parse).collect()
}

fn parse(line: &[u8]) -> Option<Mounted> {
    let mut fields = line.split(|&byte| byte == b' ');
    let mut field = || fields.next().map(unescape);
    let (source, point, kind) = (field()?, field()?, field()?);
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Some(Mounted { source: text(source), point, kind: text(kind) })
}

/// Blanks and backslashes are written in octal.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let code = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(|_| byte == b'\\') {
            Some(value) => {
                plain.push(value);
                rest = &after[3..];
            }
            None => plain.push(byte),
        }
    }
    plain
}

/// The mount a file is on: the last of those whose point is the longest above it.
pub fn of<'a>(file: &[u8], mounted: &'a [Mounted]) -> Option<&'a Mounted> {
    let whole = std::fs::canonicalize(files::path(file)).ok()?;
    let above = mounted.iter().filter(|mount| whole.starts_with(files::path(&mount.point)));
    above.max_by_key(|mount| mount.point.len())
}
