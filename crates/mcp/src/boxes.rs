//! The sandboxes of a server, by name, and their snapshots.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Mutex as AsyncMutex;
use wardian::{Sandbox, Snapshot, drop_aside};

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
    /// The last of its snapshots, and how many bytes all of them keep.
    last: Option<Snapshot>,
    kept: u64,
    /// What it takes of what there may be.
    _place: Option<Place>,
}

/// A snapshot, and which sandbox it was taken of. It goes with that one.
struct Kept {
    of: String,
    snapshot: Snapshot,
}

/// The sandboxes.
pub(crate) struct Boxes {
    options: Arc<Options>,
    boxes: Mutex<BTreeMap<String, Entry>>,
    snapshots: Mutex<BTreeMap<String, Kept>>,
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
        self.boxes.lock().insert(name, Entry { sandbox, label, last: None, kept: 0, _place });
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
        let limits = &self.options.limits;
        let Some(gate) = &self.options.gate else { return Ok(vec![None; count]) };
        let mut places = Vec::with_capacity(count);
        for _ in 0..count {
            places.push(Some(gate.sandbox(limits).await.map_err(Mistake::new)?));
        }
        Ok(places)
    }

    /// Destroys a sandbox, and its snapshots with it: they are memory that nothing else would count.
    pub(crate) async fn destroy(&self, name: &str) -> Result<(), Mistake> {
        let entry = self.boxes.lock().remove(name);
        match entry {
            Some(entry) => {
                entry.sandbox.destroy().await;
                let gone: Vec<_> = self.snapshots.lock().extract_if(.., |_, kept| kept.of == name).collect();
                drop_aside((gone, entry)).await;
            }
            // It has not been used, or not since.
            None if name == MAIN => {}
            None => return Err(self.unknown(name)),
        }
        Ok(())
    }

    /// Destroys all of them.
    pub(crate) async fn clear(&self) {
        let boxes = std::mem::take(&mut *self.boxes.lock());
        for entry in boxes.values() {
            entry.sandbox.destroy().await;
        }
        let snapshots = std::mem::take(&mut *self.snapshots.lock());
        drop_aside((snapshots, boxes)).await;
    }

    /// Describes all of them.
    pub(crate) fn list(&self) -> Vec<Value> {
        let boxes = self.boxes.lock();
        let shown = boxes.iter().map(|(name, entry)| {
            json!({"sandbox": name, "label": entry.label, "running": entry.sandbox.is_running()})
        });
        shown.collect()
    }

    /// Returns how long a file may be that is read as a resource.
    pub(crate) fn longest_resource(&self) -> u64 {
        self.options.longest_resource
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

    /// Takes a snapshot; returns its name. Those of a sandbox may keep as much as it may have itself.
    pub(crate) async fn snapshot(&self, name: Option<&str>) -> Result<String, Mistake> {
        let (sandbox, of) = self.get(name).await?;
        let full = || {
            Mistake::new(format!("there are {MOST_SNAPSHOTS} snapshots, which is as many as there may be"))
        };
        if self.snapshots.lock().len() >= MOST_SNAPSHOTS {
            return Err(full());
        }
        let snapshot = sandbox.snapshot().await?;
        let last = self.boxes.lock().get(&of).and_then(|entry| entry.last.clone());
        let new = snapshot.clone();
        let counting = tokio::task::spawn_blocking(move || new.bytes_beyond(last.as_ref()));
        let bytes = counting.await.map_err(|lost| Mistake::new(format!("the snapshot failed: {lost}")))?;
        let limits = sandbox.limits();
        let most = limits.fs_bytes.saturating_add(limits.memory_bytes);
        let mut boxes = self.boxes.lock();
        let Some(entry) = boxes.get_mut(&of) else {
            return Err(Mistake::new(format!("the sandbox {of} is being destroyed")));
        };
        let kept = entry.kept.saturating_add(bytes);
        if kept > most {
            return Err(Mistake::new(format!(
                "the snapshots of {of} would keep {kept} bytes and may keep {most}; they go with their sandbox"
            )));
        }
        let mut snapshots = self.snapshots.lock();
        if snapshots.len() >= MOST_SNAPSHOTS {
            return Err(full());
        }
        let name = self.next("snapshot");
        (entry.kept, entry.last) = (kept, Some(snapshot.clone()));
        snapshots.insert(name.clone(), Kept { of, snapshot });
        Ok(name)
    }

    /// Restores a snapshot.
    pub(crate) async fn restore(&self, name: Option<&str>, snapshot: &str) -> Result<String, Mistake> {
        let (sandbox, name) = self.get(name).await?;
        let found = self.snapshots.lock().get(snapshot).map(|kept| kept.snapshot.clone());
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

#[cfg(test)]
mod tests {
    use wardian::Limits;

    use super::*;

    #[tokio::test]
    async fn snapshots_keep_no_more_than_their_sandbox_may_have_and_go_with_it() {
        const FILE: usize = 12 << 20;
        let limits = Limits { memory_bytes: 16 << 20, fs_bytes: 16 << 20, ..Limits::default() };
        let boxes = Boxes::new(Arc::new(Options { limits, ..Options::default() }));
        let mut taken = Vec::new();
        let refused = loop {
            let (sandbox, _) = boxes.get(None).await.expect("a sandbox");
            // Each is of other bytes, so that none of it is shared.
            let bytes = vec![taken.len() as u8; FILE];
            sandbox.write_file("/tmp/f", bytes).await.expect("it fits");
            match boxes.snapshot(None).await {
                Ok(name) => taken.push(name),
                Err(mistake) => break mistake,
            }
        };
        assert!(refused.sentence().contains("they go with their sandbox"), "{refused:?}");
        assert_eq!(taken.len(), 32 / 12, "{taken:?}");
        boxes.restore(None, &taken[0]).await.expect("it is there");
        boxes.destroy(MAIN).await.expect("it is destroyed");
        let gone = boxes.restore(None, &taken[0]).await.expect_err("it went with its sandbox");
        assert!(gone.sentence().contains("the snapshots are: none"), "{gone:?}");
    }
}
