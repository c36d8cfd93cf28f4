//! Images: values to start sandboxes from.

use serde_json::{Value as Json, json};
use wardian_store::{Commit, Kind, Note, StoreError};
use wardian_vfs::Quota;

use super::load::read_root;
use super::save::{Saved, save};
use super::store::Store;
use crate::error::{Error, lost};
use crate::history::now_ms;
use crate::options::Builder;
use crate::sandbox::Sandbox;
use crate::snapshot::limited;

/// The longest script that is noted with an image.
pub(super) const RECIPE: usize = 64 << 10;

/// An image in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImageInfo {
    /// `namespace/name`.
    pub name: String,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// The script that made it.
    pub script: String,
    /// The image that it was made from.
    pub base: Option<String>,
    /// The version of Wardian that made it.
    pub version: String,
}

impl Store {
    /// Keeps a sandbox's current value as an image. `script` and `base` say what it was made from.
    pub async fn save_image(
        &self,
        sandbox: &Sandbox,
        name: &str,
        script: &str,
        base: Option<&str>,
    ) -> Result<(), Error> {
        if script.len() > RECIPE {
            return Err(Error::Option(format!(
                "the script of an image has {} bytes, limit {RECIPE}",
                script.len()
            )));
        }
        let value = {
            let session = sandbox.session().await?;
            sandbox.value(&session).await?
        };
        let version = env!("CARGO_PKG_VERSION");
        let meta =
            json!({ "script": script, "base": base, "version": version, "made": now_ms() }).to_string();
        let (store, name) = (self.clone(), name.to_owned());
        let (inner, programs) = (sandbox.inner().clone(), sandbox.programs());
        let keeping = move || {
            let saved = Saved::nothing(&inner.setup.base);
            let (root, batch, _) = save(&store, &inner.setup, &programs, &saved, &value)?;
            let lease = store.inner.create_as(&name, Kind::Image, &meta)?;
            let note = Note { command: b"image".to_vec(), exit_code: None };
            let made = store.inner.commit(Commit { lease: &lease, parent: None, root, batch, note });
            if made.is_err() {
                drop(lease);
                let _ = store.inner.remove(&name);
            }
            made?;
            Ok(())
        };
        sandbox.kernel().spawn_blocking(keeping).await.map_err(lost)?
    }

    /// Returns all images, sorted by name.
    pub fn images(&self) -> Result<Vec<ImageInfo>, Error> {
        let entries = self.inner.list(Kind::Image)?;
        Ok(entries.into_iter().map(|entry| describe(entry.name, entry.created_ms, &entry.meta)).collect())
    }

    /// Returns one image.
    pub fn image(&self, name: &str) -> Result<ImageInfo, Error> {
        let entry = self.inner.head(name)?;
        match entry.kind {
            Kind::Image => Ok(describe(entry.name, entry.created_ms, &entry.meta)),
            Kind::Sandbox => Err(StoreError::Missing(format!("image {}", entry.name)).into()),
        }
    }

    /// Removes an image. Sandboxes that were started from it stay as they are.
    pub fn remove_image(&self, name: &str) -> Result<(), Error> {
        self.image(name)?;
        Ok(self.inner.remove(name)?)
    }

    /// Starts a sandbox from an image, with a builder's options.
    pub(crate) async fn start_image(&self, name: &str, builder: Builder) -> Result<Sandbox, Error> {
        let (store, image) = (self.clone(), name.to_owned());
        let finding = move || {
            store.image(&image)?;
            let hash = store.inner.head(&image)?.root;
            Ok::<_, Error>((hash, read_root(&store, &hash)?))
        };
        let (hash, root) = tokio::task::spawn_blocking(finding).await.map_err(lost)??;
        if builder.has_mounts() {
            return Err(Error::Unsupported(
                "mounts together with an image: mount them in the running sandbox",
            ));
        }
        let system = builder.find_system().await?;
        if root.sessions().any(|name| !name.is_empty()) {
            let (python, kernel) = (system.clone(), system.kernel.handle().clone());
            kernel.spawn(async move { python.python().await.map(drop) }).await.map_err(lost)??;
        }
        // Extensions are part of the files: what is kept for the next start must have none.
        let keep = !builder.has_extensions();
        let (setup, _, _) = builder.set_up_all(&system).await?;
        let (setup, mut value) = self.image_value((hash, root), &system, setup, keep).await?;
        // What an image holds counts whoever reads it.
        value.tree.set_quota(Quota::NONE);
        value.tree = limited(value.tree, &setup.limits, b"image")?;
        Sandbox::wake(system, setup, value, None).await
    }
}

fn describe(name: String, created_ms: u64, meta: &str) -> ImageInfo {
    let meta: Json = serde_json::from_str(meta).unwrap_or_default();
    let text = |key: &str| meta[key].as_str().map(str::to_owned);
    let (script, version) = (text("script").unwrap_or_default(), text("version").unwrap_or_default());
    ImageInfo { name, created_ms, script, base: text("base"), version }
}
