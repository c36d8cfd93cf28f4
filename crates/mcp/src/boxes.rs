//! The sandboxes of a server, by name, and their snapshots.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Mutex as AsyncMutex;
use wardian::{Sandbox, Snapshot};

use crate::answer::Mistake;
use crate::gate::Place;
use crate::options::Options;

/// The sandbox of a call that names none. It is created when it is first used.
pub(crate) const MAIN: &str = "main";
/// How many snapshots there may be.
const MOST_SNAPSHOTS: usize = 64;

#[derive(Clone)]
struct Entry {
    sandbox: Sandbox,
    label: String,
    /// What it takes of what there may be.
    _place: Option<Place>,
}

/// The sandboxes.
pub(crate) struct Boxes {
    options: Arc<Options>,
    boxes: Mutex<BTreeMap<String, Entry>>,
    snapshots: Mutex<BTreeMap<String, Snapshot>>,
    /// For names, which are never used twice.
    count: AtomicU64,
    /// Held while sandboxes are made, so that there are never more than there may be, nor two called `main`.
    making: AsyncMutex<()>,
}

impl Boxes {
    pub(crate) fn new(options: Arc<Options>) -> Boxes {
        Boxes {
            options,
            boxes: Mutex::default(),
            snapshots: Mutex::default(),
            count: AtomicU64::new(0),
            making: AsyncMutex::default(),
        }
    }

    /// Returns the sandbox that a call names, and its name.
    pub(crate) async fn get(&self, name: Option<&str>) -> Result<(Sandbox, String), Mistake> {
        let name = name.unwrap_or(MAIN);
        if let Some(entry) = self.boxes.lock().get(name) {
            return Ok((entry.sandbox.clone(), name.to_owned()));
        }
        if name != MAIN {
            return Err(self.unknown(name));
        }
        let _making = self.making.lock().await;
        // Another call may have made it meanwhile.
        if let Some(entry) = self.boxes.lock().get(MAIN) {
            return Ok((entry.sandbox.clone(), MAIN.to_owned()));
        }
        let place = self.places(1).await?.pop().flatten();
        let sandbox = self.options.builder().build().await?;
        self.put(MAIN.to_owned(), sandbox.clone(), String::new(), place);
        Ok((sandbox, MAIN.to_owned()))
    }

    fn unknown(&self, name: &str) -> Mistake {
        let shown: String = name.chars().take(80).collect();
        let boxes = self.boxes.lock();
        let hint = wardian::did_you_mean(name, boxes.keys().map(String::as_str));
        Mistake::new(format!(
            "there is no sandbox '{shown}'{hint}; list_sandboxes lists them, create_sandbox creates one"
        ))
    }

    /// Creates a sandbox; returns its name.
    pub(crate) async fn create(&self, label: String) -> Result<String, Mistake> {
        let _making = self.making.lock().await;
        let place = self.places(1).await?.pop().flatten();
        let sandbox = self.options.builder().build().await?;
        let name = self.next("box");
        self.put(name.clone(), sandbox, label, place);
        Ok(name)
    }

    /// Forks a sandbox; returns the names of the forks.
    pub(crate) async fn fork(&self, name: Option<&str>, count: usize) -> Result<Vec<String>, Mistake> {
        let (sandbox, name) = self.get(name).await?;
        let _making = self.making.lock().await;
        let places = self.places(count).await?;
        let forks = sandbox.fork_many(count).await?;
        let put = |(fork, place)| {
            let fork_name = self.next("box");
            self.put(fork_name.clone(), fork, format!("fork of {name}"), place);
            fork_name
        };
        Ok(forks.into_iter().zip(places).map(put).collect())
    }

    fn put(&self, name: String, sandbox: Sandbox, label: String, _place: Option<Place>) {
        self.boxes.lock().insert(name, Entry { sandbox, label, _place });
    }

    fn next(&self, kind: &str) -> String {
        format!("{kind}-{}", self.count.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Takes places for so many more, if there may be as many.
    async fn places(&self, count: usize) -> Result<Vec<Option<Place>>, Mistake> {
        let (now, most) = (self.boxes.lock().len(), self.options.max_sandboxes);
        if now + count > most {
            return Err(Mistake::new(format!(
                "there are {now} sandboxes and may be {most}; destroy_sandbox destroys one that is no longer needed"
            )));
        }
        let memory_bytes = self.options.limits.memory_bytes;
        let Some(gate) = &self.options.gate else { return Ok(vec![None; count]) };
        let mut places = Vec::with_capacity(count);
        for _ in 0..count {
            places.push(Some(gate.sandbox(memory_bytes).await.map_err(Mistake::new)?));
        }
        Ok(places)
    }

    /// Destroys a sandbox.
    pub(crate) async fn destroy(&self, name: &str) -> Result<(), Mistake> {
        let entry = self.boxes.lock().remove(name);
        match entry {
            Some(entry) => entry.sandbox.destroy().await,
            // It has not been used, or not since.
            None if name == MAIN => {}
            None => return Err(self.unknown(name)),
        }
        Ok(())
    }

    /// Destroys all of them.
    pub(crate) async fn clear(&self) {
        let boxes = std::mem::take(&mut *self.boxes.lock());
        for entry in boxes.into_values() {
            entry.sandbox.destroy().await;
        }
        self.snapshots.lock().clear();
    }

    /// Describes all of them.
    pub(crate) fn list(&self) -> Vec<Value> {
        let boxes = self.boxes.lock();
        let shown = boxes.iter().map(|(name, entry)| {
            json!({"sandbox": name, "label": entry.label, "running": entry.sandbox.is_running()})
        });
        shown.collect()
    }

    /// Returns the directory where their shells start.
    pub(crate) fn home(&self) -> &str {
        self.options.cwd.as_deref().unwrap_or("/home/user")
    }

    /// Returns those that exist, with their names.
    pub(crate) fn all(&self) -> Vec<(String, Sandbox)> {
        let boxes = self.boxes.lock();
        boxes.iter().map(|(name, entry)| (name.clone(), entry.sandbox.clone())).collect()
    }

    /// Takes a snapshot; returns its name.
    pub(crate) async fn snapshot(&self, name: Option<&str>) -> Result<String, Mistake> {
        let (sandbox, _) = self.get(name).await?;
        let full = || {
            Mistake::new(format!("there are {MOST_SNAPSHOTS} snapshots, which is as many as there may be"))
        };
        if self.snapshots.lock().len() >= MOST_SNAPSHOTS {
            return Err(full());
        }
        let snapshot = sandbox.snapshot().await?;
        let name = self.next("snapshot");
        let mut snapshots = self.snapshots.lock();
        if snapshots.len() >= MOST_SNAPSHOTS {
            return Err(full());
        }
        snapshots.insert(name.clone(), snapshot);
        Ok(name)
    }

    /// Restores a snapshot.
    pub(crate) async fn restore(&self, name: Option<&str>, snapshot: &str) -> Result<String, Mistake> {
        let (sandbox, name) = self.get(name).await?;
        let found = self.snapshots.lock().get(snapshot).cloned();
        let found = found.ok_or_else(|| {
            let snapshots = self.snapshots.lock();
            let known: Vec<&str> = snapshots.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let shown: String = snapshot.chars().take(80).collect();
            Mistake::new(format!("there is no snapshot '{shown}'; the snapshots are: {known}"))
        })?;
        sandbox.restore(&found).await?;
        Ok(name)
    }
}
