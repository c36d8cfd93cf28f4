//! The protocol of Wardian's server, written down once, as types.
//!
//! Each method has a type for its params and one for its result. The server reads requests into the first ([`read`]), by the
//! rules of docs/protocol.md; the tables of that page, the JSON Schema, the OpenAPI document and the TypeScript package's types are
//! made of the same types (`cargo xtask contract`). Doc comments become descriptions, so they are written for clients.
//!
//! In order: [`mod@read`] is how params are read, [`kinds`] has the kinds of values, [`methods`] the table, [`params`] and
//! [`results`] the types, and [`pages`] what is made of them.
//!
//! ```
//! use serde_json::{Value, json};
//! use wardian_contract::{params::Run, read::read};
//!
//! let Value::Object(params) = json!({ "command": "echo hi", "timeoutMs": null }) else { unreachable!() };
//! let run: Run = read(params, |_, _| String::new()).unwrap();
//! assert_eq!((run.command.as_str(), run.timeout_ms), ("echo hi", None));
//! ```

pub mod kinds;
pub mod methods;
pub mod pages;
pub mod params;
pub mod read;
pub mod results;
