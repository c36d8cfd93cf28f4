//! Native code of Wardian's own programs, compiled once per machine and kept.
//!
//! An artifact is machine code that will be run as it is, so it is trusted like the program itself: only this user can
//! write to the directory, files appear in it complete or not at all, and their names contain the hash of the
//! WebAssembly and of everything about this engine that affects the code.

use std::collections::HashMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use wasmtime::{Engine, Module};

use crate::bulk;
use crate::kernel::KernelError;
use crate::memory::image::Image;
use crate::memory::kept;
use crate::preparing::Preparing;
use crate::program::ProgramSource;

/// The directory of artifacts.
pub(crate) struct ArtifactCache {
    /// `None` if no private directory is available: then every start compiles.
    dir: Option<PathBuf>,
    engine_key: String,
    /// What was loaded in advance: this process opens nothing else, and compiles nothing.
    held: Option<Mutex<Held>>,
}

/// What a process has loaded before it was sealed, by the paths of its files. Each is taken once.
#[derive(Default)]
struct Held {
    modules: HashMap<PathBuf, Module>,
    images: HashMap<PathBuf, Image>,
}

impl ArtifactCache {
    pub(crate) fn new(dir: Option<PathBuf>, engine: &Engine) -> ArtifactCache {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        bulk::VERSION.hash(&mut hasher);
        let engine_key = format!("{:016x}", hasher.finish());
        let dir = dir.or_else(default_dir).filter(|dir| match private_dir(dir) {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(dir = %dir.display(), %error, "compiled programs cannot be kept");
                false
            }
        });
        ArtifactCache { dir, engine_key, held: None }
    }

    /// Loads what there is of these programs, and of the start images made over the files that `files` stands for. From now
    /// on nothing else is opened.
    pub(crate) fn hold(&mut self, engine: &Engine, programs: &[ProgramSource], files: &str) {
        let mut held = Held::default();
        for source in programs {
            if let Some(path) = self.path(source)
                && let Some(module) = open_artifact(engine, &path)
            {
                held.modules.insert(path, module);
            }
            if let Some(path) = self.image_path(&source.sha256, files)
                && let Some(image) = kept::open(&path)
            {
                held.images.insert(path, image);
            }
        }
        self.held = Some(Mutex::new(held));
    }

    /// Returns whether nothing can be opened or compiled any more.
    pub(crate) fn is_sealed(&self) -> bool {
        self.held.is_some()
    }

    /// Opens the start image that is kept under a path.
    pub(crate) fn open_image(&self, path: &Path) -> Option<Image> {
        match &self.held {
            None => kept::open(path),
            Some(held) => held.lock().images.remove(path),
        }
    }

    /// Where a start image of the program with this hash is kept, made over the files that `files` stands for.
    pub(crate) fn image_path(&self, sha256: &str, files: &str) -> Option<PathBuf> {
        let name = format!("{sha256}-{}-{files}.{}.image", self.engine_key, kept::VERSION);
        Some(self.dir.as_ref()?.join(name))
    }

    fn path(&self, source: &ProgramSource) -> Option<PathBuf> {
        Some(self.dir.as_ref()?.join(format!("{}-{}.cwasm", source.sha256, self.engine_key)))
    }

    /// Whether there is an artifact of it.
    pub(crate) fn has(&self, source: &ProgramSource) -> bool {
        if let Some(held) = &self.held {
            return self.path(source).is_some_and(|path| held.lock().modules.contains_key(&path));
        }
        let meta = self.path(source).and_then(|path| fs::symlink_metadata(path).ok());
        meta.is_some_and(|meta| is_own_file(&meta))
    }

    /// The compiled module, from its artifact or by compiling it now.
    pub(crate) fn load(
        &self,
        engine: &Engine,
        source: &ProgramSource,
        progress: &dyn Fn(&str),
    ) -> Result<Module, KernelError> {
        if let Some(held) = &self.held {
            let module = self.path(source).and_then(|path| held.lock().modules.remove(&path));
            return module.ok_or_else(|| {
                let why = "it is not compiled, which a cell does not do: `wardian prepare` does it for this machine";
                KernelError::Program(source.name.clone(), why.to_owned())
            });
        }
        let path = self.path(source);
        if let Some(module) = path.as_deref().and_then(|path| open_artifact(engine, path)) {
            return Ok(module);
        }
        progress(&format!("preparing {} for this machine (once)", source.name));
        let _preparing = Preparing::begin(&source.name);
        let wasm = (source.wasm)().map_err(|e| KernelError::Program(source.name.clone(), e.to_string()))?;
        if hex(&Sha256::digest(&wasm)) != source.sha256 {
            let message = "its bytes do not match the manifest".to_owned();
            return Err(KernelError::Program(source.name.clone(), message));
        }
        let code = engine.precompile_module(&bulk::in_pieces(&wasm))?;
        if let Some(path) = path {
            // A full disk must not keep anyone from working: the code is here, only the next start compiles again.
            if let Err(error) = write_artifact(&path, &code) {
                tracing::warn!(path = %path.display(), %error, "could not keep a compiled program");
            } else if let Some(module) = open_artifact(engine, &path) {
                return Ok(module);
            }
        }
        // SAFETY: `code` was made by this engine a moment ago and never left this process.
        Ok(unsafe { Module::deserialize(engine, &code) }?)
    }
}

/// The module whose code a compiler's process has written to a memory file.
pub(crate) fn from_compiler(engine: &Engine, code: File) -> wasmtime::Result<Module> {
    // SAFETY: the file was made by this process and given to the compiler's process alone, which is this very program,
    // has ended, and is trusted to write what `precompile_module` answers: docs/security.md says what that means.
    unsafe { Module::deserialize_open_file(engine, code) }
}

fn default_dir() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(dir) = absolute("WARDIAN_CACHE_DIR") {
        return Some(dir);
    }
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("wardian"))
}

/// Creates the directory if necessary, and requires that no one else can write there.
fn private_dir(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let meta = fs::symlink_metadata(dir)?;
    // SAFETY: geteuid has no preconditions.
    let me = unsafe { libc::geteuid() };
    if !meta.is_dir() || meta.uid() != me || meta.mode() & 0o022 != 0 {
        return Err(io::Error::other("it is not a directory that only this user can write"));
    }
    Ok(())
}

/// Whether this is a file that only this user can have written.
pub(crate) fn is_own_file(meta: &fs::Metadata) -> bool {
    // SAFETY: geteuid has no preconditions.
    meta.is_file() && meta.uid() == unsafe { libc::geteuid() } && meta.mode() & 0o022 == 0
}

/// Maps an artifact, if it exists, belongs to this user and is complete.
fn open_artifact(engine: &Engine, path: &Path) -> Option<Module> {
    if !is_own_file(&fs::symlink_metadata(path).ok()?) {
        return None;
    }
    // SAFETY: the file lies in a directory only this user can write, under a name only `write_artifact` gives, which
    // renames complete files into place. Anyone who can change it can change this program too.
    match unsafe { Module::deserialize_file(engine, path) } {
        Ok(module) => Some(module),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "dropping a compiled program that cannot be used");
            let _ = fs::remove_file(path);
            None
        }
    }
}

fn write_artifact(path: &Path, code: &[u8]) -> io::Result<()> {
    write_whole(path, |file| file.write_all(code))
}

/// Writes a file that appears with its name once it is complete.
pub(crate) fn write_whole(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = (|| {
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        write(&mut file)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
