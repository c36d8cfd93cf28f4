//! `/mcp`: sandboxes as tools of language models, by the Model Context Protocol over streamable HTTP. What the tools do is in
//! `wardian-mcp`; here are who may use them, and how much.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use wardian::Limits;
use wardian_mcp::{Admission, Gate, LONGEST_REQUEST, Options, Owner, Place};

use super::connections::Seat;
use super::guard::Caller;
use super::{Site, refusal};
use crate::e2b::{Refused, passed_on, whole};
use crate::quota::Quota;
use crate::rpc;
use crate::session::Shared;

/// How many values a message may have, names and nested ones included.
const VALUES: usize = 16 << 10;
/// How long a file may be that is read as a resource: a session keeps its last answer.
const LONGEST_RESOURCE: u64 = 1 << 20;

/// Those who use it.
#[derive(Default)]
pub(super) struct Owners(Mutex<Table>);

#[derive(Default)]
struct Table {
    owners: BTreeMap<String, Arc<Owner>>,
    closed: bool,
}

/// What one of them may take.
struct Door {
    shared: Arc<Shared>,
    quota: Option<Arc<Quota>>,
}

impl std::fmt::Debug for Door {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Door").field("quota", &self.quota).finish_non_exhaustive()
    }
}

impl Gate for Door {
    fn sandbox<'a>(&'a self, limits: &'a Limits) -> Admission<'a> {
        Box::pin(async move {
            let places = self.shared.places(self.quota.as_ref(), limits, 1).await;
            places.map(|places| Arc::new(places) as Place).map_err(|error| error.message)
        })
    }

    fn run(&self) -> Result<(), String> {
        let ran = self.quota.as_ref().map_or(Ok(()), |quota| quota.run(Instant::now()));
        ran.map_err(|error| error.message)
    }
}

impl Owners {
    /// Returns the sandboxes of a caller; none once the server ends.
    fn of(&self, caller: &Caller, shared: &Arc<Shared>) -> Option<Arc<Owner>> {
        let mut table = self.0.lock();
        if table.closed {
            return None;
        }
        let begin = || {
            let door = Door { shared: shared.clone(), quota: caller.member().quota };
            let options = Options {
                gate: Some(Arc::new(door)),
                audit: shared.audit.clone(),
                longest_resource: LONGEST_RESOURCE,
                ..Options::default()
            };
            Arc::new(Owner::new(options))
        };
        Some(table.owners.entry(caller.owner.clone()).or_insert_with(begin).clone())
    }

    /// Destroys everything.
    pub(super) async fn end(&self) {
        let owners = {
            let mut table = self.0.lock();
            table.closed = true;
            std::mem::take(&mut table.owners)
        };
        let mut ending = JoinSet::new();
        for owner in owners.into_values() {
            ending.spawn(async move { owner.end().await });
        }
        ending.join_all().await;
    }
}

/// Answers a request. A stream has its place until it ends.
pub(super) async fn answer(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let allowance = site.boxes.allowance(&caller.owner);
    let places = (seat.keep_owned(), site.boxes.requests.clone().try_acquire_owned(), allowance.place());
    let (Some(seat), Ok(request_place), Some(place)) = places else {
        return refused(&Refused::no_room());
    };
    let Some(owner) = site.mcp.of(&caller, &site.shared) else {
        return refused(&Refused::new(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down"));
    };
    let (head, body) = request.into_parts();
    let (bytes, rooms) = match whole(&allowance, body, LONGEST_REQUEST).await {
        Ok(arrived) => arrived,
        Err(refusal) => return refused(&refusal),
    };
    if bytes.len() > VALUES && rpc::values(&bytes) > VALUES {
        return refused(&Refused::bad(format!("the message has more than {VALUES} values")));
    }
    let Some(keeping) = allowance.keep(bytes.len()) else { return refused(&Refused::no_room()) };
    drop(rooms);
    let answered = owner.answer(Request::from_parts(head, Bytes::from(bytes))).await;
    let holds = (seat, request_place, place, keeping);
    let (head, body) = answered.into_parts();
    Response::from_parts(head, passed_on(Body::new(body), allowance, holds)).into_response()
}

fn refused(refused: &Refused) -> Response {
    refusal(refused.status, &refused.code(), &refused.message)
}
