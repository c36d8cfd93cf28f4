//! Policies as they are written down.

use wardian_net::{Gateway, NetworkPolicy, Options, SecretPlace};

fn new(json: &str) -> Result<Gateway, String> {
    let policy: NetworkPolicy = serde_json::from_str(json).map_err(|error| error.to_string())?;
    Gateway::new(policy, Options::default()).map_err(|error| error.to_string())
}

#[test]
fn the_default_is_off() {
    let gateway = new("{}").expect("a policy");
    for name in ["example.com", "localhost", "127.0.0.1", "1.1.1.1"] {
        assert_eq!(gateway.look_up(name).expect_err("denied").rule, "mode", "{name}");
    }
}

#[test]
fn full_is_every_public_name() {
    for json in [r#"{"mode":"full"}"#, r#"{"mode":"full","allowedHosts":["*"]}"#] {
        let gateway = new(json).expect("a policy");
        assert!(gateway.look_up("example.com").is_ok() && gateway.look_up("1.1.1.1").is_ok());
    }
    let gateway = new(r#"{"allowedHosts":["*"],"blockedHosts":["*.evil.com"]}"#).expect("a policy");
    assert!(gateway.look_up("example.com").is_ok() && gateway.look_up("evil.com").is_ok());
    assert_eq!(gateway.look_up("a.EVIL.com.").expect_err("denied").rule, "blockedHosts");
    assert_eq!(gateway.look_up("1.1.1.1").expect_err("denied").rule, "allowedHosts");
}

#[test]
fn unsupported_values_are_refused_by_name() {
    for (json, word) in [
        (r#"{"allowHosts":[]}"#, "allowHosts"),
        (r#"{"mode":"off","allowedHosts":["x.com"]}"#, "mode"),
        (r#"{"mode":"full","allowedHosts":["x.com"]}"#, "mode"),
        (r#"{"mode":"sometimes"}"#, "sometimes"),
        (r#"{"allowedHosts":["https://x.com"]}"#, "allowedHosts"),
        (r#"{"allowedHosts":["x.com:80"]}"#, "allowedHosts"),
        (r#"{"blockedHosts":["*.*.com"]}"#, "blockedHosts"),
        (r#"{"ports":[0]}"#, "ports"),
        (r#"{"ports":[70000]}"#, "70000"),
        (r#"{"maxConnections":0}"#, "maxConnections"),
        (r#"{"bytesPerSecond":0}"#, "bytesPerSecond"),
        (r#"{"connectTimeoutMs":0}"#, "connectTimeoutMs"),
        (r#"{"allowPrivate":["10.0.0.0/99"]}"#, "invalid"),
        (r#"{"record":"/a","replay":"/b"}"#, "record, replay"),
        (r#"{"roots":"caFile"}"#, "roots"),
        (r#"{"caFile":"/nowhere/at/all"}"#, "caFile"),
        (r#"{"httpRules":[{"host":"x.com","methods":["get"]}]}"#, "httpRules"),
        (r#"{"httpRules":[{"host":"x.com","pathPrefixes":["/a/../b"]}]}"#, "httpRules"),
        (r#"{"httpRules":[{"host":"x.com","paths":["/a"]}]}"#, "paths"),
        (r#"{"secrets":[{"name":"K","host":"x.com","value":"short"}]}"#, "secrets"),
        (r#"{"secrets":[{"name":"a b","host":"x.com","value":"12345678"}]}"#, "secrets"),
        (r#"{"proxy":{"url":"socks5://x:1"}}"#, "proxy"),
        (r#"{"proxy":{"url":"http://u:hunter2@x"}}"#, "proxy"),
        (r#"{"rawHosts":["x.com"],"httpRules":[{"host":"x.com"}]}"#, "rawHosts"),
    ] {
        let error = new(json).err().unwrap_or_else(|| panic!("accepted: {json}"));
        assert!(error.contains(word) && !error.contains("hunter2"), "{json}: {error}");
    }
}

#[test]
fn a_policy_survives_json_and_hides_its_secrets_from_logs() {
    let json = r#"{"allowedHosts":["x.com"],"secrets":[{"name":"K","host":"x.com","value":"12345678","as":{"header":"X-Key"}}]}"#;
    let policy: NetworkPolicy = serde_json::from_str(json).expect("a policy");
    assert_eq!(policy.secrets[0].place, SecretPlace::Header("X-Key".into()));
    let again = serde_json::from_str(&serde_json::to_string(&policy).expect("json")).expect("a policy");
    assert_eq!(policy, again);
    assert!(!format!("{policy:?}").contains("12345678"));
    for (place, expected) in [
        ("\"bearer\"", SecretPlace::Bearer),
        ("{\"basic\":\"me\"}", SecretPlace::Basic("me".into())),
        ("{\"query\":\"key\"}", SecretPlace::Query("key".into())),
    ] {
        assert_eq!(serde_json::from_str::<SecretPlace>(place).expect("a place"), expected);
    }
}
