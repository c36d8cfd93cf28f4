//! The rules by which params are read, and that what is made of the contract is current.

use std::path::Path;

use serde_json::{Value, json};
use wardian_contract::read::read;
use wardian_contract::{methods::METHODS, pages, params};

fn message<T: serde::de::DeserializeOwned>(given: Value) -> String {
    let Value::Object(given) = given else { panic!("an object") };
    let hint = |name: &str, names: &[&'static str]| format!(" [{name} of {}]", names.len());
    read::<T>(given, hint).err().map_or("read".to_owned(), |refusal| refusal.message())
}

#[test]
fn errors_name_the_full_path_of_a_param() {
    let run = [
        (json!({}), "Missing required param: command"),
        (json!({ "command": null, "env": 1 }), "Missing required param: command"),
        (json!({ "command": 7, "surprise": 1 }), "command must be a string"),
        (json!({ "command": "", "surprise": null }), "Unknown param: surprise [surprise of 12]"),
        (json!({ "command": "", "sandboxId": 1 }), "sandboxId must be a string"),
        (json!({ "command": "", "stdin": "*" }), "stdin must be base64"),
        (json!({ "command": "", "stdin": 1 }), "stdin must be a string"),
        (json!({ "command": "", "timeoutMs": -1 }), "timeoutMs must be a number of milliseconds"),
        (json!({ "command": "", "timeoutMs": "1" }), "timeoutMs must be a number of milliseconds"),
        (json!({ "command": "", "env": [] }), "env must be an object"),
        (json!({ "command": "", "env": { "A": 1 } }), "env.A must be a string"),
        (json!({ "command": "", "env": { "A": null } }), "Missing required param: env.A"),
        (json!({ "command": "", "onKill": "undo" }), "onKill must be \"keep\" or \"rollback\""),
        (json!({ "command": "", "onKill": 1 }), "onKill must be a string"),
        (json!({ "command": "", "encoding": "x" }), "encoding must be \"utf-8\" or \"base64\""),
        (json!({ "command": "", "stream": "yes" }), "stream must be true or false"),
        (json!({ "command": "", "stdin": "YQ", "timeoutMs": 1.5, "cwd": null }), "read"),
    ];
    for (given, expected) in run {
        assert_eq!(message::<params::Run>(given.clone()), expected, "{given}");
    }
    let create = [
        (json!({ "limits": { "memorybytes": 1 } }), "Unknown param: limits.memorybytes [memorybytes of 8]"),
        (
            json!({ "security": { "limits": { "fileCount": -1 } } }),
            "security.limits.fileCount must be a whole number, not negative",
        ),
        (json!({ "limits": { "fileCount": 4.0 } }), "read"),
        (json!({ "mounts": {} }), "mounts must be an array of objects"),
        (json!({ "mounts": [1] }), "mounts must be an array of objects"),
        (json!({ "mounts": [{ "path": "/m", "files": { "a": "*" } }] }), "mounts[0].files.a must be base64"),
        (
            json!({ "mounts": [{ "path": "/m", "files": { "a": { "mod": 1 } } }] }),
            "Unknown param: mounts[0].files.a.mod [mod of 4]",
        ),
        (json!({ "mounts": [{ "path": "/m", "files": { "a": [] } }] }), "mounts[0].files.a must be a string"),
        (json!({ "mounts": [{ "path": "/m" }] }), "Missing required param: mounts[0].files"),
        (json!({ "writablePaths": "x" }), "writablePaths must be an array of strings"),
        (json!({ "writablePaths": ["x", null] }), "writablePaths must be an array of strings"),
        (json!({ "nice": 20 }), "nice must be from 0 to 19"),
        (json!({ "network": [] }), "network must be an object"),
        (json!({ "wasmDir": [1] }), "read"),
    ];
    for (given, expected) in create {
        assert_eq!(message::<params::Create>(given.clone()), expected, "{given}");
    }
    let port = |port: Value| message::<params::PortNumber>(json!({ "port": port }));
    assert_eq!(port(json!(0)), "port must be a port, from 1 to 65535");
    assert_eq!(port(json!(-1)), "port must be a whole number, not negative");
    assert_eq!(port(json!(80)), "read");
    let long = message::<params::Nothing>(json!({ "x".repeat(1000): 1 }));
    assert_eq!(long.len(), "Unknown param: ".len() + 100 + " [ of 1]".len() + 1000);
}

/// Every file of the repository that is made of the contract.
#[test]
fn generated_files_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (path, text) in pages::files(&root).expect("docs/protocol.md has its table") {
        let found = std::fs::read_to_string(root.join(path)).unwrap_or_default();
        assert!(found == text, "{path} is out of date: run `cargo xtask contract` and commit the result");
    }
}

#[test]
fn routes_are_unique_and_their_names_are_params() {
    let schema: Value = serde_json::from_str(&pages::schema()).expect("JSON");
    let mut seen = std::collections::BTreeSet::new();
    for method in METHODS {
        let Some(route) = method.route else { continue };
        assert!(seen.insert((route.verb, route.path)), "{} {}", route.verb, route.path);
        let params = schema["methods"][method.name]["params"]["$ref"].as_str().expect("a type");
        let params = &schema["$defs"][params.trim_start_matches("#/$defs/")]["properties"];
        for name in pages::placeholders(route.path).filter(|name| *name != "sandbox") {
            assert!(params.get(name).is_some(), "{}: {name}", method.name);
        }
    }
    assert!(seen.len() > 40);
}
