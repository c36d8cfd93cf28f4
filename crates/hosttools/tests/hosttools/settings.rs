//! What can be set, and what is refused.

use std::time::Duration;

use wardian_hosttools::{Backoff, Config, Mode, Required};

fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_door_is_closed_unless_someone_opens_it() {
    assert!(!Config::default().enabled);
}

#[test]
fn the_environment_goes_over_what_was_set() {
    let set = variables(&[
        ("WARDIAN_TOOLS_MODE", "child_process"),
        ("WARDIAN_TOOLS_QUEUE_DEPTH", "3"),
        ("HOME", "/"),
    ]);
    let config = Config::default().with_environment(set).unwrap();
    assert_eq!((config.mode, config.pool.queue_depth), (Mode::ChildProcess, 3));
}

#[test]
fn a_file_sets_everything_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tools.toml");
    let text = r#"
        enabled = true
        mode = "child_process"
        jail = "/srv/project"
        policy = "/etc/policy.toml"
        audit = "/var/log/tools.jsonl"
        timeout_ms = 1
        max_timeout_ms = 2
        max_output = 3
        pass_env = ["A"]
        secrets = ["hunter2"]
        readable = ["/opt"]
        limits = { memory = 4, files = 5, processes = 6, file_size = 7 }
        allow_without_landlock = true
        allow_without_seccomp = true
        allow_without_openat2 = true
        [pool]
        worker = ["/bin/worker", "x"]
        interactive = 8
        system = 9
        queue_depth = 10
        kill_grace_ms = 11
        confirm_grace_ms = 12
        shutdown_grace_ms = 13
    "#;
    std::fs::write(&file, text).unwrap();
    let config = Config::from_file(&file).unwrap();
    assert!(config.enabled && config.allow_without_openat2);
    assert_eq!(config.mode, Mode::ChildProcess);
    assert_eq!((config.timeout_ms, config.max_timeout_ms, config.max_output), (1, 2, 3));
    assert_eq!((config.limits.memory, config.limits.file_size), (4, 7));
    assert_eq!((config.pool.interactive, config.pool.shutdown_grace_ms), (Some(8), 13));
    assert_eq!(config.required(), Required { landlock: false, seccomp: false });

    for (wrong, named) in
        [("moed = 1", "moed"), ("[pool]\ndepth = 1", "depth"), ("timeout_ms = \"1\"", "timeout_ms")]
    {
        std::fs::write(&file, wrong).unwrap();
        let error = Config::from_file(&file).unwrap_err().to_string();
        assert!(error.contains("tools.toml") && error.contains(named), "{error}");
    }
}

#[test]
fn a_setting_that_makes_no_sense_is_an_error() {
    for (name, value) in [("MODE", "fast"), ("QUEUE_DEPTH", "-1"), ("ENABLED", "maybe"), ("MOED", "worker")] {
        let set = variables(&[(&format!("WARDIAN_TOOLS_{name}"), value)]);
        let error = Config::default().with_environment(set).unwrap_err().to_string();
        assert!(error.starts_with(&format!("WARDIAN_TOOLS_{name}={value}: ")), "{error}");
    }
}

#[test]
fn what_nobody_sets_is_what_was_promised() {
    let config = Config::default();
    assert_eq!((config.timeout_ms, config.max_timeout_ms, config.max_output), (30_000, 3_600_000, 1 << 20));
    assert_eq!(config.required(), Required { landlock: true, seccomp: true });
    let pool = &config.pool;
    assert_eq!((pool.system, pool.queue_depth), (1, 10));
    assert_eq!((pool.kill_grace_ms, pool.confirm_grace_ms, pool.shutdown_grace_ms), (5_000, 10_000, 10_000));
    let again = Backoff::default();
    assert_eq!((again.first, again.longest), (Duration::from_millis(100), Duration::from_secs(5)));
}
