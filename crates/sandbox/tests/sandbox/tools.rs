//! The tools' cases, recorded from GNU's programs, run inside a sandbox.

use super::cases;

/// Cases that differ in a sandbox, each with the reason.
const MISSING: cases::Missing = &[
    ("processes", "chown", "it was recorded by a user with another number"),
    ("processes", "time and sleep", "`sleep` without a number is refused in uutils' words"),
    (
        "system",
        "du counts bytes",
        "which name of a hard link comes first depends on the order of the directory",
    ),
];

#[tokio::test]
async fn every_recorded_case_is_as_gnu_has_it() {
    cases::agree("guests/tools/tests/cases", MISSING, 20).await;
}

#[tokio::test]
async fn every_recorded_case_of_awk_is_as_gawk_has_it() {
    cases::agree("guests/awk/tests/cases", &[], 600).await;
}

#[tokio::test]
async fn every_recorded_case_of_jq_is_as_jq_has_it() {
    cases::agree("guests/jq/tests/cases", &[], 500).await;
}

#[tokio::test]
async fn every_recorded_case_of_archives_is_as_the_real_programs_have_it() {
    cases::agree("guests/archive/tests/cases", &[], 200).await;
}

#[tokio::test]
async fn every_recorded_case_of_sqlite_is_as_its_shell_has_it() {
    cases::agree("guests/sqlite/tests/cases", &[], 100).await;
}
