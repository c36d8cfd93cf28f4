//! Modules that lie: every import is called with pointers, lengths and numbers that make no sense.
//!
//! What the guest gets is an errno or its own end. The kernel neither panics nor hangs, and the next program runs.

use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use wardian_kernel::{Import, Start, Status};

use crate::support::{KERNEL, machine, put, run, settled};

/// These answer a number of their own; all others an errno.
const NOT_ERRNOS: [&str; 3] = ["getpid", "getppid", "umask"];
/// The highest errno that WASI has.
const LAST_ERRNO: u32 = 76;

const NASTY: [u32; 14] = [
    0,
    1,
    2,
    3,
    8,
    1024,
    65_472,
    65_535,
    65_536,
    0x7fff_ff00,
    0x7fff_ff01,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
];
const NASTY_LONG: [u64; 6] = [0, 1, 4096, i64::MAX as u64, 1 << 63, u64::MAX];
const CALLS: usize = 150;

/// A small generator, so that a failure can be seen again.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll<T: Copy>(&mut self, among: &[T]) -> T {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        among[(self.0 >> 33) as usize % among.len()]
    }
}

/// A module that calls one import often; one that is answered what is no errno aborts.
fn module(import: &Import, native: bool, dice: &mut Dice) -> String {
    let Import { module, name, params, answers, .. } = import;
    let types: String = params.chars().map(|c| if c == 'l' { " i64" } else { " i32" }).collect();
    let result = if *answers { "(result i32)" } else { "" };
    let mut text = format!("(module (import \"{module}\" \"{name}\" (func $f (param{types}) {result}))\n");
    if native {
        text.push_str("(import \"wardian\" \"getppid\" (func $native (result i32)))\n");
    }
    text.push_str(
        "(memory (export \"memory\") 1)
         (data (i32.const 1024) \"/tmp/x\\00\\01\\02\\ff\\ff\\ff\\ff\")
         (func (export \"_start\")\n",
    );
    for _ in 0..CALLS {
        for kind in params.chars() {
            let _ = match kind {
                'l' => writeln!(text, "(i64.const {})", dice.roll(&NASTY_LONG) as i64),
                _ => writeln!(text, "(i32.const {})", dice.roll(&NASTY) as i32),
            };
        }
        let _ = match (answers, NOT_ERRNOS.contains(name)) {
            (false, _) => writeln!(text, "call $f"),
            (true, true) => writeln!(text, "call $f drop"),
            (true, false) => {
                writeln!(text, "call $f i32.const {LAST_ERRNO} i32.gt_u (if (then unreachable))")
            }
        };
    }
    text.push_str("))");
    text
}

/// Calls every import of a module with nonsense, as one of Wardian's programs or as a foreign one.
async fn attack(library: &str, native: bool) {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // Other tests run in this process, too, and may fail for reasons of their own.
        if std::thread::current().name() == Some("wardian-guest") {
            PANICS.fetch_add(1, Ordering::SeqCst);
        }
        before(info);
    }));
    let mut dice = Dice(0x5eed);
    for import in KERNEL.imports().iter().filter(|import| import.module == library) {
        let (name, machine) = (import.name, machine());
        let text = module(import, native, &mut dice);
        put(&machine, b"/tmp/hostile", &wat::parse_str(&text).expect("a module")).await;
        let started = machine.start(Start::new("/tmp/hostile", &[])).await;
        let started = started.unwrap_or_else(|errno| panic!("{name} does not start: {errno}"));
        // Some calls wait for something that never comes; those are ended.
        match tokio::time::timeout(Duration::from_millis(250), started.wait()).await {
            Err(_) => {
                started.kill();
                started.wait().await;
            }
            // It can also have sent itself any signal.
            Ok(Status::Signaled(6)) if !["kill", "proc_raise"].contains(&name) => {
                panic!("{name} answered what is no errno");
            }
            Ok(_) => {}
        }
        assert_eq!(PANICS.load(Ordering::SeqCst), 0, "{name} panicked the kernel");
        settled(&machine).await;
        assert_eq!(run(&machine, &["exit", "5"]).await.status, Status::Exited(5), "after {name}");
    }
}

#[tokio::test]
async fn wasi_survives_nonsense() {
    attack("wasi_snapshot_preview1", true).await;
}

#[tokio::test]
async fn wasi_survives_nonsense_of_foreign_programs() {
    attack("wasi_snapshot_preview1", false).await;
}

#[tokio::test]
async fn our_own_calls_survive_nonsense() {
    attack("wardian", true).await;
}

#[tokio::test]
async fn a_module_that_starts_larger_than_the_limit_is_not_started() {
    let machine = machine();
    let wasm = wat::parse_str("(module (memory (export \"memory\") 65535) (func (export \"_start\")))");
    put(&machine, b"/tmp/hostile", &wasm.expect("a module")).await;
    let started = machine.start(Start::new("/tmp/hostile", &[])).await.expect("is found");
    assert_eq!(started.wait().await, Status::Signaled(9));
    assert_eq!(started.limit_hit(), Some("memoryBytes"));
}
