//! The tools of language models by HTTP, for clients who take what they can get.

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use crate::rest::Site;
use crate::tokens::Tenants;

/// The first version without sessions; a client may name it and begin one.
const WITHOUT_SESSIONS: &str = "2026-07-28";

/// Sends a message; returns the whole answer.
async fn post(site: &Site, more: &str, message: &Value) -> String {
    let more = format!("Accept: application/json, text/event-stream\r\n{more}");
    let mut stream = site.open("POST", "/mcp", &message.to_string(), &more).await;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

async fn begin(site: &Site, version: &str) -> String {
    let params = json!({
        "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    post(site, &format!("Mcp-Protocol-Version: {version}\r\n"), &message).await
}

/// Begins a session; returns what its requests send along.
async fn session(site: &Site) -> String {
    let begun = begin(site, "2025-06-18").await;
    let id = begun.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session");
    let more = format!("Mcp-Session-Id: {id}\r\n");
    post(site, &more, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    more
}

async fn call(site: &Site, session: &str, tool: &str, arguments: Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    post(site, session, &json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params })).await
}

#[tokio::test]
async fn sessions_are_capped_whichever_version_a_client_names() {
    for version in ["2025-06-18", WITHOUT_SESSIONS] {
        let site = Site::start().await;
        for number in 0..256 {
            let answer = begin(&site, version).await;
            assert!(answer.starts_with("HTTP/1.1 200 "), "{version} {number}: {answer}");
        }
        let answer = begin(&site, version).await;
        assert!(answer.starts_with("HTTP/1.1 429 "), "{version}: {answer}");
    }
}

#[tokio::test]
async fn a_search_counts_as_a_run_for_the_quota_of_its_tenant() {
    let mut tenants = Tenants::start().await;
    tenants.show("token-number-one");
    let session = session(&tenants.site).await;
    let search = async || call(&tenants.site, &session, "search_files", json!({ "glob": "*" })).await;
    let found = search().await;
    assert!(found.contains("\"isError\":false"), "{found}");
    let refused = search().await;
    assert!(refused.contains("may begin 0.0001 runs per second"), "{refused}");
}
