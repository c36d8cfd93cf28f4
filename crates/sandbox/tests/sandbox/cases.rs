//! The shell's cases, recorded from bash, run where they matter: inside a sandbox.

use std::fs;
use std::path::{Path, PathBuf};

use wardian::{Input, Run, Sandbox};

/// Cases that need something the sandbox does not have yet, each with what it is.
const MISSING: &[(&str, &str)] = &[
    (
        "builtins/hash",
        "our tools go by the name they are called with, so `hash -p /bin/echo myecho` finds none",
    ),
    ("compound/redirect", "diff"),
    ("edge/process-subst", "diff"),
    ("more/shlvl", "cmp"),
];

fn scripts(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a directory of cases") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            scripts(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "sh") {
            found.push(path);
        }
    }
}

/// What a case gave, if it is not what bash gave.
async fn difference(base: &Sandbox, script: &Path) -> Option<String> {
    let sandbox = base.fork().await.expect("a fork");
    let setup = "mkdir -p /tmp/s/work; cat > /tmp/s/case.sh; cd /tmp/s/work";
    let case = Input::bytes(fs::read(script).expect("a script"));
    sandbox.run_with(Run::new(setup).stdin(case)).await.expect("a result");
    let result = sandbox.run("HOME=/tmp/s/work LC_ALL=C.UTF-8 bash /tmp/s/case.sh").await.expect("a result");
    let code = fs::read_to_string(script.with_extension("rc")).expect("a recorded code");
    let stdout = fs::read(script.with_extension("out")).expect("a recorded output");
    if result.exit_code.to_string() == code.trim() && result.stdout == stdout {
        return None;
    }
    Some(format!(
        "{}: exit {} (bash {})\n--- bash\n{}--- ours\n{}--- stderr\n{}",
        script.display(),
        result.exit_code,
        code.trim(),
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&result.stdout),
        String::from_utf8_lossy(&result.stderr),
    ))
}

#[tokio::test]
async fn every_recorded_case_is_as_bash_has_it() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/sh/tests/cases");
    let mut found = Vec::new();
    scripts(&dir, &mut found);
    found.sort();
    assert!(found.len() > 100, "only {} cases", found.len());
    let base = Sandbox::builder().build().await.expect("a sandbox");
    let mut differences = Vec::new();
    for script in found {
        let name = script.strip_prefix(&dir).expect("below the directory").with_extension("");
        let difference = difference(&base, &script).await;
        if MISSING.iter().any(|(missing, _)| Path::new(missing) == name) {
            assert!(
                difference.is_some(),
                "{} is no longer missing anything: take it off the list",
                name.display()
            );
            continue;
        }
        differences.extend(difference);
    }
    assert!(differences.is_empty(), "{} cases differ:\n{}", differences.len(), differences.join("\n"));
}
