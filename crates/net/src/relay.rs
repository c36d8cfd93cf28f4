//! Opaque bytes in both directions: counted, slowed down, and given up when nothing moves.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::guest::{Activity, OnItsWay, Reader, Sending};
use crate::limits::Limits;
use crate::mask::Mask;

/// A buffer starts small, since most connections are idle, and grows while it is filled at once.
const SMALLEST: usize = 4 << 10;
const LARGEST: usize = 256 << 10;

/// How long the possible beginning of a secret is held back if nothing follows it.
const HELD_BACK: Duration = Duration::from_millis(200);

/// How a relay ended, and what it moved.
pub(crate) struct Moved {
    pub(crate) to_server: u64,
    pub(crate) to_guest: u64,
    pub(crate) error: Option<String>,
}

/// On what terms bytes are moved.
pub(crate) struct Terms<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) idle: Duration,
    pub(crate) sending: &'a Sending,
}

/// Moves bytes until both sides are done.
pub(crate) async fn relay<R, W, S>(
    guest: &mut Reader<R>,
    writer: &mut W,
    server: S,
    mask: Mask<'_>,
    terms: Terms<'_>,
) -> Moved
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Terms { limits, idle, sending } = terms;
    let activity = Activity::new(idle);
    sending.set(OnItsWay::Something);
    let (mut from_server, mut to_server) = tokio::io::split(server);
    let (mut up, mut down) = (0, 0);
    let both = async {
        tokio::try_join!(
            async {
                let sent = upwards(guest, &mut to_server, limits, &activity, &mut up).await;
                sending.set(OnItsWay::Nothing);
                sent
            },
            downwards(&mut from_server, writer, mask, limits, &activity, &mut down),
        )
    };
    let error = tokio::select! {
        done = both => done.err().map(|error| error.to_string()),
        () = activity.silence() => Some("nothing moved for too long".to_owned()),
    };
    Moved { to_server: up, to_guest: down, error }
}

fn exhausted<T>(_: T) -> io::Error {
    io::Error::other("totalBytes is used up")
}

async fn upwards<R: AsyncRead + Unpin>(
    guest: &mut Reader<R>,
    server: &mut (impl AsyncWrite + Unpin),
    limits: &Limits,
    activity: &Activity,
    moved: &mut u64,
) -> io::Result<()> {
    loop {
        if guest.buffer.is_empty() && guest.peek(1).await?.is_empty() {
            return server.shutdown().await;
        }
        let bytes = guest.buffer.split();
        limits.take(bytes.len(), || activity.touch()).await.map_err(exhausted)?;
        activity.touch();
        server.write_all(&bytes).await?;
        server.flush().await?;
        *moved += bytes.len() as u64;
        activity.touch();
        drop(bytes);
        if !guest.more().await? {
            return server.shutdown().await;
        }
    }
}

async fn downwards(
    server: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
    mut mask: Mask<'_>,
    limits: &Limits,
    activity: &Activity,
    moved: &mut u64,
) -> io::Result<()> {
    let mut buffer = vec![0; SMALLEST];
    loop {
        let read = server.read(&mut buffer);
        let length = match mask.keeps() {
            false => read.await?,
            // The other side may wait for an answer to what ends like a secret begins.
            true => match tokio::time::timeout(HELD_BACK, read).await {
                Ok(length) => length?,
                Err(_) => {
                    writer.write_all(&mask.finish()).await?;
                    writer.flush().await?;
                    continue;
                }
            },
        };
        if length == 0 {
            writer.write_all(&mask.finish()).await?;
            return writer.shutdown().await;
        }
        limits.take(length, || activity.touch()).await.map_err(exhausted)?;
        activity.touch();
        match mask.push(&buffer[..length]) {
            None => writer.write_all(&buffer[..length]).await?,
            Some(masked) => writer.write_all(&masked).await?,
        }
        writer.flush().await?;
        *moved += length as u64;
        activity.touch();
        if length == buffer.len() && length < LARGEST {
            buffer = vec![0; 2 * length];
        }
    }
}
