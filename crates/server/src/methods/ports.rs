//! `net.…`: connections to ports that programs in a sandbox listen at.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use wardian_contract::params::{AckStream, PortNumber, StreamId, WriteStream};

use super::{Job, Prepared, asked, ok};
use crate::lane::Lane;
use crate::params::Params;
use crate::rpc::RpcError;
use crate::session::Session;
use crate::streams::{Stream, WRITES};

/// How long a server in a sandbox may take to accept others first.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);

pub(super) fn connect(session: &Arc<Session>, id: Option<&Value>, params: &mut Params) -> Prepared {
    let (entry, PortNumber { port, .. }) = asked(session, params)?;
    let port = port.0;
    if id.is_none() {
        return Err(RpcError::params("net.connect needs an id: its answer names the connection"));
    }
    let place = session.streams.place()?;
    let (mut turn, session) = (entry.at_once(), session.clone());
    let lane = Lane::default();
    let (answer, told) = (lane.turn(), lane.turn());
    // It may wait for a guest that a later line stops.
    Job::in_turn(answer.hold(), async move {
        let sandbox = turn.sandbox().await?;
        drop((turn, answer));
        let connected = tokio::select! {
            () = entry.ended() => return Err(wardian::Error::Destroyed.into()),
            connected = tokio::time::timeout(CONNECT, sandbox.connect(port)) => connected,
        };
        let Ok(connected) = connected else {
            let why = format!("ETIMEDOUT: port {port}: the server there does not accept connections");
            return Err(RpcError::refused("ETIMEDOUT", why));
        };
        let (reader, writer) = tokio::io::split(connected?);
        let stream = session.streams.add(writer, place);
        let answer = json!({ "streamId": stream.id() });
        tokio::spawn(stream.tell(told, (entry, sandbox), reader, session.outbox.clone()));
        Ok(answer)
    })
}

pub(super) fn write(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (_, WriteStream { stream_id: id, data, .. }) = asked(session, params)?;
    let data = data.0;
    if data.len() > WRITES {
        return Err(RpcError::params(format!("data must have at most {WRITES} bytes")));
    }
    let stream = session.streams.get(&id)?;
    let counted = stream.count(data.len())?;
    in_order(stream, move |stream| async move {
        let written = stream.write(&data).await;
        drop(counted);
        written.and_then(|()| ok())
    })
}

pub(super) fn close_write(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (_, StreamId { stream_id: id, .. }) = asked(session, params)?;
    in_order(session.streams.get(&id)?, |stream| async move {
        stream.end_writing().await;
        ok()
    })
}

/// Does something after what was written before.
fn in_order<F: Future<Output = super::Outcome> + Send>(
    stream: Arc<Stream>,
    work: impl FnOnce(Arc<Stream>) -> F + Send + 'static,
) -> Prepared {
    let mut turn = stream.turn();
    Job::in_turn(turn.hold(), async move {
        turn.come().await;
        work(stream).await
    })
}

pub(super) fn ack(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (_, AckStream { stream_id: id, bytes, .. }) = asked(session, params)?;
    session.streams.get(&id)?.acknowledge(usize::try_from(bytes).unwrap_or(usize::MAX))?;
    Job::at_once(None, async { ok() })
}

pub(super) fn close(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (_, StreamId { stream_id: id, .. }) = asked(session, params)?;
    session.streams.close(&id)?;
    Job::at_once(None, async { ok() })
}

pub(super) fn url(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, PortNumber { port, .. }) = asked(session, params)?;
    let port = port.0;
    let Some(place) = session.shared.doors.place() else {
        let why = "ENOTSUP: this server does not serve HTTP: start it with --http";
        return Err(RpcError::refused("ENOTSUP", why));
    };
    let name = session.shared.doors.name(&entry)?;
    let path = format!("/sandboxes/{name}/ports/{port}/");
    Job::at_once(None, async move { Ok(json!({ "url": format!("http://{place}{path}"), "path": path })) })
}
