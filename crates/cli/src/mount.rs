//! Mounts on the command line: `HOST:PATH[:ro|rw|overlay]`.

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
    fn nonsense_is_refused() {
        for text in ["", "/src", ":/src", ".:src", ".:/src:rx", ".:"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
