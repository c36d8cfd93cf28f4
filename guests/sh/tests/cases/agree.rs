//! Holds programs of ours, as ordinary Linux programs, against all the cases recorded from the real ones.

use std::path::Path;

use super::{run, sheet};

/// Runs every case below a package's `tests/cases`, in bash, with these programs in place of the machine's. There are more
/// than `least`, unless `WARDIAN_CASES=WORD` runs only those with the word in their names or their sheets'. Sheets called
/// `but` are for a sandbox alone.
pub fn agree(package: &str, programs: &[run::Named<'_>], least: usize, but: &[&str]) {
    let wanted = std::env::var("WARDIAN_CASES").unwrap_or_default();
    let root = Path::new(package).join("tests/cases");
    let (mut failures, mut total) = (Vec::new(), 0);
    for file in sheet::files(&root).expect("the cases can be listed") {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if but.contains(&name.as_str()) {
            continue;
        }
        for case in sheet::read(&file).unwrap_or_else(|error| panic!("{error}")) {
            if !case.name.contains(&wanted) && !name.contains(&wanted) {
                continue;
            }
            total += 1;
            failures.extend(case.difference(&name, run::run(Path::new("/bin/bash"), programs, &case)));
        }
    }
    assert!(total > least || !wanted.is_empty(), "only {total} cases");
    assert!(failures.is_empty(), "{}", sheet::report(&failures, total));
}
