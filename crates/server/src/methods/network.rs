//! `network` of `create`: what a sandbox may reach outside.

use serde_json::{Map, Value};
use wardian::net::Roots;
use wardian::{Builder, NetworkPolicy};

use super::requests::AskClient;
use crate::ClientNetwork;
use crate::params::Params;
use crate::rpc::RpcError;
use crate::session::Session;

/// Gives a sandbox the network that was asked for.
pub(super) fn give(
    builder: Builder,
    session: &Session,
    given: Map<String, Value>,
) -> Result<Builder, RpcError> {
    let params = &mut Params::new([("network".to_owned(), Value::Object(given))].into_iter().collect());
    let asks = params.flag_within("network", "onRequest")?.unwrap_or(false);
    let Some(policy) = policy(session, params)? else { return Ok(builder) };
    let builder = builder.network(policy);
    Ok(if asks { builder.on_request(AskClient::new(&session.callbacks)) } else { builder })
}

/// Reads the policy, if the client may have it.
fn policy(session: &Session, params: &mut Params) -> Result<Option<NetworkPolicy>, RpcError> {
    let Some(policy) = params.described::<NetworkPolicy>("network")? else { return Ok(None) };
    let granted = session.network();
    if granted == ClientNetwork::Full {
        return Ok(Some(policy));
    }
    // A policy that grants nothing is what everybody has.
    if granted == ClientNetwork::Off && policy != NetworkPolicy::default() {
        return Err(RpcError::params("network: this server grants its clients no network (serve --network)"));
    }
    let of_the_host = [
        ("allowPrivate", !policy.allow_private.is_empty()),
        ("caFile", policy.ca_file.is_some() || policy.roots == Roots::CaFile),
        ("proxy", policy.proxy.is_some()),
        ("record", policy.record.is_some()),
        ("replay", policy.replay.is_some()),
    ];
    match of_the_host.into_iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(RpcError::params(format!(
            "network.{name}: only for clients of a server that grants them the whole network (serve --network full)"
        ))),
        None => Ok(Some(policy)),
    }
}
