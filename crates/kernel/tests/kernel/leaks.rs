//! After thousands of processes nothing is left of them.

use std::time::Duration;

use wardian_kernel::{Limits, Status};

use crate::support::{KERNEL, machine_with, run, settled, start};

/// 2,000 by default; `cargo xtask soak kernel` asks for more.
fn cycles() -> usize {
    std::env::var("WARDIAN_SOAK_CYCLES").ok().and_then(|n| n.parse().ok()).unwrap_or(2_000)
}

struct Standing {
    descriptors: usize,
    mappings: usize,
    resident_kib: usize,
}

fn standing() -> Standing {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    Standing {
        descriptors: std::fs::read_dir("/proc/self/fd").expect("descriptors").count(),
        mappings: std::fs::read_to_string("/proc/self/maps").expect("maps").lines().count(),
        resident_kib: resident.trim().trim_end_matches(" kB").parse().expect("a number"),
    }
}

/// What stands when all has come to rest. A killed process's task ends within a tick of its own, not at once.
async fn quiet(machine: &std::sync::Arc<wardian_kernel::Machine>) -> Standing {
    settled(machine).await;
    for _ in 0..2_000 {
        if KERNEL.handle().metrics().num_alive_tasks() == 0 {
            return standing();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{} tasks are left", KERNEL.handle().metrics().num_alive_tasks());
}

async fn cycle(machine: &std::sync::Arc<wardian_kernel::Machine>, round: usize) {
    match round % 8 {
        0 => assert_eq!(run(machine, &["exit", "0"]).await.status, Status::Exited(0)),
        1 => assert_eq!(run(machine, &["fork", "3"]).await.status, Status::Exited(0)),
        2 => assert_eq!(run(machine, &["fork", "3", "nested"]).await.status, Status::Exited(0)),
        3 => assert_eq!(run(machine, &["pipes", "100000", "2"]).await.status, Status::Exited(0)),
        4 => assert_eq!(run(machine, &["grow"]).await.limit, Some("memoryBytes")),
        5 => assert_eq!(run(machine, &["deep"]).await.status, Status::Signaled(11)),
        6 => {
            let bomb = start(machine, &["fork", "100", "together"]).await;
            bomb.wait().await;
            assert_eq!(bomb.limit_hit(), Some("processes"));
            bomb.kill();
            settled(machine).await;
        }
        _ => {
            let victim = start(machine, &["spin"]).await;
            tokio::time::sleep(Duration::from_micros(200)).await;
            victim.kill();
            victim.wait().await;
        }
    }
}

/// Not in parallel with anything: it looks at the whole process. Run by itself through `ignored` in `cargo xtask test`.
#[tokio::test]
#[ignore = "looks at the whole process; cargo xtask test runs it alone"]
async fn nothing_is_left_after_many_cycles() {
    let machine = machine_with(Limits { processes: 16, memory_bytes: 32 << 20, open_files: 16 });
    for round in 0..200 {
        cycle(&machine, round).await;
    }
    let before = quiet(&machine).await;
    for round in 0..cycles() {
        cycle(&machine, round).await;
    }
    let after = quiet(&machine).await;
    assert_eq!(machine.census().descriptors, 0);
    assert_eq!(machine.census().memory_charged, 0);
    assert_eq!(after.descriptors, before.descriptors, "descriptors");
    let near = |a: usize, b: usize, band: usize| a.abs_diff(b) <= band;
    // Sixteen instances at most lie idle, of a few mappings each; how many do depends on what ran last.
    let (mappings, band) = ([before.mappings, after.mappings], 16 + 16 * 8);
    assert!(near(mappings[0], mappings[1], band), "mappings {mappings:?}");
    assert!(
        near(after.resident_kib, before.resident_kib, 32 * 1024),
        "resident {} -> {} KiB",
        before.resident_kib,
        after.resident_kib
    );
}
