//! Dates as `strftime` writes them, in the zone that the exported variable `TZ` names.

use crate::vars::Attrs;
use wardian_clock::{Dialect, When, Zone};

impl crate::shell::Shell {
    /// A moment as the variable `TZ` says that clocks show it.
    pub fn local_time(&self, format: &[u8], seconds: i64) -> Vec<u8> {
        // As in bash, only a variable that programs would see.
        let exported = self.vars.raw(b"TZ").is_some_and(|var| var.attrs.has(Attrs::EXPORT));
        let name = self.text(b"TZ").filter(|_| exported);
        let name = name.map(|name| String::from_utf8_lossy(&name).into_owned());
        wardian_clock::format(format, When::at(seconds), &Zone::of(name.as_deref()), Dialect::C)
    }
}
