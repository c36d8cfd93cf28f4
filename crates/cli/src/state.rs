//! Where the command keeps things of the user's between calls.

use std::path::PathBuf;

/// `wardian` in `$XDG_STATE_HOME`, by default `~/.local/state`.
pub(crate) fn state_directory() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("wardian"))
}
