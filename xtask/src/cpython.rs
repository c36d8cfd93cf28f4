//! `cargo xtask cpython`: builds CPython for the sandbox, from Debian's source packages, into guests/dist.
//!
//! ```text
//! sources     Debian's source packages, at fixed versions, fetched from the machine's own mirror
//! sysroot     musl over guests/libc: Linux's headers, numbers and system calls over the kernel's
//! libraries   zlib, bzip2, xz and SQLite, compiled against it
//! native      CPython for this machine: it compiles the library, and is what the tests' answers are recorded from
//! wasm        CPython's own configure and make, with guests/python/patches; guests/python/main.c is linked to it
//! science     numpy and pandas: their modules in C are linked to it as well
//! packages    wheels from the package index, at fixed versions: what is ready in the sandbox
//! dist        the program, its library packed into one file, the packages into another, numpy and pandas into a third
//! ```
//! docs/cpython.md says what one needs and how long it takes.

mod interpreter;
mod libraries;
mod library;
mod packages;
mod science;
mod sources;
mod sysroot;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::manifest::{self, Artifact, Entry, Manifest};
use crate::state;

/// Its name in `guests/dist`.
const NAME: &str = "python3";

/// The version of CPython, without the last number.
fn version() -> &'static str {
    sources::CPYTHON.trim_start_matches("python")
}

/// What it is called in the sandbox.
fn links() -> Vec<String> {
    vec!["python3".to_owned(), "python".to_owned(), sources::CPYTHON.to_owned()]
}

/// Where things are.
struct Place {
    guests: PathBuf,
    /// Everything that is fetched and built.
    work: PathBuf,
}

impl Place {
    fn new() -> Place {
        let guests = crate::root().join("guests");
        Place { work: guests.join("target/python"), guests }
    }

    fn dist(&self) -> PathBuf {
        self.guests.join("dist")
    }

    fn source(&self, package: &str) -> PathBuf {
        self.work.join(package)
    }

    fn cpython(&self) -> PathBuf {
        self.source(sources::CPYTHON)
    }

    /// The same with our patches.
    fn patched(&self) -> PathBuf {
        self.work.join("patched")
    }

    fn sysroot(&self) -> PathBuf {
        self.work.join("sysroot")
    }

    /// What clang is told for every file that is compiled: no path of this machine may end up in the program.
    fn flags(&self) -> Vec<String> {
        let mut flags: Vec<String> = FLAGS.iter().map(|&flag| flag.to_owned()).collect();
        flags.push(format!("-ffile-prefix-map={}=.", self.work.display()));
        flags.push(format!("-ffile-prefix-map={}=guests", self.guests.display()));
        flags
    }
}

/// WebAssembly as far as the kernel admits it, and what a program on Linux expects to be defined.
const FLAGS: &[&str] = &[
    "--target=wasm32-unknown-unknown",
    "-mbulk-memory",
    "-msign-ext",
    "-mnontrapping-fptoint",
    "-mmutable-globals",
    "-nostdlibinc",
];
const MACROS: &[&str] = &["-D__linux__=1", "-D__unix__=1", "-D__wardian__=1"];
const CLANG: &str = "clang-22";
const AR: &str = "llvm-ar-22";

/// What must be installed, by a file of it: the compiler, and the libraries that the native CPython is linked with.
const PACKAGES: &[(&str, &str)] = &[
    ("/usr/bin/clang-22", "clang-22"),
    ("/usr/bin/wasm-ld-22", "lld-22"),
    ("/usr/bin/llvm-ar-22", "llvm-22"),
    ("/usr/lib/llvm-22/lib/clang/22/lib/wasi/libclang_rt.builtins-wasm32.a", "libclang-rt-22-dev-wasm32"),
    ("/usr/include/zlib.h", "zlib1g-dev"),
    ("/usr/include/bzlib.h", "libbz2-dev"),
    ("/usr/include/lzma.h", "liblzma-dev"),
    ("/usr/include/sqlite3.h", "libsqlite3-dev"),
    ("/usr/lib/python3/dist-packages/pip", "python3-pip"),
    ("/usr/bin/ninja", "ninja-build"),
    ("/usr/lib/llvm-22/lib/wasm32-wasi/libc++.a", "libc++-22-dev-wasm32"),
    ("/usr/lib/llvm-22/lib/wasm32-wasi/libc++abi.a", "libc++abi-22-dev-wasm32"),
];

/// The directory of CPython's test suite, fetched if it is not there.
pub fn test_suite() -> Result<PathBuf> {
    let place = Place::new();
    sources::fetch_cpython(&place)?;
    Ok(place.cpython().join("Lib/test"))
}

/// Builds it if its sources changed; `--check` only says whether they did.
pub fn main(arguments: &[String]) -> Result<()> {
    let place = Place::new();
    match arguments {
        [check] if check == "--check" => {
            return staleness()?.map_or(Ok(()), |reason| bail!("guests/dist/{NAME} is stale: {reason}"));
        }
        [force] if force == "--force" => {}
        [] if staleness()?.is_none() => {
            println!("cpython: it is up to date");
            return Ok(());
        }
        [] => {}
        _ => bail!("cargo xtask cpython [--check | --force]"),
    }
    crate::toolchain::install_missing(PACKAGES)?;
    let hash = source_hash(&place)?;
    sources::fetch(&place)?;
    sysroot::build(&place)?;
    libraries::build(&place)?;
    interpreter::build_native(&place)?;
    let wasm = interpreter::build(&place)?;
    state::check(&wasm).context("it cannot be wiped and used again")?;
    let here = place.work.display().to_string();
    if wasm.windows(here.len()).any(|bytes| bytes == here.as_bytes()) {
        bail!("a path of this machine is in the program: {here}");
    }
    let library = library::pack(&place)?;
    let packages = packages::pack(&place)?;
    let science = science::pack(&place)?;
    write_dist(&place, hash, &wasm, [&library, &packages, &science])
}

fn write_dist(place: &Place, sources: String, wasm: &[u8], files: [&[u8]; 3]) -> Result<()> {
    let [library, packages, science] = files;
    let packed = zstd::encode_all(wasm, 22).context("cannot compress")?;
    let compiler = crate::output(Command::new(CLANG).arg("--version"))?;
    let compiler = String::from_utf8_lossy(&compiler).lines().next().unwrap_or_default().to_owned();
    let entry = Entry {
        sources,
        compiler,
        wasm: Artifact::of(wasm),
        zstd: Artifact::of(&packed),
        links: links(),
        library: Some(Artifact::of(library)),
        packages: Some(Artifact::of(packages)),
        science: Some(Artifact::of(science)),
    };
    println!(
        "cpython: {} bytes, {} compressed, library {}, packages {}, numpy and pandas {}",
        wasm.len(),
        packed.len(),
        library.len(),
        packages.len(),
        science.len()
    );
    check_sizes([packed.len() + library.len(), packages.len(), science.len()])?;
    let dist = place.dist();
    fs::write(dist.join(format!("{NAME}.wasm.zst")), &packed)?;
    fs::write(dist.join(format!("{NAME}.lib")), library)?;
    fs::write(dist.join(format!("{NAME}-packages.lib")), packages)?;
    fs::write(dist.join(format!("{NAME}-science.lib")), science)?;
    let mut manifest = Manifest::read(&dist)?;
    manifest.0.insert(NAME.to_owned(), entry);
    manifest.write(&dist)
}

/// The most that interpreter and standard library, the packages, and the files of numpy and pandas may take: they are part of
/// every binary.
const SIZES: [usize; 3] = [12 << 20, 6_000_000, 5 << 20];

fn check_sizes(sizes: [usize; 3]) -> Result<()> {
    if sizes.iter().zip(SIZES).any(|(&size, most)| size > most) {
        bail!("too large: {sizes:?} bytes, of {SIZES:?}");
    }
    Ok(())
}

/// Why what is in `dist` is not what the sources would give, if so.
pub fn staleness() -> Result<Option<String>> {
    let place = Place::new();
    let manifest = Manifest::read(&place.dist())?;
    let Some(entry) = manifest.0.get(NAME) else {
        return Ok(Some("MANIFEST does not have it".into()));
    };
    if entry.sources != source_hash(&place)? {
        return Ok(Some("its sources changed".into()));
    }
    let is = |file: &str, recorded: Option<&Artifact>| {
        fs::read(place.dist().join(file)).is_ok_and(|bytes| recorded == Some(&Artifact::of(&bytes)))
    };
    let whole = is(&format!("{NAME}.wasm.zst"), Some(&entry.zstd))
        && is(&format!("{NAME}.lib"), entry.library.as_ref())
        && is(&format!("{NAME}-packages.lib"), entry.packages.as_ref())
        && is(&format!("{NAME}-science.lib"), entry.science.as_ref());
    Ok((!whole).then(|| "a file is not the one MANIFEST describes".into()))
}

/// The hash of everything of ours that decides what is built, and of the versions of what is not ours.
fn source_hash(place: &Place) -> Result<String> {
    let mut hash = Sha256::new();
    for directory in ["libc", "python"] {
        for file in manifest::source_files(&place.guests.join(directory))? {
            let name = file.strip_prefix(&place.guests).expect("it lies under guests").display().to_string();
            let content = fs::read(&file).with_context(|| format!("cannot read {name}"))?;
            hash.update(format!("{name}\n{}\n", content.len()));
            hash.update(content);
        }
    }
    hash.update(format!("{:?}", (sources::PACKAGES, sources::ZONES, FLAGS, MACROS, links())));
    hash.update(science::settings());
    hash.update(libraries::sqlite_version(place)?);
    Ok(manifest::hex(&hash.finalize()))
}

/// Compiles files, as many at a time as there are processors; answers their objects. An object that is newer than its
/// source is kept, if neither a flag nor a header of ours changed.
fn compile(
    place: &Place,
    compiler: &[String],
    files: &[PathBuf],
    objects: &Path,
    prefix: &str,
) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(objects)?;
    let (stamp, basis) = (objects.join(format!("{prefix}.stamp")), headers(place, compiler)?);
    let is_same = fs::read_to_string(&stamp).is_ok_and(|before| before == basis);
    let changed = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let object = |file: &Path| {
        let name: Vec<_> = file.iter().rev().take(2).map(|part| part.to_string_lossy()).collect();
        objects.join(format!("{prefix}_{}_{}.o", name[1], name[0].trim_end_matches(".c")))
    };
    let pending = Mutex::new(files.iter());
    let failed = Mutex::new(Vec::new());
    let work = || {
        loop {
            let Some(file) = pending.lock().expect("nobody panics with it").next() else { return };
            if is_same && changed(&object(file)) > changed(file) {
                continue;
            }
            let mut command = Command::new(CLANG);
            command.args(compiler).arg("-c").arg(file).arg("-o").arg(object(file));
            if let Err(error) = crate::output(&mut command) {
                failed.lock().expect("nobody panics with it").push(format!("{error:#}"));
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let failed = failed.into_inner().expect("nobody panics with it");
    if !failed.is_empty() {
        bail!("{}", failed.join("\n"));
    }
    fs::write(stamp, basis)?;
    Ok(files.iter().map(|file| object(file)).collect())
}

/// A text that changes with the flags and with the headers of guests/libc.
fn headers(place: &Place, compiler: &[String]) -> Result<String> {
    let mut hash = Sha256::new();
    for file in manifest::source_files(&place.guests.join("libc"))? {
        if file.extension().is_none_or(|extension| extension != "c") {
            hash.update(fs::read(&file)?);
        }
    }
    Ok(format!("{} {}", compiler.join(" "), manifest::hex(&hash.finalize())))
}

/// Runs a command with its output in a file, of which the end is shown if it fails.
fn quietly(command: &mut Command, directory: &Path, log: &str) -> Result<()> {
    // Settings of the cargo above must not reach a compiler below. Times and places must not reach the program.
    for leaked in ["CFLAGS", "LDFLAGS", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH"] {
        if !command.get_envs().any(|(name, _)| name == leaked) {
            command.env_remove(leaked);
        }
    }
    command.env("SOURCE_DATE_EPOCH", "1700000000").env("LC_ALL", "C.UTF-8");
    let path = directory.join(log);
    let file = fs::File::create(&path)?;
    let status = command.current_dir(directory).stdout(file.try_clone()?).stderr(file).status()?;
    if !status.success() {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        bail!("{}: {status}\n{}", path.display(), lines[lines.len().saturating_sub(30)..].join("\n"));
    }
    Ok(())
}

/// A static library of these objects.
fn archive(objects: &[PathBuf], library: &Path) -> Result<()> {
    fs::create_dir_all(library.parent().context("a library lies in a directory")?)?;
    if library.exists() {
        fs::remove_file(library)?;
    }
    crate::run(Command::new(AR).arg("rcsD").arg(library).args(objects))
}

fn copy_files(from: &Path, to: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            copy_files(&path, &to.join(&name), wanted)?;
        } else if wanted(&name) {
            fs::copy(&path, to.join(&name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn dist_is_not_stale() {
        assert_eq!(super::staleness().unwrap(), None, "run `cargo xtask cpython` and commit the result");
    }
}
