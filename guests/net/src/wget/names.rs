//! What the file of a URL is called.

use super::options::Options;
use crate::http::url::{Url, decode};

/// Returns the path of a URL's file, below the prefix.
pub fn path_for(url: &Url, options: &Options, given: Option<&str>) -> Vec<u8> {
    let mut parts: Vec<String> = Vec::new();
    let tree =
        (options.recursive || options.requisites || options.force_directories) && !options.no_directories;
    if tree {
        if !options.no_host_directories {
            let standard = if url.scheme == "https" { 443 } else { 80 };
            parts.push(match url.port {
                Some(port) if port != standard => format!("{}:{port}", url.host),
                _ => url.host.clone(),
            });
        }
        let directories: Vec<&str> = url.path.split('/').skip(1).collect();
        let directories = &directories[..directories.len().saturating_sub(1)];
        parts.extend(directories.iter().skip(options.cut_dirs).map(|part| safe(&decode(part))));
    }
    let last = url.path.rsplit('/').next().unwrap_or_default();
    let mut name = match (given, last) {
        (Some(given), _) => given.to_owned(),
        (None, "") => "index.html".to_owned(),
        (None, last) => decode(last),
    };
    if let Some(query) = url.query.as_ref().filter(|_| given.is_none()) {
        name += &format!("?{query}");
    }
    parts.push(safe(&name));
    parts.retain(|part| !part.is_empty());
    let path = parts.join("/");
    match options.prefix.is_empty() {
        true => path.into_bytes(),
        false => toolkit::files::join(&options.prefix, path.as_bytes()),
    }
}

/// Takes out of a name what would lead elsewhere or confuse a terminal.
fn safe(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        match letter {
            '/' => text += "%2F",
            letter if letter.is_control() => {
                let mut bytes = [0; 4];
                letter.encode_utf8(&mut bytes).bytes().for_each(|byte| text += &format!("%{byte:02X}"));
            }
            letter => text.push(letter),
        }
    }
    match text.as_str() {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        _ if text.len() > 240 => text.chars().take(200).collect(),
        _ => text,
    }
}

/// Returns the first of `NAME`, `NAME.1`, `NAME.2`… that is not there.
pub fn unused(path: Vec<u8>) -> Vec<u8> {
    let exists = |path: &[u8]| wardian_abi::stat(wardian_abi::Dir::CWD, path, false).is_ok();
    if !exists(&path) {
        return path;
    }
    for number in 1..100_000 {
        let mut other = path.clone();
        other.extend_from_slice(format!(".{number}").as_bytes());
        if !exists(&other) {
            return other;
        }
    }
    path
}
