//! `cargo xtask guests`: builds the programs that run inside the sandbox, and keeps `dist` in step with their sources.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::manifest::{Artifact, Entry, Manifest, source_hash};
use crate::state;
use crate::toolchain::{TARGET, Toolchain};

const MIB: usize = 1 << 20;

/// A program and how it is linked.
#[derive(Debug)]
struct Program {
    /// Of the binary, and of the file in `dist`.
    name: &'static str,
    package: &'static str,
    /// Where the result goes, below `guests`.
    dist: &'static str,
    stack: usize,
    link_args: &'static [&'static str],
    links: Links,
}

/// The names under `/bin` that run a program.
#[derive(Debug)]
enum Links {
    Are(&'static [&'static str]),
    /// One per line, in a file below `guests`.
    InFile(&'static str),
}

/// What a program can allocate before it asks for more. A memory that never grew can be wiped and given to the next
/// process; pages nobody touches cost nothing.
const HEAP: usize = MIB;

/// What fork needs.
const FORKS: &[&str] = &["--export=__wardian_fork_entry"];

/// The shell forks, and goes without the names of its functions: a tenth of its size, and nobody reads them.
const SHELL: &[&str] = &["--export=__wardian_fork_entry", "--strip-all"];

const PROGRAMS: &[Program] = &[
    Program {
        name: "sh",
        package: "wardian-sh",
        dist: "dist",
        stack: 8 * MIB,
        link_args: SHELL,
        links: Links::Are(&["bash", "sh"]),
    },
    Program {
        name: "tools",
        package: "tools",
        dist: "dist",
        stack: 4 * MIB,
        link_args: &[],
        links: Links::InFile("tools/NAMES"),
    },
    Program {
        name: "sqlite3",
        package: "sqlite",
        dist: "dist",
        stack: 4 * MIB,
        link_args: &["--strip-all"],
        links: Links::Are(&["sqlite3"]),
    },
    Program {
        name: "jq",
        package: "jq",
        dist: "dist",
        stack: 8 * MIB,
        link_args: &[],
        links: Links::Are(&["jq", "yq"]),
    },
    Program {
        name: "make",
        package: "make",
        dist: "dist",
        stack: 8 * MIB,
        link_args: &["--strip-all"],
        links: Links::Are(&["gmake", "make"]),
    },
    Program {
        name: "git",
        package: "git",
        dist: "dist",
        stack: 8 * MIB,
        link_args: &["--strip-all"],
        links: Links::Are(&["git"]),
    },
    Program {
        name: "node",
        package: "js",
        dist: "dist",
        stack: 4 * MIB,
        link_args: &["--strip-all", "--export=wardian_prepare", "--export=wardian_start"],
        links: Links::Are(&["js", "node"]),
    },
    Program {
        name: "archive",
        package: "archive",
        dist: "dist",
        stack: MIB,
        link_args: &["--strip-all"],
        links: Links::InFile("archive/NAMES"),
    },
    Program {
        name: "net",
        package: "net",
        dist: "dist",
        stack: MIB,
        link_args: &["--strip-all"],
        links: Links::InFile("net/NAMES"),
    },
    Program {
        name: "testing",
        package: "testing",
        dist: "testing/dist",
        stack: MIB,
        link_args: FORKS,
        links: Links::Are(&[]),
    },
    Program {
        name: "usertests",
        package: "testing",
        dist: "testing/dist",
        stack: MIB,
        link_args: FORKS,
        links: Links::Are(&[]),
    },
    Program {
        name: "web",
        package: "net",
        dist: "testing/dist",
        stack: MIB,
        link_args: FORKS,
        links: Links::Are(&[]),
    },
    Program {
        name: "foreign",
        package: "testing",
        dist: "testing/dist",
        stack: MIB,
        link_args: &[],
        links: Links::Are(&[]),
    },
];

/// Builds what changed, or with `--check` only says what did.
pub fn main(arguments: &[String]) -> Result<()> {
    let mut force = false;
    let mut names = Vec::new();
    for argument in arguments {
        match argument.as_str() {
            "--check" => return check(),
            "--force" => force = true,
            name if PROGRAMS.iter().any(|program| program.name == name) => names.push(name),
            other => bail!("no guest is called '{other}'; there are {}", all_names().join(", ")),
        }
    }
    let wanted = |program: &&Program| names.is_empty() || names.contains(&program.name);
    let mut toolchain = None;
    for program in PROGRAMS.iter().filter(wanted) {
        if !force && staleness(program)?.is_none() {
            println!("guests: {} is up to date", program.name);
            continue;
        }
        if toolchain.is_none() {
            toolchain = Some(Toolchain::find(&guests().join("target"))?);
        }
        build(program, toolchain.as_ref().expect("just found"))?;
    }
    Ok(())
}

/// Fails, with one line for each program, if what is in `dist` was not made from the sources as they are.
pub fn check() -> Result<()> {
    let mut stale = Vec::new();
    for program in PROGRAMS {
        if let Some(reason) = staleness(program)? {
            stale.push(format!("guests/{}/{}.wasm.zst is stale: {reason}", program.dist, program.name));
        }
    }
    if let Some(reason) = crate::cpython::staleness()? {
        stale.push(format!("guests/dist/python3.wasm.zst is stale (`cargo xtask cpython`): {reason}"));
    }
    if !stale.is_empty() {
        bail!("{}\nrun `cargo xtask guests` and commit the result", stale.join("\n"));
    }
    Ok(())
}

fn guests() -> PathBuf {
    crate::root().join("guests")
}

fn all_names() -> Vec<&'static str> {
    PROGRAMS.iter().map(|program| program.name).collect()
}

/// Why a program in `dist` is not the one its sources would give, if so.
fn staleness(program: &Program) -> Result<Option<String>> {
    let dist = guests().join(program.dist);
    let manifest = Manifest::read(&dist)?;
    let Some(entry) = manifest.0.get(program.name) else {
        return Ok(Some("MANIFEST does not have it".into()));
    };
    if entry.sources != program.source_hash()? {
        return Ok(Some("its sources changed".into()));
    }
    if entry.links != program.links()? {
        return Ok(Some("its links changed".into()));
    }
    Ok(match fs::read(packed_path(&dist, program)) {
        Err(_) => Some("the file is missing".into()),
        Ok(packed) if Artifact::of(&packed) != entry.zstd => {
            Some("the file is not the one MANIFEST describes".into())
        }
        Ok(_) => None,
    })
}

impl Program {
    fn source_hash(&self) -> Result<String> {
        let settings = format!("{} {:?}", self.name, self.linking());
        source_hash(&guests(), self.package, &settings)
    }

    /// What the linker is told.
    fn linking(&self) -> Vec<String> {
        let memory = [
            format!("-zstack-size={}", self.stack),
            // The stack lies below the data, so that running over its end traps instead of overwriting variables.
            "--stack-first".to_owned(),
            format!("--initial-heap={HEAP}"),
            // The kernel sets it, for a forked child and for the next process that is given the memory.
            "--export=__stack_pointer".to_owned(),
        ];
        memory.into_iter().chain(self.link_args.iter().map(|&own| own.to_owned())).collect()
    }

    fn links(&self) -> Result<Vec<String>> {
        match self.links {
            Links::Are(names) => Ok(names.iter().map(|name| (*name).to_owned()).collect()),
            Links::InFile(file) => {
                let text = fs::read_to_string(guests().join(file))
                    .with_context(|| format!("cannot read guests/{file}"))?;
                Ok(text.lines().map(str::to_owned).collect())
            }
        }
    }
}

fn packed_path(dist: &Path, program: &Program) -> PathBuf {
    dist.join(format!("{}.wasm.zst", program.name))
}

/// Compiles one program, packs it, and enters it in its MANIFEST.
fn build(program: &Program, toolchain: &Toolchain) -> Result<()> {
    println!("guests: building {}", program.name);
    // Taken first: what changes during the build is not in it.
    let sources = program.source_hash()?;
    let wasm = compile(program, toolchain)?;
    state::check(&wasm).with_context(|| format!("{} cannot be wiped and used again", program.name))?;
    let packed = zstd::encode_all(wasm.as_slice(), 19).context("cannot compress")?;
    let entry = Entry {
        sources,
        compiler: toolchain.version()?,
        wasm: Artifact::of(&wasm),
        zstd: Artifact::of(&packed),
        links: program.links()?,
        library: None,
        packages: None,
        science: None,
    };
    println!("guests: {}: {} bytes, {} compressed", program.name, entry.wasm.size, entry.zstd.size);

    let dist = guests().join(program.dist);
    fs::create_dir_all(&dist)?;
    fs::write(packed_path(&dist, program), &packed)?;
    let mut manifest = Manifest::read(&dist)?;
    manifest.0.insert(program.name.to_owned(), entry);
    manifest.write(&dist)
}

fn compile(program: &Program, toolchain: &Toolchain) -> Result<Vec<u8>> {
    let mut cargo = toolchain.cargo_rustc(&guests());
    cargo.args(["--package", program.package, "--bin", program.name, "--"]);
    for argument in toolchain.start_files().into_iter().chain(program.linking()) {
        cargo.arg(format!("-Clink-arg={argument}"));
    }
    crate::run(&mut cargo)?;
    let path = guests().join("target").join(TARGET).join("release").join(format!("{}.wasm", program.name));
    fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn dist_is_not_stale() {
        super::check().unwrap();
    }

    #[test]
    fn every_program_keeps_its_state_where_it_is_wiped() {
        for program in super::PROGRAMS {
            let packed =
                std::fs::read(super::packed_path(&super::guests().join(program.dist), program)).unwrap();
            let wasm = zstd::decode_all(packed.as_slice()).unwrap();
            crate::state::check(&wasm).unwrap_or_else(|error| panic!("{}: {error:#}", program.name));
        }
    }
}
