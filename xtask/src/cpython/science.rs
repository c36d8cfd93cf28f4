//! numpy and pandas: their modules in C become part of the program, their Python files a library of their own.
//!
//! Both are configured by the meson that numpy's sources bring along, for a machine of our making: a compiler, a Python and a
//! `pkg-config` in `science/bin`. Nothing is linked there; the objects are put into one archive, from which the interpreter
//! takes what `guests/python/science/modules.c` names. Two modules that were compiled from the same file then share it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use super::{AR, CLANG, Place, archive, interpreter, library, quietly, sysroot};
use crate::manifest;

/// C++'s own library, as Debian has it for WebAssembly: without exceptions.
const CXX: &str = "/usr/lib/llvm-22";
/// All of a package is one group: together it is smallest, and most starts read none of it.
const GROUP: usize = 16 << 20;

/// Vectors of 128 bits are used everywhere. There are no floating-point flags to be careful of.
const FLAGS: &[&str] = &["-msimd128", "-fno-pic", "-fno-trapping-math", "-ffp-contract=off", "-w"];

/// One of the two.
struct Project {
    name: &'static str,
    /// What meson is told.
    options: &'static [&'static str],
    /// Objects that are for tests, or that another of its modules has as well.
    without: &'static [&'static str],
}

const NUMPY: Project = Project {
    name: "numpy",
    options: &[
        "-Doptimization=2",
        "-Dblas=wardian-blas",
        "-Dlapack=none",
        "-Dallow-noblas=true",
        "-Ddisable-threading=true",
        "-Dcpu-baseline=none",
        "-Dcpu-dispatch=none",
        "-Ddisable-svml=true",
        "-Ddisable-intel-sort=true",
    ],
    without: &[
        "_simd.",
        "_operand_flag",
        "_rational",
        "_struct_ufunc",
        "_umath_tests",
        "lapack_lite.static.so.p/lapack_lite_",
    ],
};
/// Translated from Cython, most of it runs seldom: small code counts.
const PANDAS: Project = Project { name: "pandas", options: &["-Doptimization=s"], without: &[] };

/// What decides how they are compiled, beside files.
pub(super) fn settings() -> String {
    format!("{:?}", (FLAGS, NUMPY.options, NUMPY.without, PANDAS.options, PANDAS.without))
}

fn directory(place: &Place) -> PathBuf {
    place.work.join("science")
}

fn ours(place: &Place) -> PathBuf {
    place.guests.join("python/science")
}

/// Builds what is linked to the interpreter: options and files, in their order.
pub(super) fn build(place: &Place, include: &Path) -> Result<Vec<String>> {
    println!("cpython: building numpy and pandas");
    fetch(place)?;
    prepare(place, include)?;
    let mut objects = build_project(place, &NUMPY)?;
    install_headers(place)?;
    objects.extend(build_project(place, &PANDAS)?);
    objects.extend(own_objects(place)?);
    let all = directory(place).join("libscience.a");
    archive_all(&objects, &all)?;
    let text = |path: PathBuf| path.display().to_string();
    Ok(vec![
        text(ours(place).join("modules.c")),
        text(all),
        format!("{CXX}/lib/wasm32-wasi/libc++.a"),
        format!("{CXX}/lib/wasm32-wasi/libc++abi.a"),
    ])
}

fn fetch(place: &Place) -> Result<()> {
    let (list, downloads) = (ours(place).join("sources.txt"), place.work.join("download/science"));
    let mut fetch = Command::new("/usr/bin/python3");
    crate::run(fetch.arg(ours(place).join("fetch.py")).arg(&list).arg(&downloads))?;
    for line in fs::read_to_string(list)?.lines().filter(|line| !line.starts_with('#')) {
        let [project, file, hash] = line.split(' ').collect::<Vec<_>>()[..] else {
            bail!("sources.txt: not three words: {line}")
        };
        unpack(place, project, &downloads.join(file), hash)?;
    }
    Ok(())
}

/// Unpacks and patches what changed; a file that comes out as it was stays untouched.
fn unpack(place: &Place, project: &str, file: &Path, hash: &str) -> Result<()> {
    let patches = patches(place, project)?;
    let mut basis = Sha256::new();
    basis.update(hash);
    for patch in &patches {
        basis.update(fs::read(patch)?);
    }
    let basis = manifest::hex(&basis.finalize());
    let (to, done) = (place.work.join(project), place.work.join(format!("{project}.version")));
    if fs::read_to_string(&done).is_ok_and(|is| is == basis) {
        return Ok(());
    }
    let new = place.work.join(format!("{project}.new"));
    if new.exists() {
        fs::remove_dir_all(&new)?;
    }
    fs::create_dir_all(&new)?;
    if file.extension().is_some_and(|extension| extension == "whl") {
        crate::run(Command::new("/usr/bin/python3").args(["-m", "zipfile", "-e"]).arg(file).arg(&new))?;
    } else {
        crate::run(Command::new("tar").arg("-xf").arg(file).arg("-C").arg(&new).arg("--strip-components=1"))?;
    }
    for patch in &patches {
        crate::run(Command::new("patch").args(["-p1", "-s", "-i"]).arg(patch).current_dir(&new))?;
    }
    super::sources::update(&new, &to)?;
    fs::remove_dir_all(&new)?;
    fs::write(done, basis)?;
    Ok(())
}

fn patches(place: &Place, project: &str) -> Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = fs::read_dir(ours(place).join("patches"))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(project)))
        .collect();
    found.sort();
    Ok(found)
}

/// Writes the machine that meson sees.
fn prepare(place: &Place, include: &Path) -> Result<()> {
    let at = directory(place);
    for part in ["bin", "bin-pandas", "lib"] {
        fs::create_dir_all(at.join(part))?;
    }
    super::sources::update(&place.patched().join("Include"), &at.join("include"))?;
    write_if_new(&at.join("include/pyconfig.h"), &fs::read_to_string(include.join("pyconfig.h"))?)?;
    write_compilers(place)?;
    write_python(place)?;
    // Whoever asks for Python's library finds one.
    for directory in [at.join("lib"), place.sysroot().join("lib")] {
        archive(&[], &directory.join(format!("libpython{}.a", super::version())))?;
    }
    write_program(&at.join("bin/pkg-config"), PKG_CONFIG)?;
    write_if_new(&at.join("cross"), &cross(&at, "python"))?;
    write_if_new(&at.join("cross-pandas"), &cross(&at, "pandas-python"))
}

/// There is one library, ours, and it is linked at the end.
const PKG_CONFIG: &str = "#!/bin/sh\n\
    case \"$*\" in\n\
    --version) echo 1.8.1 ;;\n\
    *--modversion*wardian-blas*) echo 1 ;;\n\
    *wardian-blas*) echo ;;\n\
    *) exit 1 ;;\n\
    esac\n";

fn write_compilers(place: &Place) -> Result<()> {
    let at = directory(place);
    let end = format!(
        "-isystem {} -include {} {}",
        place.sysroot().join("include").display(),
        ours(place).join("fenv.h").display(),
        FLAGS.join(" ")
    );
    let base = format!("{} {}", place.flags().join(" "), super::MACROS.join(" "));
    let cxx = CLANG.replace("clang", "clang++");
    let compilers = [
        ("cc", format!("{CLANG} {base}"), String::new()),
        (
            "c++",
            format!("{cxx} {base} -nostdinc++ -isystem {CXX}/include/wasm32-wasi/c++/v1"),
            format!("-L{CXX}/lib/wasm32-wasi -lc++ -lc++abi"),
        ),
    ];
    for (name, compiler, libraries) in compilers {
        let script = format!(
            "#!/bin/sh\n\
             for argument in \"$@\"; do case $argument in -c|-E|-S|-M|-MM|-v|--version|-print-*|-dump*) exec {compiler} \"$@\" {end};; esac; done\n\
             exec {compiler} \"$@\" {end} -nostdlib -fuse-ld=/usr/bin/wasm-ld-22 -L{lib} {libraries} -lc {runtime}\n",
            lib = place.sysroot().join("lib").display(),
            runtime = sysroot::runtime()?,
        );
        write_program(&at.join("bin").join(name), &script)?;
    }
    Ok(())
}

/// A Python of this machine that answers for the sandbox's; and Cython, with numpy's declarations for pandas.
fn write_python(place: &Place) -> Result<()> {
    let at = directory(place);
    let (version, native) = (super::version(), interpreter::native(place));
    let variables = format!(
        "build_time_vars = {{\n    'INCLUDEPY': '{at}/include', 'CONFINCLUDEPY': '{at}/include', 'EXT_SUFFIX': '.static.so', \
         'SOABI': 'static',\n    'Py_GIL_DISABLED': 0, 'Py_DEBUG': 0, 'Py_ENABLE_SHARED': 0, 'LIBDIR': '{at}/lib', \
         'LDVERSION': '{version}', 'LIBPC': '/nonexistent',\n    'MULTIARCH': '', 'SIZEOF_VOID_P': 4, 'SIZEOF_LONG': 4, \
         'SIZEOF_SIZE_T': 4, 'VERSION': '{version}', 'LIBPYTHON': '',\n    'prefix': '/usr', 'exec_prefix': '/usr',\n}}\n",
        at = at.display(),
    );
    write_if_new(&at.join("lib/_sysconfigdata__linux_wasm32.py"), &variables)?;
    let cython = place.work.join("cython");
    for (python, translator, first) in [
        ("bin/python", "bin/cython", String::new()),
        ("bin/pandas-python", "bin-pandas/cython", format!("{}/stub:", at.display())),
    ] {
        let script = format!(
            "#!/bin/sh\nexport _PYTHON_HOST_PLATFORM=linux-wasm32 _PYTHON_SYSCONFIGDATA_NAME=_sysconfigdata__linux_wasm32 \
             PYTHONPATH={first}{}/lib:{}\nexec {} -B \"$@\"\n",
            at.display(),
            cython.display(),
            native.display()
        );
        write_program(&at.join(python), &script)?;
        let script = format!(
            "#!/bin/sh\nexport PYTHONPATH={first}{}\nexec {} -B -m cython \"$@\"\n",
            cython.display(),
            native.display()
        );
        write_program(&at.join(translator), &script)?;
    }
    Ok(())
}

fn cross(at: &Path, python: &str) -> String {
    let bin = at.join("bin");
    let bin = bin.display();
    format!(
        "[binaries]\nc = '{bin}/cc'\ncpp = '{bin}/c++'\nar = '{AR}'\nstrip = 'llvm-strip-22'\npython = '{bin}/{python}'\n\
         pkg-config = '{bin}/pkg-config'\n\n\
         [host_machine]\nsystem = 'linux'\ncpu_family = 'wasm32'\ncpu = 'wasm32'\nendian = 'little'\n\n\
         [properties]\nneeds_exe_wrapper = true\nlongdouble_format = 'IEEE_QUAD_LE'\n"
    )
}

/// What pandas is compiled with of numpy: headers, and declarations for Cython in which an index has 64 bits, as it has
/// where Python sees one.
fn install_headers(place: &Place) -> Result<()> {
    let (at, source) = (directory(place), place.work.join("numpy/numpy"));
    let headers = at.join("numpy-include/numpy");
    super::sources::update(&source.join("_core/include/numpy"), &headers)?;
    for name in ["_numpyconfig.h", "__multiarray_api.h", "__ufunc_api.h"] {
        let text = fs::read_to_string(place.work.join("build-numpy/numpy/_core").join(name))?;
        write_if_new(&headers.join(name), &text)?;
    }
    let stub = at.join("stub/numpy");
    fs::create_dir_all(stub.join("random"))?;
    let found = format!("def get_include(): return '{}'\n", at.join("numpy-include").display());
    write_if_new(&stub.join("__init__.py"), &format!("__version__ = '2'\n{found}"))?;
    for name in ["__init__.pxd", "__init__.cython-30.pxd"] {
        let text = fs::read_to_string(source.join(name))?;
        let wide: String = text
            .lines()
            .map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
                ["ctypedef", "npy_intp", "intp_t"] => "ctypedef npy_int64 intp_t\n".to_owned(),
                _ => format!("{line}\n"),
            })
            .collect();
        if !wide.contains("ctypedef npy_int64 intp_t") {
            bail!("{name} does not say what an index is");
        }
        write_if_new(&stub.join(name), &wide)?;
    }
    Ok(())
}

/// Configures it if that was not done yet, and compiles what changed. Answers its objects.
fn build_project(place: &Place, project: &Project) -> Result<Vec<PathBuf>> {
    let (at, source) = (directory(place), place.work.join(project.name));
    let built = place.work.join(format!("build-{}", project.name));
    let is_pandas = project.name == PANDAS.name;
    let (python, cross) =
        if is_pandas { ("bin/pandas-python", "cross-pandas") } else { ("bin/python", "cross") };
    let first = if is_pandas { format!("{}:", at.join("bin-pandas").display()) } else { String::new() };
    let path = format!("{first}{}:{}", at.join("bin").display(), std::env::var("PATH").unwrap_or_default());
    if !built.join("build.ninja").exists() {
        let mut setup = Command::new(at.join(python));
        setup.arg(place.work.join("numpy/vendored-meson/meson/meson.py")).arg("setup").arg(&built);
        setup.arg("--cross-file").arg(at.join(cross)).args([
            "--buildtype=release",
            "-Db_ndebug=true",
            "--wrap-mode=nofallback",
        ]);
        quietly(setup.args(project.options).env("PATH", &path), &source, "meson.log")?;
    }
    let objects = targets(&built, project)?;
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut ninja = Command::new("nice");
    ninja.args(["-n", "5", "ninja", &format!("-j{jobs}")]).args(&objects).env("PATH", &path);
    quietly(&mut ninja, &built, "ninja.log")?;
    Ok(objects.iter().map(|object| built.join(object)).collect())
}

fn targets(built: &Path, project: &Project) -> Result<Vec<String>> {
    let all = crate::output(Command::new("ninja").args(["-t", "targets", "all"]).current_dir(built))?;
    let all = String::from_utf8(all).context("ninja's targets are not text")?;
    let mut objects: Vec<String> =
        all.lines().filter_map(|line| line.split_once(".o:")).map(|(name, _)| format!("{name}.o")).collect();
    objects.retain(|object| !project.without.iter().any(|part| object.contains(part)));
    objects.sort();
    Ok(objects)
}

/// Our own part: products of matrices, flags, the end of a C++ exception.
fn own_objects(place: &Place) -> Result<Vec<PathBuf>> {
    let at = directory(place).join("objects");
    fs::create_dir_all(&at)?;
    let mut objects = Vec::new();
    for (name, flags) in
        [("blas", &["-O3", "-mrelaxed-simd"][..]), ("fenv", &["-O2"]), ("exceptions", &["-O2"])]
    {
        let object = at.join(format!("{name}.o"));
        let mut compile = Command::new(directory(place).join("bin/cc"));
        crate::run(
            compile.args(flags).arg("-c").arg(ours(place).join(format!("{name}.c"))).arg("-o").arg(&object),
        )?;
        objects.push(object);
    }
    Ok(objects)
}

/// A library of objects of which several may have the same name.
fn archive_all(objects: &[PathBuf], library: &Path) -> Result<()> {
    if library.exists() {
        fs::remove_file(library)?;
    }
    let list = library.with_extension("list");
    fs::write(&list, objects.iter().map(|object| format!("{}\n", object.display())).collect::<String>())?;
    crate::run(Command::new(AR).arg("qcsD").arg(library).arg(format!("@{}", list.display())))
}

/// Packs their Python files.
pub(super) fn pack(place: &Place) -> Result<Vec<u8>> {
    println!("cpython: packing numpy and pandas");
    let staged = place.work.join("science-files");
    if staged.exists() {
        fs::remove_dir_all(&staged)?;
    }
    let mut stage = Command::new(interpreter::native(place));
    stage.args(["-I", "-B"]).arg(ours(place).join("stage.py")).arg(&place.work).arg(&staged);
    crate::run(stage.env("PYTHONHASHSEED", "0"))?;
    let package = |path: &Path| path.iter().nth(3).map(|name| name.to_owned());
    library::pack_directory(&staged, |_| true, GROUP, |path, next, _| package(path) != package(next))
}

fn write_if_new(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|is| is == text) {
        return Ok(());
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn write_program(path: &Path, text: &str) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    write_if_new(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}
