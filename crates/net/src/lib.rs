//! The gateway to the outside: everything that leaves a sandbox goes through it, and it decides.
//!
//! ```text
//!   guest ── look_up("api.x.com") ──► Gateway ── rules.rs: is the name granted?            (nothing is asked outside)
//!   guest ── connect ───────────────► Gateway ── resolve.rs, address.rs: look up once, check every address, connect to it
//!   guest ══ bytes ═════════════════► Connection::serve
//!                 first bytes: a control record (record.rs)? ── tls.rs: handshake, verified here, not in the guest
//!                 port 80, 443 …: HTTP/1.1, read strictly (head.rs, body.rs), checked, re-emitted (exchange.rs)
//!                 other ports, raw hosts: opaque bytes, counted (relay.rs)
//! ```
//!
//! The default is to refuse. The crate knows nothing of WebAssembly or of sandboxes: a guest is a byte stream. Read
//! `policy.rs` for what can be said, `name.rs` and `address.rs` for what a host is, `rules.rs` for the decisions,
//! `gateway.rs` and `connection.rs` for the way of a connection, `exchange.rs` and `forward.rs` for the way of a request (`pump.rs` has
//! its body, `reply.rs` the response), `secrets.rs` for values that guests never see.
//!
//! ```
//! use wardian_net::{Gateway, NetworkPolicy, Options};
//!
//! let policy = NetworkPolicy { allowed_hosts: vec!["*.example.com".into()], ..NetworkPolicy::default() };
//! let gateway = Gateway::new(policy, Options::default())?;
//! assert!(gateway.look_up("API.example.com.").is_ok());
//! assert_eq!(gateway.look_up("example.org").unwrap_err().rule, "allowedHosts");
//! # Ok::<(), wardian_net::PolicyError>(())
//! ```

#![deny(missing_debug_implementations)]

mod address;
mod allowance;
mod audit;
mod body;
mod callback;
mod cassette;
mod connection;
mod exchange;
mod forward;
mod gateway;
mod guest;
mod head;
mod limits;
mod local;
mod mask;
mod name;
mod outgoing;
mod policy;
mod proxy;
mod pump;
mod record;
mod relay;
mod reply;
mod resolve;
mod rules;
mod secrets;
mod tls;
mod upstream;

pub use audit::AuditSink;
pub use callback::{Answer, Decision, OnRequest, RequestInfo};
pub use connection::{Connection, Ending};
pub use gateway::{ConnectError, Destination, Gateway, OnDenied, Options};
/// A network, as `allow_private` lists them.
pub use ipnet::IpNet;
pub use name::{Host, InvalidHost};
pub use policy::{HttpRule, Mode, NetworkPolicy, ProxyPolicy, Roots, Secret, SecretPlace};
pub use record::{TlsAnswer, TlsErrorCode, TlsRequest};
pub use resolve::{BoxFuture, Resolve, SystemResolver};
pub use rules::{Denied, PolicyError};

/// The readers of what guests send, for the fuzzer and for tests.
pub mod wire {
    pub use crate::body::{Decoder, Step};
    pub use crate::head::{BadRequest, FIELDS, Framing, HEAD_BYTES, RequestHead, head_length};
    pub use crate::record::{HEADER, MAGIC, MOST, body_length};
}
