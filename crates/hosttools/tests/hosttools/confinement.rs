//! Each thing the operating system is to hold a program to, tried by a program that does what it should not: as
//! the user who runs the tests, and as an ordinary user where that is root.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use rustix::process::getuid;
use wardian_hosttools::{
    Config, Confinement, Ended, ExecSpec, Lane, Mode, PoolConfig, Required, State, WorkerPool,
};

use crate::rig::{Place, a_long_time, copy_program, processes_with, run, text, until};

/// What a program says, run by each kind of worker, with a confinement that `change` has changed.
async fn told(place: &Place, attempt: &[&str], change: impl Fn(&mut Confinement)) -> [String; 2] {
    let spec = || {
        let mut spec = place.attempt(attempt);
        change(&mut spec.confinement);
        spec
    };
    [told_by(&place.pool(), spec()).await, told_by(&place.pool_of_a_user(), spec()).await]
}

async fn told_by(pool: &WorkerPool, spec: ExecSpec) -> String {
    let finished = run(pool, spec).await.expect("it runs");
    assert_eq!(text(&finished.stderr), "");
    text(&finished.stdout).trim_end().to_owned()
}

fn both(said: &str) -> [String; 2] {
    [said.to_owned(), said.to_owned()]
}

fn read_only(confinement: &mut Confinement) {
    confinement.write = false;
}

fn as_it_is(_: &mut Confinement) {}

#[tokio::test]
async fn files_outside_the_jail_cannot_be_reached() {
    let place = Place::new();
    let canary = place.canary();
    let canary = canary.to_str().expect("a name");
    let before = fs::metadata(canary).expect("it is there");
    for attempt in ["read", "write", "truncate", "remove"] {
        assert_eq!(told(&place, &[attempt, canary], as_it_is).await, both("EACCES"), "{attempt}");
    }
    let outside = place.canary().with_file_name("new");
    let outside = outside.to_str().expect("a name");
    for attempt in
        [&["create", outside][..], &["symlink", "x", outside], &["list", "/"], &["read", "/etc/shadow"]]
    {
        assert_eq!(told(&place, attempt, as_it_is).await, both("EACCES"), "{attempt:?}");
    }
    fs::write(place.jail().join("mine"), "").expect("a file");
    // Between directories of different rights landlock says EXDEV where it could say EACCES.
    for attempt in
        [&["rename", "mine", outside][..], &["link", canary, "stolen"], &["rename", canary, "stolen"]]
    {
        let said = told(&place, attempt, as_it_is).await;
        assert!(
            said.iter().all(|said| ["EACCES", "EXDEV", "EPERM"].contains(&said.as_str())),
            "{attempt:?} {said:?}"
        );
    }
    let after = fs::metadata(canary).expect("it is still there");
    assert_eq!(fs::read_to_string(canary).expect("a canary"), "canary");
    assert_eq!((before.mtime_nsec(), before.ctime_nsec()), (after.mtime_nsec(), after.ctime_nsec()));
}

#[tokio::test]
async fn of_the_machine_a_program_sees_itself() {
    let place = Place::new();
    for file in ["status", "maps", "cmdline", "stat", "limits"] {
        assert_eq!(
            told(&place, &["read", &format!("/proc/self/{file}")], as_it_is).await,
            both("ok"),
            "{file}"
        );
    }
    assert_eq!(told(&place, &["list", "/proc/self/fd"], as_it_is).await, both("ok"));
    let host = format!("/proc/{}/status", std::process::id());
    for file in ["/proc/self/net/tcp", "/proc/self/mountinfo", "/proc/net/unix", "/proc/1/status", &host] {
        assert_eq!(told(&place, &["read", file], as_it_is).await, both("EACCES"), "{file}");
    }
    assert_eq!(told(&place, &["list", "/proc"], as_it_is).await, both("EACCES"));
}

#[tokio::test]
async fn a_link_out_of_the_jail_leads_nowhere() {
    let place = Place::new();
    std::os::unix::fs::symlink(place.canary(), place.jail().join("link")).expect("a link");
    for attempt in ["read", "write", "truncate"] {
        assert_eq!(told(&place, &[attempt, "link"], as_it_is).await, both("EACCES"), "{attempt}");
    }
}

#[tokio::test]
async fn inside_the_jail_everything_works_that_may() {
    let place = Place::new();
    let file = place.jail().join("file");
    let file = file.to_str().expect("a name");
    for pool in [place.pool(), place.pool_of_a_user()] {
        let more = place.jail().join("more");
        let more = more.to_str().expect("a name");
        for attempt in [
            &["create", file][..],
            &["write", file],
            &["read", file],
            &["mode-of-open", file],
            &["times-of-open", file],
            &["link", file, more],
            &["truncate", more],
            &["remove", more],
            &["rename", file, more],
            &["symlink", "x", file],
            &["remove", file],
            &["remove", more],
        ] {
            assert_eq!(told_by(&pool, place.attempt(attempt)).await, "ok", "{attempt:?}");
        }
    }
}

#[tokio::test]
async fn a_read_only_jail_cannot_be_changed() {
    let place = Place::new();
    let file = place.jail().join("file");
    fs::write(&file, "as it was").expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("a mode");
    let file = file.to_str().expect("a name");
    assert_eq!(told(&place, &["read", file], read_only).await, both("ok"));
    for attempt in ["write", "truncate", "remove"] {
        assert_eq!(told(&place, &[attempt, file], read_only).await, both("EACCES"), "{attempt}");
    }
    assert_eq!(told(&place, &["create", "new"], read_only).await, both("EACCES"));
    for attempt in ["mode", "owner", "times", "attribute", "mode-of-open", "times-of-open"] {
        assert_eq!(told(&place, &[attempt, file], read_only).await, both("EPERM"), "{attempt}");
    }
    assert_eq!(fs::read_to_string(file).expect("the file"), "as it was");
}

#[tokio::test]
async fn attributes_by_path_need_a_grant() {
    let place = Place::new();
    let canary = place.canary();
    let canary = canary.to_str().expect("a name");
    let before = fs::metadata(canary).expect("it is there");
    for attempt in ["mode", "owner", "times", "attribute"] {
        assert_eq!(told(&place, &[attempt, canary], as_it_is).await, both("EPERM"), "{attempt}");
    }
    let after = fs::metadata(canary).expect("it is still there");
    assert_eq!((before.mode(), before.ctime_nsec()), (after.mode(), after.ctime_nsec()));

    let granted = |confinement: &mut Confinement| confinement.attributes = true;
    for pool in [place.pool(), place.pool_of_a_user()] {
        let file = place.jail().join("file");
        let file = file.to_str().expect("a name");
        for attempt in ["create", "mode", "times", "remove"] {
            let mut spec = place.attempt(&[attempt, file]);
            granted(&mut spec.confinement);
            assert_eq!(told_by(&pool, spec).await, "ok", "{attempt}");
        }
    }
    let both_at_once = |confinement: &mut Confinement| {
        granted(confinement);
        read_only(confinement);
    };
    assert_eq!(told(&place, &["mode", canary], both_at_once).await, both("EPERM"), "not without writing");
}

#[tokio::test]
async fn more_can_be_made_readable_and_no_more_than_that() {
    let place = Place::new();
    let canary = place.canary();
    let readable = |confinement: &mut Confinement| confinement.readable.push(place.canary());
    let canary = canary.to_str().expect("a name");
    assert_eq!(told(&place, &["read", canary], readable).await, both("ok"));
    assert_eq!(told(&place, &["write", canary], readable).await, both("EACCES"));
}

#[tokio::test]
async fn what_one_program_was_granted_the_next_of_the_same_worker_does_not_have() {
    let place = Place::new();
    let canary = place.canary();
    let (pool, attempt) = (place.pool(), ["read", canary.to_str().expect("a name")]);
    for _ in 0..5 {
        let mut granted = place.attempt(&attempt);
        granted.confinement.readable.push(place.canary());
        assert_eq!(told_by(&pool, granted).await, "ok");
        assert_eq!(told_by(&pool, place.attempt(&attempt)).await, "EACCES");
    }
}

#[tokio::test]
async fn devices_cannot_be_made() {
    let place = Place::new();
    let device = place.jail().join("disk");
    for said in told(&place, &["device", device.to_str().expect("a name")], as_it_is).await {
        assert!(["EPERM", "EACCES"].contains(&said.as_str()), "{said}");
    }
    assert!(!device.exists());
}

#[tokio::test]
async fn there_are_no_sockets_unless_granted() {
    let place = Place::new();
    for attempt in ["internet", "internet6", "unix", "packet"] {
        assert_eq!(told(&place, &[attempt], as_it_is).await, both("EPERM"), "{attempt}");
    }
    assert_eq!(
        told(&place, &["pair"], as_it_is).await,
        both("ok"),
        "two ends of one's own are no socket to anyone"
    );
    let network = |confinement: &mut Confinement| confinement.network = true;
    for attempt in ["internet", "internet6"] {
        assert_eq!(told(&place, &[attempt], network).await, both("ok"), "{attempt}");
    }
    for attempt in ["unix", "packet"] {
        assert_eq!(told(&place, &[attempt], network).await, both("EPERM"), "{attempt}");
    }
}

#[tokio::test]
async fn calls_that_reach_around_do_not_work() {
    let place = Place::new();
    let jail = place.jail();
    let jail = jail.to_str().expect("a name");
    let attempts =
        ["ptrace", "unshare", "clone", "uring", "bpf", "keyctl", "settime", "handle"].map(|call| vec![call]);
    for attempt in attempts.into_iter().chain([vec!["mount", jail], vec!["chroot", jail]]) {
        assert_eq!(told(&place, &attempt, as_it_is).await, both("EPERM"), "{attempt:?}");
    }
    assert_eq!(told(&place, &["clone3"], as_it_is).await, both("ENOSYS"), "so that libraries use clone");
}

/// Whatever a file or a repository names, there is no way to start it.
#[tokio::test]
async fn a_program_without_children_is_alone_but_for_its_threads() {
    let place = Place::new();
    let alone = |confinement: &mut Confinement| confinement.children = false;
    for attempt in ["process", "start"] {
        assert_eq!(told(&place, &[attempt], as_it_is).await, both("ok"), "{attempt}");
        assert_eq!(told(&place, &[attempt], alone).await, both("EPERM"), "{attempt}");
    }
    assert_eq!(told(&place, &["fork"], alone).await, both("0"));
    assert_eq!(told(&place, &["thread"], alone).await, both("ok"));
    let sh = |children: bool, script: &str| {
        let mut spec = place.shell(script);
        spec.confinement.children = children;
        spec
    };
    let finished =
        run(&place.pool(), sh(false, "echo here; $(true); /bin/true && echo ran")).await.expect("it runs");
    assert!(!text(&finished.stdout).contains("ran"), "{finished:?}");
    let finished = run(&place.pool(), sh(true, "/bin/true && echo ran")).await.expect("it runs");
    assert_eq!(text(&finished.stdout), "ran\n");
}

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn calls_by_their_second_number_do_not_work() {
    let place = Place::new();
    assert_eq!(told(&place, &["x32"], as_it_is).await, both("ENOSYS"));
}

#[tokio::test]
async fn other_processes_cannot_be_signalled() {
    let place = Place::new();
    let us = std::process::id().to_string();
    assert_eq!(told(&place, &["signal", &us], as_it_is).await, both("EPERM"));
}

#[tokio::test]
async fn other_processes_keep_their_share_of_the_machine() {
    let place = Place::new();
    // A process of each of the two users who try: theirs to change, by what Unix has to say about it.
    let time = a_long_time();
    let [pool, of_a_user] = [place.pool(), place.pool_of_a_user()];
    let victims = [&pool, &of_a_user].map(|pool| {
        let (pool, spec) = (pool.clone(), place.spec("/bin/sleep".as_ref(), &[&time]));
        tokio::spawn(async move { pool.run(spec, Lane::System, "victim", None).await })
    });
    until("both victims", || processes_with(&time).len() == 2).await;
    let attempts = ["limits-of", "priority-of", "disk-priority-of", "processors-of", "scheduler-of"];
    for attempt in attempts {
        for pool in [&pool, &of_a_user] {
            for victim in processes_with(&time) {
                let said = told_by(pool, place.attempt(&[attempt, &victim.to_string()])).await;
                assert_eq!(said, "EPERM", "{attempt}");
            }
            assert_eq!(told_by(pool, place.attempt(&[attempt, "0"])).await, "ok", "{attempt}, its own");
        }
    }
    assert_eq!(told(&place, &["priority-of-user"], as_it_is).await, both("EPERM"));
    victims.iter().for_each(|victim| victim.abort());
}

#[tokio::test]
async fn nothing_is_shared_that_outlives_a_program() {
    let place = Place::new();
    for attempt in ["shared-memory", "semaphores", "messages", "queue"] {
        assert_eq!(told(&place, &[attempt], as_it_is).await, both("EPERM"), "{attempt}");
    }
}

#[tokio::test]
async fn what_happens_to_files_elsewhere_cannot_be_watched() {
    let place = Place::new();
    let canary = place.canary();
    assert_eq!(
        told(&place, &["watch", canary.to_str().expect("a name")], as_it_is).await,
        both("EPERM"),
        "it would tell when it is read"
    );
}

#[tokio::test]
async fn memory_files_and_file_size_are_limited() {
    let place = Place::new();
    let tight = |confinement: &mut Confinement| {
        confinement.memory = 256 << 20;
        confinement.files = 20;
        confinement.file_size = 1 << 20;
    };
    let limits = format!("0/0 {0}/{0} 20/20 {1}/{1}", 256 << 20, 1 << 20);
    assert_eq!(told(&place, &["limits"], tight).await, both(&limits));
    assert_eq!(told(&place, &["memory", "100000000"], tight).await, both("ok"));
    assert_eq!(told(&place, &["memory", "300000000"], tight).await, both("ENOMEM"));
    assert_eq!(told(&place, &["files"], tight).await, both("20"));
    assert_eq!(told(&place, &["raise"], tight).await, both("EPERM"), "not even root gets more");
    for pool in [place.pool(), place.pool_of_a_user()] {
        let mut spec = place.attempt(&["grow", "large"]);
        tight(&mut spec.confinement);
        let finished = run(&pool, spec).await.expect("it runs");
        assert_eq!(finished.status, Ended::Signal(libc::SIGXFSZ));
        let large = place.jail().join("large");
        assert_eq!(fs::metadata(&large).expect("it is there").len(), 1 << 20);
        fs::remove_file(large).expect("it goes");
    }
}

#[tokio::test]
async fn processes_of_a_user_are_limited() {
    let place = Place::new();
    let mut spec = place.attempt(&["fork"]);
    spec.confinement.processes = 20;
    let said = told_by(&place.pool_of_a_user(), spec).await;
    // Other processes of the user may come and go meanwhile.
    let forks: u32 = said.parse().expect("a number");
    assert!(forks < 60, "{forks}");
}

#[tokio::test]
async fn a_session_of_its_own_and_no_terminal() {
    let place = Place::new();
    let [ours, users] = told(&place, &["identity"], as_it_is).await;
    let us = getuid().as_raw();
    assert_eq!(ours, format!("true true false {us} {us}"));
    let nobody = if getuid().is_root() { 65534 } else { us };
    assert_eq!(users, format!("true true false {nobody} {nobody}"));
}

#[tokio::test]
async fn no_descriptor_is_inherited() {
    let place = Place::new();
    let file = fs::File::open(place.canary()).expect("the canary");
    // SAFETY: makes a copy that stays open across exec, as careless code does.
    let careless = unsafe { libc::dup(file.as_raw_fd()) };
    assert!(careless > 2);
    assert_eq!(told(&place, &["descriptors"], as_it_is).await, both("0 1 2"));
    // SAFETY: it is ours, and used no more.
    unsafe { libc::close(careless) };
}

#[tokio::test]
async fn privileges_are_gone_and_cannot_be_gained() {
    let place = Place::new();
    for pool in [place.pool(), place.pool_of_a_user()] {
        let status = told_by(&pool, place.spec("/bin/cat".as_ref(), &["/proc/self/status"])).await;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the field");
            line.trim_start_matches(':').trim().to_owned()
        };
        assert_eq!((field("NoNewPrivs").as_str(), field("Seccomp").as_str()), ("1", "2"));
        for set in ["CapPrm", "CapEff", "CapInh", "CapAmb"] {
            let over_files_only = u64::from_str_radix(&field(set), 16).expect("a set") & !0b11011;
            assert_eq!(over_files_only, 0, "{set}");
        }
    }
}

#[tokio::test]
async fn a_set_user_id_program_gives_nothing() {
    let place = Place::new();
    let program = place.jail().join("to-root");
    copy_program(&place.probe(), &program);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("a mode");
    let said = told_by(&place.pool_of_a_user(), place.spec(&program, &["identity"])).await;
    let user = if getuid().is_root() { 65534 } else { getuid().as_raw() };
    assert_eq!(said, format!("true true false {user} {user}"));
}

/// A pool whose workers live where a system call is missing.
fn without(place: &Place, what: &str) -> WorkerPool {
    let worker = vec![place.probe(), "without".into(), what.into(), place.worker()];
    WorkerPool::start(Mode::Worker, &PoolConfig { worker, ..place.config() }).expect("a pool")
}

#[tokio::test]
async fn where_landlock_or_seccomp_is_missing_nothing_runs_unless_someone_says_so() {
    let place = Place::new();
    for what in ["landlock", "seccomp"] {
        let pool = without(&place, what);
        let error = run(&pool, place.shell("echo it ran")).await.expect_err("it is refused");
        assert_eq!(error.code(), "CONFINEMENT_UNAVAILABLE");
        assert!(error.to_string().starts_with(what), "{error}");

        let mut spec = place.shell("echo it ran");
        spec.confinement.required = Required { landlock: what != "landlock", seccomp: what != "seccomp" };
        assert_eq!(told_by(&pool, spec).await, "it ran");
    }
}

#[tokio::test]
async fn the_doctor_finds_what_holds_and_what_does_not() {
    let place = Place::new();
    let states = async |pool: PoolConfig| {
        let checks =
            wardian_hosttools::doctor(&Config { pool, ..Config::default() }).await.expect("it can be tried");
        checks.into_iter().map(|check| (check.name, check.state)).collect::<Vec<_>>()
    };
    let here = states(place.config()).await;
    assert_eq!(here.len(), 13);
    for (name, state) in &here {
        let root = *name == "processes" && getuid().is_root();
        assert_eq!(*state, if root { State::Off } else { State::On }, "{name}");
    }
    for missing in ["landlock", "seccomp"] {
        let worker = vec![place.probe(), "without".into(), missing.into(), place.worker()];
        let there = states(PoolConfig { worker, ..place.config() }).await;
        for (name, state) in there {
            assert_eq!(state == State::Unavailable, name == missing, "{name}");
        }
    }
}
