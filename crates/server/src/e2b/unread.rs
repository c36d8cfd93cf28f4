//! Answers that are not read: what waits for a client is within the room that its key has, and not for ever.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::CONTENT_LENGTH;
use axum::response::{IntoResponse, Response};
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
