//! The libraries in C that CPython's modules are linked with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{MACROS, Place, archive, compile};

/// A library and what it is made from.
struct Library {
    name: &'static str,
    package: &'static str,
    /// Directories below the package with its headers.
    include: &'static [&'static str],
    /// Those that go to who uses it.
    headers: &'static [&'static str],
    /// Directories, or files without their ending.
    sources: &'static [&'static str],
    /// Files in those directories that are not part of it.
    without: &'static [&'static str],
    flags: &'static [&'static str],
}

const LIBRARIES: &[Library] = &[
    Library {
        name: "z",
        package: "zlib",
        include: &[],
        headers: &["zlib.h", "zconf.h"],
        sources: &[
            "adler32", "compress", "crc32", "deflate", "infback", "inffast", "inflate", "inftrees", "trees",
            "uncompr", "zutil",
        ],
        without: &[],
        flags: &["-DHAVE_UNISTD_H"],
    },
    Library {
        name: "bz2",
        package: "bzip2",
        include: &[],
        headers: &["bzlib.h"],
        sources: &["blocksort", "huffman", "crctable", "randtable", "compress", "decompress", "bzlib"],
        without: &[],
        flags: &[],
    },
    Library {
        name: "lzma",
        package: "xz-utils",
        include: &["api", "common", "check", "lz", "rangecoder", "lzma", "delta", "simple", "../common"],
        headers: &["src/liblzma/api/lzma.h", "src/liblzma/api/lzma"],
        sources: &[
            "src/liblzma/common",
            "src/liblzma/check",
            "src/liblzma/lz",
            "src/liblzma/lzma",
            "src/liblzma/rangecoder",
            "src/liblzma/delta",
            "src/liblzma/simple",
            "src/common/tuklib_physmem",
        ],
        // Threads, small tables in the place of large ones, programs that print tables.
        without: &["_mt", "_small", "tablegen", "outqueue", "hardware_cputhreads", "microlzma"],
        flags: &[
            "-DHAVE_STDINT_H",
            "-DHAVE_STDBOOL_H",
            "-DHAVE_INTTYPES_H",
            "-DHAVE_LIMITS_H",
            "-DHAVE_STRING_H",
            "-DTUKLIB_SYMBOL_PREFIX=lzma_",
            "-DHAVE_CHECK_CRC32",
            "-DHAVE_CHECK_CRC64",
            "-DHAVE_CHECK_SHA256",
            "-DHAVE_ENCODERS",
            "-DHAVE_DECODERS",
            "-DSIZEOF_SIZE_T=4",
            "-DASSUME_RAM=128",
            "-DHAVE_MF_HC3",
            "-DHAVE_MF_HC4",
            "-DHAVE_MF_BT2",
            "-DHAVE_MF_BT3",
            "-DHAVE_MF_BT4",
            "-DHAVE_LZIP_DECODER",
            "-DHAVE_ENCODER_LZMA1",
            "-DHAVE_ENCODER_LZMA2",
            "-DHAVE_ENCODER_DELTA",
            "-DHAVE_ENCODER_X86",
            "-DHAVE_ENCODER_POWERPC",
            "-DHAVE_ENCODER_IA64",
            "-DHAVE_ENCODER_ARM",
            "-DHAVE_ENCODER_ARMTHUMB",
            "-DHAVE_ENCODER_ARM64",
            "-DHAVE_ENCODER_SPARC",
            "-DHAVE_ENCODER_RISCV",
            "-DHAVE_DECODER_LZMA1",
            "-DHAVE_DECODER_LZMA2",
            "-DHAVE_DECODER_DELTA",
            "-DHAVE_DECODER_X86",
            "-DHAVE_DECODER_POWERPC",
            "-DHAVE_DECODER_IA64",
            "-DHAVE_DECODER_ARM",
            "-DHAVE_DECODER_ARMTHUMB",
            "-DHAVE_DECODER_ARM64",
            "-DHAVE_DECODER_SPARC",
            "-DHAVE_DECODER_RISCV",
        ],
    },
];

/// The crate whose copy of SQLite is taken: the one that the command `sqlite3` is built from.
const SQLITE_CRATE: &str = "libsqlite3-sys";

const SQLITE: &[&str] = &[
    "-DSQLITE_THREADSAFE=0",
    "-DSQLITE_OMIT_LOAD_EXTENSION",
    "-DSQLITE_ENABLE_FTS3",
    "-DSQLITE_ENABLE_FTS4",
    "-DSQLITE_ENABLE_FTS5",
    "-DSQLITE_ENABLE_RTREE",
    "-DSQLITE_ENABLE_MATH_FUNCTIONS",
    "-DSQLITE_ENABLE_DBSTAT_VTAB",
    "-DSQLITE_ENABLE_COLUMN_METADATA",
    "-DSQLITE_ENABLE_SERIALIZE",
    "-DSQLITE_MAX_MMAP_SIZE=0",
    "-DHAVE_USLEEP=1",
    // Chooses how files are locked (guests/python/sqlite.c).
    "-DSQLITE_EXTRA_INIT=wardian_sqlite_init",
];

pub(super) fn directory(place: &Place) -> PathBuf {
    place.work.join("libraries")
}

pub(super) fn build(place: &Place) -> Result<()> {
    for library in LIBRARIES {
        println!("cpython: building lib{}", library.name);
        library.build(place)?;
    }
    println!("cpython: building libsqlite3");
    let source = sqlite_source(place)?;
    let include = directory(place).join("include");
    for header in ["sqlite3.h", "sqlite3ext.h"] {
        fs::copy(source.join(header), include.join(header))?;
    }
    let files = [source.join("sqlite3.c"), place.guests.join("python/sqlite.c")];
    let flags = compiler(place, &[include], SQLITE);
    let objects = compile(place, &flags, &files, &place.work.join("objects-libraries"), "sqlite3")?;
    archive(&objects, &directory(place).join("lib/libsqlite3.a"))
}

fn compiler(place: &Place, include: &[PathBuf], flags: &[&str]) -> Vec<String> {
    let mut all = place.flags();
    all.extend(
        MACROS
            .iter()
            .chain(&["-O2", "-w", "-DNDEBUG", "-std=gnu11"])
            .chain(flags)
            .map(|&flag| flag.to_owned()),
    );
    all.extend(include.iter().map(|directory| format!("-I{}", directory.display())));
    all.push(format!("-isystem{}", place.sysroot().join("include").display()));
    all
}

impl Library {
    fn build(&self, place: &Place) -> Result<()> {
        let package = place.source(self.package);
        let include = directory(place).join("include");
        fs::create_dir_all(&include)?;
        for header in self.headers {
            let (from, name) = (package.join(header), header.rsplit('/').next().unwrap_or(header));
            match from.is_dir() {
                true => super::copy_files(&from, &include.join(name), &|_| true)?,
                false => drop(fs::copy(&from, include.join(name))?),
            }
        }
        let within: Vec<PathBuf> =
            self.include.iter().map(|at| package.join("src/liblzma").join(at)).collect();
        let flags = compiler(place, &within, self.flags);
        let objects = place.work.join("objects-libraries");
        let objects = compile(place, &flags, &self.files(&package)?, &objects, self.name)?;
        archive(&objects, &directory(place).join(format!("lib/lib{}.a", self.name)))
    }

    fn files(&self, package: &Path) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for source in self.sources {
            let path = package.join(source);
            if !path.is_dir() {
                files.push(path.with_extension("c"));
                continue;
            }
            for entry in fs::read_dir(&path)? {
                let file = entry?.path();
                let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let is_c = file.extension().is_some_and(|extension| extension == "c");
                if is_c && !self.without.iter().any(|part| name.contains(part)) {
                    files.push(file);
                }
            }
        }
        files.sort();
        Ok(files)
    }
}

/// The version of SQLite's crate that the workspace of the guests is locked to.
pub(super) fn sqlite_version(place: &Place) -> Result<String> {
    let lock =
        fs::read_to_string(place.guests.join("Cargo.lock")).context("cannot read guests/Cargo.lock")?;
    let block = lock.split("[[package]]").find(|block| block.contains(&format!("name = \"{SQLITE_CRATE}\"")));
    let version = block.and_then(|block| block.lines().find_map(|line| line.strip_prefix("version = ")));
    Ok(version
        .with_context(|| format!("guests/Cargo.lock does not have {SQLITE_CRATE}"))?
        .trim_matches('"')
        .to_owned())
}

fn sqlite_source(place: &Place) -> Result<PathBuf> {
    crate::run(Command::new("cargo").args(["fetch", "--locked"]).current_dir(&place.guests))?;
    let name = format!("{SQLITE_CRATE}-{}/sqlite3", sqlite_version(place)?);
    let found = crate::toolchain::registries()
        .into_iter()
        .map(|registry| registry.join(&name))
        .find(|path| path.is_dir());
    match found {
        Some(path) => Ok(path),
        None => bail!("cargo has fetched no {name}"),
    }
}
