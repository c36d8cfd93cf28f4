//! Lanes, queues, lost workers, shutdown, statistics: the pool as its callers see it.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use wardian_hosttools::{
    Backoff, Ended, ExecSpec, Finished, Lane, Mode, OutputChunk, PoolConfig, ToolError, WorkerPool,
};

use crate::rig::{Place, SHORT, a_long_time, copy_program, processes_with, run, text, until};

type Running = JoinHandle<Result<Finished, ToolError>>;

/// Starts a call beside the test.
fn begin(pool: &WorkerPool, spec: ExecSpec, lane: Lane, session: &str) -> Running {
    let (pool, session) = (pool.clone(), session.to_owned());
    tokio::spawn(async move { pool.run(spec, lane, &session, None).await })
}

/// A program that runs until the jail has a file `go`, and then writes its name to `order`.
fn waiter(place: &Place, name: &str) -> ExecSpec {
    place.shell(&format!("while [ ! -e go ]; do sleep 0.02; done; echo {name} >> order"))
}

fn let_go(place: &Place) {
    fs::write(place.jail().join("go"), "").expect("a sign");
}

async fn queued(pool: &WorkerPool, count: usize) {
    until("a place in the queue", || pool.stats().interactive.queued == count).await;
}

async fn busy(pool: &WorkerPool) {
    until("a busy worker", || pool.stats().interactive.active == 1).await;
}

#[tokio::test]
async fn a_full_queue_is_reported_and_retrying_helps() {
    let place = Place::new();
    let pool =
        WorkerPool::start(Mode::Worker, &PoolConfig { queue_depth: 2, ..place.config() }).expect("a pool");
    let first = begin(&pool, waiter(&place, "a"), Lane::Interactive, "a");
    busy(&pool).await;
    let waiting: Vec<_> =
        (0..2).map(|_| begin(&pool, waiter(&place, "b"), Lane::Interactive, "test")).collect();
    queued(&pool, 2).await;

    let error = run(&pool, place.shell("true")).await.expect_err("there is no room");
    assert_eq!(error.code(), "WORKER_UNAVAILABLE");
    assert!(matches!(error, ToolError::WorkerUnavailable { queued: 2 }), "{error:?}");

    let attempts = AtomicU32::new(0);
    let patient =
        Backoff { first: Duration::from_millis(10), longest: Duration::from_millis(50), attempts: 1000 };
    let finished = patient.retry(async || {
        if attempts.fetch_add(1, Ordering::Relaxed) == 2 {
            let_go(&place);
        }
        run(&pool, place.shell("echo in the end")).await
    });
    assert_eq!(text(&finished.await.expect("there is room by now").stdout), "in the end\n");
    assert!(attempts.load(Ordering::Relaxed) >= 3);
    for call in waiting.into_iter().chain([first]) {
        assert_eq!(call.await.expect("no panic").expect("it runs").status, Ended::Exit(0));
    }
}

#[tokio::test]
async fn trying_again_ends_with_the_last_attempt_and_at_other_errors() {
    let attempts = AtomicU32::new(0);
    let few = Backoff { first: Duration::from_millis(1), longest: Duration::from_millis(2), attempts: 4 };
    let busy = || Err::<(), _>(ToolError::WorkerUnavailable { queued: 1 });
    let answer = few.retry(async || {
        attempts.fetch_add(1, Ordering::Relaxed);
        busy()
    });
    assert_eq!(answer.await.expect_err("still busy").code(), "WORKER_UNAVAILABLE");
    assert_eq!(attempts.swap(0, Ordering::Relaxed), 4);
    let answer = few.retry(async || {
        attempts.fetch_add(1, Ordering::Relaxed);
        Err::<(), _>(ToolError::ShuttingDown)
    });
    assert_eq!(answer.await.expect_err("no use").code(), "POOL_SHUTTING_DOWN");
    assert_eq!(attempts.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn waiting_sessions_take_turns() {
    let place = Place::new();
    let pool = place.pool();
    let mut calls = vec![begin(&pool, waiter(&place, "first"), Lane::Interactive, "greedy")];
    busy(&pool).await;
    for (number, session) in ["greedy"; 8].into_iter().chain(["modest", "shy"]).enumerate() {
        calls.push(begin(&pool, waiter(&place, session), Lane::Interactive, session));
        queued(&pool, number + 1).await;
    }
    let_go(&place);
    for call in calls {
        call.await.expect("no panic").expect("it runs");
    }
    let order = fs::read_to_string(place.jail().join("order")).expect("they ran");
    let order: Vec<_> = order.lines().collect();
    // The greedy one had the turn before the crowd, so the two others are next.
    assert_eq!(order[..4], ["first", "modest", "shy", "greedy"]);
    assert_eq!(order.len(), 11);
}

#[tokio::test]
async fn a_session_that_fills_the_queue_does_not_block_others() {
    let place = Place::new();
    let pool =
        WorkerPool::start(Mode::Worker, &PoolConfig { queue_depth: 3, ..place.config() }).expect("a pool");
    let running = begin(&pool, waiter(&place, "first"), Lane::Interactive, "greedy");
    busy(&pool).await;
    let mut greedy = Vec::new();
    for number in 0..3 {
        greedy.push(begin(&pool, waiter(&place, "greedy"), Lane::Interactive, "greedy"));
        queued(&pool, number + 1).await;
    }
    let modest = begin(&pool, waiter(&place, "modest"), Lane::Interactive, "modest");
    let error = greedy.pop().expect("a call").await.expect("no panic").expect_err("it gave way");
    assert!(matches!(error, ToolError::WorkerUnavailable { queued: 3 }), "{error:?}");
    let_go(&place);
    for call in [running, modest].into_iter().chain(greedy) {
        call.await.expect("no panic").expect("it runs");
    }
    let order = fs::read_to_string(place.jail().join("order")).expect("they ran");
    assert_eq!(order, "first\nmodest\ngreedy\ngreedy\n");
}

#[tokio::test]
async fn the_system_lane_serves_its_own_alone_and_at_any_time() {
    let place = Place::new();
    let pool = place.pool();
    let running = begin(&pool, waiter(&place, "a"), Lane::Interactive, "a");
    busy(&pool).await;
    let waiting = begin(&pool, waiter(&place, "b"), Lane::Interactive, "b");
    queued(&pool, 1).await;
    for _ in 0..3 {
        let finished = pool.run(place.shell("true"), Lane::System, "us", None).await.expect("it runs");
        assert_eq!(finished.lane, Lane::System);
        let stats = pool.stats();
        assert_eq!(
            (stats.interactive.queued, stats.system.active),
            (1, 0),
            "an idle system worker takes nobody else's"
        );
    }
    let system = begin(&pool, waiter(&place, "c"), Lane::System, "us");
    until("the system's worker", || pool.stats().system.active == 1).await;
    let_go(&place);
    let workers = [running, waiting, system]
        .map(|call| async { call.await.expect("no panic").expect("it runs").worker });
    let [a, b, c] = workers;
    let (a, b, c) = tokio::join!(a, b, c);
    assert!(a == b && a != c, "{a} {b} {c}");
}

/// Starts `script` with its worker's process number as first output, and waits for that.
async fn with_worker(pool: &WorkerPool, place: &Place, script: &str) -> (Running, i32) {
    let (sink, mut chunks) = mpsc::unbounded_channel();
    let (pool, spec) = (pool.clone(), place.shell(&format!("echo $PPID; {script}")));
    let call = tokio::spawn(async move { pool.run(spec, Lane::Interactive, "test", Some(sink)).await });
    let OutputChunk { bytes, .. } = chunks.recv().await.expect("its first output");
    (call, text(&bytes).trim().parse().expect("a process"))
}

fn parent(process: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("it lives");
    stat.rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().nth(1))
        .expect("a parent")
        .parse()
        .expect("a number")
}

fn signal(process: i32, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(process).expect("a process"), signal)
        .expect("sent");
}

/// Every process whose first output was given is lost in some way; the pool must notice, leave nothing, and go on.
async fn loses(lose: impl Fn(i32)) {
    let place = Place::new();
    let config = PoolConfig { confirm_grace_ms: 1500, ..place.config() };
    let pool = WorkerPool::start(Mode::Worker, &config).expect("a pool");
    let time = a_long_time();
    let script = format!("{} daemon /bin/sleep {time}; sleep {time}", place.probe().display());
    let mut spec = place.shell(&format!("echo $PPID; {script}"));
    spec.timeout = SHORT;
    spec.confinement.readable.push(place.probe());
    let (sink, mut chunks) = mpsc::unbounded_channel();
    let (calls, lost) = (pool.clone(), spec);
    let call = tokio::spawn(async move { calls.run(lost, Lane::Interactive, "test", Some(sink)).await });
    let worker =
        text(&chunks.recv().await.expect("its first output").bytes).trim().parse().expect("a process");
    lose(worker);
    let error = call.await.expect("no panic").expect_err("its worker is lost");
    assert_eq!(error.code(), "WORKER_LOST");
    until("the end of all it started", || processes_with(&time).is_empty()).await;
    let finished = run(&pool, place.shell("echo healed")).await.expect("it runs");
    assert_eq!(text(&finished.stdout), "healed\n");
    assert_eq!(pool.stats().totals.failed, 1);
}

#[tokio::test]
async fn a_worker_that_is_killed_is_replaced() {
    loses(|worker| signal(worker, rustix::process::Signal::KILL)).await;
}

#[tokio::test]
async fn a_keeper_that_is_killed_is_replaced() {
    loses(|worker| signal(parent(worker), rustix::process::Signal::KILL)).await;
}

#[tokio::test]
async fn a_worker_that_does_not_confirm_is_replaced() {
    loses(|worker| signal(worker, rustix::process::Signal::STOP)).await;
}

#[tokio::test]
async fn a_helper_that_is_stuck_altogether_is_replaced() {
    loses(|worker| {
        signal(parent(worker), rustix::process::Signal::STOP);
        signal(worker, rustix::process::Signal::STOP);
    })
    .await;
}

#[tokio::test]
async fn an_idle_worker_that_is_killed_is_replaced_before_anyone_notices() {
    let place = Place::new();
    let pool = place.pool();
    for _ in 0..3 {
        let (call, worker) = with_worker(&pool, &place, "true").await;
        call.await.expect("no panic").expect("it runs");
        signal(worker, rustix::process::Signal::KILL);
        until("its end", || !PathBuf::from(format!("/proc/{worker}")).exists()).await;
    }
    until("an answer", || pool.stats().interactive.idle == 1).await;
}

/// A worker that says that it is ready, and that some call has ended: not the one it was given.
#[tokio::test]
async fn an_answer_to_another_call_is_dropped() {
    let place = Place::new();
    let fake = place.jail().join("fake");
    let ready = r"\002\000\000\000\000\003";
    let another = r"\024\000\000\000\001\0200123456789abcdef\000\000";
    fs::write(
        &fake,
        format!("printf '{ready}' >&0; head -c 1 > /dev/null; printf '{another}' >&0; cat > /dev/null"),
    )
    .expect("a script");
    let worker = vec!["/bin/sh".into(), fake];
    let config = PoolConfig { worker, kill_grace_ms: 10, confirm_grace_ms: 1000, ..place.config() };
    let pool = WorkerPool::start(Mode::Worker, &config).expect("a pool");
    let mut spec = place.shell("true");
    spec.timeout = SHORT;
    let error = run(&pool, spec).await.expect_err("nothing was heard of it");
    assert!(error.to_string().contains("did not confirm"), "{error}");
}

#[tokio::test]
async fn a_worker_of_another_version_is_reported_as_such() {
    let place = Place::new();
    let other = place.jail().join("other");
    fs::write(&other, r"printf '\002\000\000\000\000\143' >&0; cat > /dev/null").expect("a script");
    let config = PoolConfig { worker: vec!["/bin/sh".into(), other], ..place.config() };
    let pool = WorkerPool::start(Mode::Worker, &config).expect("a pool");
    let error = run(&pool, place.shell("true")).await.expect_err("they do not understand each other");
    assert!(error.to_string().contains("another version"), "{error}");
}

#[tokio::test]
async fn a_worker_that_is_not_one_is_reported_and_retried() {
    let place = Place::new();
    let program = place.jail().join("worker");
    let pool =
        WorkerPool::start(Mode::Worker, &PoolConfig { worker: vec![program.clone()], ..place.config() });
    let pool = pool.expect("a pool");
    assert_eq!(run(&pool, place.shell("true")).await.expect_err("there is none").code(), "WORKER_LOST");
    copy_program(&place.worker(), &program);
    assert_eq!(run(&pool, place.shell("true")).await.expect("it runs").status, Ended::Exit(0));
}

#[tokio::test]
async fn a_shutdown_refuses_rejects_and_ends() {
    let place = Place::new();
    let pool = place.pool();
    let time = a_long_time();
    let (running, worker) =
        with_worker(&pool, &place, &format!("trap '' TERM; sleep {time}; sleep {time}")).await;
    let waiting = begin(&pool, place.shell("echo never > never"), Lane::Interactive, "b");
    queued(&pool, 1).await;
    let keeper = parent(worker);
    pool.shutdown().await;
    for call in [running, waiting] {
        assert_eq!(call.await.expect("no panic").expect_err("it is over").code(), "POOL_SHUTTING_DOWN");
    }
    assert_eq!(run(&pool, place.shell("true")).await.expect_err("too late").code(), "POOL_SHUTTING_DOWN");
    assert_eq!(processes_with(&time), [] as [i32; 0]);
    for helper in [keeper, worker] {
        assert!(!PathBuf::from(format!("/proc/{helper}")).exists());
    }
    assert!(!place.jail().join("never").exists());
    pool.shutdown().await;
}

#[tokio::test]
async fn a_shutdown_before_the_first_worker_has_started_leaves_none() {
    let place = Place::new();
    let pool = place.pool();
    pool.shutdown().await;
    assert_eq!(processes_with(place.worker().to_str().expect("a name")), [] as [i32; 0]);
    assert_eq!(run(&pool, place.shell("true")).await.expect_err("too late").code(), "POOL_SHUTTING_DOWN");
}

#[tokio::test]
async fn a_shutdown_has_a_deadline() {
    let place = Place::new();
    // More patient with a call than with the shutdown.
    let config = PoolConfig { kill_grace_ms: 100_000, shutdown_grace_ms: 300, ..place.config() };
    let pool = WorkerPool::start(Mode::Worker, &config).expect("a pool");
    let time = a_long_time();
    let (running, _) = with_worker(&pool, &place, &format!("trap '' TERM; sleep {time}; sleep {time}")).await;
    pool.shutdown().await;
    assert_eq!(running.await.expect("no panic").expect_err("it is over").code(), "POOL_SHUTTING_DOWN");
    assert_eq!(processes_with(&time), [] as [i32; 0]);
}

#[tokio::test]
async fn a_caller_that_stops_waiting_ends_the_program() {
    let place = Place::new();
    let pool = place.pool();
    let time = a_long_time();
    let call = begin(&pool, place.shell(&format!("trap '' TERM; sleep {time}; :")), Lane::Interactive, "a");
    until("the program", || !processes_with(&time).is_empty()).await;
    let waiting = begin(&pool, place.shell("echo never > never"), Lane::Interactive, "b");
    queued(&pool, 1).await;
    waiting.abort();
    call.abort();
    until("its end", || processes_with(&time).is_empty()).await;
    assert_eq!(run(&pool, place.shell("true")).await.expect("it runs").status, Ended::Exit(0));
    assert!(!place.jail().join("never").exists());
}

#[tokio::test]
async fn dropping_the_pool_ends_everything() {
    let place = Place::new();
    let pool = place.pool();
    let time = a_long_time();
    let (call, worker) = with_worker(&pool, &place, &format!("sleep {time}")).await;
    call.abort();
    drop(call.await);
    drop(pool);
    until("the end of the worker", || !PathBuf::from(format!("/proc/{worker}")).exists()).await;
    until("the end of the program", || processes_with(&time).is_empty()).await;
}

/// A program with a pool of its own, in which a program runs that has forked another away.
fn host(place: &Place, timeout_ms: &str, time: &str) -> std::process::Child {
    std::process::Command::new(place.probe())
        .args(["host", timeout_ms])
        .args([place.jail(), place.worker(), place.probe()])
        .args(["linger", time])
        .spawn()
        .expect("it starts")
}

/// The pool keeps the deadlines; where it is stopped, its workers end what runs at a ceiling of their own.
#[tokio::test]
async fn a_host_that_is_stopped_does_not_let_programs_run_for_ever() {
    let place = Place::new();
    let time = a_long_time();
    let mut host = host(&place, "5000", &time);
    until("the program and its daemon", || processes_with(&time).len() == 3).await;
    signal(host.id() as i32, rustix::process::Signal::STOP);
    until("the end of both", || processes_with(&time) == [host.id() as i32]).await;
    host.kill().expect("SIGKILL");
    host.wait().expect("its end");
}

#[tokio::test]
async fn killing_the_host_leaves_no_process() {
    let place = Place::new();
    let time = a_long_time();
    let mut host = host(&place, "1000000", &time);
    // The host itself has the word, too.
    until("the program and its daemon", || processes_with(&time).len() == 3).await;
    host.kill().expect("SIGKILL");
    host.wait().expect("its end");
    until("the end of all", || processes_with(&time).is_empty()).await;
    let worker = place.worker();
    until("the end of the helpers", || processes_with(worker.to_str().expect("a name")).is_empty()).await;
}

#[tokio::test]
async fn statistics_count_what_happened() {
    let place = Place::new();
    let pool = WorkerPool::start(Mode::Worker, &PoolConfig { interactive: Some(2), ..place.config() })
        .expect("a pool");
    for script in ["true", "exit 3"] {
        run(&pool, place.shell(script)).await.expect("it runs");
    }
    let mut late = place.shell("sleep 1000");
    late.timeout = SHORT;
    run(&pool, late).await.expect("it runs");
    fs::write(place.jail().join("none"), "").expect("a file");
    run(&pool, place.spec(&place.jail().join("none"), &[])).await.expect_err("it is no program");

    let many = begin(&pool, place.attempt(&["family", "60"]), Lane::Interactive, "a");
    until("the whole family", || pool.stats().children == 61).await;
    let stats = pool.stats();
    assert_eq!((stats.interactive.active, stats.interactive.idle, stats.interactive.queued), (1, 1, 0));
    assert_eq!((stats.system.active, stats.system.idle), (0, 1));
    assert_eq!((stats.totals.completed, stats.totals.failed, stats.totals.timed_out), (2, 1, 1));
    assert!(stats.totals.avg_exec_ms > 0.0);
    assert_eq!(stats.warning.as_deref(), Some("61 processes of programs are alive"));
    many.abort();
    until("its end", || pool.stats().children == 0).await;
    assert_eq!(pool.stats().warning, None);
    until("its being counted", || pool.stats().totals.cancelled == 1).await;
    assert_eq!(pool.stats().totals.completed, 2, "one that was cancelled did not complete");
}

#[tokio::test]
async fn statistics_in_json_have_the_names_health_shows() {
    let place = Place::new();
    let pool = place.pool();
    run(&pool, place.shell("true")).await.expect("it runs");
    let waiting = begin(&pool, waiter(&place, "a"), Lane::Interactive, "a");
    busy(&pool).await;
    let behind = begin(&pool, waiter(&place, "b"), Lane::Interactive, "b");
    queued(&pool, 1).await;
    let mut shown = serde_json::to_value(pool.stats()).expect("JSON");
    assert!(shown["totals"]["avgExecMs"].take().as_f64().is_some_and(|average| average > 0.0));
    assert!(shown["children"].take().as_u64().is_some_and(|children| children >= 1));
    let expected = serde_json::json!({
        "interactive": { "active": 1, "idle": 0, "queued": 1 },
        "system": { "active": 0, "idle": 1, "queued": 0 },
        "totals": { "completed": 1, "failed": 0, "timedOut": 0, "cancelled": 0, "avgExecMs": null },
        "children": null,
    });
    assert_eq!(shown, expected);
    let_go(&place);
    for call in [waiting, behind] {
        call.await.expect("no panic").expect("it runs");
    }
}

/// Health is asked for when things go badly: no lock may be held while a program runs, starts or ends.
#[tokio::test]
async fn statistics_wait_for_nobody() {
    let place = Place::new();
    let pool = place.pool();
    let calls: Vec<_> =
        (0..8).map(|_| begin(&pool, place.shell("yes"), Lane::Interactive, "greedy")).collect();
    queued(&pool, 7).await;
    // This thread is the whole runtime: while it waits here for the answers, no task of the pool moves.
    let asked = pool.clone();
    let answers = std::thread::spawn(move || (0..100).map(|_| asked.stats().interactive.queued).collect());
    let answers: Vec<usize> = answers.join().expect("no panic");
    assert_eq!(answers, [7; 100]);
    pool.shutdown().await;
    assert_eq!(pool.stats().interactive.active, 0);
    drop(calls);
}

#[tokio::test]
async fn a_timer_keeps_ticking_while_the_pool_is_saturated() {
    let place = Place::new();
    let pool = WorkerPool::start(Mode::Worker, &PoolConfig { interactive: Some(2), ..place.config() })
        .expect("a pool");
    let ticks = Arc::new(AtomicU32::new(0));
    let counted = ticks.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(10)).await;
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    // One floods, one spins, and the queue is full; this runtime has one thread for the pool, the timer and us.
    let scripts = ["yes", "while :; do :; done"].into_iter().chain(["sleep 1000"; 10]);
    let calls: Vec<_> = scripts
        .map(|script| {
            let mut spec = place.shell(script);
            spec.timeout = SHORT;
            begin(&pool, spec, Lane::Interactive, "a")
        })
        .collect();
    queued(&pool, 10).await;
    ticks.store(0, Ordering::Relaxed);
    until("ticks", || ticks.load(Ordering::Relaxed) >= 20).await;
    assert_eq!(pool.stats().interactive.active, 2);
    pool.shutdown().await;
    drop(calls);
}

#[tokio::test]
async fn without_a_pool_each_call_has_a_helper_of_its_own() {
    let place = Place::new();
    let pool = WorkerPool::start(Mode::ChildProcess, &PoolConfig { queue_depth: 0, ..place.config() })
        .expect("a pool");
    let calls = (0..5).map(|_| begin(&pool, waiter(&place, "a"), Lane::Interactive, "a"));
    let calls: Vec<_> = calls.collect();
    until("all five at once", || pool.stats().interactive.active == 5).await;
    let_go(&place);
    for call in calls {
        let finished = call.await.expect("no panic").expect("it runs");
        assert_eq!((finished.status, finished.worker), (Ended::Exit(0), 0));
    }
    let time = a_long_time();
    let running = begin(&pool, place.shell(&format!("sleep {time}")), Lane::Interactive, "a");
    until("the program", || !processes_with(&time).is_empty()).await;
    pool.shutdown().await;
    assert_eq!(running.await.expect("no panic").expect_err("it is over").code(), "POOL_SHUTTING_DOWN");
    assert_eq!(processes_with(&time), [] as [i32; 0]);
    assert_eq!(run(&pool, place.shell("true")).await.expect_err("too late").code(), "POOL_SHUTTING_DOWN");
}

#[tokio::test]
async fn a_disabled_gateway_says_so_and_starts_nothing() {
    let place = Place::new();
    let pool = WorkerPool::start(Mode::Disabled, &place.config()).expect("a pool");
    assert_eq!(run(&pool, place.shell("true")).await.expect_err("it is off").code(), "SANDBOX_DISABLED");
    assert_eq!(pool.stats().totals.failed, 0);
    pool.shutdown().await;
}
