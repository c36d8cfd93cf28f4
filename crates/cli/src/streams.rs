//! The process's own streams, joined to a run's.

use std::io::{Read, Write};
use std::thread::JoinHandle;

use tokio::sync::mpsc;
use wardian::{Source, SourceRead};

/// How many pieces of output may wait for a slow terminal before the guest does.
const PIECES: usize = 16;

/// Standard input, read only when the guest asks: a script that does not read leaves it to whoever comes next.
pub(crate) struct Stdin;

impl Source for Stdin {
    fn read(&self, max: usize) -> SourceRead<'_> {
        Box::pin(async move {
            let reading = tokio::task::spawn_blocking(move || {
                let mut buf = vec![0; max.min(64 * 1024)];
                let n = std::io::stdin().lock().read(&mut buf)?;
                buf.truncate(n);
                Ok(buf)
            });
            reading.await.map_err(std::io::Error::other)?
        })
    }
}

/// A thread that writes what the run produces, and the channel to it.
pub(crate) fn copy_to(mut writer: impl Write + Send + 'static) -> (mpsc::Sender<Vec<u8>>, JoinHandle<()>) {
    let (sender, mut pieces) = mpsc::channel::<Vec<u8>>(PIECES);
    let thread = std::thread::spawn(move || {
        while let Some(piece) = pieces.blocking_recv() {
            // Nobody reads any more: closing the channel tells the guest, as a broken pipe would.
            if writer.write_all(&piece).and_then(|()| writer.flush()).is_err() {
                return;
            }
        }
    });
    (sender, thread)
}
