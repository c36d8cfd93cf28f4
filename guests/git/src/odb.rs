//! All objects of a repository: loose ones, packs, and those of other repositories it borrows from.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use crate::fail::{Fail, Res, fatal};
use crate::files::{self, join};
use crate::hash::{self, Oid};
use crate::loose;
use crate::object::{self, Commit, Entry, Kind, Object, Tag};
use crate::pack::Pack;

/// A chain of repositories that borrow from each other ends here.
const MOST_PLACES: usize = 32;
/// So many commits are remembered; a history has many more walks than that has commits.
const REMEMBERED: usize = 200_000;

pub struct Odb {
    /// Directories of objects, the repository's own first.
    places: Vec<Vec<u8>>,
    packs: OnceCell<Vec<Pack>>,
    commits: RefCell<HashMap<Oid, Rc<Commit>>>,
    abbreviation: OnceCell<usize>,
}

impl Odb {
    pub fn open(objects: &[u8]) -> Odb {
        let mut places = vec![objects.to_vec()];
        let mut at = 0;
        while at < places.len() && places.len() < MOST_PLACES {
            let list = files::read(&join(&places[at], b"info/alternates")).unwrap_or_default();
            for line in list.split(|&byte| byte == b'\n').filter(|line| !line.is_empty() && line[0] != b'#') {
                let place = if line[0] == b'/' { line.to_vec() } else { join(&places[at], line) };
                if !places.contains(&place) {
                    places.push(place);
                }
            }
            at += 1;
        }
        let (packs, commits) = (OnceCell::new(), RefCell::default());
        Odb { places, packs, commits, abbreviation: OnceCell::new() }
    }

    /// The directory that new objects are put in.
    pub fn directory(&self) -> &[u8] {
        &self.places[0]
    }

    fn packs(&self) -> &[Pack] {
        self.packs.get_or_init(|| {
            let mut packs = Vec::new();
            for place in &self.places {
                let directory = join(place, b"pack");
                let mut names = files::names_in(&directory).unwrap_or_default();
                names.retain(|name| name.ends_with(b".idx"));
                names.sort();
                for name in names {
                    match Pack::open(&join(&directory, &name)) {
                        Ok(pack) => packs.push(pack),
                        // The other packs may have all that is asked for.
                        Err(Fail::Fatal(text)) => crate::out::complain(format!("error: {text}")),
                        Err(_) => {}
                    }
                }
            }
            packs
        })
    }

    pub fn find(&self, oid: &Oid) -> Res<Option<Object>> {
        self.find_below(oid, 0)
    }

    fn find_below(&self, oid: &Oid, depth: usize) -> Res<Option<Object>> {
        if depth > 64 {
            fatal!("object {oid} is made of too many others");
        }
        if oid.is_null() {
            return Ok(None);
        }
        for place in &self.places {
            if let Some(object) = loose::read(place, oid)? {
                return Ok(Some(object));
            }
        }
        for pack in self.packs() {
            if let Some(offset) = pack.find(oid) {
                let elsewhere = |base: &Oid| match self.find_below(base, depth + 1)? {
                    Some(object) => Ok(object),
                    None => Err(Fail::Fatal(format!("delta base {base} is missing"))),
                };
                return pack.read(offset, &elsewhere).map(Some);
            }
        }
        if *oid == EMPTY_TREE {
            return Ok(Some(Object { kind: Kind::Tree, data: Vec::new() }));
        }
        Ok(None)
    }

    pub fn read(&self, oid: &Oid) -> Res<Object> {
        match self.find(oid)? {
            Some(object) => Ok(object),
            None => Err(Fail::Fatal(format!("unable to read {oid}"))),
        }
    }

    pub fn has(&self, oid: &Oid) -> bool {
        self.places.iter().any(|place| files::exists(&loose::place(place, oid)))
            || self.packs().iter().any(|pack| pack.find(oid).is_some())
            || *oid == EMPTY_TREE
    }

    pub fn write(&self, kind: Kind, data: &[u8]) -> Res<Oid> {
        let oid = hash::of_object(kind.name(), data);
        let packed = || self.packs().iter().any(|pack| pack.find(&oid).is_some());
        if !packed() {
            loose::write(self.directory(), &oid, kind, data)?;
        }
        Ok(oid)
    }

    pub fn blob(&self, oid: &Oid) -> Res<Vec<u8>> {
        let object = self.read(oid)?;
        match object.kind {
            Kind::Blob => Ok(object.data),
            _ => fatal!("{oid} is not a blob"),
        }
    }

    pub fn tree(&self, oid: &Oid) -> Res<Vec<Entry>> {
        let object = self.read(oid)?;
        match object.kind {
            Kind::Tree => object::read_tree(&object.data),
            _ => fatal!("not a tree object: {oid}"),
        }
    }

    pub fn commit(&self, oid: &Oid) -> Res<Rc<Commit>> {
        if let Some(known) = self.commits.borrow().get(oid) {
            return Ok(known.clone());
        }
        let object = match self.find(oid)? {
            Some(object) => object,
            None => fatal!("Could not read {oid}"),
        };
        let parsed = if object.kind == Kind::Commit { Commit::parse(&object.data) } else { None };
        let Some(commit) = parsed else { fatal!("object {oid} is not a commit or a bad one") };
        let commit = Rc::new(commit);
        let mut commits = self.commits.borrow_mut();
        if commits.len() < REMEMBERED {
            commits.insert(*oid, commit.clone());
        }
        Ok(commit)
    }

    pub fn tag(&self, oid: &Oid) -> Res<Tag> {
        let object = self.read(oid)?;
        match Tag::parse(&object.data).filter(|_| object.kind == Kind::Tag) {
            Some(tag) => Ok(tag),
            None => fatal!("{oid} is not a tag"),
        }
    }

    /// Follows tags to what they are about.
    pub fn peel(&self, oid: &Oid) -> Res<(Oid, Kind)> {
        let mut at = *oid;
        for _ in 0..64 {
            let object = self.read(&at)?;
            match Tag::parse(&object.data).filter(|_| object.kind == Kind::Tag) {
                Some(tag) => at = tag.target,
                None => return Ok((at, object.kind)),
            }
        }
        fatal!("tag {oid} is too deeply nested")
    }

    /// All objects whose names start with these digits; more than a few are not told apart.
    pub fn starting_with(&self, digits: &[u8]) -> Vec<Oid> {
        let digits = digits.to_ascii_lowercase();
        let Some(first) = std::str::from_utf8(digits.get(..2).unwrap_or(b"")).ok() else { return Vec::new() };
        let Ok(first) = u8::from_str_radix(first, 16) else { return Vec::new() };
        let mut found: Vec<Oid> = Vec::new();
        let matches = |oid: &Oid| oid.hex().as_bytes().starts_with(&digits);
        for place in &self.places {
            found.extend(loose::list(place, first).into_iter().filter(matches));
        }
        for pack in self.packs() {
            found.extend(pack.list(first).filter(matches));
        }
        found.sort();
        found.dedup();
        found
    }

    /// Every object there is.
    pub fn all(&self) -> Vec<Oid> {
        let mut all = Vec::new();
        for first in 0..=255 {
            self.places.iter().for_each(|place| all.extend(loose::list(place, first)));
            self.packs().iter().for_each(|pack| all.extend(pack.list(first)));
        }
        all.sort();
        all.dedup();
        all
    }

    /// How long an abbreviated name is where nobody says so: longer in large repositories.
    fn usual_length(&self) -> usize {
        *self.abbreviation.get_or_init(|| {
            let loose = loose::list(self.directory(), 0x17).len() * 256;
            let packed: usize =
                self.packs().iter().map(|pack| (0..=255).map(|n| pack.list(n).count()).sum::<usize>()).sum();
            let bits = usize::BITS - (loose + packed).leading_zeros();
            (bits.div_ceil(2) as usize).max(7)
        })
    }

    /// The shortest name of at least `least` digits that means only this object.
    pub fn abbreviate(&self, oid: &Oid, least: Option<usize>) -> String {
        let hex = oid.hex();
        let mut length = least.unwrap_or_else(|| self.usual_length()).clamp(4, 40);
        if oid.is_null() {
            return hex[..length].to_owned();
        }
        let others = self.starting_with(&hex.as_bytes()[..length]);
        while length < 40 && others.iter().any(|other| other != oid && other.hex()[..length] == hex[..length])
        {
            length += 1;
        }
        hex[..length].to_owned()
    }
}

/// The tree without entries exists everywhere.
pub const EMPTY_TREE: Oid = Oid([
    0x4b, 0x82, 0x5d, 0xc6, 0x42, 0xcb, 0x6e, 0xb9, 0xa0, 0x60, 0xe5, 0x4b, 0xf8, 0xd6, 0x92, 0x88, 0xfb,
    0xee, 0x49, 0x04,
]);
