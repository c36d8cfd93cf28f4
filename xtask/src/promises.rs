//! SPECIFICATION.md names the test that holds each promise: this holds SPECIFICATION.md to it.

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// Where the tests of a package named in the specification are.
    fn tests_of(package: &str) -> &'static str {
        match package {
            "kernel" => "crates/kernel/tests/kernel",
            "kernel/src" => "crates/kernel/src",
            "vfs" => "crates/vfs/tests/vfs",
            "vfs/src" => "crates/vfs/src",
            "wardian" => "crates/sandbox/tests/sandbox",
            "wardian/src" => "crates/sandbox/src",
            "wardian/tests" => "crates/sandbox/tests",
            "store" => "crates/store/tests",
            "store/src" => "crates/store/src",
            "server" => "crates/server/tests/server",
            "server/tests" => "crates/server/tests",
            "server/src" => "crates/server/src",
            "audit" => "crates/audit/tests/audit",
            "audit/src" => "crates/audit/src",
            "mcp/src" => "crates/mcp/src",
            "cell" => "crates/cell/tests/cell",
            "confine" => "crates/confine/tests",
            "cli" => "crates/cli/tests/cli",
            "contract" => "crates/contract/tests",
            "net" => "crates/net/tests/net",
            "net/src" => "crates/net/src",
            "hosttools" => "crates/hosttools/tests/hosttools",
            "hosttools/src" => "crates/hosttools/src",
            "guests/archive" => "guests/archive/tests",
            "guests/awk" => "guests/awk/tests",
            "guests/clock/src" => "guests/clock/src",
            "guests/git" => "guests/git/tests",
            "guests/jq" => "guests/jq/tests",
            "guests/js" => "guests/js/tests",
            "guests/make" => "guests/make/tests",
            "guests/net" => "guests/net/tests",
            "guests/regex" => "guests/regex/tests",
            "guests/sh" => "guests/sh/tests",
            "guests/sh/src" => "guests/sh/src",
            "guests/sqlite" => "guests/sqlite/tests",
            "guests/testing" => "guests/testing/tests",
            "guests/toolkit/src" => "guests/toolkit/src",
            "guests/tools/src" => "guests/tools/src",
            "guests/tools" => "guests/tools/tests",
            "sdk/e2b" => "sdk/e2b/tests",
            "sdk/python" => "sdk/python/tests",
            "sdk/typescript" => "sdk/typescript/tests",
            other => panic!("SPECIFICATION.md speaks of tests in '{other}'"),
        }
    }

    /// `module::name`, `module::*` or the name of a test file.
    fn exists(directory: &Path, test: &str) -> bool {
        let (module, name) = test.rsplit_once("::").unwrap_or((test, "*"));
        let file = directory.join(module.replace("::", "/"));
        // Rust's tests, Python's, or TypeScript's, which are named by a sentence.
        let written = [
            ("rs", format!("fn {name}(")),
            ("py", format!("def {name}(")),
            ("test.ts", format!("test(\"{name}\"")),
        ];
        written.iter().any(|(extension, test)| {
            let source = fs::read_to_string(file.with_extension(extension));
            source.is_ok_and(|source| name == "*" || source.contains(test))
        })
    }

    #[test]
    fn every_test_the_specification_names_exists() {
        let text = fs::read_to_string(crate::root().join("SPECIFICATION.md")).expect("a specification");
        let named: Vec<(&str, &str)> =
            text.split('`').skip(1).step_by(2).filter_map(|code| code.split_once(": ")).collect();
        assert!(named.len() > 10, "only {} tests are named", named.len());
        for (package, test) in named {
            assert!(exists(&crate::root().join(tests_of(package)), test), "no test {package}: {test}");
        }
    }
}
