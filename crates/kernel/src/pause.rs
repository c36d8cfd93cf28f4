//! A pause in work on behalf of a process, to let others run.

use std::future::poll_fn;
use std::task::Poll;

/// Goes to the end of the worker's queue. tokio's own `yield_now` wakes its task from the timer driver, which puts it
/// *before* everything in the queue: a guest that yields repeatedly that way lets no one else run.
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
