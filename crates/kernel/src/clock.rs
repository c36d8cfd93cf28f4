//! A command's own clock, which measures its timeout.
//!
//! It stops while the sandbox is suspended, and while a program that ships with Wardian is compiled because the command
//! is the first to use it: that is the machine's first start, not the command's work.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::gate::Gate;

/// The clock of one run.
#[derive(Clone, Default)]
pub(crate) struct Clock {
    /// How many reasons there are to stop.
    held: Arc<watch::Sender<usize>>,
    stood: Arc<Mutex<Stood>>,
}

/// How long a clock has stood still for reasons that count.
#[derive(Default)]
struct Stood {
    total: Duration,
    until: Option<Instant>,
}

/// While there is one, the clock stands still.
pub(crate) struct Held {
    clock: Clock,
    since: Instant,
}

impl Clock {
    pub(crate) fn hold(&self) -> Held {
        self.held.send_modify(|held| *held += 1);
        Held { clock: self.clone(), since: Instant::now() }
    }

    /// Returns how long it was held for reasons that count ([`Held::counts`]).
    pub(crate) fn stood(&self) -> Duration {
        self.stood.lock().total
    }

    /// Sleeps until this much time has passed on this clock.
    pub(crate) async fn sleep(&self, gate: &Gate, mut left: Duration) {
        let (mut closed, mut held) = (gate.changes(), self.held.subscribe());
        loop {
            // The senders live as long as this does: waiting for them cannot fail.
            while *closed.borrow() || *held.borrow() > 0 {
                let _ = closed.wait_for(|closed| !closed).await;
                let _ = held.wait_for(|held| *held == 0).await;
            }
            let start = Instant::now();
            tokio::select! {
                () = tokio::time::sleep(left) => return,
                _ = closed.wait_for(|closed| *closed) => {}
                _ = held.wait_for(|held| *held > 0) => {}
            }
            left = left.saturating_sub(start.elapsed());
        }
    }
}

impl Held {
    /// Lets the clock go on, and counts the time since it was held: once, where there are several.
    pub(crate) fn counts(self) {
        let mut stood = self.clock.stood.lock();
        let (since, now) = (stood.until.map_or(self.since, |until| until.max(self.since)), Instant::now());
        stood.total += now.saturating_duration_since(since);
        stood.until = Some(now);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.clock.held.send_modify(|held| *held -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::tick::Ticker;
    use crate::turns::Turns;

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_millis(400);

    fn gate() -> Gate {
        let ticker = Ticker::start(wasmtime::Engine::default()).expect("a thread");
        Gate::new(0, 0, &Arc::new(Turns::new(1, ticker.ticker())))
    }

    #[tokio::test]
    async fn a_clock_that_is_held_stands_still() {
        let (clock, gate) = (Clock::default(), gate());
        let (first, second) = (clock.hold(), clock.hold());
        let start = Instant::now();
        let release = async {
            tokio::time::sleep(LONG).await;
            first.counts();
            tokio::time::sleep(LONG).await;
            second.counts();
            clock.hold();
        };
        tokio::join!(clock.sleep(&gate, SHORT), release);
        assert!(start.elapsed() >= LONG * 2 + SHORT);
        assert!(clock.stood() >= LONG * 2 && clock.stood() <= start.elapsed());
    }

    #[tokio::test]
    async fn so_does_one_behind_a_closed_gate() {
        let (clock, gate) = (Clock::default(), gate());
        gate.set_closed(true);
        let start = Instant::now();
        let open = async {
            tokio::time::sleep(LONG).await;
            gate.set_closed(false);
        };
        tokio::join!(clock.sleep(&gate, SHORT), open);
        assert!(start.elapsed() >= LONG + SHORT);
    }
}
