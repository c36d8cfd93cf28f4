//! Connections: let in, given so long for what they ask, and closed at the end.

use std::pin::pin;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;

use crate::admission::Admission;

/// How long a client may take over the head of a request.
const HEAD: Duration = Duration::from_secs(10);
/// How long answers that are under way may take once everything is to end.
const FAREWELL: Duration = Duration::from_secs(5);

/// Answers by `router` until `end`, and to the end what was asked before.
pub(super) async fn serve(listener: TcpListener, router: Router, end: impl Future<Output = ()>) {
    let mut end = pin!(end);
    let admission = Admission::new();
    let open = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD);
    loop {
        let (stream, place) = tokio::select! {
            () = &mut end => break,
            client = admission.next(|| listener.accept()) => client,
        };
        let service = TowerToHyperService::new(router.clone());
        let connection = open.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection broke");
            }
        });
    }
    drop(listener);
    // Whoever is still in the middle of a request by then is left there.
    let _ = tokio::time::timeout(FAREWELL, open.shutdown()).await;
}
