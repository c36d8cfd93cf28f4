//! The modules of the test suite.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Packages that are as large as many modules: each file of them counts as a module, as for CPython's own runner.
const SPLIT: &[&str] = &[
    "test_asyncio",
    "test_concurrent_futures",
    "test_future_stmt",
    "test_inspect",
    "test_multiprocessing_fork",
    "test_multiprocessing_forkserver",
    "test_multiprocessing_spawn",
];

/// All modules, by the name after `test.`.
pub(super) fn modules(suite: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for name in tests_in(suite)? {
        if SPLIT.contains(&name.as_str()) {
            found.extend(tests_in(&suite.join(&name))?.iter().map(|inner| format!("{name}.{inner}")));
        } else {
            found.push(name);
        }
    }
    found.sort();
    Ok(found)
}

/// Whether there is such a module or package.
pub(super) fn has(suite: &Path, module: &str) -> bool {
    let path = suite.join(module.replace('.', "/"));
    path.join("__init__.py").exists() || path.with_extension("py").exists()
}

fn tests_in(directory: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let names = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_package = entry.path().join("__init__.py").exists();
        let module = name.strip_suffix(".py").or_else(|| is_package.then_some(name.as_str()))?;
        module.starts_with("test_").then(|| module.to_owned())
    });
    Ok(names.collect())
}
