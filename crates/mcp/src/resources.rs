//! Files as resources: `wardian://SANDBOX/PATH`.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use wardian::FileKind;

use crate::answer::Mistake;
use crate::boxes::Boxes;

/// How resources begin.
const SCHEME: &str = "wardian://";
/// How many files are listed.
const MOST: usize = 500;
/// How much memory a listing may take.
const LISTING: usize = 1 << 20;

/// The one template.
pub(crate) fn template() -> ResourceTemplate {
    ResourceTemplate::new("wardian://{sandbox}/{+path}", "file")
        .with_title("A file in a sandbox")
        .with_description("The file at /PATH in a sandbox; 'main' is the sandbox of calls that name none.")
}

/// The files in the directories where the shells of the sandboxes start.
pub(crate) async fn list(boxes: &Boxes) -> Vec<Resource> {
    let mut found = Vec::new();
    let home = boxes.home();
    for (name, sandbox) in boxes.all() {
        // One with too many files is not listed; its files can be read all the same.
        let Ok(listing) = sandbox.list_within(home, LISTING).await else { continue };
        for (file, _, size) in listing.iter().filter(|(_, kind, _)| *kind == FileKind::File) {
            if found.len() == MOST {
                return found;
            }
            let file = String::from_utf8_lossy(file);
            let path = format!("{}/{file}", home.trim_end_matches('/'));
            found.push(Resource::new(format!("{SCHEME}{name}{}", escaped(&path)), path).with_size(size));
        }
    }
    found
}

/// Reads one.
pub(crate) async fn read(boxes: &Boxes, uri: &str) -> Result<ResourceContents, Mistake> {
    let wrong = || Mistake::new(format!("not a resource: {uri} (they are {SCHEME}SANDBOX/PATH)"));
    let (name, path) = uri.strip_prefix(SCHEME).and_then(|rest| rest.split_once('/')).ok_or_else(wrong)?;
    let mut path = unescaped(path).ok_or_else(wrong)?;
    path.insert(0, b'/');
    if path.contains(&0) {
        return Err(wrong());
    }
    let (sandbox, _) = boxes.get(Some(name)).await?;
    let bytes = sandbox.read_file_within(&path, boxes.longest_resource()).await?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => ResourceContents::text(text, uri),
        Err(error) => ResourceContents::blob(BASE64_STANDARD.encode(error.as_bytes()), uri)
            .with_mime_type("application/octet-stream"),
    })
}

/// A path as part of a URI.
fn escaped(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// The opposite.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
            bytes.push(u8::try_from(digit(0)? * 16 + digit(1)?).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_survives_being_a_uri() {
        for path in ["/home/user/a b%ü?#.txt", "/", "/a/../b"] {
            assert_eq!(unescaped(&escaped(path)).unwrap(), path.as_bytes());
        }
        assert_eq!(unescaped("%4"), None);
        assert_eq!(unescaped("%zz"), None);
    }
}
