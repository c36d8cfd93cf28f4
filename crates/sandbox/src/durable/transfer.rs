//! Images and sandboxes as one file, to take them to another store.
//!
//! ```text
//! WARDIAN VALUE 1 ⏎   length of the note, 4 bytes   note, JSON   archive (`Sandbox::export`)   SHA-256 of all before, 32 bytes
//! ```
//! Who reads one trusts nothing in it: the note is short, and the archive is read by [`Sandbox::import`], within the limits of
//! the sandbox that it becomes. Mounts and the options of a sandbox are not in it.

use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::image::RECIPE;
use super::store::Store;
use crate::archive::ArchiveError;
use crate::error::{Error, lost};
use crate::options::{Builder, Limits};
use crate::sandbox::Sandbox;

const MAGIC: &[u8] = b"WARDIAN VALUE 1\n";
const HASH: usize = 32;
/// How long a note may be: a script of which each byte is escaped, and what is beside it.
const NOTE: usize = 6 * RECIPE + (16 << 10);

fn damaged(what: &str) -> Error {
    ArchiveError::Damaged(what.to_owned()).into()
}

fn pack(note: &Json, archive: &[u8]) -> Vec<u8> {
    let note = note.to_string().into_bytes();
    let mut file = Vec::with_capacity(MAGIC.len() + 4 + note.len() + archive.len() + HASH);
    file.extend_from_slice(MAGIC);
    file.extend_from_slice(&(note.len() as u32).to_le_bytes());
    file.extend_from_slice(&note);
    file.extend_from_slice(archive);
    let hash = Sha256::digest(&file);
    file.extend_from_slice(&hash);
    file
}

fn unpack(mut file: Vec<u8>) -> Result<(Json, Vec<u8>), Error> {
    if !file.starts_with(MAGIC) {
        return Err(damaged("not an exported image or sandbox, or one of another version"));
    }
    let end = file.len().checked_sub(HASH).filter(|end| *end >= MAGIC.len() + 4);
    let end = end.ok_or_else(|| damaged("it is cut short"))?;
    if Sha256::digest(&file[..end])[..] != file[end..] {
        return Err(damaged("its content does not match its hash"));
    }
    file.truncate(end);
    let (length, rest) = file[MAGIC.len()..].split_first_chunk::<4>().ok_or_else(|| damaged("no note"))?;
    let length = u32::from_le_bytes(*length) as usize;
    let note =
        rest.get(..length).filter(|_| length <= NOTE).ok_or_else(|| damaged("its note is too long"))?;
    let note = serde_json::from_slice(note).map_err(|_| damaged("its note is not JSON"))?;
    file.drain(..MAGIC.len() + 4 + length);
    Ok((note, file))
}

impl Store {
    /// Returns an image as one file: files, shell, interpreters, and what it was made from. It must fit into `limits`.
    pub async fn export_image(&self, name: &str, limits: Limits) -> Result<Vec<u8>, Error> {
        self.export_image_within(name, limits, usize::MAX).await
    }

    /// Does the same, and fails as soon as it is longer than about `max` bytes ([`ArchiveError::TooLong`]).
    pub async fn export_image_within(
        &self,
        name: &str,
        limits: Limits,
        max: usize,
    ) -> Result<Vec<u8>, Error> {
        let (store, image) = (self.clone(), name.to_owned());
        let info = tokio::task::spawn_blocking(move || store.image(&image)).await.map_err(lost)??;
        let sandbox = Sandbox::builder().limits(limits).image(self, name).build().await?;
        let archive = sandbox.export_within(max).await;
        sandbox.destroy().await;
        let note = json!({
            "kind": "image", "name": info.name, "script": info.script, "base": info.base, "version": info.version,
        });
        Ok(pack(&note, &archive?))
    }

    /// Makes an image of a file that [`Store::export_image`] or [`Store::export_sandbox`] returned; returns its name, which is `name`
    /// or the one it had. The builder's limits are those that reading it keeps to.
    pub async fn import_image(
        &self,
        file: Vec<u8>,
        name: Option<&str>,
        builder: Builder,
    ) -> Result<String, Error> {
        let (note, archive) = tokio::task::spawn_blocking(move || unpack(file)).await.map_err(lost)??;
        let text = |key: &str| note[key].as_str();
        let name = name.or(text("name")).ok_or_else(|| damaged("its note has no name"))?.to_owned();
        let sandbox = builder.build().await?;
        let imported = match sandbox.import(archive).await {
            Ok(()) => {
                self.save_image(&sandbox, &name, text("script").unwrap_or_default(), text("base")).await
            }
            Err(error) => Err(error),
        };
        sandbox.destroy().await;
        imported.map(|()| name)
    }

    /// Returns a sandbox as one file: as it was at a commit, or as it was last saved. Its options, its mounts and its log are not
    /// in it.
    pub async fn export_sandbox(&self, name: &str, commit: Option<&str>) -> Result<Vec<u8>, Error> {
        let sandbox = self.view(name, commit).await?;
        let archive = sandbox.export().await;
        sandbox.destroy().await;
        Ok(pack(&json!({ "kind": "sandbox", "name": wardian_store::full_name(name)? }), &archive?))
    }

    /// Makes a sandbox of such a file, with a builder's options, saved under `name` or the name it had.
    pub async fn import_sandbox(
        &self,
        file: Vec<u8>,
        name: Option<&str>,
        builder: Builder,
    ) -> Result<Sandbox, Error> {
        let (note, archive) = tokio::task::spawn_blocking(move || unpack(file)).await.map_err(lost)??;
        let name = name.or(note["name"].as_str()).ok_or_else(|| damaged("its note has no name"))?.to_owned();
        let sandbox = builder.build().await?;
        // Only what could be read gets a name.
        let imported = match sandbox.import(archive).await {
            Ok(()) => sandbox.save_as(self, &name, super::Mode::Persistent, Json::Null).await,
            Err(error) => Err(error),
        };
        match imported {
            Ok(()) => Ok(sandbox),
            Err(error) => {
                sandbox.destroy().await;
                Err(error)
            }
        }
    }
}
