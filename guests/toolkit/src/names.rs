//! Users and groups by name, from `/etc/passwd` and `/etc/group`.

use std::collections::HashMap;

/// One of the two files.
pub struct Names(HashMap<u32, String>);

impl Names {
    pub fn users() -> Names {
        Self::read("/etc/passwd")
    }

    pub fn groups() -> Names {
        Self::read("/etc/group")
    }

    /// Nobody has a name.
    pub fn none() -> Names {
        Names(HashMap::new())
    }

    fn read(path: &str) -> Names {
        // Without the file there are no names, and numbers are shown.
        let text = std::fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let mut names = HashMap::new();
        for line in text.lines() {
            let mut fields = line.split(':');
            if let (Some(name), Some(id)) = (fields.next(), fields.nth(1).and_then(|id| id.parse().ok())) {
                names.entry(id).or_insert_with(|| name.to_owned());
            }
        }
        Names(names)
    }

    /// The name of a number.
    pub fn get(&self, id: u32) -> Option<&str> {
        self.0.get(&id).map(String::as_str)
    }

    /// The name, or the number where there is none.
    pub fn show(&self, id: u32) -> String {
        self.get(id).map_or_else(|| id.to_string(), str::to_owned)
    }

    /// The number of a name.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.0.iter().find(|(_, known)| *known == name).map(|(id, _)| *id)
    }
}
