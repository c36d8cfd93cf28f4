//! Random programs in our bc and in GNU's, where that is installed: the same bytes.

use proptest::prelude::*;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const ORIGINAL: &str = "/usr/bin/bc";

fn run(program: &str, name: &str, script: &str) -> Vec<u8> {
    let mut command = Command::new(program);
    if program != ORIGINAL {
        command.arg(name);
    }
    let mut child = command
        .arg("-l")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    // Who does not read its input is not to blame.
    child.stdin.take().expect("piped").write_all(script.as_bytes()).ok();
    child.wait_with_output().expect("it ends").stdout
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,3}",
        "[0-9]{0,4}\\.[0-9]{1,6}",
        "[1-9][0-9]{10,40}",
        "[1-9][0-9]{0,30}\\.[0-9]{1,30}",
        Just("0".to_owned()),
        Just("x".to_owned()),
    ]
}

fn expression() -> impl Strategy<Value = String> {
    number().prop_recursive(4, 24, 2, |inner| {
        prop_oneof![
            (inner.clone(), "[-+*/%]", inner.clone())
                .prop_map(|(left, sign, right)| format!("({left}{sign}{right})")),
            (inner.clone(), "[-+*/%<]", inner.clone())
                .prop_map(|(left, sign, right)| format!("{left} {sign} {right}")),
            (inner.clone(), -6i32..12).prop_map(|(base, power)| format!("({base})^{power}")),
            inner.clone().prop_map(|value| format!("sqrt(({value})*({value}))")),
            inner.clone().prop_map(|value| format!("length({value})")),
            inner.clone().prop_map(|value| format!("scale({value})")),
            inner.clone().prop_map(|value| format!("-({value})")),
            inner.prop_map(|value| format!("(x={value})")),
        ]
    })
}

fn program() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        6 => expression(),
        1 => (0u32..40).prop_map(|scale| format!("scale={scale}")),
        1 => prop_oneof![Just(2u32), Just(8), Just(10), Just(16), Just(20), Just(1000)]
            .prop_map(|base| format!("obase={base}")),
    ];
    prop::collection::vec(line, 1..8).prop_map(|lines| lines.join("\n") + "\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn random_programs_agree_with_gnu(script in program()) {
        if !Path::new(ORIGINAL).exists() {
            eprintln!("SKIPPED: there is no {ORIGINAL} to hold ours against");
            return Ok(());
        }
        let (ours, theirs) = (run(env!("CARGO_BIN_EXE_tools"), "bc", &script), run(ORIGINAL, "bc", &script));
        // GNU's writes a negative power that is cut off to nothing as `-0`.
        let theirs = String::from_utf8_lossy(&theirs).replace("-0\n", "0\n");
        prop_assert_eq!(String::from_utf8_lossy(&ours), theirs, "{}", script);
    }
}
