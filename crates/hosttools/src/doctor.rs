//! Checks which restrictions are in force on this machine, by running confined programs, not by guessing.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::getuid;
use uuid::Uuid;

use crate::config::{self, Config};
use crate::error::ToolError;
use crate::jail::openat2_works;
use crate::pool::WorkerPool;
use crate::spec::{Confinement, Ended, ExecSpec, HeldDirectory, Lane, Required};

/// One restriction, and its state on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Check {
    /// The restriction.
    pub name: &'static str,
    /// Its state.
    pub state: State,
    /// Details.
    pub detail: &'static str,
}

/// The state of a restriction on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// In force for every program.
    On,
    /// Not in force.
    Off,
    /// Not supported by this machine.
    Unavailable,
}

impl fmt::Display for State {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.pad(match self {
            State::On => "on",
            State::Off => "off",
            State::Unavailable => "unavailable",
        })
    }
}

/// Runs a few programs as the gateway would, and checks how they are confined.
pub async fn doctor(config: &Config) -> Result<Vec<Check>, ToolError> {
    let place = Place::new().map_err(|error| ToolError::JailUnusable {
        jail: std::env::temp_dir(),
        why: format!("nothing can be tried there: {error}"),
    })?;
    let patient = Patient { pool: WorkerPool::start(config::Mode::ChildProcess, &config.pool)?, place };
    let told = patient.examine(config).await;
    patient.pool.shutdown().await;
    Ok(told?.checks(config))
}

/// A jail, and something outside that must not be readable.
struct Place {
    root: PathBuf,
}

impl Place {
    fn new() -> io::Result<Place> {
        let root = std::env::temp_dir().join(format!("wardian-doctor-{}", Uuid::new_v4()));
        fs::create_dir(&root)?;
        let place = Place { root };
        fs::create_dir(place.jail())?;
        fs::write(place.outside(), "readable")?;
        Ok(place)
    }

    fn jail(&self) -> PathBuf {
        self.root.join("jail")
    }

    fn outside(&self) -> PathBuf {
        self.root.join("outside")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

struct Patient {
    pool: WorkerPool,
    place: Place,
}

impl Patient {
    async fn examine(&self, config: &Config) -> Result<Told, ToolError> {
        let outside = self.place.outside();
        let outside = outside.to_string_lossy();
        // Only seccomp stands in the way of an owner who may write nothing.
        let changes_mode = self.run(config, "/bin/chmod", &["700", "."]).await?.0 == Ended::Exit(0);
        Ok(Told {
            status: self.run(config, "/bin/cat", &["/proc/self/status"]).await?.1,
            limits: self.run(config, "/bin/cat", &["/proc/self/limits"]).await?.1,
            stat: self.run(config, "/bin/cat", &["/proc/self/stat"]).await?.1,
            descriptors: self.run(config, "/bin/ls", &["-l", "/proc/self/fd"]).await?.1,
            changes_mode,
            reads_outside: self.run(config, "/bin/cat", &[&outside]).await?.0 == Ended::Exit(0),
        })
    }

    async fn run(&self, config: &Config, program: &str, args: &[&str]) -> Result<(Ended, String), ToolError> {
        let jail = self.place.jail();
        let unusable = |why: String| ToolError::JailUnusable { jail: jail.clone(), why };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let held = open(&jail, flags, Mode::empty()).map_err(|error| unusable(error.to_string()))?;
        let held = HeldDirectory::new(jail.clone(), held);
        let missing =
            |error: io::Error| ToolError::StartFailed { program: program.into(), why: error.to_string() };
        let spec = ExecSpec {
            program: Path::new(program).canonicalize().map_err(missing)?,
            name: Path::new(program).file_name().unwrap_or_default().to_owned(),
            args: args.iter().map(Into::into).collect(),
            cwd: held.clone(),
            env: vec![("LC_ALL".into(), "C".into())],
            timeout: Duration::from_secs(10),
            max_output: 1 << 16,
            confinement: Confinement {
                jail: held,
                readable: vec![],
                writable: vec![],
                write: false,
                attributes: false,
                network: false,
                children: false,
                memory: config.limits.memory,
                files: config.limits.files,
                processes: config.limits.processes,
                file_size: config.limits.file_size,
                required: Required { landlock: false, seccomp: false },
            },
        };
        let finished = self.pool.run(spec, Lane::System, "doctor", None).await?;
        Ok((finished.status, String::from_utf8_lossy(&finished.stdout).into_owned()))
    }
}

/// What the programs reported about themselves.
struct Told {
    status: String,
    limits: String,
    stat: String,
    descriptors: String,
    changes_mode: bool,
    reads_outside: bool,
}

impl Told {
    fn checks(&self, config: &Config) -> Vec<Check> {
        let limits = &config.limits;
        let check = |name, state, detail| Check { name, state, detail };
        let on = |holds| if holds { State::On } else { State::Off };
        let available = |holds| if holds { State::On } else { State::Unavailable };
        vec![
            check(
                "no_new_privs",
                on(self.field("NoNewPrivs") == Some("1")),
                "no program gains privileges by exec",
            ),
            check(
                "capabilities",
                on(self.powers_over_files_alone()),
                "of root's powers, those over files alone",
            ),
            check("landlock", available(!self.reads_outside), "files outside the jail cannot be opened"),
            check("openat2", available(openat2_works()), "paths are followed by the kernel, inside the jail"),
            check("seccomp", available(!self.changes_mode), "no sockets, tracing, mounts, namespaces"),
            check("memory", on(self.limit("Max address space", limits.memory)), "of each process"),
            check("open files", on(self.limit("Max open files", limits.files)), "of each process"),
            check("file size", on(self.limit("Max file size", limits.file_size)), "of each file written"),
            check("core dumps", on(self.limit("Max core file size", 0)), "none"),
            match getuid().is_root() {
                true => {
                    check("processes", State::Off, "the kernel does not hold root to it: run as another user")
                }
                false => check(
                    "processes",
                    on(self.limit_at_least("Max processes", limits.processes)),
                    "of the user",
                ),
            },
            check("session", on(self.leads_its_session()), "a group and session of its own, no terminal"),
            check("input", on(self.descriptors.contains("0 -> /dev/null")), "is empty"),
            check("descriptors", on(self.three_descriptors()), "none but the standard streams"),
        ]
    }

    fn field(&self, name: &str) -> Option<&str> {
        let line = self.status.lines().find(|line| line.split(':').next() == Some(name))?;
        line.split(':').nth(1).map(str::trim)
    }

    fn powers_over_files_alone(&self) -> bool {
        let effective = self.field("CapEff").and_then(|set| u64::from_str_radix(set, 16).ok());
        effective.is_some_and(|set| set & !wardian_confine::KEPT_CAPABILITIES == 0)
    }

    /// Returns the soft and the hard limit of this name.
    fn limits_of(&self, name: &str) -> Option<[u64; 2]> {
        let mut words = self.limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace();
        Some([words.next()?.parse().ok()?, words.next()?.parse().ok()?])
    }

    fn limit(&self, name: &str, most: u64) -> bool {
        self.limits_of(name).is_some_and(|[soft, hard]| soft <= most && hard <= most)
    }

    fn limit_at_least(&self, name: &str, least: u64) -> bool {
        self.limits_of(name).is_some_and(|[soft, hard]| soft == hard && soft >= least)
    }

    fn leads_its_session(&self) -> bool {
        let process = self.stat.split_whitespace().next();
        let after_name = self.stat.rsplit(')').next().unwrap_or_default();
        // After the name: state, parent, group, session, terminal.
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        process.is_some()
            && fields.get(2).copied() == process
            && fields.get(3).copied() == process
            && fields.get(4) == Some(&"0")
    }

    /// The three streams, and the directory that `ls` itself reads.
    fn three_descriptors(&self) -> bool {
        let open: Vec<&str> = self.descriptors.lines().filter(|line| line.contains(" -> ")).collect();
        open.len() == 4 && open.iter().all(|line| !line.contains("socket:"))
    }
}
