//! Variables: values, attributes, and the scopes of functions.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// A fast hash for short names. Nobody gains by making a shell's own variables collide.
#[derive(Default)]
pub struct NameHasher(u64);

impl Hasher for NameHasher {
    /// The multiplications move what differs upwards, and tables look at the lower bits.
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        const K: u64 = 0x517c_c1b7_2722_0a95;
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = (self.0.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(K);
        }
    }

    fn write_usize(&mut self, _: usize) {}
}

pub type NameMap<V> = HashMap<Vec<u8>, V, BuildHasherDefault<NameHasher>>;

/// What is known of a variable besides its value.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Attrs(pub u16);

impl Attrs {
    pub const EXPORT: Attrs = Attrs(1);
    pub const READONLY: Attrs = Attrs(2);
    pub const INTEGER: Attrs = Attrs(4);
    pub const UPPER: Attrs = Attrs(8);
    pub const LOWER: Attrs = Attrs(16);
    pub const NAMEREF: Attrs = Attrs(32);
    pub const TRACE: Attrs = Attrs(64);
    /// Its value is made when it is asked for (`RANDOM`, `LINENO`, …).
    pub const DYNAMIC: Attrs = Attrs(128);
    pub const CAPITAL: Attrs = Attrs(256);
    /// An array that was declared and never assigned to.
    pub const UNASSIGNED: Attrs = Attrs(512);
    /// An assignment to it does more than that (`OPTIND`).
    pub const WATCHED: Attrs = Attrs(1024);

    pub fn has(self, other: Attrs) -> bool {
        self.0 & other.0 != 0
    }

    pub fn set(&mut self, other: Attrs, on: bool) {
        if on { self.0 |= other.0 } else { self.0 &= !other.0 }
    }
}

/// An associative array. It is walked in the order bash's hash table has.
#[derive(Clone, Default, Debug)]
pub struct Assoc {
    entries: HashMap<Vec<u8>, (u64, Vec<u8>), BuildHasherDefault<NameHasher>>,
    made: u64,
    /// How many lists bash's table has, if not as many as those of scripts.
    buckets: Option<u32>,
}

impl Assoc {
    /// One that is walked in the order of a table of so many lists.
    pub fn with_buckets(buckets: u32) -> Assoc {
        Assoc { buckets: Some(buckets), ..Assoc::default() }
    }

    pub fn get(&self, key: &[u8]) -> Option<&Vec<u8>> {
        self.entries.get(key).map(|(_, value)| value)
    }

    pub fn insert(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.made += 1;
        let made = self.made;
        self.entries.entry(key).and_modify(|entry| entry.1.clone_from(&value)).or_insert((made, value));
    }

    pub fn remove(&mut self, key: &[u8]) {
        self.entries.remove(key);
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Keys and values in bash's order: by hash bucket, the newest of a bucket first.
    pub fn walk(&self) -> Vec<(&Vec<u8>, &Vec<u8>)> {
        let mut buckets = self.buckets.unwrap_or(1024);
        while self.entries.len() >= (buckets as usize) * 2 {
            buckets *= 4;
        }
        let mut list: Vec<_> = self
            .entries
            .iter()
            .map(|(key, (made, value))| (bash_hash(key) & (buckets - 1), u64::MAX - made, key, value))
            .collect();
        list.sort_unstable_by_key(|(bucket, age, ..)| (*bucket, *age));
        list.into_iter().map(|(_, _, key, value)| (key, value)).collect()
    }
}

/// The hash function of bash's tables (FNV-1), whose order scripts can see.
pub fn bash_hash(key: &[u8]) -> u32 {
    key.iter().fold(2_166_136_261, |hash: u32, &byte| hash.wrapping_mul(16_777_619) ^ (byte as i8 as u32))
}

/// An indexed array: dense from 0 as a rule, sparse when it must be.
#[derive(Clone, Debug)]
pub enum Indexed {
    Dense(Vec<Vec<u8>>),
    Sparse(BTreeMap<i64, Vec<u8>>),
}

impl Default for Indexed {
    fn default() -> Self {
        Indexed::Dense(Vec::new())
    }
}

impl Indexed {
    pub fn get(&self, index: i64) -> Option<&Vec<u8>> {
        match self {
            Indexed::Dense(list) => usize::try_from(index).ok().and_then(|index| list.get(index)),
            Indexed::Sparse(map) => map.get(&index),
        }
    }

    pub fn insert(&mut self, index: i64, value: Vec<u8>) {
        match self {
            Indexed::Dense(list) => match usize::try_from(index) {
                Ok(at) if at < list.len() => list[at] = value,
                Ok(at) if at == list.len() => list.push(value),
                _ => {
                    self.sparse().insert(index, value);
                }
            },
            Indexed::Sparse(map) => {
                map.insert(index, value);
            }
        }
    }

    pub fn remove(&mut self, index: i64) {
        match self {
            Indexed::Dense(list) if usize::try_from(index).is_ok_and(|index| index + 1 == list.len()) => {
                list.pop();
            }
            Indexed::Dense(list) if index < 0 || index as u64 >= list.len() as u64 => {}
            _ => {
                self.sparse().remove(&index);
            }
        }
    }

    fn sparse(&mut self) -> &mut BTreeMap<i64, Vec<u8>> {
        if let Indexed::Dense(list) = self {
            let map =
                std::mem::take(list).into_iter().enumerate().map(|(at, value)| (at as i64, value)).collect();
            *self = Indexed::Sparse(map);
        }
        match self {
            Indexed::Sparse(map) => map,
            Indexed::Dense(_) => unreachable!("made sparse above"),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Indexed::Dense(list) => list.len(),
            Indexed::Sparse(map) => map.len(),
        }
    }

    /// One past the highest index.
    pub fn end(&self) -> i64 {
        match self {
            Indexed::Dense(list) => list.len() as i64,
            Indexed::Sparse(map) => map.last_key_value().map_or(0, |(index, _)| index.saturating_add(1)),
        }
    }

    pub fn iter(&self) -> Box<dyn Iterator<Item = (i64, &Vec<u8>)> + '_> {
        match self {
            Indexed::Dense(list) => Box::new(list.iter().enumerate().map(|(at, value)| (at as i64, value))),
            Indexed::Sparse(map) => Box::new(map.iter().map(|(at, value)| (*at, value))),
        }
    }
}

impl FromIterator<Vec<u8>> for Indexed {
    fn from_iter<I: IntoIterator<Item = Vec<u8>>>(values: I) -> Self {
        Indexed::Dense(values.into_iter().collect())
    }
}

#[derive(Clone, Debug, Default)]
pub enum Value {
    /// Declared, but never given a value.
    #[default]
    Unset,
    Scalar(Vec<u8>),
    Indexed(Indexed),
    Assoc(Assoc),
}

#[derive(Clone, Debug, Default)]
pub struct Var {
    pub value: Value,
    pub attrs: Attrs,
}

impl Var {
    pub fn scalar(text: &[u8]) -> Var {
        Var { value: Value::Scalar(text.to_vec()), attrs: Attrs::default() }
    }

    /// The value as `$name` has it: the scalar, or the element 0.
    pub fn text(&self) -> Option<&Vec<u8>> {
        match &self.value {
            Value::Unset => None,
            Value::Scalar(text) => Some(text),
            Value::Indexed(array) => array.get(0),
            Value::Assoc(array) => array.get(b"0"),
        }
    }

    pub fn is_array(&self) -> bool {
        matches!(self.value, Value::Indexed(_) | Value::Assoc(_))
    }
}

/// What a function's `local`s hid, to be put back when it returns.
#[derive(Default)]
pub struct Scope {
    hidden: Vec<(Vec<u8>, Option<Var>)>,
    /// Those among them that the call itself hid, by `x=1 function`: unset, they show what they hid.
    temporary: Vec<Vec<u8>>,
    /// The positional parameters and `$-` that `local -` keeps.
    pub saved_options: Option<crate::options::Options>,
}

#[derive(Default)]
pub struct Vars {
    map: NameMap<Var>,
    scopes: Vec<Scope>,
    /// What the assignments before a function's name hid: its scope will take it over.
    pub temporaries: Vec<(Vec<u8>, Option<Var>)>,
    /// Counts changes to `PATH`, so that remembered locations are dropped.
    pub path_version: u64,
    /// What the locale's variables were found to say of text, while they stay as they are.
    utf8: Cell<Option<bool>>,
}

impl Vars {
    /// The variable itself, namerefs not followed.
    pub fn raw(&self, name: &[u8]) -> Option<&Var> {
        self.map.get(name)
    }

    pub fn raw_mut(&mut self, name: &[u8]) -> Option<&mut Var> {
        self.note_change(name);
        self.map.get_mut(name)
    }

    /// Forgets what was worked out from a variable that is about to change.
    fn note_change(&mut self, name: &[u8]) {
        match name {
            b"PATH" => self.path_version += 1,
            b"LANG" | b"LC_ALL" | b"LC_CTYPE" => self.utf8.set(None),
            _ => {}
        }
    }

    /// Whether text is UTF-8 by the locale's variables.
    pub fn utf8(&self) -> bool {
        if let Some(known) = self.utf8.get() {
            return known;
        }
        let locale = [&b"LC_ALL"[..], b"LC_CTYPE", b"LANG"].into_iter().filter_map(|name| self.text(name));
        let utf8 = locale.into_iter().find(|value| !value.is_empty()).is_some_and(|value| {
            let lower = value.to_ascii_lowercase();
            lower.windows(4).any(|w| w == b"utf8") || lower.windows(5).any(|w| w == b"utf-8")
        });
        self.utf8.set(Some(utf8));
        utf8
    }

    /// The variable itself, made if it is not there.
    pub fn entry(&mut self, name: &[u8]) -> &mut Var {
        self.note_change(name);
        if !self.map.contains_key(name) {
            self.map.insert(name.to_vec(), Var::default());
        }
        match self.map.get_mut(name) {
            Some(var) => var,
            None => unreachable!("inserted above"),
        }
    }

    /// The name a chain of namerefs ends at; empty when it goes in circles.
    pub fn resolve<'n>(&self, name: &'n [u8]) -> Cow<'n, [u8]> {
        let mut current = Cow::Borrowed(name);
        for _ in 0..16 {
            match self.map.get(current.as_ref()) {
                Some(Var { value: Value::Scalar(target), attrs })
                    if attrs.has(Attrs::NAMEREF) && !target.is_empty() =>
                {
                    current = Cow::Owned(target.clone());
                }
                _ => return current,
            }
        }
        Cow::Borrowed(b"")
    }

    pub fn get(&self, name: &[u8]) -> Option<&Var> {
        let var = self.map.get(name)?;
        if !var.attrs.has(Attrs::NAMEREF) {
            return Some(var);
        }
        let target = self.resolve(name);
        self.map.get(target.as_ref())
    }

    pub fn text(&self, name: &[u8]) -> Option<&Vec<u8>> {
        self.get(name)?.text()
    }

    /// Sets a variable no matter its attributes.
    pub fn set_raw(&mut self, name: &[u8], text: &[u8]) {
        let var = self.entry(name);
        match &mut var.value {
            Value::Scalar(old) => {
                old.clear();
                old.extend_from_slice(text);
            }
            _ => var.value = Value::Scalar(text.to_vec()),
        }
    }

    pub fn insert(&mut self, name: &[u8], var: Var) {
        *self.entry(name) = var;
    }

    pub fn remove(&mut self, name: &[u8]) -> Option<Var> {
        self.note_change(name);
        self.map.remove(name)
    }

    pub fn names(&self) -> Vec<&Vec<u8>> {
        let mut names: Vec<_> = self.map.keys().collect();
        names.sort_unstable();
        names
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Vec<u8>, &Var)> {
        self.map.iter()
    }

    pub fn push_scope(&mut self) {
        let hidden = std::mem::take(&mut self.temporaries);
        let temporary = hidden.iter().map(|(name, _)| name.clone()).collect();
        self.scopes.push(Scope { hidden, temporary, ..Scope::default() });
    }

    /// Leaves a function: what its locals hid comes back.
    pub fn pop_scope(&mut self) -> Option<Scope> {
        let mut scope = self.scopes.pop()?;
        while let Some((name, hidden)) = scope.hidden.pop() {
            match hidden {
                Some(var) => self.insert(&name, var),
                None => drop(self.remove(&name)),
            }
        }
        Some(scope)
    }

    pub fn in_function(&self) -> bool {
        !self.scopes.is_empty()
    }

    pub fn scope_mut(&mut self) -> Option<&mut Scope> {
        self.scopes.last_mut()
    }

    pub fn is_local(&self, name: &[u8]) -> bool {
        self.scopes.last().is_some_and(|scope| scope.hidden.iter().any(|(hidden, _)| hidden == name))
    }

    /// Whether a variable is local to some function that is being called.
    pub fn is_local_anywhere(&self, name: &[u8]) -> bool {
        self.scopes.iter().any(|scope| scope.hidden.iter().any(|(hidden, _)| hidden == name))
    }

    /// Makes a local of the current function hide another variable than it did. Says whether it is one.
    pub fn hide_instead(&mut self, name: &[u8], var: Option<Var>) -> bool {
        let Some(scope) = self.scopes.last_mut() else { return false };
        match scope.hidden.iter_mut().find(|(hidden, _)| hidden == name) {
            Some((_, hidden)) => {
                *hidden = var;
                true
            }
            None => false,
        }
    }

    /// Keeps a variable that is only there for the call of the current function.
    pub fn keep_temporary(&mut self, name: &[u8]) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.temporary.retain(|temporary| temporary != name);
            scope.hidden.retain(|(hidden, _)| hidden != name);
        }
    }

    /// Whether a variable is only there for the call of the current function.
    pub fn is_temporary(&self, name: &[u8]) -> bool {
        self.scopes.last().is_some_and(|scope| scope.temporary.iter().any(|temporary| temporary == name))
    }

    /// Removes the innermost local of a name, of whatever function: what it hid comes back.
    pub fn reveal(&mut self, name: &[u8]) -> bool {
        let hides = |(hidden, _): &(Vec<u8>, Option<Var>)| hidden == name;
        for at in (0..self.scopes.len()).rev() {
            if let Some(slot) = self.scopes[at].hidden.iter().position(hides) {
                match self.scopes[at].hidden.remove(slot).1 {
                    Some(var) => self.insert(name, var),
                    None => drop(self.remove(name)),
                }
                return true;
            }
        }
        false
    }

    /// Unsets a variable; a local stays one, and goes on hiding what is outside.
    pub fn hide(&mut self, name: &[u8]) {
        let local = self.scopes.iter().any(|scope| scope.hidden.iter().any(|(hidden, _)| hidden == name));
        if local { self.insert(name, Var::default()) } else { drop(self.remove(name)) }
    }

    /// The names local to the current function.
    pub fn local_names(&self) -> Vec<Vec<u8>> {
        let hidden = self.scopes.last().map_or(&[][..], |scope| &scope.hidden);
        let mut names: Vec<Vec<u8>> = hidden.iter().map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        names
    }

    /// Makes a variable local to the current function; answers the one it hides, if it was not local already.
    pub fn make_local(&mut self, name: &[u8]) -> Option<Var> {
        if self.is_local(name) {
            if let Some(scope) = self.scopes.last_mut() {
                scope.temporary.retain(|temporary| temporary != name);
            }
            return None;
        }
        let hidden = self.remove(name);
        let copy = hidden.clone();
        if let Some(scope) = self.scopes.last_mut() {
            scope.hidden.push((name.to_vec(), hidden));
        }
        copy
    }

    /// Runs `change` on the variable outside every function, as `declare -g` means it.
    pub fn with_global<R>(&mut self, name: &[u8], change: impl FnOnce(&mut Vars) -> R) -> R {
        let place =
            self.scopes.iter().position(|scope| scope.hidden.iter().any(|(hidden, _)| hidden == name));
        let Some(at) = place else { return change(self) };
        let local = self.remove(name);
        let slot = self.scopes[at].hidden.iter().position(|(hidden, _)| hidden == name).unwrap_or(0);
        if let Some(var) = self.scopes[at].hidden[slot].1.take() {
            self.insert(name, var);
        }
        let result = change(self);
        self.scopes[at].hidden[slot].1 = self.remove(name);
        if let Some(var) = local {
            self.insert(name, var);
        }
        result
    }

    /// The environment for a program: `NAME=VALUE` strings of the exported variables.
    pub fn environment(&self, list: &mut wardian_abi::StringList) {
        for (name, var) in &self.map {
            if var.attrs.has(Attrs::EXPORT)
                && let Value::Scalar(text) = &var.value
            {
                list.push_pair(name, text);
            }
        }
    }
}
