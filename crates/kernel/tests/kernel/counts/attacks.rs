//! What guests ask for too much of: the calls, and the programs that make them.

/// One way to ask for too much: WebAssembly text that is run first, and text that is run again and again.
pub struct Attack {
    pub name: &'static str,
    pub first: &'static str,
    pub each: &'static str,
}

pub const fn each(name: &'static str, each: &'static str) -> Attack {
    Attack { name, first: "", each }
}

pub const CONTROL: Attack = each("a loop", "");

/// Pages of memory: 177 MB, from 65,536 up all zeros, which as a list is one of 20 million entries.
pub const HUGE: usize = 2_700;
/// Pages of memory where only the host's is looked at.
pub const SMALL: usize = 96;

/// Imports, strings and functions that the attacks are written with.
pub const PRELUDE: &str = r#"
(import "wardian" "open" (func $open (param i32 i32 i32 i32 i32 i32) (result i32)))
(import "wardian" "mkdir" (func $mkdir (param i32 i32 i32 i32) (result i32)))
(import "wardian" "chdir" (func $chdir (param i32 i32 i32) (result i32)))
(import "wardian" "getcwd" (func $getcwd (param i32 i32 i32) (result i32)))
(import "wardian" "spawn" (func $spawn (param i32 i32) (result i32)))
(import "wardian" "exec_wasi" (func $exec_wasi (param i32 i32 i32) (result i32)))
(import "wardian" "pipe" (func $pipe (param i32 i32) (result i32)))
(import "wardian" "alarm" (func $alarm (param i64 i32) (result i32)))
(import "wasi_snapshot_preview1" "args_get" (func $args_get (param i32 i32) (result i32)))
(import "wasi_snapshot_preview1" "fd_allocate" (func $allocate (param i32 i64 i64) (result i32)))
(import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32)))
(import "wasi_snapshot_preview1" "fd_fdstat_set_flags" (func $set_flags (param i32 i32) (result i32)))
(import "wasi_snapshot_preview1" "fd_filestat_set_size" (func $set_size (param i32 i64) (result i32)))
(import "wasi_snapshot_preview1" "fd_pread" (func $pread (param i32 i32 i32 i64 i32) (result i32)))
(import "wasi_snapshot_preview1" "fd_pwrite" (func $pwrite (param i32 i32 i32 i64 i32) (result i32)))
(import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
(import "wasi_snapshot_preview1" "fd_readdir" (func $readdir (param i32 i32 i32 i64 i32) (result i32)))
(import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
(import "wasi_snapshot_preview1" "path_symlink" (func $symlink (param i32 i32 i32 i32 i32) (result i32)))
(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
(import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
(import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
(import "wardian" "socket" (func $socket (param i32 i32 i32 i32 i32) (result i32)))
(import "wardian" "socketpair" (func $socketpair (param i32 i32 i32 i32 i32) (result i32)))
(import "wardian" "bind" (func $bind (param i32 i32 i32) (result i32)))
(import "wardian" "listen" (func $listen (param i32 i32) (result i32)))
(import "wardian" "connect" (func $connect (param i32 i32 i32) (result i32)))
(import "wardian" "look_up" (func $look_up (param i32 i32 i32 i32 i32) (result i32)))
(import "wardian" "send" (func $send (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
(import "wardian" "recv" (func $recv (param i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
(import "wardian" "flock" (func $flock (param i32 i32) (result i32)))
(import "wardian" "lock" (func $lock (param i32 i32 i32) (result i32)))
(global $fd (mut i32) (i32.const 0))
(data (i32.const 1136) "/tmp/waits")
(data (i32.const 1152) "/tmp/locks")
(data (i32.const 1024) "/tmp/idle")
(data (i32.const 1040) "/tmp/many")
(data (i32.const 1056) "/proc/self/cmdline")
(data (i32.const 1088) "/dev/urandom")
(data (i32.const 1104) "/tmp/large")
(data (i32.const 1120) "\02\00\15\b3\7f\00\00\01\00\00\00\00\00\00\00\00")
;; Two sockets of this kind, connected, that do not wait: their descriptors are at 16 and 20.
(func $pair (param $kind i32)
  (drop (call $socketpair (i32.const 1) (local.get $kind) (i32.const 0) (i32.const 2) (i32.const 16))))
;; Sends the parts at 4096, with so many descriptors from 65,536 up.
(func $sent (param $parts i32) (param $rights i32)
  (drop (call $send (i32.load (i32.const 16)) (i32.const 4096) (local.get $parts) (i32.const 0x4040) (i32.const 0)
    (i32.const 0) (i32.const 65536) (local.get $rights) (i32.const 24))))
;; Receives into them.
(func $received (param $parts i32) (param $rights i32)
  (drop (call $recv (i32.load (i32.const 20)) (i32.const 4096) (local.get $parts) (i32.const 0x40) (i32.const 0)
    (i32.const 0) (i32.const 131072) (local.get $rights) (i32.const 32))))
;; A TCP socket that listens; its descriptor is in $fd.
(func $listens
  (drop (call $socket (i32.const 2) (i32.const 1) (i32.const 0) (i32.const 2) (i32.const 16)))
  (global.set $fd (i32.load (i32.const 16)))
  (drop (call $bind (global.get $fd) (i32.const 1120) (i32.const 16)))
  (drop (call $listen (global.get $fd) (i32.const 2147483647))))
;; Another that connects to it.
(func $connects
  (drop (call $socket (i32.const 2) (i32.const 1) (i32.const 0) (i32.const 2) (i32.const 16)))
  (drop (call $connect (i32.load (i32.const 16)) (i32.const 1120) (i32.const 16))))
(func $opened (param $path i32) (param $len i32) (param $flags i32)
  (drop (call $open (i32.const 0x7fffff00) (local.get $path) (local.get $len) (local.get $flags)
    (i32.const 0x1b6) (i32.const 0)))
  (global.set $fd (i32.load (i32.const 0))))
;; Tells the host, and sleeps.
(func $sleep
  (i32.store (i32.const 512) (i32.const 65536)) (i32.store (i32.const 516) (i32.const 1))
  (drop (call $write (i32.const 1) (i32.const 512) (i32.const 1) (i32.const 0)))
  (memory.fill (i32.const 0) (i32.const 0) (i32.const 64))
  (i32.store (i32.const 16) (i32.const 1))
  (i64.store (i32.const 24) (i64.const 3600000000000))
  (drop (call $poll (i32.const 0) (i32.const 128) (i32.const 1) (i32.const 256))))
;; A request for /tmp/idle at 2048.
(func $request (param $argv i32) (param $moves i32)
  (i32.store (i32.const 2048) (i32.const 1024)) (i32.store (i32.const 2052) (i32.const 9))
  (i32.store (i32.const 2056) (i32.const 65536)) (i32.store (i32.const 2060) (local.get $argv))
  (i32.store (i32.const 2080) (i32.const 65536)) (i32.store (i32.const 2084) (local.get $moves))
  (i32.store (i32.const 2088) (i32.const -1)))
;; Starts the program with this name twice.
(func $waiters (param $path i32)
  (call $request (i32.const 0) (i32.const 0))
  (i32.store (i32.const 2048) (local.get $path)) (i32.store (i32.const 2052) (i32.const 10))
  (drop (call $spawn (i32.const 2048) (i32.const 0))) (drop (call $spawn (i32.const 2048) (i32.const 0))))
;; Parts of `len` bytes each at 4096, all of them the same.
(func $parts (param $count i32) (param $len i32)
  (loop $l
    (local.set $count (i32.sub (local.get $count) (i32.const 1)))
    (i32.store (i32.add (i32.const 4096) (i32.shl (local.get $count) (i32.const 3))) (i32.const 65536))
    (i32.store (i32.add (i32.const 4100) (i32.shl (local.get $count) (i32.const 3))) (local.get $len))
    (br_if $l (local.get $count))))
;; Directories for `exec_wasi` from 1 MiB up, each under a name of 4,095 bytes.
(func $preopens (param $count i32) (local $at i32)
  (call $opened (i32.const 1040) (i32.const 4) (i32.const 0))
  (memory.fill (i32.const 65536) (i32.const 120) (i32.const 4095))
  (local.set $at (i32.const 1048576))
  (loop $l
    (i32.store (local.get $at) (global.get $fd))
    (i32.store (i32.add (local.get $at) (i32.const 4)) (i32.const 65536))
    (i32.store (i32.add (local.get $at) (i32.const 8)) (i32.const 4095))
    (local.set $at (i32.add (local.get $at) (i32.const 12)))
    (local.set $count (i32.sub (local.get $count) (i32.const 1)))
    (br_if $l (local.get $count)))
  (memory.fill (i32.const 131072) (i32.const 0) (i32.const 4096))
  (call $request (i32.const 0) (i32.const 0)))
;; A directory so many levels down, each with a name of 255 bytes, to be in.
(func $deep (param $levels i32)
  (memory.fill (i32.const 65536) (i32.const 100) (i32.const 255))
  (drop (call $chdir (i32.const 0x7fffff00) (i32.const 1040) (i32.const 4)))
  (loop $l
    (drop (call $mkdir (i32.const 0x7fffff01) (i32.const 65536) (i32.const 255) (i32.const 0x1ff)))
    (drop (call $chdir (i32.const 0x7fffff01) (i32.const 65536) (i32.const 255)))
    (local.set $levels (i32.sub (local.get $levels) (i32.const 1)))
    (br_if $l (local.get $levels))))
"#;

/// A WASI program that does nothing for an hour.
pub const IDLE: &str = r#"(module
(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
(memory (export "memory") 1)
(func (export "_start")
  (i32.store (i32.const 16) (i32.const 1))
  (i64.store (i32.const 24) (i64.const 3600000000000))
  (drop (call $poll (i32.const 0) (i32.const 128) (i32.const 1) (i32.const 256)))))"#;

/// Programs that wait for a lock on /tmp/large, as a whole and as a range.
pub fn waiting(call: &str) -> Vec<u8> {
    let text = format!(
        "(module {PRELUDE} (memory (export \"memory\") 4) (func (export \"_start\")
           (call $opened (i32.const 1104) (i32.const 10) (i32.const 0x42))
           (i32.store (i32.const 8192) (i32.const 1)) (drop {call})))"
    );
    wat::parse_str(&text).expect("a module")
}

/// Calls that could hold a worker. Each import with a list or a length is here in its longest form.
pub const HOLDING: &[Attack] = &[
    each("random_get of 1 MiB", "(drop (call $random (i32.const 65536) (i32.const 1048576)))"),
    each("random_get of all memory", "(drop (call $random (i32.const 65536) (i32.const 170000000)))"),
    Attack {
        name: "spawn with 20 million moves",
        first: "(call $request (i32.const 0) (i32.const 20000000))",
        each: "(drop (call $spawn (i32.const 2048) (i32.const 0)))",
    },
    Attack {
        name: "spawn with as many moves as there may be",
        first: "(call $request (i32.const 0) (i32.const 256)) (i32.store (i32.const 2052) (i32.const 4))",
        each: "(drop (call $spawn (i32.const 2048) (i32.const 0)))",
    },
    Attack {
        name: "spawn with 2 MiB of empty arguments",
        first: "(call $request (i32.const 2097152) (i32.const 0)) (i32.store (i32.const 2052) (i32.const 4))",
        each: "(drop (call $spawn (i32.const 2048) (i32.const 0)))",
    },
    Attack {
        name: "spawn with as many empty arguments as there may be",
        first: "(call $request (i32.const 419430) (i32.const 0)) (i32.store (i32.const 2052) (i32.const 4))",
        each: "(drop (call $spawn (i32.const 2048) (i32.const 0)))",
    },
    Attack {
        name: "exec_wasi with 100,000 directories",
        first: "(call $preopens (i32.const 100000))",
        each: "(drop (call $exec_wasi (i32.const 2048) (i32.const 1048576) (i32.const 100000)))",
    },
    Attack {
        name: "exec_wasi with 200 directories for a program that is not there",
        first: "(call $preopens (i32.const 200)) (i32.store (i32.const 2052) (i32.const 4))",
        each: "(drop (call $exec_wasi (i32.const 2048) (i32.const 1048576) (i32.const 200)))",
    },
    each("args_get of 400,000 arguments", "(drop (call $args_get (i32.const 65536) (i32.const 8388608)))"),
    Attack {
        name: "fd_pread of 1,024 parts of 4 MiB of a hole",
        first: "(call $opened (i32.const 1104) (i32.const 10) (i32.const 0x42))
                (drop (call $set_size (global.get $fd) (i64.const 1099511627776)))
                (call $parts (i32.const 1024) (i32.const 4194304))",
        each: "(drop (call $pread (global.get $fd) (i32.const 4096) (i32.const 1024) (i64.const 0) (i32.const 0)))",
    },
    Attack {
        name: "fd_read of 1,024 parts of 4 MiB of /dev/urandom",
        first: "(call $opened (i32.const 1088) (i32.const 12) (i32.const 0))
                (call $parts (i32.const 1024) (i32.const 4194304))",
        each: "(drop (call $read (global.get $fd) (i32.const 4096) (i32.const 1024) (i32.const 0)))",
    },
    Attack {
        name: "fd_pwrite of 32 MiB",
        first: "(call $opened (i32.const 1104) (i32.const 10) (i32.const 0x42))
                (call $parts (i32.const 1) (i32.const 33554432))",
        each: "(drop (call $pwrite (global.get $fd) (i32.const 4096) (i32.const 1) (i64.const 0) (i32.const 0)))",
    },
    Attack {
        name: "fd_write of 1,024 parts to nobody",
        first: "(call $parts (i32.const 1024) (i32.const 64))",
        each: "(drop (call $write (i32.const 1) (i32.const 4096) (i32.const 1024) (i32.const 0)))",
    },
    Attack {
        name: "fd_write of all memory to standard output",
        first: "(call $parts (i32.const 1) (i32.const 170000000))",
        each: "(drop (call $write (i32.const 1) (i32.const 4096) (i32.const 1) (i32.const 0)))",
    },
    Attack {
        name: "fd_allocate of 60 MB",
        first: "(call $opened (i32.const 1104) (i32.const 10) (i32.const 0x42))",
        each: "(drop (call $allocate (global.get $fd) (i64.const 0) (i64.const 60000000)))
               (drop (call $set_size (global.get $fd) (i64.const 0)))",
    },
    Attack {
        name: "fd_readdir of 5,000 entries",
        first: "(call $opened (i32.const 1040) (i32.const 9) (i32.const 0))",
        each: "(drop (call $readdir (global.get $fd) (i32.const 65536) (i32.const 170000000) (i64.const 0) (i32.const 0)))",
    },
    each(
        "poll_oneoff with 3 million clocks",
        "(drop (call $poll (i32.const 65536) (i32.const 65536) (i32.const 3000000) (i32.const 0)))",
    ),
    each(
        "poll_oneoff with as many clocks as there may be",
        "(drop (call $poll (i32.const 65536) (i32.const 8388608) (i32.const 4096) (i32.const 0)))",
    ),
    each(
        "path_symlink to a target of 170 MB",
        "(drop (call $symlink (i32.const 65536) (i32.const 170000000) (i32.const 0x7fffff00) (i32.const 1104) (i32.const 10)))",
    ),
    each("sched_yield", "(drop (call $yield))"),
    each("alarm", "(drop (call $alarm (i64.const 3600000000000) (i32.const 0)))"),
    each(
        "alarm, set and cleared",
        "(drop (call $alarm (i64.const 3600000000000) (i32.const 0))) (drop (call $alarm (i64.const 0) (i32.const 0)))",
    ),
    Attack {
        name: "send and recv of 1,024 parts of 4 MiB",
        first: "(call $pair (i32.const 1)) (call $parts (i32.const 1024) (i32.const 4194304))",
        each: "(call $sent (i32.const 1024) (i32.const 0)) (call $received (i32.const 1024) (i32.const 0))",
    },
    Attack {
        name: "send of 20 million parts",
        first: "(call $pair (i32.const 1))",
        each: "(call $sent (i32.const 20000000) (i32.const 0))",
    },
    Attack {
        name: "datagrams of 200 KiB",
        first: "(call $pair (i32.const 2)) (call $parts (i32.const 1) (i32.const 204800))",
        each: "(call $sent (i32.const 1) (i32.const 0)) (call $received (i32.const 1) (i32.const 0))",
    },
    Attack {
        name: "send with 253 descriptors",
        first: "(call $pair (i32.const 1)) (call $parts (i32.const 1) (i32.const 1))",
        each: "(call $sent (i32.const 1) (i32.const 253)) (call $received (i32.const 1) (i32.const 0))",
    },
    Attack {
        name: "send with 20 million descriptors",
        first: "(call $pair (i32.const 1)) (call $parts (i32.const 1) (i32.const 1))",
        each: "(call $sent (i32.const 1) (i32.const 20000000)) (call $received (i32.const 1) (i32.const 20000000))",
    },
    each(
        "look_up of a name of 170 MB",
        "(drop (call $look_up (i32.const 65536) (i32.const 170000000) (i32.const 65536) (i32.const 170000000) (i32.const 0)))",
    ),
    Attack {
        name: "connections that nobody accepts",
        first: "(call $listens)",
        each: "(call $connects) (drop (call $close (i32.load (i32.const 16))))",
    },
    Attack {
        name: "getcwd 3,000 levels down",
        first: "(call $deep (i32.const 3000))",
        each: "(drop (call $getcwd (i32.const 65536) (i32.const 1048576) (i32.const 0)))",
    },
    Attack {
        name: "two processes that wait in flock",
        first: "(call $opened (i32.const 1104) (i32.const 10) (i32.const 0x42))
                (drop (call $flock (global.get $fd) (i32.const 2)))
                (call $waiters (i32.const 1136))",
        each: "(call $sleep)",
    },
    Attack {
        name: "two processes that wait for a range of a file",
        first: "(call $opened (i32.const 1104) (i32.const 10) (i32.const 0x42))
                (i32.store (i32.const 8192) (i32.const 1))
                (drop (call $lock (global.get $fd) (i32.const 2) (i32.const 8192)))
                (call $waiters (i32.const 1152))",
        each: "(call $sleep)",
    },
];

/// What the host might have to keep, asked for by so many processes, so many times by each; then they sleep.
pub const KEEPING: &[(usize, u32, Attack)] = &[
    (
        1,
        60,
        Attack {
            name: "children with 2 MiB of empty arguments",
            first: "(call $request (i32.const 2097152) (i32.const 0))",
            each: "(drop (call $spawn (i32.const 2048) (i32.const 0)))",
        },
    ),
    (
        1,
        60,
        Attack {
            name: "children with 400,000 empty arguments",
            first: "(call $request (i32.const 400000) (i32.const 0))",
            each: "(drop (call $spawn (i32.const 2048) (i32.const 0)))",
        },
    ),
    (
        1,
        60,
        Attack {
            name: "children with 2 MB of arguments",
            first: "(call $request (i32.const 2000000) (i32.const 0))
                    (memory.fill (i32.const 65536) (i32.const 120) (i32.const 2000000))
                    (loop $l
                      (i32.store (i32.const 12) (i32.add (i32.load (i32.const 12)) (i32.const 100000)))
                      (i32.store8 (i32.add (i32.const 65535) (i32.load (i32.const 12))) (i32.const 0))
                      (br_if $l (i32.lt_u (i32.load (i32.const 12)) (i32.const 2000000))))",
            each: "(drop (call $spawn (i32.const 2048) (i32.const 0)))",
        },
    ),
    (
        12,
        200,
        Attack {
            name: "full pipes",
            first: "(call $parts (i32.const 1) (i32.const 65536))",
            each: "(drop (call $pipe (i32.const 0) (i32.const 0)))
                   (drop (call $set_flags (i32.load (i32.const 4)) (i32.const 4)))
                   (drop (call $write (i32.load (i32.const 4)) (i32.const 4096) (i32.const 1) (i32.const 8)))",
        },
    ),
    (
        6,
        100,
        Attack {
            name: "full sockets",
            first: "(call $parts (i32.const 1) (i32.const 1048576))",
            each: "(call $pair (i32.const 1)) (call $sent (i32.const 1) (i32.const 0))",
        },
    ),
    (
        4,
        100_000,
        Attack {
            name: "datagrams of a byte",
            first: "(call $parts (i32.const 1) (i32.const 1)) (call $pair (i32.const 2))",
            each: "(call $sent (i32.const 1) (i32.const 0))",
        },
    ),
    (1, 3_000, Attack { name: "connections that wait", first: "(call $listens)", each: "(call $connects)" }),
    (2, 1_000_000, each("alarms", "(drop (call $alarm (i64.const 3600000000000) (i32.const 0)))")),
    (
        1,
        2,
        Attack {
            name: "300,000 directories with long names",
            first: "(call $preopens (i32.const 300000))",
            each: "(drop (call $exec_wasi (i32.const 2048) (i32.const 1048576) (i32.const 300000)))",
        },
    ),
    (
        4,
        300,
        each("open files of /proc", "(call $opened (i32.const 1056) (i32.const 18) (i32.const 0))"),
    ),
    (
        2,
        300,
        Attack {
            name: "open directories far down",
            first: "(call $deep (i32.const 2000)) (i32.store8 (i32.const 12) (i32.const 46))",
            each: "(drop (call $open (i32.const 0x7fffff01) (i32.const 12) (i32.const 1) (i32.const 0) (i32.const 0)
                     (i32.const 0)))",
        },
    ),
];

/// The program that does `times` times what the attack says and then sleeps, or never ends without a number.
pub fn program(attack: &Attack, pages: usize, times: Option<u32>) -> Vec<u8> {
    let again = match times {
        None => "(br $again)".to_owned(),
        Some(times) => format!(
            "(local.set $n (i32.add (local.get $n) (i32.const 1)))
             (br_if $again (i32.lt_u (local.get $n) (i32.const {times})))"
        ),
    };
    let Attack { first, each, .. } = attack;
    let text = format!(
        "(module {PRELUDE} (memory (export \"memory\") {pages}) (func (export \"_start\") (local $n i32) {first} (loop $again {each} {again}) (call $sleep)))"
    );
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{}: {error}", attack.name))
}
