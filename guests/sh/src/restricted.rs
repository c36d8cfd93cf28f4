//! The restricted shell: `rbash`, `bash -r`, `set -r`. What leads out of a given set of commands is refused.

use crate::shell::Shell;
use crate::vars::Attrs;

/// Variables that decide which programs are run.
const FROZEN: [&[u8]; 5] = [b"PATH", b"SHELL", b"HISTFILE", b"ENV", b"BASH_ENV"];

impl Shell {
    /// Begins to be restricted; there is no way back.
    pub fn restrict(&mut self) {
        self.restricted = true;
        let version = self.vars.path_version;
        for name in FROZEN {
            self.vars.entry(name).attrs.set(Attrs::READONLY, true);
        }
        // The path is as it was, and so is what was found by it.
        self.vars.path_version = version;
    }

    /// Whether a command's name is refused; the message is out then.
    pub fn refuses_name(&self, name: &[u8]) -> bool {
        let refused = self.restricted && name.contains(&b'/');
        if refused {
            self.complain_parts(&[name, b": restricted: cannot specify `/' in command names"]);
        }
        refused
    }

    /// Whether writing to a file is refused.
    pub fn refuses_output(&self, path: &[u8]) -> bool {
        if self.restricted {
            self.complain_parts(&[path, b": restricted: cannot redirect output"]);
        }
        self.restricted
    }

    /// Whether a builtin is refused something: `what` is nothing, or an operand with a slash in it.
    pub fn refuses(&self, builtin: &[u8], what: &[u8]) -> bool {
        if self.restricted {
            let gap: &[u8] = if what.is_empty() { b"" } else { b": " };
            let name: &[u8] = if builtin.is_empty() { b"" } else { b": " };
            self.complain_parts(&[builtin, name, what, gap, b"restricted"]);
        }
        self.restricted
    }
}
