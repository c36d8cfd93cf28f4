//! The sysroot: musl's headers and library, with the system calls of guests/libc in the place of Linux's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{Place, archive, compile, copy_files, sources};

/// The architecture of musl's whose definitions are taken where guests/libc has none of its own: 32 bits, and no system
/// call with 32-bit times.
const MODEL: &str = "riscv32";

/// Directories of musl's sources that need what WebAssembly has not, or that nobody here can use.
const SKIPPED_DIRECTORIES: &[&str] = &["aio", "ipc", "malloc", "mq", "setjmp"];

/// Files that guests/libc replaces, or that are about other threads and jumps.
const SKIPPED: &[&str] = &[
    "env/__init_tls",
    "env/__libc_start_main",
    "errno/strerror",
    "ldso/__dlsym",
    "ldso/tlsdesc",
    "linux/clone",
    "network/lookup_name",
    "network/res_msend",
    "process/_Fork",
    "process/fork",
    "process/posix_spawn",
    "process/posix_spawnp",
    "process/vfork",
    "signal/restore",
    "signal/siglongjmp",
    "signal/sigsetjmp",
    "signal/sigsetjmp_tail",
    "thread/__set_thread_area",
    "thread/__tls_get_addr",
    "thread/__unmapself",
    "thread/clone",
    "thread/lock_ptc",
    "thread/pthread_cancel",
    "thread/pthread_create",
    "thread/pthread_detach",
    "thread/pthread_join",
    "thread/pthread_kill",
    "thread/synccall",
    "thread/syscall_cp",
    "thread/tls",
];

/// Libraries that are part of libc, and that programs still name.
const EMPTY: &[&str] = &["crypt", "dl", "m", "pthread", "rt", "util"];

pub(super) fn build(place: &Place) -> Result<()> {
    println!("cpython: building the sysroot");
    let (musl, ours) = (place.source(sources::MUSL), place.guests.join("libc"));
    let sysroot = place.sysroot();
    // A header that is as it was stays untouched: numpy and pandas are compiled again when one is newer.
    let new = place.work.join("sysroot.new");
    if new.exists() {
        fs::remove_dir_all(&new)?;
    }
    install_headers(&musl, &ours, &new)?;
    sources::update(&new, &sysroot.join("include"))?;
    fs::remove_dir_all(&new)?;

    let objects = place.work.join("objects-libc");
    fs::create_dir_all(objects.join("internal"))?;
    let version = fs::read_to_string(musl.join("VERSION"))?;
    fs::write(objects.join("internal/version.h"), format!("#define VERSION \"{}\"\n", version.trim()))?;

    let mut common = place.flags();
    common.extend(["-O2", "-ffreestanding", "-fno-math-errno", "-nostdinc", "-w"].map(str::to_owned));
    let directories = [
        ours.join("arch/wasm32"),
        musl.join("arch/generic"),
        objects.join("internal"),
        ours.join("src"),
        musl.join("src/include"),
        musl.join("src/internal"),
        musl.join("src/network"),
        musl.join("src/process"),
        sysroot.join("include"),
    ];
    common.extend(directories.iter().map(|directory| format!("-I{}", directory.display())));
    let with = |more: &[&str]| [common.clone(), more.iter().map(|&flag| flag.to_owned()).collect()].concat();
    let mut all =
        compile(place, &with(&["-std=c99", "-D_XOPEN_SOURCE=700"]), &musl_files(&musl)?, &objects, "musl")?;
    let release = format!("-DWARDIAN_VERSION=\"{}\"", env!("CARGO_PKG_VERSION"));
    let own = c_files(&ours.join("src"))?;
    all.extend(compile(place, &with(&["-std=gnu17", "-D_GNU_SOURCE", &release]), &own, &objects, "wardian")?);
    archive(&all, &sysroot.join("lib/libc.a"))?;
    EMPTY.iter().try_for_each(|name| archive(&[], &sysroot.join(format!("lib/lib{name}.a"))))?;
    write_compiler(place)
}

fn install_headers(musl: &Path, ours: &Path, include: &Path) -> Result<()> {
    let is_header = |name: &str| name.ends_with(".h");
    copy_files(&musl.join("include"), include, &is_header)?;
    let model = musl.join("arch").join(MODEL).join("bits");
    for bits in [&musl.join("arch/generic/bits"), &model, &ours.join("arch/wasm32/bits")] {
        copy_files(bits, &include.join("bits"), &is_header)?;
    }
    copy_files(&ours.join("include"), include, &is_header)?;
    let types = crate::output(
        Command::new("sed")
            .arg("-f")
            .arg(musl.join("tools/mkalltypes.sed"))
            .arg(ours.join("arch/wasm32/bits/alltypes.h.in"))
            .arg(musl.join("include/alltypes.h.in")),
    )?;
    fs::write(include.join("bits/alltypes.h"), types)?;
    // That architecture has no wait4; ours has.
    let numbers = fs::read_to_string(model.join("syscall.h.in"))? + "#define __NR_wait4 260\n";
    let names: String = numbers.lines().map(|line| line.replace("__NR_", "SYS_") + "\n").collect();
    fs::write(include.join("bits/syscall.h"), numbers + &names)?;
    Ok(())
}

fn c_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    files.sort();
    Ok(files)
}

fn musl_files(musl: &Path) -> Result<Vec<PathBuf>> {
    let source = musl.join("src");
    let mut files = Vec::new();
    let mut directories: Vec<PathBuf> = fs::read_dir(&source)?.flatten().map(|entry| entry.path()).collect();
    directories.sort();
    for directory in directories.iter().filter(|path| path.is_dir()) {
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        if !SKIPPED_DIRECTORIES.contains(&&*name) {
            files.extend(c_files(directory)?.into_iter().filter(|file| {
                let file = file.file_stem().unwrap_or_default().to_string_lossy();
                !SKIPPED.contains(&format!("{name}/{file}").as_str())
            }));
        }
    }
    // One of its two allocators.
    let malloc = source.join("malloc");
    files.extend(c_files(&malloc)?);
    files.extend(c_files(&malloc.join("mallocng"))?);
    Ok(files)
}

/// A compiler with this sysroot, for CPython's configure and make.
fn write_compiler(place: &Place) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let sysroot = place.sysroot();
    let script = format!(
        "#!/bin/sh\n# Written by `cargo xtask cpython`.\n\
         for argument in \"$@\"; do case $argument in -c|-E|-S|-M|-MM|-v|--version|-print-*|-dump*) exec {base} \"$@\";; esac; done\n\
         exec {base} \"$@\" -nostdlib -fuse-ld=/usr/bin/wasm-ld-22 -L{lib} -lc {runtime} {link}\n",
        base = format_args!(
            "{} {} {} -isystem {}",
            super::CLANG,
            place.flags().join(" "),
            super::MACROS.join(" "),
            sysroot.join("include").display()
        ),
        lib = sysroot.join("lib").display(),
        runtime = runtime()?,
        link = LINKING.join(" "),
    );
    let path = compiler(place);
    fs::write(&path, script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// What the compiler calls for things that the machine cannot do at once.
pub(super) fn runtime() -> Result<&'static str> {
    let found =
        super::PACKAGES.iter().map(|(file, _)| *file).find(|file| file.ends_with("builtins-wasm32.a"));
    found.context("the compiler's runtime is a package")
}

/// The compiler that [`write_compiler`] wrote.
pub(super) fn compiler(place: &Place) -> PathBuf {
    place.work.join("wardian-cc")
}

/// The stack lies below the data, so that running over its end traps instead of overwriting variables. The kernel sets
/// its pointer.
const LINKING: &[&str] =
    &["-Wl,-z,stack-size=8388608", "-Wl,--stack-first", "-Wl,--export=__stack_pointer", "-Wl,--strip-all"];
