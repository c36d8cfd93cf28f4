//! Answers that are not read: what waits for a client is within the room that its key has, and not for ever.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::CONTENT_LENGTH;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::allowance::Allowance;
use super::answer::Refused;
use super::stream::streamed;
use crate::budget::Room;

/// An answer of no more than this needs no room.
const SHORT: u64 = 16 << 10;
/// A longer one is given to the connection in pieces of this size.
const PIECE: usize = 16 << 10;
/// How long an answer may take to be read.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many bytes may take a second more.
const SECOND: usize = 16 << 10;

/// Takes room for an answer that is there as a whole, until it is read. If there is none, or nobody reads it, the client does not get
/// it. Streams are as they are: they have few pieces at a time.
pub(super) fn within(response: Response, allowance: &Arc<Allowance>) -> Response {
    let length = match response.body().size_hint().exact() {
        Some(length) if length > SHORT => length as usize,
        _ => return response,
    };
    let Some(room) = allowance.room_to_answer(length) else {
        return Refused::new(axum::http::StatusCode::TOO_MANY_REQUESTS, "too many answers wait to be read")
            .into_response();
    };
    // The key's next request must find the room taken, also if there was none in between.
    with_room(response, length, room, allowance.clone())
}

/// Sends an answer of so many bytes that has its room. What it `holds` is kept until it is read, or given up.
pub(crate) fn with_room(
    response: Response,
    length: usize,
    room: Room,
    holds: impl Send + 'static,
) -> Response {
    let (mut head, body) = response.into_parts();
    // So that one that ends early is not taken for all of it.
    head.headers.insert(CONTENT_LENGTH, length.into());
    let (pieces, sent) = streamed(());
    tokio::spawn(async move {
        let patience = PATIENCE + Duration::from_secs((length / SECOND) as u64);
        let _ = tokio::time::timeout_at(Instant::now() + patience, send(body, room, pieces)).await;
        drop(holds);
    });
    Response::from_parts(head, sent)
}

/// Passes on a stream as it comes. A long piece of it takes room until it is read. If there is none, or nobody reads, it ends. What it
/// `holds` is kept until then.
pub(crate) fn passed_on(body: Body, allowance: Arc<Allowance>, holds: impl Send + 'static) -> Body {
    let (pieces, sent) = streamed(());
    tokio::spawn(async move {
        let mut body = body;
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                () = pieces.closed() => break,
            };
            let Some(Ok(frame)) = frame else { break };
            let Ok(data) = frame.into_data() else { continue };
            let patience = PATIENCE + Duration::from_secs((data.len() / SECOND) as u64);
            let passing = pass_on(data, &allowance, &pieces);
            if !tokio::time::timeout(patience, passing).await.unwrap_or(false) {
                break;
            }
        }
        drop((body, holds));
    });
    sent
}

/// Gives a piece to the connection; `false` if it cannot be.
async fn pass_on(data: Bytes, allowance: &Allowance, pieces: &super::stream::Pieces) -> bool {
    if data.len() as u64 <= SHORT {
        return pieces.send(data).await.is_ok();
    }
    let Some(_room) = allowance.room_to_answer(data.len()) else { return false };
    for piece in data.chunks(PIECE) {
        if pieces.send(Bytes::copy_from_slice(piece)).await.is_err() {
            return false;
        }
    }
    true
}

async fn send(body: Body, room: Room, pieces: super::stream::Pieces) {
    // It is there already: this copies nothing.
    let Ok(whole) = axum::body::to_bytes(body, usize::MAX).await else { return };
    for piece in whole.chunks(PIECE) {
        // A copy: the few pieces that a connection has must not keep the whole.
        if pieces.send(Bytes::copy_from_slice(piece)).await.is_err() {
            return;
        }
    }
    drop((whole, room));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::ANSWER_MAX;
    use crate::{Options, Server};

    #[tokio::test]
    async fn what_is_passed_on_to_those_who_do_not_read_is_within_the_room_of_their_key() {
        const MIB: usize = 1 << 20;
        let server = Server::new(Options::default());
        let (key, other) = (Arc::new(Allowance::new(&server.0)), Arc::new(Allowance::new(&server.0)));
        let unread = |key: &Arc<Allowance>| passed_on(Body::from(vec![b'x'; MIB]), key.clone(), ());
        let bodies: Vec<Body> = (0..200).map(|_| unread(&key)).collect();
        let length =
            async |body: Body| axum::body::to_bytes(body, usize::MAX).await.map_or(0, |all| all.len());
        // They are read only after each has got what there was.
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(length(unread(&other)).await, MIB);
        let mut whole = 0;
        for body in bodies {
            whole += usize::from(length(body).await == MIB);
        }
        assert!((1..ANSWER_MAX / MIB).contains(&whole), "{whole} of 200 were kept");
        assert_eq!(length(unread(&key)).await, MIB, "its room is free again");
    }
}
