//! Programs that behave, and programs that do not: what the caller is told, and that nothing is left of them.

use std::fs;
use std::os::unix::fs::symlink;

use tokio::sync::mpsc;
use wardian_hosttools::{Ended, ExecSpec, Lane, Mode, PoolConfig, Stream, WorkerPool};

use crate::rig::{Place, SHORT, a_long_time, hold, processes_with, run, text, until};

fn short(mut spec: ExecSpec) -> ExecSpec {
    spec.timeout = SHORT;
    spec
}

#[tokio::test]
async fn output_and_exit_code_arrive() {
    let place = Place::new();
    let finished = run(&place.pool(), place.shell("echo out; echo err >&2; exit 7")).await.expect("it runs");
    assert_eq!(finished.status, Ended::Exit(7));
    assert_eq!((text(&finished.stdout), text(&finished.stderr)), ("out\n".into(), "err\n".into()));
    assert!(!finished.timed_out && !finished.truncated);
}

#[tokio::test]
async fn a_death_by_signal_is_reported_as_one() {
    let place = Place::new();
    let pool = place.pool();
    for signal in [1, 6, 9, 11, 15] {
        let finished = run(&pool, place.shell(&format!("kill -{signal} $$"))).await.expect("it runs");
        assert_eq!(finished.status, Ended::Signal(signal));
        assert!(!finished.timed_out);
    }
}

#[tokio::test]
async fn there_is_nothing_to_read_and_no_environment_but_its_own() {
    let place = Place::new();
    let pool = place.pool();
    let finished = run(&pool, place.shell("cat; env")).await.expect("it runs");
    // A shell adds PWD.
    let stdout = text(&finished.stdout);
    let names: Vec<_> = stdout.lines().filter(|line| !line.starts_with("PWD=")).collect();
    assert_eq!(names, ["PATH=/usr/bin:/bin"]);
}

#[tokio::test]
async fn a_program_that_is_not_one_is_reported_as_such() {
    let place = Place::new();
    let file = place.jail().join("no-program");
    fs::write(&file, "echo no").expect("a file");
    let error = run(&place.pool(), place.spec(&file, &[])).await.expect_err("it cannot run");
    assert_eq!(error.code(), "START_FAILED");
    assert!(error.to_string().contains("Permission denied"), "{error}");
}

#[tokio::test]
async fn sigterm_comes_first_at_the_deadline() {
    let place = Place::new();
    let patient = PoolConfig { kill_grace_ms: 60_000, ..place.config() };
    let pool = WorkerPool::start(Mode::Worker, &patient).expect("a pool");
    let script = "trap 'echo bye; exit 3' TERM; echo hello; while :; do sleep 0.05; done";
    let mut spec = short(place.shell(script));
    loop {
        let finished = run(&pool, spec.clone()).await.expect("it runs");
        if text(&finished.stdout).is_empty() {
            // It had not even begun: the machine is busy.
            spec.timeout *= 2;
            continue;
        }
        assert_eq!((finished.status, finished.timed_out), (Ended::Exit(3), true));
        assert_eq!(text(&finished.stdout), "hello\nbye\n");
        break;
    }
}

#[tokio::test]
async fn one_that_ignores_sigterm_is_killed() {
    let place = Place::new();
    let pool = place.pool();
    let finished =
        run(&pool, short(place.shell("trap '' TERM; while :; do sleep 0.05; done"))).await.expect("it runs");
    assert_eq!((finished.status, finished.timed_out), (Ended::Signal(9), true));
    assert!(finished.duration >= SHORT);
}

#[tokio::test]
async fn one_that_is_stopped_is_ended_at_its_deadline() {
    let place = Place::new();
    let finished = run(&place.pool(), short(place.shell("kill -STOP $$"))).await.expect("it runs");
    assert_eq!((finished.status, finished.timed_out), (Ended::Signal(15), true));
}

#[tokio::test]
async fn what_forks_away_ends_with_its_program() {
    let place = Place::new();
    let pool = place.pool();
    let time = a_long_time();
    let finished = run(&pool, place.attempt(&["daemon", "/bin/sleep", &time])).await.expect("it runs");
    assert_eq!((finished.status, finished.timed_out), (Ended::Exit(0), false));
    assert_eq!(processes_with(&time), [] as [i32; 0]);
}

#[tokio::test]
async fn what_forks_away_ends_at_the_deadline_too() {
    let place = Place::new();
    let pool = place.pool();
    let (time, probe) = (a_long_time(), place.probe());
    let script = format!("{} daemon /bin/sleep {time}; sleep {time}", probe.display());
    let mut spec = short(place.shell(&script));
    spec.confinement.readable.push(probe);
    let mut call = std::pin::pin!(run(&pool, spec));
    let both = async { until("both", || processes_with(&time).len() == 2).await };
    tokio::select! {
        () = both => {}
        finished = &mut call => panic!("{finished:?}"),
    }
    let finished = call.await.expect("it runs");
    assert!(finished.timed_out);
    assert_eq!(processes_with(&time), [] as [i32; 0]);
}

#[tokio::test]
async fn a_long_line_of_descendants_is_ended() {
    let place = Place::new();
    let mut spec = place.attempt(&["family", "60"]);
    spec.timeout = SHORT * 2;
    let pool = place.pool();
    let finished = run(&pool, spec).await.expect("it runs");
    assert!(finished.timed_out);
    assert_eq!(text(&finished.stdout), "here\n".repeat(61));
    assert_eq!(pool.stats().children, 0);
}

#[tokio::test]
async fn a_fork_bomb_is_ended_to_the_last() {
    let place = Place::new();
    // The kernel does not hold root to a number of processes, and other tests count those of the usual user.
    let pool = place.pool_of(65533);
    let mut spec = short(place.shell("bomb() { bomb | bomb & }; bomb; sleep 1000"));
    spec.confinement.processes = 60;
    spec.max_output = 1000;
    let finished = run(&pool, spec).await.expect("it runs");
    assert!(finished.timed_out);
    assert_eq!(pool.stats().children, 0);
}

#[tokio::test]
async fn a_fork_bomb_that_never_gives_up_is_ended_to_the_last() {
    let place = Place::new();
    let pool = place.pool_of(65532);
    let mut spec = short(place.attempt(&["bomb"]));
    spec.confinement.processes = 40;
    let finished = run(&pool, spec).await.expect("it runs");
    assert_eq!((finished.status, finished.timed_out), (Ended::Signal(9), true));
    assert_eq!(pool.stats().children, 0);
}

#[tokio::test]
async fn a_timeout_of_forever_is_one() {
    let place = Place::new();
    let mut spec = place.shell("exit 4");
    spec.timeout = std::time::Duration::MAX;
    assert_eq!(run(&place.pool(), spec).await.expect("it runs").status, Ended::Exit(4));
}

#[tokio::test]
async fn one_that_closes_its_pipes_is_waited_for() {
    let place = Place::new();
    let pool = place.pool();
    let finished = run(&pool, place.shell("exec >&- 2>&-; sleep 0.3; exit 5")).await.expect("it runs");
    assert_eq!(finished.status, Ended::Exit(5));
    let finished = run(&pool, short(place.shell("exec >&- 2>&-; exec sleep 1000"))).await.expect("it runs");
    assert_eq!((finished.status, finished.timed_out), (Ended::Signal(15), true));
}

#[tokio::test]
async fn a_flood_is_cut_and_read_to_its_end() {
    let place = Place::new();
    let mut spec = place.attempt(&["flood", "20000000"]);
    spec.max_output = 2500;
    let finished = run(&place.pool(), spec).await.expect("it runs");
    assert_eq!(finished.status, Ended::Exit(0), "it never had to wait, and wrote all");
    assert!(finished.truncated);
    assert_eq!(text(&finished.stdout), "x".repeat(2500) + "\n[output cut at 2500 bytes]\n");
}

#[tokio::test]
async fn output_just_at_the_cap_is_whole() {
    let place = Place::new();
    let mut spec = place.attempt(&["flood", "3000"]);
    spec.max_output = 3000;
    let finished = run(&place.pool(), spec).await.expect("it runs");
    assert!(!finished.truncated);
    assert_eq!(finished.stdout.len(), 3000);
}

#[tokio::test]
async fn output_is_passed_on_as_it_comes() {
    let place = Place::new();
    let pool = place.pool();
    let (sink, mut chunks) = mpsc::unbounded_channel();
    let script = "echo one; while [ ! -e go ]; do sleep 0.01; done; echo two; echo err >&2";
    let call = pool.run(place.shell(script), Lane::Interactive, "test", Some(sink));
    let listen = async {
        let first = chunks.recv().await.expect("a chunk");
        assert_eq!((first.stream, text(&first.bytes)), (Stream::Stdout, "one\n".into()));
        fs::write(place.jail().join("go"), "").expect("a sign");
        let mut rest = vec![];
        while let Some(chunk) = chunks.recv().await {
            rest.push((chunk.stream, text(&chunk.bytes)));
        }
        rest
    };
    // The sink goes with the call, so that the listener comes to an end.
    let (finished, mut rest) = tokio::join!(async { call.await.expect("it runs") }, listen);
    rest.sort_by_key(|(stream, _)| *stream == Stream::Stderr);
    assert_eq!(rest, [(Stream::Stdout, "two\n".into()), (Stream::Stderr, "err\n".into())]);
    assert_eq!(text(&finished.stdout), "one\ntwo\n");
}

#[tokio::test]
async fn a_working_directory_that_was_swapped_is_still_the_one_held() {
    let place = Place::new();
    let inside = place.jail().join("here");
    fs::create_dir(&inside).expect("a directory");
    fs::write(inside.join("mine"), "").expect("a file");
    let mut spec = place.shell("ls");
    spec.cwd = hold(&inside);
    fs::rename(&inside, place.jail().join("elsewhere")).expect("it moves");
    symlink("/etc", &inside).expect("a trap");
    let finished = run(&place.pool(), spec).await.expect("it runs");
    assert_eq!(text(&finished.stdout), "mine\n");
}
