//! Programs for every count and every length that a system call takes: one asks for far too many, one for as many as there may be
//! whose parts are as long as can be. They are made from the list of imports, so that a new call is not forgotten.

use wardian_kernel::Import;

use crate::counts::{HUGE, NUMBERS};
use crate::hostile::Dice;
use crate::interface::{documented_caps, is_length};
use crate::support::KERNEL;

/// What a program asks for too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Huge {
    Count,
    Total,
}

/// Ignores SIGALRM, and opens a file, a directory and two sockets that are connected and do not wait, as descriptors 3 to 6. From 8192 up there
/// is the range of a lock; at 2048 a request to start a program, which is there or not.
const SETTING: &str = r#"
(import "wardian" "open" (func $open (param i32 i32 i32 i32 i32 i32) (result i32)))
(import "wardian" "socketpair" (func $pair (param i32 i32 i32 i32 i32) (result i32)))
(import "wardian" "sigaction" (func $sigaction (param i32 i32 i32) (result i32)))
(import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32)))
(data (i32.const 1024) "/tmp/idle")
(data (i32.const 1040) "/tmp/many")
(data (i32.const 1104) "/tmp/large")
(func $setting (param $argv i32) (param $moves i32) (param $path i32)
  (drop (call $sigaction (i32.const 14) (i32.const 1) (i32.const 0)))
  (drop (call $open (i32.const 0x7fffff00) (i32.const 1104) (i32.const 10) (i32.const 0x42) (i32.const 0x1b6) (i32.const 0)))
  (drop (call $open (i32.const 0x7fffff00) (i32.const 1040) (i32.const 9) (i32.const 0) (i32.const 0) (i32.const 0)))
  (drop (call $pair (i32.const 1) (i32.const 1) (i32.const 0) (i32.const 2) (i32.const 16)))
  (i32.store (i32.const 2048) (i32.const 1024)) (i32.store (i32.const 2052) (local.get $path))
  (i32.store (i32.const 2056) (i32.const 65536)) (i32.store (i32.const 2060) (local.get $argv))
  (i32.store (i32.const 2080) (i32.const 65536)) (i32.store (i32.const 2084) (local.get $moves))
  (i32.store (i32.const 2088) (i32.const -1))
  (i32.store (i32.const 8192) (i32.const 1)))
;; From 65,536 up, parts of 4 MiB.
(func $parts (local $at i32)
  (local.set $at (i32.const 65536))
  (loop $l
    (i32.store (local.get $at) (i32.const 1048576)) (i32.store (i32.add (local.get $at) (i32.const 4)) (i32.const 4194304))
    (local.set $at (i32.add (local.get $at) (i32.const 8)))
    (br_if $l (i32.lt_u (local.get $at) (i32.const 1000000)))))
"#;

/// A number for a parameter that is what the call expects there.
fn fitting(import: &Import, parameter: &str, dice: &mut Dice) -> u32 {
    match parameter {
        "fd" if import.module == "wardian" && is_of_sockets(import.name) => dice.roll(&[5, 6]),
        "fd" => dice.roll(&[3, 4, 5]),
        "dir" | "from_dir" | "to_dir" => dice.roll(&[0x7fff_ff00, 4]),
        "request" => 2048,
        "range" => 8192,
        "operation" => dice.roll(&[1, 2, 5, 6, 8]),
        "command" => dice.roll(&[0, 1, 2, 4, 5, 6]),
        "flags" | "fdflags" | "oflags" | "lookup" | "kind" | "level" | "option" => {
            dice.roll(&[0, 1, 2, 0x40])
        }
        "base" | "offset" | "cookie" | "how" | "whence" => 0,
        _ => 65_536,
    }
}

fn is_of_sockets(name: &str) -> bool {
    let calls = ["accept", "bind", "connect", "listen", "recv", "send", "shutdown"];
    calls.contains(&name)
        || name.starts_with("getsock")
        || name.starts_with("setsock")
        || name == "getpeername"
}

/// A program that calls one import for ever, with the arguments that `choose` returns for its parameters.
pub fn program(
    import: &Import,
    setting: &str,
    dice: &mut Dice,
    mut choose: impl FnMut(&Import, &str, &mut Dice) -> u32,
) -> Vec<u8> {
    let Import { module, name, params, names, answers } = import;
    let types: String = params.chars().map(|c| if c == 'l' { " i64" } else { " i32" }).collect();
    let (result, drop) = if *answers { ("(result i32)", "drop") } else { ("", "") };
    let mut calls = String::new();
    for _ in 0..100 {
        for (kind, parameter) in params.chars().zip(names) {
            let number = choose(import, parameter, dice);
            calls += &format!("(i{}.const {number}) ", if kind == 'l' { 64 } else { 32 });
        }
        calls += &format!("call $f {drop}\n");
    }
    let text = format!(
        "(module (import \"{module}\" \"{name}\" (func $f (param{types}) {result})) {SETTING}
           (memory (export \"memory\") {HUGE}) (func (export \"_start\") {setting} (loop $l {calls} (br $l))))"
    );
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A program that passes every number in every place by and by, and half of the time what is expected there.
pub fn with_any_numbers(import: &Import, dice: &mut Dice) -> Vec<u8> {
    let setting = setting(import, 0, 0);
    program(import, &setting, dice, |import, parameter, dice| {
        if dice.roll(&[0, 1]) == 0 { dice.roll(&NUMBERS) } else { fitting(import, parameter, dice) }
    })
}

/// Programs to start exist; programs that would replace this one do not.
fn setting(import: &Import, argv: u32, moves: u32) -> String {
    let path = if import.name.starts_with("exec") { 4 } else { 9 };
    format!("(call $setting (i32.const {argv}) (i32.const {moves}) (i32.const {path}))")
}

/// The program for one length of one call.
fn with_length(import: &Import, length: &str, huge: Huge, dice: &mut Dice) -> Vec<u8> {
    let (argv, moves, parts) = match huge {
        Huge::Count => (20_000_000, 20_000_000, ""),
        Huge::Total => (2_000_000, 256, "(call $parts)"),
    };
    let numbers: [u32; 4] = match huge {
        Huge::Count => [20_000_000, 170_000_000, 0x7fff_ffff, 3_000_000],
        Huge::Total => [1_024, 253, 4_095, 100_000],
    };
    let setting = format!("{} {parts}", setting(import, argv, moves));
    program(import, &setting, dice, |import, parameter, dice| match parameter {
        "request" | "pointers" => fitting(import, parameter, dice),
        _ if parameter == length => dice.roll(&numbers),
        _ => fitting(import, parameter, dice),
    })
}

/// All of them, with what they ask for.
pub fn all(dice: &mut Dice) -> Vec<(String, Vec<u8>)> {
    let mut programs = Vec::new();
    for import in KERNEL.imports() {
        for length in import.names.iter().filter(|name| is_length(name)) {
            for huge in [Huge::Count, Huge::Total] {
                let name = format!("{}, {length}: huge {huge:?}", import.name);
                programs.push((name, with_length(import, length, huge, dice)));
            }
        }
    }
    programs
}

/// Each row of the caps in docs/abi.md has its programs.
#[test]
fn every_cap_has_a_program_with_a_huge_count_and_one_with_a_huge_total() {
    let made: Vec<String> = all(&mut Dice(0x5eed)).into_iter().map(|(name, _)| name).collect();
    let caps = documented_caps();
    assert!(caps.len() > 40, "{caps:?}");
    for (call, length) in &caps {
        for huge in [Huge::Count, Huge::Total] {
            let name = format!("{call}, {length}: huge {huge:?}");
            assert!(made.contains(&name), "there is no program for {name}");
        }
    }
    assert_eq!(made.len(), 2 * caps.len());
}
