//! The shell's cases, recorded from bash, run where they matter: inside a sandbox.

#[path = "../../../../guests/sh/tests/cases/sheet.rs"]
mod sheet;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sheet::{Case, Outcome};
use wardian::{ErrorClass, Input, Run, Sandbox};

/// Cases by file and name that need something the sandbox does not have yet, and what that is.
pub type Missing = &'static [(&'static str, &'static str, &'static str)];

const MISSING: Missing = &[];

/// Every case with the name of its file.
fn cases(directory: &str) -> Vec<(String, Case)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(directory);
    let mut cases = Vec::new();
    for file in sheet::files(&root).expect("the cases can be listed") {
        let name =
            file.strip_prefix(&root).expect("it is below the root").with_extension("").display().to_string();
        let sheet = sheet::read(&file).unwrap_or_else(|error| panic!("{error}"));
        cases.extend(sheet.into_iter().map(|case| (name.clone(), case)));
    }
    cases
}

/// Runs a case in a sandbox of its own.
async fn run(base: &Sandbox, case: &Case) -> Result<Outcome, String> {
    let sandbox = base.fork().await.map_err(|error| error.to_string())?;
    let setup = Run::new("mkdir -p /tmp/s/work; cat > /tmp/s/case.sh; cd /tmp/s/work");
    sandbox
        .run_with(setup.stdin(Input::bytes(case.script.clone())))
        .await
        .map_err(|error| error.to_string())?;
    let run = Run::new("HOME=/tmp/s/work LC_ALL=C.UTF-8 bash ../case.sh");
    let result = sandbox.run_with(run.stdin(Input::bytes(case.stdin.clone()))).await;
    let result = result.map_err(|error| error.to_string())?;
    match result.error_class {
        Some(ErrorClass::Timeout) => Err("it took over 20 s".into()),
        // A host that nobody has: the sandbox says so beside what the program says.
        None | Some(ErrorClass::CapabilityDenied) => {
            Ok(Outcome { out: result.stdout, code: result.exit_code.into() })
        }
        Some(other) => Err(format!("{other:?}: {}", String::from_utf8_lossy(&result.stderr))),
    }
}

/// The listing of what differs, if something does and it is not known that it must.
async fn failure(base: &Sandbox, file: &str, case: &Case, missing: Missing) -> Option<String> {
    let difference = case.difference(file, run(base, case).await);
    let missing = missing.iter().any(|(missing, name, _)| *missing == file && *name == case.name);
    match (missing, difference) {
        (false, difference) => difference,
        (true, Some(_)) => None,
        (true, None) => {
            Some(format!("{file}: {}: nothing is missing any more, take it off the list", case.name))
        }
    }
}

#[tokio::test]
async fn every_recorded_case_is_as_bash_has_it() {
    agree("guests/sh/tests/cases", MISSING, 200).await;
}

/// Every case below a directory comes out as it was recorded. There are more than `least`.
pub async fn agree(directory: &str, missing: Missing, least: usize) {
    let base = Sandbox::builder().timeout(Some(Duration::from_secs(20))).build().await.expect("a sandbox");
    agree_in(base, directory, missing, least).await;
}

/// The same, in forks of this sandbox.
pub async fn agree_in(base: Sandbox, directory: &str, missing: Missing, least: usize) {
    let cases = cases(directory);
    let total = cases.len();
    assert!(total > least, "only {total} cases");
    // Compiling a program for the first time is no part of what a case may take.
    tokio::task::spawn_blocking(|| wardian::prepare(|_| ()))
        .await
        .expect("no panic")
        .expect("all programs load");
    let rest = Arc::new(tokio::sync::Mutex::new(cases.into_iter()));
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let (base, rest) = (base.clone(), rest.clone());
        workers.spawn(async move {
            let mut failures = Vec::new();
            loop {
                let next = rest.lock().await.next();
                let Some((file, case)) = next else { return failures };
                failures.extend(failure(&base, &file, &case, missing).await);
            }
        });
    }
    let failures = workers.join_all().await.concat();
    assert!(failures.is_empty(), "{}", sheet::report(&failures, total));
}
