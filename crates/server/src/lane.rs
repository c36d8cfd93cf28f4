//! Turns, in the order in which they were requested.
//!
//! Requests are served by tasks, and tasks start in any order. Requests that must run one after the other take a turn
//! while the lines are still being read in order, and wait for it later.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Things that happen one after the other.
#[derive(Default)]
pub(crate) struct Lane(Mutex<Option<oneshot::Receiver<()>>>);

/// A place in a lane. The next turn comes when this and everything that [`Turn::hold`] returned are dropped.
pub(crate) struct Turn {
    before: Option<oneshot::Receiver<()>>,
    hold: Hold,
}

/// Keeps the next turn waiting.
#[derive(Clone)]
pub(crate) struct Hold {
    _done: Arc<oneshot::Sender<()>>,
}

impl Lane {
    /// Returns the next place.
    pub(crate) fn turn(&self) -> Turn {
        let (done, next) = oneshot::channel();
        Turn { before: self.0.lock().replace(next), hold: Hold { _done: Arc::new(done) } }
    }
}

impl Turn {
    /// Makes the next turn also wait for what continues after this turn itself.
    pub(crate) fn hold(&self) -> Hold {
        self.hold.clone()
    }

    /// Waits until all turns before it are done.
    pub(crate) async fn come(&mut self) {
        if let Some(before) = &mut self.before {
            // Nothing is ever sent: it ends when the one before is dropped.
            let _ = before.await;
        }
        self.before = None;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn turns_come_in_the_order_they_were_taken() {
        let (lane, order) = (Lane::default(), Arc::new(Mutex::new(Vec::new())));
        let turns: Vec<Turn> = (0..10).map(|_| lane.turn()).collect();
        let mut tasks = Vec::new();
        for (number, mut turn) in turns.into_iter().enumerate().rev() {
            let order = order.clone();
            tasks.push(tokio::spawn(async move {
                turn.come().await;
                order.lock().push(number);
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock(), (0..10).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_turn_that_is_held_is_not_over() {
        let lane = Lane::default();
        let (first, mut second) = (lane.turn(), lane.turn());
        let hold = first.hold();
        drop(first);
        assert!(tokio::time::timeout(Duration::from_millis(10), second.come()).await.is_err());
        drop(hold);
        second.come().await;
    }
}
