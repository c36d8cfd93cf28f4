//! The programs that ship with Wardian, from `guests/dist`.

use std::sync::Arc;

use sha2::{Digest, Sha256};
use wardian_kernel::{KernelError, ProgramSource};
use wardian_vfs::{Content, Errno};

/// A program as embedded in this binary.
pub(crate) struct Shipped {
    pub(crate) name: &'static str,
    compressed: &'static [u8],
}

/// The shell: `bash`, `sh`, and the program of every session.
pub(crate) const SHELL: Shipped =
    Shipped { name: "sh", compressed: include_bytes!("../../../guests/dist/sh.wasm.zst") };
/// The Unix tools, all in one program.
pub(crate) const TOOLS: Shipped =
    Shipped { name: "tools", compressed: include_bytes!("../../../guests/dist/tools.wasm.zst") };

/// Large programs that few sandboxes use: each is loaded when it is first started.
pub(crate) const LATER: &[Shipped] = &[
    Shipped { name: "archive", compressed: include_bytes!("../../../guests/dist/archive.wasm.zst") },
    Shipped { name: "git", compressed: include_bytes!("../../../guests/dist/git.wasm.zst") },
    Shipped { name: "jq", compressed: include_bytes!("../../../guests/dist/jq.wasm.zst") },
    Shipped { name: "make", compressed: include_bytes!("../../../guests/dist/make.wasm.zst") },
    Shipped { name: "net", compressed: include_bytes!("../../../guests/dist/net.wasm.zst") },
    Shipped { name: "node", compressed: include_bytes!("../../../guests/dist/node.wasm.zst") },
    Shipped { name: "python3", compressed: include_bytes!("../../../guests/dist/python3.wasm.zst") },
    Shipped { name: "sqlite3", compressed: include_bytes!("../../../guests/dist/sqlite3.wasm.zst") },
];

/// Returns the names of all programs that ship with Wardian, those of every sandbox first.
pub fn program_names() -> Vec<&'static str> {
    [&SHELL, &TOOLS].into_iter().chain(LATER).map(|program| program.name).collect()
}

const MANIFEST: &str = include_str!("../../../guests/dist/MANIFEST");

/// The name of Python's program.
pub(crate) const PYTHON: &str = "python3";

/// Returns the hash of its WebAssembly.
pub(crate) fn python_hash() -> Result<&'static str, KernelError> {
    Shipped { name: PYTHON, compressed: &[] }.sha256()
}

/// Stands for all that ships: programs and libraries.
pub(crate) fn key() -> String {
    Sha256::digest(MANIFEST).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// What the manifest says about a program.
struct Recorded {
    /// The size of its WebAssembly in bytes.
    size: u64,
    /// Its hash.
    sha256: &'static str,
    /// Its names in `/bin`.
    links: Vec<&'static str>,
}

impl Shipped {
    fn recorded(&self) -> Result<Recorded, KernelError> {
        let wrong = || KernelError::Program(self.name.to_owned(), "it is not in the manifest".to_owned());
        let mut lines = MANIFEST.lines().skip_while(|line| line.strip_prefix("program ") != Some(self.name));
        lines.next().ok_or_else(wrong)?;
        let block: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
        let value = |key: &str| block.iter().find_map(|line| line.strip_prefix(key)).ok_or_else(wrong);
        let (size, sha256) = value("wasm ")?.split_once(' ').ok_or_else(wrong)?;
        let links = value("links ")?.split(' ').collect();
        Ok(Recorded { size: size.parse().map_err(|_| wrong())?, sha256, links })
    }

    /// Returns the hash of its WebAssembly.
    pub(crate) fn sha256(&self) -> Result<&'static str, KernelError> {
        Ok(self.recorded()?.sha256)
    }

    /// Returns its names in `/bin`: those it was built with, whatever its sources say now.
    pub(crate) fn links(&self) -> Result<Vec<&'static str>, KernelError> {
        Ok(self.recorded()?.links)
    }

    /// Returns what the kernel compiles, or loads from where an earlier start compiled it.
    pub(crate) fn source(&self) -> Result<ProgramSource, KernelError> {
        let compressed = self.compressed;
        Ok(ProgramSource {
            name: self.name.to_owned(),
            sha256: self.recorded()?.sha256.to_owned(),
            wasm: Box::new(move || zstd::decode_all(compressed)),
        })
    }

    /// Returns its bytes as a file, decompressed when they are read.
    pub(crate) fn content(&self) -> Result<Content, KernelError> {
        let compressed = self.compressed;
        let load = move || Ok(Arc::from(zstd::decode_all(compressed).map_err(|_| Errno::EIO)?));
        Ok(Content::Lazy { len: self.recorded()?.size, load: Arc::new(load) })
    }
}
