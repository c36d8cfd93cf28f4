//! Where a compiler for `wasm32-wasip1` comes from: rustup's target where it is installed, else Debian's own
//! compiler, which builds the standard library from source.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

pub const TARGET: &str = "wasm32-wasip1";

/// Debian's packages for a machine without rustup's target (the `-web` ones are the Rust that Firefox is built with).
const DEBIAN_RUST: &[(&str, &str)] = &[
    ("/usr/bin/rustc", "rustc-web"),
    ("/usr/bin/cargo", "cargo-web"),
    ("/usr/lib/rustlib/src/rust/library/std/Cargo.toml", "rust-web-src"),
    ("/usr/bin/wasm-ld-22", "lld-22"),
];

/// What compiles the C inside some crates, on either route.
const DEBIAN_C: &[(&str, &str)] = &[("/usr/bin/clang-22", "clang-22"), ("/usr/bin/llvm-ar-22", "llvm-22")];

/// The release of Debian whose wasi-libc is new enough: older ones lack symbols that Rust's std wants.
const WASI_LIBC_SUITE: &str = "trixie-backports";

/// A way to turn a crate of `guests/` into WebAssembly.
pub struct Toolchain {
    route: Route,
    /// Holds `include/wasm32-wasip1` and `lib/wasm32-wasip1`.
    sysroot: PathBuf,
    target_dir: PathBuf,
}

enum Route {
    Rustup,
    Debian,
}

impl Toolchain {
    /// Picks the route this machine offers and fetches what is missing.
    pub fn find(target_dir: &Path) -> Result<Toolchain> {
        let route = if rustup_has_the_target()? { Route::Rustup } else { Route::Debian };
        if let Route::Debian = route {
            install_missing(DEBIAN_RUST)?;
        }
        install_missing(DEBIAN_C)?;
        let sysroot = find_sysroot(target_dir)?;
        Ok(Toolchain { route, sysroot, target_dir: target_dir.into() })
    }

    /// The version of the compiler, for the record.
    pub fn version(&self) -> Result<String> {
        let rustc = match self.route {
            Route::Rustup => "rustc",
            Route::Debian => "/usr/bin/rustc",
        };
        let version = crate::output(Command::new(rustc).arg("--version"))?;
        Ok(String::from_utf8_lossy(&version).trim().to_owned())
    }

    /// A `cargo rustc --release` for one program: the caller adds the package, and after `--` the linker's arguments.
    pub fn cargo_rustc(&self, guests: &Path) -> Command {
        let mut cargo = match self.route {
            Route::Rustup => Command::new("cargo"),
            Route::Debian => Command::new("/usr/bin/cargo"),
        };
        cargo.current_dir(guests).args(["rustc", "--release", "--locked", "--target", TARGET]);
        // `cargo xtask` itself runs under a cargo whose settings must not leak into this one.
        for leaked in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS", "LD_LIBRARY_PATH"] {
            cargo.env_remove(leaked);
        }
        cargo.env("CARGO_TARGET_DIR", &self.target_dir);
        cargo.env("CARGO_ENCODED_RUSTFLAGS", self.rustflags(guests).join("\u{1f}"));
        self.compile_c(&mut cargo);
        if let Route::Debian = self.route {
            cargo.args(["-Z", "build-std=std,panic_abort"]);
            cargo.env("RUSTC_BOOTSTRAP", "1").env("RUSTC", "/usr/bin/rustc");
            cargo.env("CARGO_TARGET_WASM32_WASIP1_LINKER", "wasm-ld-22");
        }
        cargo
    }

    /// Linker arguments a program needs on this route in addition to its own. They are given to the program alone, since
    /// some crate in the tree is also linked as a library, which has no `main` to start.
    pub fn start_files(&self) -> Vec<String> {
        match self.route {
            Route::Rustup => vec![],
            Route::Debian => vec![self.libraries().join("crt1-command.o").display().to_string()],
        }
    }

    fn libraries(&self) -> PathBuf {
        self.sysroot.join("lib").join(TARGET)
    }

    /// Flags for every crate. No path of this machine may end up in a program: it would differ elsewhere.
    fn rustflags(&self, guests: &Path) -> Vec<String> {
        let mut flags = vec!["-Ctarget-feature=+simd128,+bulk-memory".to_owned()];
        for (from, to) in [(guests.to_owned(), "guests"), (cargo_home(), "cargo")] {
            flags.push(format!("--remap-path-prefix={}={to}", from.display()));
        }
        for registry in registries() {
            // The last matching prefix wins, and a registry's directory is named after its host.
            flags.push(format!("--remap-path-prefix={}=crates", registry.display()));
        }
        if let Route::Debian = self.route {
            flags.push("--remap-path-prefix=/usr/lib/rustlib/src/rust=rust".to_owned());
            flags.push("-Clink-self-contained=no".to_owned());
            flags.push(format!("-Lnative={}", self.libraries().display()));
        }
        flags
    }

    fn compile_c(&self, cargo: &mut Command) {
        let include = self.sysroot.join("include").join(TARGET);
        let emulated =
            ["MMAN", "SIGNAL", "PROCESS_CLOCKS", "GETPID"].map(|what| format!("-D_WASI_EMULATED_{what}"));
        let flags = format!("--target={TARGET} -isystem {} {}", include.display(), emulated.join(" "));
        cargo.env("CC_wasm32_wasip1", "clang-22").env("AR_wasm32_wasip1", "llvm-ar-22");
        cargo.env("CFLAGS_wasm32_wasip1", flags);
        // QuickJS's crate would download a compiler of its own.
        cargo.env("RQUICKJS_SYS_NO_WASI_SDK", "1");
    }
}

fn rustup_has_the_target() -> Result<bool> {
    let sysroot = crate::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&sysroot).trim());
    Ok(sysroot.join("lib/rustlib").join(TARGET).join("lib").is_dir())
}

fn cargo_home() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

pub fn registries() -> Vec<PathBuf> {
    let entries = fs::read_dir(cargo_home().join("registry/src")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Installs the packages of which a file is missing, or says which ones they are.
pub fn install_missing(wanted: &[(&str, &str)]) -> Result<()> {
    let missing: Vec<&str> =
        wanted.iter().filter(|(file, _)| !Path::new(file).exists()).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let install = format!("apt-get install -y --no-install-recommends {}", missing.join(" "));
    if !is_root() {
        bail!(
            "building guests needs rustup's target (rustup target add {TARGET}) and clang-22, or Debian's compiler.\n\
             On Debian 12 this installs what is missing here: {install}"
        );
    }
    println!("guests: {install}");
    crate::run(Command::new("sh").args(["-c", &install]))
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// The machine's own wasi-libc if it is one that knows `wasm32-wasip1`, else one unpacked for us alone.
fn find_sysroot(target_dir: &Path) -> Result<PathBuf> {
    let complete = |sysroot: &Path| sysroot.join("lib").join(TARGET).join("crt1-command.o").is_file();
    let ours = target_dir.join("sysroot");
    for sysroot in [PathBuf::from("/usr"), ours.join("usr")] {
        if complete(&sysroot) {
            return Ok(sysroot);
        }
    }
    fetch_wasi_libc(&ours).with_context(|| {
        format!(
            "cannot fetch wasi-libc; unpack Debian's package of {WASI_LIBC_SUITE} into {}",
            ours.display()
        )
    })?;
    if !complete(&ours.join("usr")) {
        bail!("the wasi-libc of {WASI_LIBC_SUITE} has no lib/{TARGET}");
    }
    Ok(ours.join("usr"))
}

/// Downloads the package with an apt directory of our own, so that the machine's is left as it was.
fn fetch_wasi_libc(sysroot: &Path) -> Result<()> {
    println!("guests: fetching wasi-libc of {WASI_LIBC_SUITE}");
    let apt = PrivateApt::new(&sysroot.join("apt"), WASI_LIBC_SUITE, "deb")?;
    apt.run(&apt.directory, &["download", &format!("wasi-libc/{WASI_LIBC_SUITE}")])?;
    for entry in fs::read_dir(&apt.directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            crate::run(Command::new("dpkg-deb").arg("-x").arg(&path).arg(sysroot))?;
        }
    }
    Ok(())
}

/// An apt directory of our own for another release of Debian: the machine's is left as it was.
pub struct PrivateApt {
    directory: PathBuf,
}

impl PrivateApt {
    /// With the packages of `suite`: `deb` for built ones, `deb-src` for sources.
    pub fn new(directory: &Path, suite: &str, kind: &str) -> Result<PrivateApt> {
        for part in ["lists/partial", "cache/archives/partial", "sources"] {
            fs::create_dir_all(directory.join(part))?;
        }
        fs::write(directory.join("sources/suite.sources"), sources_for(suite, kind)?)?;
        let apt = PrivateApt { directory: directory.to_owned() };
        apt.run(directory, &["update"])?;
        Ok(apt)
    }

    /// Runs apt-get in a directory.
    pub fn run(&self, within: &Path, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new("apt-get");
        command.current_dir(within).arg("-qq");
        for (option, part) in [
            ("Etc::sourceparts", "sources"),
            ("State::lists", "lists"),
            ("Cache", "cache"),
            ("Etc::sourcelist", "none"),
        ] {
            command.arg("-o").arg(format!("Dir::{option}={}", self.directory.join(part).display()));
        }
        crate::run(command.args(["-o", "APT::Sandbox::User=root"]).args(arguments))
    }
}

/// The machine's own mirror and keyring, with another release's name.
fn sources_for(suite: &str, kind: &str) -> Result<String> {
    let path = "/etc/apt/sources.list.d/debian.sources";
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    let stanza =
        text.split("\n\n").find(|stanza| stanza.contains("Suites:") && !stanza.contains("-security"));
    let stanza = stanza.with_context(|| format!("{path} names no Debian mirror"))?;
    let lines = stanza.lines().map(|line| match line.split_once(':') {
        Some(("Suites", _)) => format!("Suites: {suite}"),
        Some(("Types", _)) => format!("Types: {kind}"),
        _ => line.to_owned(),
    });
    Ok(lines.collect::<Vec<_>>().join("\n") + "\n")
}
