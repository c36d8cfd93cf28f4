//! Fetching: objects from packs into the local part, each checked against its hash before anything is stored.
//!
//! A pack is read whole: what was new together is mostly needed together, and a request costs more than the bytes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

use futures_util::{StreamExt, TryStreamExt, stream};
use rusqlite::params;

use super::Inner;
use super::heads::AT_ONCE;
use super::pack::{self, Packed};
use super::regions::{self, REGION, REGIONS_AT_ONCE};
use super::tables;
use super::upload::pack_path;
use crate::seal::{IN_FILE, LINKS};
use crate::store::read_object;
use crate::{Hash, StoreError};

/// Packs, with what is wanted of each.
type Packs = BTreeMap<Hash, Vec<Hash>>;

/// How many packs are in memory at the same time.
const PACKS_AT_ONCE: usize = 3;
/// How many objects are looked at with one hold of the database.
const STEP: usize = 256;

impl Inner {
    /// Makes everything below a root local: after that nothing that reads it has to wait for the object store.
    pub(super) async fn complete(&self, root: &Hash) -> Result<(), StoreError> {
        if tables::is_whole(&self.database.lock(), root)? {
            return Ok(());
        }
        let (mut seen, mut next) = (HashSet::from([*root]), vec![*root]);
        while !next.is_empty() {
            let missing = self.missing(&next)?;
            self.fetch(&missing).await?;
            let mut below = Vec::new();
            for step in next.chunks(STEP) {
                let database = self.database.lock();
                let mut kind = database.prepare_cached("SELECT kind FROM object WHERE hash = ?")?;
                for hash in step {
                    let kind: i64 = kind.query_row([&hash.0[..]], |row| row.get(0))?;
                    if kind & LINKS != 0 {
                        let links = read_object(&database, &self.sealer, hash)?.links;
                        below.extend(links.into_iter().filter(|link| seen.insert(*link)));
                    }
                }
            }
            next = below;
        }
        tables::note_whole(&self.database.lock(), root)
    }

    /// Returns which of these are not local.
    fn missing(&self, hashes: &[Hash]) -> Result<Vec<Hash>, StoreError> {
        let mut missing = Vec::new();
        for step in hashes.chunks(STEP) {
            let database = self.database.lock();
            let mut kind = database.prepare_cached("SELECT kind FROM object WHERE hash = ?")?;
            for hash in step {
                let mut found = kind.query([&hash.0[..]])?;
                let kind: Option<i64> = found.next()?.map(|row| row.get(0)).transpose()?;
                let is_there = kind.is_some_and(|kind| kind & IN_FILE == 0 || self.pages.path(hash).exists());
                if !is_there {
                    missing.push(*hash);
                }
            }
        }
        Ok(missing)
    }

    /// Fetches objects, all of them or an error.
    pub(super) async fn fetch(&self, hashes: &[Hash]) -> Result<(), StoreError> {
        let packs = self.locate(hashes).await?;
        let fetching = packs.into_iter().map(|(pack, wanted)| self.fetch_pack(pack, wanted));
        stream::iter(fetching).buffer_unordered(PACKS_AT_ONCE).try_collect::<Vec<()>>().await?;
        Ok(())
    }

    /// Returns which packs have some objects.
    async fn locate(&self, hashes: &[Hash]) -> Result<Packs, StoreError> {
        let since = Instant::now();
        let (mut packs, unknown) = self.known_packs(hashes)?;
        if !unknown.is_empty() {
            let trouble = self.read_tables(since).await?;
            let (more, unknown) = self.known_packs(&unknown)?;
            for (pack, objects) in more {
                packs.entry(pack).or_default().extend(objects);
            }
            if let Some(hash) = unknown.first() {
                let trouble = trouble.map_or(String::new(), |error| format!(" ({error})"));
                let why = format!("it is neither here nor in {}{trouble}", self.bucket.url());
                return Err(StoreError::Damaged { hash: *hash, why });
            }
        }
        Ok(packs)
    }

    fn known_packs(&self, hashes: &[Hash]) -> Result<(Packs, Vec<Hash>), StoreError> {
        let (mut packs, mut unknown) = (Packs::new(), Vec::new());
        let database = self.database.lock();
        for hash in hashes {
            match tables::pack_of(&database, hash)? {
                Some(pack) => packs.entry(pack).or_default().push(*hash),
                None => unknown.push(*hash),
            }
        }
        Ok((packs, unknown))
    }

    /// Reads the tables of all packs that are not known, unless somebody else has just done it. A damaged one does not
    /// keep the others from being read: the first is returned.
    pub(super) async fn read_tables(&self, since: Instant) -> Result<Option<StoreError>, StoreError> {
        let mut listed = self.listed.lock().await;
        if listed.is_some_and(|listed| listed > since) {
            return Ok(None);
        }
        let began = Instant::now();
        let names = self.bucket.list("packs").await?;
        let names: Vec<Hash> = names.iter().filter_map(|listed| listed.name.parse().ok()).collect();
        let unknown: Vec<Hash> = {
            let database = self.database.lock();
            let mut known = database.prepare_cached("SELECT 1 FROM remote_pack WHERE name = ?")?;
            let mut unknown = Vec::new();
            for name in names {
                if !known.exists([&name.0[..]])? {
                    unknown.push(name);
                }
            }
            unknown
        };
        let mut trouble = None;
        for step in unknown.chunks(STEP) {
            let reading = step.iter().copied();
            let reading = reading.map(|name| async move { (name, self.read_table(&name).await) });
            let read: Vec<_> = stream::iter(reading).buffer_unordered(AT_ONCE).collect().await;
            self.transact(|transaction| {
                for (name, objects) in &read {
                    if let Ok(objects) = objects {
                        tables::note_pack(transaction, name, objects)?;
                    }
                }
                Ok(())
            })?;
            for (_, objects) in read {
                match objects {
                    Err(error @ StoreError::Malformed(_)) => trouble = trouble.or(Some(error)),
                    Err(error) => return Err(error),
                    Ok(_) => {}
                }
            }
        }
        *listed = Some(began);
        Ok(trouble)
    }

    async fn read_table(&self, name: &Hash) -> Result<Vec<Hash>, StoreError> {
        let path = pack_path(name);
        let missing = || self.bucket.damaged(&path, "it is missing");
        let (mut first, ..) = self.bucket.read_first(&path, pack::FIRST).await?.ok_or_else(missing)?;
        let end = pack::table_end(&first).map_err(|error| self.at(&path, error))?;
        if end > first.len() {
            (first, ..) = self.bucket.read_first(&path, end as u64).await?.ok_or_else(missing)?;
        }
        pack::objects(&self.sealer.namer, name, &first).map_err(|error| self.at(&path, error))
    }

    async fn read_pack(&self, name: &Hash) -> Result<Vec<Packed>, StoreError> {
        let path = pack_path(name);
        let Some((bytes, _)) = self.bucket.read(&path, pack::MOST).await? else {
            // Perhaps it is elsewhere the next time.
            self.transact(|transaction| tables::forget_pack(transaction, name))?;
            return Err(self.bucket.damaged(&path, "it is missing"));
        };
        pack::parse(&self.sealer.namer, name, &bytes).map_err(|error| self.at(&path, error))
    }

    /// Fetches some objects of a pack, and stores all that are whole. One that is wanted and damaged is an error, and then
    /// nothing of the pack is stored.
    async fn fetch_pack(&self, name: Hash, wanted: Vec<Hash>) -> Result<(), StoreError> {
        let objects = self.read_pack(&name).await?;
        let wanted: HashSet<Hash> = wanted.into_iter().collect();
        let (mut whole, mut files) = (Vec::new(), Vec::new());
        for object in objects {
            let is_wanted = wanted.contains(&object.hash);
            if object.kind & IN_FILE != 0 {
                if is_wanted {
                    files.push(object);
                }
            } else if is_wanted || object.kind & REGION == 0 {
                match self.check(&name, &object) {
                    Ok(()) => whole.push(Packed { kind: object.kind & !REGION, ..object }),
                    Err(error) if is_wanted => return Err(error),
                    Err(error) => tracing::warn!(%error, "an object that nobody asked for is damaged"),
                }
            }
        }
        for file in &files {
            self.fetch_file(&name, file).await?;
        }
        self.transact(|transaction| {
            let mut insert = transaction
                .prepare_cached("INSERT OR IGNORE INTO object (hash, kind, body) VALUES (?, ?, ?)")?;
            for Packed { hash, kind, body } in &whole {
                insert.execute(params![&hash.0[..], kind, body])?;
            }
            for file in &files {
                insert.execute(params![&file.hash.0[..], IN_FILE, &b""[..]])?;
            }
            Ok(())
        })?;
        let found: HashSet<Hash> = whole.iter().chain(&files).map(|object| object.hash).collect();
        match wanted.difference(&found).next() {
            Some(hash) => Err(self.in_pack(&name, hash, "it is not there")),
            None => Ok(()),
        }
    }

    /// Checks an object against its name. Whether it has links must be as its table says: otherwise collecting would not
    /// follow them.
    fn check(&self, pack: &Hash, object: &Packed) -> Result<(), StoreError> {
        let opened = self.sealer.open(&object.hash, object.kind, &object.body);
        let opened = opened.map_err(|error| self.in_pack(pack, &object.hash, &error.to_string()))?;
        if opened.links.is_empty() == (object.kind & LINKS == 0) {
            return Ok(());
        }
        Err(self.in_pack(pack, &object.hash, "its table is wrong about its links"))
    }

    fn in_pack(&self, pack: &Hash, hash: &Hash, why: &str) -> StoreError {
        let why = format!("in {}/{}: {why}", self.bucket.url(), pack_path(pack));
        StoreError::Damaged { hash: *hash, why }
    }

    /// Puts a memory together. It gets its name when all of it is there and was checked.
    async fn fetch_file(&self, pack: &Hash, object: &Packed) -> Result<(), StoreError> {
        if self.pages.has(&self.sealer.namer, &object.hash) {
            return Ok(());
        }
        let named = |error: StoreError| match error {
            StoreError::Malformed(why) | StoreError::Damaged { why, .. } => {
                self.in_pack(pack, &object.hash, &why)
            }
            other => other,
        };
        let regions = regions::read(&self.sealer, &object.body).map_err(named)?;
        let mut new = self.pages.create()?;
        new.file.set_len(regions.size)?;
        for step in regions.all.chunks(REGIONS_AT_ONCE * 8) {
            let wanted: HashMap<Hash, Vec<u32>> = step.iter().fold(HashMap::new(), |mut all, (at, hash)| {
                all.entry(Hash(*hash)).or_insert_with(Vec::new).push(*at);
                all
            });
            let hashes: Vec<Hash> = wanted.keys().copied().collect();
            for (pack, mut missing) in self.locate(&hashes).await? {
                for region in self.read_pack(&pack).await? {
                    let Some(place) = missing.iter().position(|hash| *hash == region.hash) else { continue };
                    missing.swap_remove(place);
                    self.check(&pack, &region)?;
                    let bytes = self.sealer.open(&region.hash, region.kind, &region.body)?.bytes;
                    for at in wanted.get(&region.hash).into_iter().flatten() {
                        regions::write(&new.file, &regions, *at, &bytes).map_err(named)?;
                    }
                }
                if let Some(hash) = missing.first() {
                    return Err(self.in_pack(&pack, hash, "it is not there"));
                }
            }
        }
        new.finish(&self.sealer.namer, &object.hash).map_err(named)
    }
}
