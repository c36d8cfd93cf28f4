//! Modules that lie: every import is called with pointers, lengths and numbers that make no sense.
//!
//! What the guest gets is an errno or its own end. The kernel neither panics nor hangs, and the next program runs.

use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use wardian_kernel::{Start, Status};

use crate::support::{machine, put, run, settled};

/// Each import and its parameters: `i` for 32 bits, `l` for 64. A wrong signature here fails to link.
const WASI: &str = "args_get ii, args_sizes_get ii, environ_get ii, environ_sizes_get ii, clock_res_get ii, \
    clock_time_get ili, fd_advise illi, fd_allocate ill, fd_close i, fd_datasync i, fd_fdstat_get ii, \
    fd_fdstat_set_flags ii, fd_fdstat_set_rights ill, fd_filestat_get ii, fd_filestat_set_size il, \
    fd_filestat_set_times illi, fd_pread iiili, fd_prestat_get ii, fd_prestat_dir_name iii, fd_pwrite iiili, \
    fd_read iiii, fd_readdir iiili, fd_renumber ii, fd_seek ilii, fd_sync i, fd_tell ii, fd_write iiii, \
    path_create_directory iii, path_filestat_get iiiii, path_filestat_set_times iiiilli, path_link iiiiiii, \
    path_open iiiiillii, path_readlink iiiiii, path_remove_directory iii, path_rename iiiiii, \
    path_symlink iiiii, path_unlink_file iii, poll_oneoff iiii, proc_raise i, random_get ii, sched_yield , \
    sock_accept iii, sock_recv iiiiii, sock_send iiiii, sock_shutdown ii";
const WARDIAN: &str = "fork iii, spawn ii, exec i, wait iiii, kill ii, getpgid ii, setpgid ii, sigaction iii, \
    sigpending i, alarm li, times i, getrlimit ii, setrlimit ii, pipe ii, dup iiii, dup2 iii, cloexec iii, \
    isatty i, winsize ii, stat iiiii, fstat ii, chmod iiiii, fchmod ii, chown iiiiii, access iiii, mkdir iiii, \
    mkfifo iiii, open iiiiii, statfs iiii, getcwd iii, chdir iii, umask i, getpid , getppid ";

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
struct Dice(u64);

impl Dice {
    fn roll<T: Copy>(&mut self, among: &[T]) -> T {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        among[(self.0 >> 33) as usize % among.len()]
    }
}

fn module(library: &str, name: &str, params: &str, dice: &mut Dice) -> String {
    let types: String = params.chars().map(|c| if c == 'l' { " i64" } else { " i32" }).collect();
    let mut text = format!(
        "(module (import \"{library}\" \"{name}\" (func $f (param{types}) (result i32)))
           (import \"wardian\" \"getppid\" (func $native (result i32)))
           (memory (export \"memory\") 1)
           (data (i32.const 1024) \"/tmp/x\\00\\01\\02\\ff\\ff\\ff\\ff\")
           (func (export \"_start\")\n"
    );
    for _ in 0..CALLS {
        for kind in params.chars() {
            let _ = match kind {
                'l' => writeln!(text, "(i64.const {})", dice.roll(&NASTY_LONG) as i64),
                _ => writeln!(text, "(i32.const {})", dice.roll(&NASTY) as i32),
            };
        }
        text.push_str("call $f drop\n");
    }
    text.push_str("))");
    text
}

async fn attack(library: &str, table: &str) {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        before(info);
    }));
    let mut dice = Dice(0x5eed);
    for row in table.split(',') {
        let (name, params) = row.trim_start().split_once(' ').expect("a name and its parameters");
        let machine = machine();
        let text = module(library, name, params, &mut dice);
        put(&machine, b"/tmp/hostile", &wat::parse_str(&text).expect("a module")).await;
        let started = machine.start(Start::new("/tmp/hostile", &[])).await;
        let started = started.unwrap_or_else(|errno| panic!("{name} does not start: {errno}"));
        // Some calls wait for something that never comes; those are ended.
        let ended = tokio::time::timeout(Duration::from_millis(250), started.wait()).await;
        if ended.is_err() {
            started.kill();
            started.wait().await;
        }
        assert_eq!(PANICS.load(Ordering::SeqCst), 0, "{name} panicked the kernel");
        settled(&machine).await;
        assert_eq!(run(&machine, &["exit", "5"]).await.status, Status::Exited(5), "after {name}");
    }
}

#[tokio::test]
async fn wasi_survives_nonsense() {
    attack("wasi_snapshot_preview1", WASI).await;
}

#[tokio::test]
async fn our_own_calls_survive_nonsense() {
    attack("wardian", WARDIAN).await;
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
