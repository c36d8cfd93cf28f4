//! What descriptors 1 and 2 of a session's processes lead to: the output of whichever command runs.
//!
//! A process that a command left in the background keeps its descriptors. What it writes while a later command runs is
//! output of that command; what it writes while none runs is kept, up to a cap, and the next command's output begins with
//! it. What is past the cap is counted and told there, so that nothing is lost without a word.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use wardian_vfs::Errno;

use crate::limits::{Charge, Meter};
use crate::order::{Part, Stream};
use crate::stream::{Ended, Output};

/// What is kept of each stream while no command runs.
const LATE: usize = 64 * 1024;
/// What the sandbox is charged for that: both streams, and their order.
const LATE_CHARGE: usize = 4 * LATE;

/// Leads to an output, and later to another.
pub(crate) struct Outlet {
    state: Mutex<State>,
    /// Waiting for the end of `Leads::Filling`.
    filled: Notify,
}

struct State {
    leads: Leads,
    late: Option<Late>,
    /// Bytes that there was no memory to keep.
    dropped: u64,
}

enum Leads {
    /// Nowhere, ever: what is written here is not anybody's output.
    Nowhere,
    /// To what is kept for the next command.
    Kept(Arc<Meter>),
    /// To a command that is being given what was kept for it, and whose own output comes after that.
    Filling,
    /// To the output of the command that runs.
    To(Arc<Output>),
}

/// What was written while no command ran.
struct Late {
    output: Arc<Output>,
    _charge: Charge,
}

impl Outlet {
    fn new(leads: Leads) -> Arc<Outlet> {
        let state = State { leads, late: None, dropped: 0 };
        Arc::new(Outlet { state: Mutex::new(state), filled: Notify::new() })
    }

    /// One that swallows everything.
    pub(crate) fn nowhere() -> Arc<Outlet> {
        Outlet::new(Leads::Nowhere)
    }

    /// One that leads to the same output for as long as there is one.
    pub(crate) fn to(output: Arc<Output>) -> Arc<Outlet> {
        Outlet::new(Leads::To(output))
    }

    /// One that keeps what is written until a command is [attached](Outlet::attach).
    pub(crate) fn keeping(meter: &Arc<Meter>) -> Arc<Outlet> {
        Outlet::new(Leads::Kept(meter.clone()))
    }

    /// Leads to `output` from now on, which first gets what was kept. Those who write meanwhile wait.
    pub(crate) async fn attach(&self, output: &Arc<Output>) {
        let (late, dropped) = {
            let mut state = self.state.lock();
            state.leads = Leads::Filling;
            (state.late.take(), std::mem::take(&mut state.dropped))
        };
        if late.is_some() || dropped > 0 {
            give(late, dropped, output).await;
        }
        self.state.lock().leads = Leads::To(output.clone());
        self.filled.notify_waiters();
    }

    /// Keeps what is written until the next command. To be called before the last one's output is closed.
    pub(crate) fn detach(&self, meter: &Arc<Meter>) {
        self.state.lock().leads = Leads::Kept(meter.clone());
        self.filled.notify_waiters();
    }

    /// Writes to wherever it leads.
    ///
    /// What one that is about to be killed writes after its command is over is lost: it would come as a surprise in the next.
    pub(crate) async fn write(
        &self,
        stream: Stream,
        data: &[u8],
        is_doomed: impl Fn() -> bool,
    ) -> Result<usize, Errno> {
        loop {
            let mut filled = std::pin::pin!(self.filled.notified());
            filled.as_mut().enable();
            let output = {
                let state = &mut *self.state.lock();
                match &state.leads {
                    Leads::Nowhere => return Ok(data.len()),
                    // Looked at under the lock: who is killed with its command is doomed before this leads here.
                    Leads::Kept(_) if is_doomed() => return Ok(data.len()),
                    Leads::Kept(meter) => {
                        let meter = meter.clone();
                        state.keep(&meter, stream, data);
                        return Ok(data.len());
                    }
                    Leads::Filling => None,
                    Leads::To(output) => Some(output.clone()),
                }
            };
            let Some(output) = output else {
                filled.await;
                continue;
            };
            match output.write(stream, data).await? {
                Some(count) => return Ok(count),
                // A command's output is closed after this leads elsewhere; one that leads nowhere else has come to its end.
                None if self.leads_to(&output) => return Ok(data.len()),
                None => {}
            }
        }
    }

    /// Waits until a write would not.
    pub(crate) async fn room(&self, stream: Stream) {
        loop {
            let mut filled = std::pin::pin!(self.filled.notified());
            filled.as_mut().enable();
            let output = match &self.state.lock().leads {
                Leads::Nowhere | Leads::Kept(_) => return,
                Leads::Filling => None,
                Leads::To(output) => Some(output.clone()),
            };
            match output {
                Some(output) => return output.room(stream).await,
                None => filled.await,
            }
        }
    }

    /// Returns whether a write would return immediately.
    pub(crate) fn has_room(&self, stream: Stream) -> bool {
        match &self.state.lock().leads {
            Leads::Nowhere | Leads::Kept(_) => true,
            Leads::Filling => false,
            Leads::To(output) => output.has_room(stream),
        }
    }

    /// Returns whether something was written that the next command's output begins with.
    pub(crate) fn has_late(&self) -> bool {
        let state = self.state.lock();
        state.late.is_some() || state.dropped > 0
    }

    fn leads_to(&self, output: &Arc<Output>) -> bool {
        matches!(&self.state.lock().leads, Leads::To(to) if Arc::ptr_eq(to, output))
    }
}

impl State {
    fn keep(&mut self, meter: &Arc<Meter>, stream: Stream, data: &[u8]) {
        if self.late.is_none() {
            let charge = meter.hold(LATE_CHARGE);
            self.late = charge.map(|charge| Late { output: Output::kept(LATE), _charge: charge });
        }
        match &self.late {
            Some(late) => late.output.keep(stream, data),
            None => self.dropped += data.len() as u64,
        }
    }
}

/// Hands on what was kept, as far as anybody listens, and reports what was not.
async fn give(late: Option<Late>, mut dropped: u64, to: &Output) {
    if let Some(late) = late {
        let (Ended { stdout, stderr, order, .. }, missing) = late.output.into_kept();
        dropped += missing;
        for part in order.parts(&stdout, &stderr) {
            if let Part::Bytes(stream, bytes) = part
                && !matches!(to.write(stream, bytes).await, Ok(Some(_)))
            {
                return;
            }
        }
    }
    if dropped > 0 {
        let note = format!("wardian: {dropped} bytes that were written between commands are not kept\n");
        let _ = to.write(Stream::Stderr, note.as_bytes()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Stream::{Stderr, Stdout};

    #[tokio::test]
    async fn what_is_written_between_commands_comes_first_in_the_next() {
        let meter = Arc::new(Meter::new(1 << 20));
        let outlet = Outlet::keeping(&meter);
        let first = Output::kept(100);
        outlet.attach(&first).await;
        outlet.write(Stdout, b"one\n", || false).await.unwrap();
        outlet.detach(&meter);
        first.close();
        outlet.write(Stderr, b"late\n", || false).await.unwrap();
        outlet.write(Stdout, b"too\n", || false).await.unwrap();
        assert_eq!(meter.used(), LATE_CHARGE as u64);
        let second = Output::kept(100);
        outlet.attach(&second).await;
        assert_eq!(meter.used(), 0, "and is charged only while it is kept");
        outlet.write(Stdout, b"two\n", || false).await.unwrap();
        assert_eq!(first.end(None).await.stdout, b"one\n");
        let ended = second.end(None).await;
        let parts: Vec<_> = ended.order.parts(&ended.stdout, &ended.stderr).collect();
        assert_eq!(parts, [Part::Bytes(Stderr, b"late\n"), Part::Bytes(Stdout, b"too\ntwo\n")]);
    }

    #[tokio::test]
    async fn output_that_is_dropped_is_counted_and_reported() {
        for limit in [0, 1 << 20] {
            let meter = Arc::new(Meter::new(limit));
            let outlet = Outlet::keeping(&meter);
            for _ in 0..100 {
                outlet.write(Stdout, &[b'x'; 1000], || false).await.unwrap();
            }
            let next = Output::kept(usize::MAX);
            outlet.attach(&next).await;
            let ended = next.end(None).await;
            let kept = if limit == 0 { 0 } else { LATE };
            assert_eq!(ended.stdout.len(), kept);
            let note = format!(
                "wardian: {} bytes that were written between commands are not kept\n",
                100_000 - kept
            );
            assert_eq!(ended.stderr, note.as_bytes());
        }
    }

    #[tokio::test]
    async fn a_write_that_waits_when_its_command_ends_is_kept_for_the_next() {
        let meter = Arc::new(Meter::new(1 << 20));
        let outlet = Outlet::keeping(&meter);
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
        let first = Output::new([100; 2], [crate::stream::Sink::Own(sender), crate::stream::Sink::Keep]);
        outlet.attach(&first).await;
        outlet.write(Stdout, b"taken\n", || false).await.unwrap();
        let writing = outlet.clone();
        let waiting = tokio::spawn(async move { writing.write(Stdout, b"waits\n", || false).await });
        tokio::task::yield_now().await;
        outlet.detach(&meter);
        first.close();
        assert_eq!(waiting.await.unwrap(), Ok(6));
        assert_eq!(receiver.recv().await.as_deref(), Some(&b"taken\n"[..]));
        let second = Output::kept(100);
        outlet.attach(&second).await;
        assert_eq!(second.end(None).await.stdout, b"waits\n");
    }
}
