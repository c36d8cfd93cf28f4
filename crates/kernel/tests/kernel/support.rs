//! A kernel for all tests, and machines with the testing programs in them.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use wardian_kernel::{
    Kernel, KernelConfig, Limits, Machine, Program, ProgramSource, Start, Started, Status, Stream,
};
use wardian_vfs::{Caller, Content, OpenFlags, Quota, Tree};

pub static KERNEL: LazyLock<Kernel> = LazyLock::new(|| {
    let artifacts = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("artifacts"));
    Kernel::new(KernelConfig { artifacts, ..KernelConfig::default() }).expect("a kernel starts")
});

/// The programs that tests run, compiled for one kernel.
pub struct Programs {
    testing: Arc<Program>,
    foreign: Arc<Program>,
    usertests: Arc<Program>,
}

pub static PROGRAMS: LazyLock<Programs> = LazyLock::new(|| Programs::load(&KERNEL));

/// The testing program as WebAssembly.
pub fn wasm(name: &str) -> Vec<u8> {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/testing/dist");
    let compressed =
        std::fs::read(dist.join(format!("{name}.wasm.zst"))).expect("testing guests are prebuilt");
    zstd::decode_all(&compressed[..]).expect("a zstd file")
}

fn recorded_hash(name: &str) -> String {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/testing/dist/MANIFEST");
    let manifest = std::fs::read_to_string(dist).expect("a manifest");
    let block = manifest.split("\n\n").find(|b| b.starts_with(&format!("program {name}"))).expect("listed");
    let line = block.lines().find(|line| line.starts_with("wasm ")).expect("a wasm line");
    line.rsplit(' ').next().expect("a hash").to_owned()
}

fn program(kernel: &Kernel, name: &'static str) -> Arc<Program> {
    let source = ProgramSource {
        name: name.to_owned(),
        sha256: recorded_hash(name),
        wasm: Box::new(move || Ok(wasm(name))),
    };
    kernel.load(&source, &|_| ()).expect("it compiles")
}

impl Programs {
    pub fn load(kernel: &Kernel) -> Programs {
        Programs {
            testing: program(kernel, "testing"),
            foreign: program(kernel, "foreign"),
            usertests: program(kernel, "usertests"),
        }
    }

    /// The program that does what it is told.
    pub fn testing(&self) -> &Arc<Program> {
        &self.testing
    }

    /// A tree with these programs in `/bin`, a `/dev` and a `/tmp`.
    pub fn tree(&self, kernel: &Kernel) -> Tree {
        let mut tree = Tree::new(Quota { bytes: 64 << 20, inodes: 10_000 });
        let all = [("testing", &self.testing), ("foreign", &self.foreign), ("usertests", &self.usertests)];
        for (name, program) in all {
            let content = Content::Bytes(Arc::from(&b"\0asm"[..]));
            let version = tree.install(format!("/bin/{name}").as_bytes(), 0o755, content).expect("installs");
            kernel.register(version, program.clone());
        }
        tree.install_dir(b"/tmp", 0o1777).expect("installs");
        tree.install_dev().expect("installs");
        tree.install(b"/etc/passwd", 0o644, Content::Bytes(Arc::from(&b""[..]))).expect("installs");
        tree
    }
}

/// A machine with the default limits.
pub fn machine() -> Arc<Machine> {
    machine_with(Limits::default())
}

pub fn machine_with(limits: Limits) -> Arc<Machine> {
    Machine::new(&KERNEL, PROGRAMS.tree(&KERNEL), limits)
}

/// What a finished program left; shown whole when an assertion fails.
#[derive(Debug)]
#[allow(dead_code)]
pub struct Done {
    pub status: Status,
    pub stdout: String,
    pub stderr: String,
    pub limit: Option<&'static str>,
}

/// Starts `testing WORDS…`.
pub async fn start(machine: &Arc<Machine>, words: &[&str]) -> Started {
    machine.start(Start::new("/bin/testing", words)).await.expect("it starts")
}

/// Runs `testing WORDS…` to its end.
pub async fn run(machine: &Arc<Machine>, words: &[&str]) -> Done {
    finish(machine, Start::new("/bin/testing", words)).await
}

/// Runs a program to its end.
pub async fn finish(machine: &Arc<Machine>, start: Start) -> Done {
    let output = start.output.clone();
    let started = machine.start(start).await.expect("it starts");
    let status = started.wait().await;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let limit = started.limit_hit();
    let [stdout, stderr] = [Stream::Stdout, Stream::Stderr].map(|stream| text(output.take(stream).0));
    Done { status, stdout, stderr, limit }
}

/// Waits until the machine is empty again and owes no memory: a task that was killed goes within a tick, not at once,
/// and may be growing its memory just then.
pub async fn settled(machine: &Arc<Machine>) {
    for _ in 0..2_000 {
        let census = machine.census();
        if census.processes == 0 && census.memory_charged == 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("something is left: {:?}", machine.census());
}

/// Puts a program into the file system, as a user would.
pub async fn put(machine: &Arc<Machine>, path: &[u8], wasm: &[u8]) {
    let mut tree = machine.tree().await;
    let root = tree.root();
    let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNC;
    let mut file = tree.open(&Caller::USER, &root, path, flags, 0o755).expect("opens");
    tree.write(&mut file, wasm).expect("fits");
    tree.close(file);
}
