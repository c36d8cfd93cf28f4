//! A pause in work on behalf of a process, for others to have a turn.

use std::future::poll_fn;
use std::task::Poll;

/// Goes to the end of the worker's queue. tokio's own `yield_now` wakes its task from the timer driver, which puts it
/// *before* all that waits in the queue: a guest that yields again and again that way lets nobody else run.
pub(crate) async fn pause() {
    let mut paused = false;
    poll_fn(|context| {
        if paused {
            return Poll::Ready(());
        }
        paused = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
