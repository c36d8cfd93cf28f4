//! What can be set, and what is refused.

use wardian_hosttools::{Config, Mode};

fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_door_is_closed_unless_someone_opens_it() {
    assert!(!Config::default().enabled);
}

#[test]
fn the_environment_goes_over_the_file() {
    let set = variables(&[
        ("WARDIAN_TOOLS_MODE", "child_process"),
        ("WARDIAN_TOOLS_QUEUE_DEPTH", "3"),
        ("HOME", "/"),
    ]);
    let config = Config::default().with_environment(set).unwrap();
    assert_eq!((config.mode, config.pool.queue_depth), (Mode::ChildProcess, 3));
}

#[test]
fn a_setting_that_makes_no_sense_is_an_error() {
    for (name, value) in [("MODE", "fast"), ("QUEUE_DEPTH", "-1"), ("ENABLED", "maybe"), ("MOED", "worker")] {
        let set = variables(&[(&format!("WARDIAN_TOOLS_{name}"), value)]);
        let error = Config::default().with_environment(set).unwrap_err().to_string();
        assert!(error.starts_with(&format!("WARDIAN_TOOLS_{name}={value}: ")), "{error}");
    }
}
