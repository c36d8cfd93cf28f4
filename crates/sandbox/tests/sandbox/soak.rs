//! Many commands in many sandboxes, with kills at random: in the end everything stands where it stood.

use std::time::Duration;

use wardian::internals::Inside;
use wardian::{Run, Sandbox};

use crate::support::{random, sandbox};

/// A twentieth of what `cargo xtask soak sandbox` asks for.
fn runs() -> usize {
    std::env::var("WARDIAN_SOAK_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(2_500)
}

const SANDBOXES: usize = 500;
const AT_ONCE: usize = 16;

const SCRIPTS: [&str; 10] = [
    "echo $((n++))",
    "x=$(echo a | tr a b); [ $x = b ]",
    "for i in 1 2 3; do ( : ); done",
    "echo line >> /tmp/log; tail -1 /tmp/log > /tmp/last",
    "yes | head -1000 | sort | uniq -c > /dev/null",
    "while :; do :; done",
    "sleep 1000",
    "yes > /tmp/big",
    "sleep 1000 & sleep 1000 | cat",
    "f() { f | f & }; f; sleep 1000",
];

struct Standing {
    descriptors: usize,
    mappings: usize,
    resident_kib: usize,
}

fn standing() -> Standing {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    Standing {
        descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
        mappings: std::fs::read_to_string("/proc/self/maps").unwrap().lines().count(),
        resident_kib: resident.trim().trim_end_matches(" kB").parse().unwrap(),
    }
}

async fn one(sandbox: Sandbox, round: usize) {
    let chance = random(round);
    let script = SCRIPTS[chance % SCRIPTS.len()];
    let run = Run::new(script).timeout(Some(Duration::from_millis(1 + (chance >> 8) as u64 % 15)));
    if chance.is_multiple_of(7) {
        // Somebody stops waiting.
        let _ = tokio::time::timeout(Duration::from_millis((chance >> 16) as u64 % 8), sandbox.run_with(run))
            .await;
        return;
    }
    sandbox.run_with(run).await.unwrap();
    if chance.is_multiple_of(11) {
        drop(sandbox.fork().await.unwrap());
    }
}

async fn work(first: usize, count: usize) {
    let mut sandboxes = Vec::new();
    for _ in 0..SANDBOXES {
        sandboxes.push(sandbox().await);
    }
    for batch in (first..first + count).step_by(AT_ONCE) {
        let tasks: Vec<_> = (batch..(batch + AT_ONCE).min(first + count))
            .map(|round| tokio::spawn(one(sandboxes[random(round) % SANDBOXES].clone(), round)))
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    }
    for sandbox in &sandboxes {
        let result = sandbox.run("echo alive").await.unwrap();
        assert_eq!(result.stdout, b"alive\n");
        assert_eq!(sandbox.machine().tree().await.fsck(), Ok(()));
        let census = sandbox.machine().census();
        assert_eq!((census.processes - census.zombies, census.descriptors), (1, 3));
    }
}

async fn quiet() -> Standing {
    let tasks = || wardian::Engine::shared().expect("it runs").usage().tasks;
    for _ in 0..1000 {
        if tasks() == 0 {
            // Free memory goes back to the system half a second later.
            tokio::time::sleep(Duration::from_secs(2)).await;
            return standing();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{} tasks are left", tasks());
}

#[tokio::test]
#[ignore = "looks at the whole process; cargo xtask test runs it alone"]
async fn every_resource_returns_to_its_initial_value() {
    work(0, runs() / 5).await;
    let before = quiet().await;
    work(1_000_000, runs()).await;
    let after = quiet().await;
    assert_eq!(after.descriptors, before.descriptors, "descriptors");
    let near = |a: usize, b: usize, band: usize| a.abs_diff(b) <= band;
    // Of each program sixteen instances at most lie idle, of a few mappings each; how many do depends on what ran last.
    let (mappings, band) = ([before.mappings, after.mappings], 64 + 3 * 16 * 8);
    assert!(near(mappings[0], mappings[1], band), "mappings {mappings:?}");
    assert!(
        near(after.resident_kib, before.resident_kib, 64 * 1024),
        "resident {} -> {} KiB",
        before.resident_kib,
        after.resident_kib
    );
}
