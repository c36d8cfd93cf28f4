//! `/files`: downloads and uploads, for clients with the sandbox's token or an address signed with it.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use wardian::{Sandbox, WriteOptions};

use super::Asked;
use super::allowance::Allowance;
use super::answer::{Refused, json_page};
use super::arriving::{Arriving, Unread};
use super::hosted::Hosted;
use super::multipart;
use super::query::Query;
use super::rpc::{at_home, user};
use super::stream::streamed;
use crate::params::encode;

/// How much of a file is written at once.
const PIECE: usize = 1 << 20;
/// How much of one is read at once: a client that does not read leaves a few of these waiting.
const READ: usize = 32 << 10;
/// The longest upload that has to be held whole.
const HELD: usize = 64 << 20;

/// Returns whether an address was signed with a sandbox's token, and is still valid.
pub(super) fn is_signed(hosted: &Hosted, query: &Query, method: &Method) -> bool {
    let Some(given) = query.get("signature") else { return false };
    let operation = if method == Method::GET { "read" } else { "write" };
    let (path, user) = (query.get("path").unwrap_or_default(), query.get("username").unwrap_or_default());
    let mut raw = format!("{path}:{operation}:{user}:{}", hosted.token);
    if let Some(expiration) = query.get("signature_expiration") {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if expiration.parse::<u64>().is_ok_and(|end| end < now) {
            return false;
        }
        raw = format!("{raw}:{expiration}");
    }
    let signature = format!("v1_{}", encode(&Sha256::digest(raw.as_bytes())).trim_end_matches('='));
    super::is_same(given.trim_end_matches('=').as_bytes(), signature.as_bytes())
}

pub(super) async fn answer<H: Unpin + Send + 'static>(
    asked: Asked<'_>,
    method: &Method,
    headers: &HeaderMap,
    query: &Query,
    holds: H,
) -> Result<Response, Refused> {
    user(query.get("username")).map_err(|failure| Refused::new(StatusCode::UNAUTHORIZED, failure.message))?;
    if headers.keys().any(|name| name.as_str().starts_with("x-metadata-")) {
        return Err(Refused::bad("metadata of files is not supported"));
    }
    if method == Method::GET {
        let path = query.get("path").ok_or_else(|| Refused::bad("path is missing"))?;
        return download(asked.sandbox, at_home(path), holds).await;
    }
    if method != Method::POST {
        return Err(Refused::new(StatusCode::METHOD_NOT_ALLOWED, "only GET and POST"));
    }
    upload(asked, headers, query).await
}

async fn download<H: Unpin + Send + 'static>(
    sandbox: Sandbox,
    path: String,
    holds: H,
) -> Result<Response, Refused> {
    let (first, size) =
        sandbox.read_range_into(&path, 0, READ as u64, Vec::new()).await.map_err(|error| {
            match error.errno() {
                Some(wardian::Errno::EISDIR) => Refused::bad(format!("path '{path}' is a directory")),
                _ => error.into(),
            }
        })?;
    let whole = first.len() as u64 >= size;
    let headers = [(header::CONTENT_TYPE, "application/octet-stream".to_owned())];
    if whole {
        return Ok((headers, first).into_response());
    }
    let (pieces, body) = streamed(holds);
    tokio::spawn(async move {
        let mut offset = first.len() as u64;
        if pieces.send(Bytes::from(first)).await.is_err() {
            return;
        }
        while offset < size {
            let read = sandbox.read_range_into(&path, offset, READ as u64, Vec::new()).await;
            // A file that changes meanwhile ends early, and its length tells the client so.
            let Ok((piece, _)) = read else { return };
            if piece.is_empty() {
                return;
            }
            offset += piece.len() as u64;
            if pieces.send(Bytes::from(piece)).await.is_err() {
                return;
            }
        }
    });
    let length = [(header::CONTENT_LENGTH, size.to_string())];
    Ok((headers, length, body).into_response())
}

async fn upload(asked: Asked<'_>, headers: &HeaderMap, query: &Query) -> Result<Response, Refused> {
    let field = |name: header::HeaderName| {
        headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    };
    let (kind, encoding) = (field(header::CONTENT_TYPE), field(header::CONTENT_ENCODING));
    let path = query.get("path").map(at_home);
    let Asked { sandbox, allowance, body, .. } = asked;
    let mut arriving = allowance.arriving(body);
    if let Some(boundary) = multipart::boundary(kind) {
        let body = held(allowance, &mut arriving, encoding).await?;
        return write_parts(&sandbox, allowance, body, boundary, path).await;
    }
    let path = path.ok_or_else(|| Refused::bad("path is missing"))?;
    if encoding.is_empty() || encoding == "identity" {
        write_arriving(&sandbox, &path, &mut arriving).await?;
    } else {
        let content = held(allowance, &mut arriving, encoding).await?;
        write(&sandbox, &path, &content).await?;
    }
    Ok(json_page(StatusCode::OK, &json!([told(&sandbox, &path).await?])))
}

/// Returns a whole body, decoded. Its room is taken as long as `arriving` is there.
async fn held(allowance: &Allowance, arriving: &mut Arriving, encoding: &str) -> Result<Vec<u8>, Refused> {
    let large = || {
        Refused::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("more than {HELD} bytes: send them as application/octet-stream"),
        )
    };
    if !matches!(encoding, "" | "identity" | "gzip") {
        return Err(Refused::bad("Content-Encoding must be gzip"));
    }
    let bytes = arriving.whole(HELD).await.map_err(|unread| match unread {
        Unread::TooLong(_) => large(),
        other => other.into(),
    })?;
    if encoding != "gzip" {
        return Ok(bytes);
    }
    let wrong = || Refused::bad("the body is not gzip");
    let length = multipart::gunzipped_length(&bytes).ok_or_else(wrong)?;
    if length > HELD {
        return Err(large());
    }
    arriving.take_room(bytes.capacity() + length).await?;
    let content = allowance.aside(bytes.len().max(length), move || multipart::gunzip(&bytes, length));
    content.await?.ok_or_else(wrong)
}

async fn write_parts(
    sandbox: &Sandbox,
    allowance: &Allowance,
    body: Vec<u8>,
    boundary: String,
    path: Option<String>,
) -> Result<Response, Refused> {
    let split = move || (multipart::parts(&body, &boundary), body);
    let (parts, body) = allowance.aside(HELD, split).await?;
    let mut written = Vec::new();
    for part in parts.map_err(Refused::bad)? {
        let target = path.clone().or_else(|| part.file.as_deref().map(at_home));
        let target =
            target.ok_or_else(|| Refused::bad("a part has no file name, and the address no path"))?;
        write(sandbox, &target, &body[part.content]).await?;
        written.push(told(sandbox, &target).await?);
    }
    Ok(json_page(StatusCode::OK, &Value::Array(written)))
}

async fn write_at(
    sandbox: &Sandbox,
    path: &str,
    content: Vec<u8>,
    offset: Option<u64>,
) -> Result<(), Refused> {
    let options = WriteOptions { parents: true, mode: None, offset };
    Ok(sandbox.write_file_with(path, content, options).await?)
}

/// Writes a file, in pieces: each is copied.
async fn write(sandbox: &Sandbox, path: &str, content: &[u8]) -> Result<(), Refused> {
    let (first, rest) = content.split_at(content.len().min(PIECE));
    write_at(sandbox, path, first.to_vec(), None).await?;
    let mut offset = first.len() as u64;
    for piece in rest.chunks(PIECE) {
        write_at(sandbox, path, piece.to_vec(), Some(offset)).await?;
        offset += piece.len() as u64;
    }
    Ok(())
}

/// Writes a body as it comes.
async fn write_arriving(sandbox: &Sandbox, path: &str, arriving: &mut Arriving) -> Result<(), Refused> {
    let mut offset = None;
    loop {
        let ended = !arriving.more(usize::MAX).await?;
        if ended || arriving.bytes().len() >= PIECE {
            let piece = arriving.take();
            let length = piece.len() as u64;
            write_at(sandbox, path, piece, offset).await?;
            arriving.release();
            offset = Some(offset.unwrap_or(0) + length);
        }
        if ended {
            return Ok(());
        }
    }
}

async fn told(sandbox: &Sandbox, path: &str) -> Result<Value, Refused> {
    let info = sandbox.file_info(path).await?;
    Ok(json!({ "name": crate::params::text(info.name()), "type": "file", "path": path }))
}

/// For signed addresses, which name no sandbox: the one whose token they were signed with.
pub(super) fn signer(boxes: &super::Boxes, query: &Query, method: &Method) -> Option<Arc<Hosted>> {
    query.get("signature")?;
    boxes.signed_by(|hosted| is_signed(hosted, query, method))
}
