//! The tools' cases, recorded from GNU's programs, run inside a sandbox.

use std::path::Path;
use std::time::Duration;

use wardian::Sandbox;

use super::cases;

/// Cases that differ in a sandbox, each with the reason.
const MISSING: cases::Missing = &[
    ("grep", "no right to read", "it was recorded by root, who has every right"),
    ("processes", "chown", "it was recorded by a user with another number"),
    (
        "system",
        "du counts bytes",
        "which name of a hard link comes first depends on the order of the directory",
    ),
    ("data", "printf escapes", "the sandbox speaks UTF-8, whatever LC_ALL says"),
];

#[tokio::test]
async fn every_recorded_case_is_as_gnu_has_it() {
    cases::agree("guests/tools/tests/cases", MISSING, 1_300).await;
}

/// Those of the standard that know no options, or fail by design.
const SILENT: [&str; 3] = ["[", "test", "false"];

#[tokio::test]
async fn every_tool_says_what_it_does_and_which_it_is() {
    let names = include_str!("../../../../guests/tools/NAMES").lines();
    let names: Vec<&str> = names.filter(|name| !SILENT.contains(name)).collect();
    let script = format!(
        "for name in {}; do for option in --help --version; do
             text=$(env $name $option < /dev/null 2> /dev/null) && [ -n \"$text\" ] || echo \"$name $option\"
         done; done",
        names.join(" ")
    );
    let sandbox = Sandbox::builder().build().await.expect("a sandbox");
    let result = sandbox.run(script.as_str()).await.expect("it runs");
    assert_eq!(String::from_utf8_lossy(&result.stdout), "");
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
async fn every_recorded_case_of_make_is_as_gnu_has_it() {
    cases::agree("guests/make/tests/cases", &[], 150).await;
}

#[tokio::test]
async fn every_recorded_case_of_node_is_as_node_has_it() {
    cases::agree("guests/js/tests/cases", NODE_MISSING, 150).await;
}

/// Cases of node that differ in a sandbox, each with the reason.
const NODE_MISSING: cases::Missing = &[];

#[tokio::test]
async fn scripts_that_want_too_much_end_with_an_error() {
    let limits = wardian::Limits { memory_bytes: 64 << 20, ..Default::default() };
    let sandbox = Sandbox::builder().limits(limits).build().await.expect("a sandbox");
    for script in [
        "const all = []; for (;;) all.push(new Array(1000).fill(all.length))",
        "let text = 'x'; for (;;) text += text",
        "(function deep() { deep(); })()",
        "new ArrayBuffer(2 ** 40)",
        "new Uint8Array(2 ** 30)",
        "Buffer.alloc(2 ** 31)",
        "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
    ] {
        let result =
            sandbox.run(format!("node -e '{}'", script.replace('\'', "\"")).as_str()).await.expect("it runs");
        assert_ne!(result.exit_code, 0, "{script}");
    }
    let after = sandbox.run("node -p 1").await.expect("it runs");
    assert_eq!(String::from_utf8_lossy(&after.stdout), "1\n");
}

#[tokio::test]
async fn every_recorded_case_of_git_is_as_native_git_has_it() {
    cases::agree("guests/git/tests/cases", GIT_MISSING, 500).await;
}

#[tokio::test]
async fn a_first_commit_needs_no_settings() {
    let sandbox = Sandbox::builder().build().await.expect("a sandbox");
    let script = "git init r && cd r && echo x > f && git add . && git commit -m m && git log && git status";
    let result = sandbox.run(script).await.expect("it runs");
    let (out, err) = (String::from_utf8_lossy(&result.stdout), String::from_utf8_lossy(&result.stderr));
    assert_eq!(result.exit_code, 0, "{out}{err}");
    for part in ["Author: ", "nothing to commit, working tree clean", "git config --global user.name"] {
        assert!(out.contains(part), "{part}: {out}{err}");
    }
}

#[tokio::test]
async fn every_recorded_case_of_archives_is_as_the_real_programs_have_it() {
    let missing =
        &[("tar", "tar: times before 1970 and after 2242", "WASI knows no time of a file before 1970")];
    cases::agree("guests/archive/tests/cases", missing, 200).await;
}

#[tokio::test]
async fn every_recorded_case_of_sqlite_is_as_its_shell_has_it() {
    cases::agree("guests/sqlite/tests/cases", &[], 100).await;
}

/// Cases of git that differ in a sandbox, each with the reason.
const GIT_MISSING: cases::Missing = &[];

/// Cases of the network's tools that differ in a sandbox, each with the reason.
const NET_MISSING: cases::Missing = &[
    ("nc", "nc -zv nohost.invalid 80", "a name that is not granted fails for good (EAI_FAIL)"),
    ("wget", "wget -t 1 http://nohost.invalid/", "a name that is not granted fails for good (EAI_FAIL)"),
];

/// The server that they were recorded with runs in the sandbox, as a program that a user brings.
#[tokio::test]
async fn every_recorded_case_of_curl_wget_and_nc_is_as_they_have_it() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guests/testing/dist/web.wasm.zst");
    let web = std::fs::read(web).expect("testing guests are prebuilt");
    let web = zstd::decode_all(&web[..]).expect("a zstd file");
    let building = Sandbox::builder().timeout(Some(Duration::from_secs(20))).env("PATH", "/tmp/bin:/bin");
    let base = building.build().await.expect("a sandbox");
    base.run("mkdir /tmp/bin").await.expect("it runs");
    base.write_file("/tmp/bin/web", web).await.expect("there is room");
    let ready = base.run("chmod +x /tmp/bin/web && web free").await.expect("it runs");
    assert_eq!(ready.exit_code, 0, "{}", String::from_utf8_lossy(&ready.stderr));
    cases::agree_in(base, "guests/net/tests/cases", NET_MISSING, 250).await;
}
