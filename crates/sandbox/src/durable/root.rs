//! The object that a commit leads to: which parts a value has, and what they are for.

use serde_json::{Value as Json, json};
use wardian_store::{Batch, Hash, Object, StoreError};

/// The format of values.
const FORMAT: u64 = 1;

/// What a part is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// The shape of the system that the files are over.
    Shape,
    /// The index of the groups of inodes.
    Files,
    /// What of the files is in no group.
    Rest,
    /// The index of the history.
    History,
    /// What the kernel keeps for a resident program; the shell has no name.
    Session(String),
    /// The index of its pages.
    Pages(String),
    /// What its memory is mapped over.
    Template(String),
}

impl Role {
    fn word(&self) -> String {
        match self {
            Role::Shape => "shape".to_owned(),
            Role::Files => "files".to_owned(),
            Role::Rest => "rest".to_owned(),
            Role::History => "history".to_owned(),
            Role::Session(name) => format!("session:{name}"),
            Role::Pages(name) => format!("pages:{name}"),
            Role::Template(name) => format!("template:{name}"),
        }
    }

    fn of(word: &str) -> Option<Role> {
        Some(match word.split_once(':') {
            Some(("session", name)) => Role::Session(name.to_owned()),
            Some(("pages", name)) => Role::Pages(name.to_owned()),
            Some(("template", name)) => Role::Template(name.to_owned()),
            Some(_) => return None,
            None => match word {
                "shape" => Role::Shape,
                "files" => Role::Files,
                "rest" => Role::Rest,
                "history" => Role::History,
                _ => return None,
            },
        })
    }
}

/// The root of a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Root {
    pub(crate) parts: Vec<(Role, Hash)>,
    /// The options it was built with.
    pub(crate) options: Json,
    /// The number of its last command.
    pub(crate) last: u64,
}

impl Root {
    pub(crate) fn write(&self, batch: &mut Batch) -> Hash {
        let roles: Vec<String> = self.parts.iter().map(|(role, _)| role.word()).collect();
        let links: Vec<Hash> = self.parts.iter().map(|(_, hash)| *hash).collect();
        let version = env!("CARGO_PKG_VERSION");
        let described = json!({
            "format": FORMAT, "version": version, "roles": roles, "options": self.options, "last": self.last,
        });
        batch.put(&links, described.to_string().as_bytes())
    }

    pub(crate) fn read(object: &Object) -> Result<Root, StoreError> {
        let damaged = |what: &str| StoreError::Malformed(format!("a value: {what}"));
        let described: Json =
            serde_json::from_slice(&object.bytes).map_err(|_| damaged("its description is not readable"))?;
        match described["format"].as_u64() {
            Some(FORMAT) => {}
            Some(found) => {
                let (found, known) = (found as i64, FORMAT as i64);
                return Err(StoreError::Version { found, known });
            }
            None => return Err(damaged("it has no format")),
        }
        let roles = described["roles"].as_array().ok_or_else(|| damaged("it has no parts"))?;
        if roles.len() != object.links.len() {
            return Err(damaged("it has another number of parts than it says"));
        }
        let part = |(role, hash): (&Json, &Hash)| Some((Role::of(role.as_str()?)?, *hash));
        let parts: Option<Vec<_>> = roles.iter().zip(&object.links).map(part).collect();
        Ok(Root {
            parts: parts.ok_or_else(|| damaged("it has a part of an unknown kind"))?,
            options: described["options"].clone(),
            last: described["last"].as_u64().unwrap_or(0),
        })
    }

    pub(crate) fn get(&self, role: &Role) -> Option<Hash> {
        self.parts.iter().find(|(other, _)| other == role).map(|(_, hash)| *hash)
    }

    /// Returns the names of its resident programs.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = &String> {
        self.parts.iter().filter_map(|(role, _)| match role {
            Role::Session(name) => Some(name),
            _ => None,
        })
    }
}
