//! A pool to try things with, and ways to look at what it left behind.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use tempfile::TempDir;
use wardian_hosttools::{
    Confinement, ExecSpec, Finished, HeldDirectory, Lane, Mode as ToolsMode, PoolConfig, Required, ToolError,
    WorkerPool,
};

/// Long enough for everything that ends by itself.
pub const AMPLE: Duration = Duration::from_secs(60);
/// Short, for what will be killed; long enough for a program to begin on a busy machine.
pub const SHORT: Duration = Duration::from_millis(1500);

/// A jail with the programs of the tests beside it, where any user may run them.
pub struct Place {
    root: TempDir,
}

impl Place {
    pub fn new() -> Place {
        let root = tempfile::Builder::new().prefix("hosttools").tempdir().expect("a directory");
        open_to_all(root.path(), 0o755);
        for program in [env!("CARGO_BIN_EXE_wardian-worker"), env!("CARGO_BIN_EXE_tools-probe")] {
            let copy = root.path().join(Path::new(program).file_name().expect("a name"));
            // A hard link where one can be made: programs are large.
            if fs::hard_link(program, &copy).is_err() {
                copy_program(Path::new(program), &copy);
            }
        }
        fs::create_dir(root.path().join("jail")).expect("a jail");
        open_to_all(&root.path().join("jail"), 0o777);
        fs::write(root.path().join("canary"), "canary").expect("a canary");
        open_to_all(&root.path().join("canary"), 0o666);
        Place { root }
    }

    pub fn jail(&self) -> PathBuf {
        self.root.path().join("jail")
    }

    pub fn canary(&self) -> PathBuf {
        self.root.path().join("canary")
    }

    pub fn worker(&self) -> PathBuf {
        self.root.path().join("wardian-worker")
    }

    pub fn probe(&self) -> PathBuf {
        self.root.path().join("tools-probe")
    }

    pub fn config(&self) -> PoolConfig {
        PoolConfig {
            worker: vec![self.worker()],
            interactive: Some(1),
            kill_grace_ms: 1000,
            ..PoolConfig::default()
        }
    }

    /// A pool whose workers are of an ordinary user where we are root; where we are not, they are ours.
    pub fn pool_of_a_user(&self) -> WorkerPool {
        self.pool_of(65534)
    }

    /// The same, for a user of this number.
    pub fn pool_of(&self, user: u32) -> WorkerPool {
        let mut config = self.config();
        if rustix::process::getuid().is_root() {
            let words =
                ["/usr/bin/setpriv", "--clear-groups", "--regid=65534", &format!("--reuid={user}"), "--"];
            config.worker = words.iter().map(PathBuf::from).chain([self.worker()]).collect();
        }
        WorkerPool::start(ToolsMode::Worker, &config).expect("a pool")
    }

    pub fn pool(&self) -> WorkerPool {
        WorkerPool::start(ToolsMode::Worker, &self.config()).expect("a pool")
    }

    pub fn spec(&self, program: &Path, args: &[&str]) -> ExecSpec {
        ExecSpec {
            program: program.canonicalize().expect("the program"),
            name: program.file_name().expect("a name").to_owned(),
            args: args.iter().map(Into::into).collect(),
            cwd: hold(&self.jail()),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            timeout: AMPLE,
            max_output: 1 << 20,
            confinement: Confinement {
                jail: hold(&self.jail()),
                readable: vec![],
                writable: vec![],
                write: true,
                attributes: false,
                network: false,
                children: true,
                memory: 1 << 30,
                files: 100,
                processes: 100,
                file_size: 10 << 20,
                required: Required::default(),
            },
        }
    }

    pub fn shell(&self, script: &str) -> ExecSpec {
        self.spec(Path::new("/bin/sh"), &["-c", script])
    }

    pub fn attempt(&self, args: &[&str]) -> ExecSpec {
        self.spec(&self.probe(), args)
    }
}

/// Copies a program, by another process: while this one has a file open to write, a fork for another test may keep it so,
/// and until that has become its own program nobody can run this one.
pub fn copy_program(from: &Path, to: &Path) {
    let copied = Command::new("install").args(["-m", "755"]).args([from, to]).status();
    assert!(copied.expect("install").success());
}

/// Writes a script in the same way.
pub fn write_program(path: &Path, text: &str) {
    let mut draft = tempfile::NamedTempFile::new().expect("a file");
    draft.write_all(text.as_bytes()).expect("a text");
    copy_program(draft.path(), path);
}

fn open_to_all(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

pub fn hold(path: &Path) -> HeldDirectory {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    HeldDirectory::new(path.to_owned(), open(path, flags, Mode::empty()).expect("a directory"))
}

/// Runs in the lane of the agents.
pub async fn run(pool: &WorkerPool, spec: ExecSpec) -> Result<Finished, ToolError> {
    pool.run(spec, Lane::Interactive, "test", None).await
}

/// A number of seconds for `sleep` that no other test uses: its process can be found by it.
pub fn a_long_time() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("1000.{}{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The processes that have this word in their command line.
pub fn processes_with(word: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let found = entries.filter_map(|entry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        line.split(|byte| *byte == 0).any(|part| part == word.as_bytes()).then_some(process)
    });
    found.collect()
}

/// Waits for what must come, however slow the machine is.
pub async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let late = tokio::time::Instant::now() + AMPLE;
    while !condition() {
        assert!(tokio::time::Instant::now() < late, "{what} did not come");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
