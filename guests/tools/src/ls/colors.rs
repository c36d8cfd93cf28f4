//! The colours of names: those of `LS_COLORS` over the usual ones.

use super::entry::Entry;
use std::collections::HashMap;
use wardian_abi::Stat;

pub struct Colors {
    by_kind: HashMap<String, String>,
    /// By the end of the name; the last that fits counts.
    by_ending: Vec<(Vec<u8>, String)>,
}

const USUAL: &str = "di=01;34:ln=01;36:pi=33:so=01;35:bd=01;33:cd=01;33:ex=01;32:do=01;35:su=37;41:sg=30;43:tw=30;42:ow=34;42:st=37;44";

impl Colors {
    pub fn new() -> Colors {
        let mut colors = Colors { by_kind: HashMap::new(), by_ending: Vec::new() };
        colors.add(USUAL);
        colors.add(&std::env::var("LS_COLORS").unwrap_or_default());
        colors
    }

    fn add(&mut self, list: &str) {
        for (key, color) in list.split(':').filter_map(|pair| pair.split_once('=')) {
            match key.strip_prefix('*') {
                Some(ending) => self.by_ending.push((ending.as_bytes().to_vec(), color.to_owned())),
                None => drop(self.by_kind.insert(key.to_owned(), color.to_owned())),
            }
        }
    }

    /// The colour of a file of a listing.
    pub fn of(&self, entry: &Entry) -> Option<&str> {
        let target = entry.target.as_ref().map(|target| target.stat);
        match (target, entry.stat) {
            (Some(None), _) => self.get("or").or_else(|| self.get("ln")),
            (Some(Some(target)), _) if self.get("ln") == Some("target") => self.of_file(&entry.name, &target),
            (_, Some(stat)) => self.of_file(&entry.name, &stat),
            (_, None) => self.get("mi"),
        }
    }

    /// The colour of what a link points to.
    pub fn of_target(&self, entry: &Entry) -> Option<&str> {
        let target = entry.target.as_ref()?;
        match target.stat {
            Some(stat) => self.of_file(&target.name, &stat),
            None => self.get("mi").or_else(|| self.get("or")),
        }
    }

    fn of_file(&self, name: &[u8], stat: &Stat) -> Option<&str> {
        let has = |bits: u32| stat.mode & bits != 0;
        let kind = match stat.kind() {
            0o040_000 if stat.mode & 0o1002 == 0o1002 => "tw",
            0o040_000 if has(0o002) => "ow",
            0o040_000 if has(0o1000) => "st",
            0o040_000 => "di",
            0o120_000 => "ln",
            0o010_000 => "pi",
            0o140_000 => "so",
            0o020_000 => "cd",
            0o060_000 => "bd",
            _ if has(0o4000) => "su",
            _ if has(0o2000) => "sg",
            _ if has(0o111) => "ex",
            _ => {
                let ending = self.by_ending.iter().rev().find(|(ending, _)| name.ends_with(ending));
                return ending.map(|(_, color)| color.as_str()).or_else(|| self.get("fi"));
            }
        };
        self.get(kind)
    }

    fn get(&self, kind: &str) -> Option<&str> {
        self.by_kind.get(kind).map(String::as_str).filter(|color| !matches!(*color, "" | "0" | "00"))
    }
}
