//! Mounts on the command line: `HOST:PATH[:ro|rw|overlay]`, and from where clients of a server may mount: `DIR[:ro|rw]`.

use std::path::PathBuf;

use wardian::MountMode;

/// A host directory and where it is to appear.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mount {
    pub(crate) host: PathBuf,
    pub(crate) path: String,
    pub(crate) mode: MountMode,
}

/// Reads a mount. Without a mode it is read-only.
pub(crate) fn parse(text: &str) -> Result<Mount, String> {
    let wrong = || format!("not a mount: '{text}' (try ./src:/src:ro, with ro, rw or overlay)");
    let (rest, mode) = match text.rsplit_once(':') {
        Some((rest, "ro")) => (rest, MountMode::ReadOnly),
        Some((rest, "rw")) => (rest, MountMode::ReadWrite),
        Some((rest, "overlay")) => (rest, MountMode::Overlay),
        _ => (text, MountMode::ReadOnly),
    };
    let (host, path) = rest.rsplit_once(':').ok_or_else(wrong)?;
    if host.is_empty() || !path.starts_with('/') {
        return Err(wrong());
    }
    if path.bytes().all(|byte| byte == b'/') {
        return Err("cannot mount at /: it is the sandbox's root (use a directory such as /src)".to_owned());
    }
    Ok(Mount { host: host.into(), path: path.to_owned(), mode })
}

/// A directory below which clients of a server may mount others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Root {
    pub(crate) host: PathBuf,
    pub(crate) writable: bool,
}

/// Reads one. Without a mode it can be mounted in any.
pub(crate) fn parse_root(text: &str) -> Result<Root, String> {
    let (host, writable) = match text.rsplit_once(':') {
        Some((host, "ro")) => (host, false),
        Some((host, "rw")) => (host, true),
        Some((_, "overlay")) => return Err("overlay is for :ro directories, too: leave it out".to_owned()),
        _ => (text, true),
    };
    if host.is_empty() {
        return Err(format!("not a directory: '{text}' (try ./src or ./src:ro)"));
    }
    Ok(Root { host: host.into(), writable })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes() {
        let mount = |mode| Mount { host: "./a:b".into(), path: "/src".to_owned(), mode };
        assert_eq!(parse("./a:b:/src"), Ok(mount(MountMode::ReadOnly)));
        assert_eq!(parse("./a:b:/src:ro"), Ok(mount(MountMode::ReadOnly)));
        assert_eq!(parse("./a:b:/src:rw"), Ok(mount(MountMode::ReadWrite)));
        assert_eq!(parse("./a:b:/src:overlay"), Ok(mount(MountMode::Overlay)));
    }

    #[test]
    fn roots_can_be_for_reading() {
        let root = |host: &str, writable| Ok(Root { host: host.into(), writable });
        assert_eq!(parse_root("./a:b"), root("./a:b", true));
        assert_eq!(parse_root("./a:b:rw"), root("./a:b", true));
        assert_eq!(parse_root("/a:ro"), root("/a", false));
        assert!(parse_root(":ro").is_err() && parse_root("").is_err() && parse_root("/a:overlay").is_err());
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "/src", ":/src", ".:src", ".:/src:rx", ".:"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
