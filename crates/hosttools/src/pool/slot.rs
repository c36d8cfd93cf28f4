//! A slot: one helper, which runs one call after the other. A lost helper is replaced.

use std::sync::Arc;

use tokio::sync::watch;

use super::call::{self, Health, Outcome};
use super::helper::Helper;
use super::{Call, Phase, Shared, reached};
use crate::error::ToolError;
use crate::spec::Lane;

/// Serves a lane until the pool closes. A shutdown waits for all listeners of `phase`.
pub(super) async fn serve(shared: Arc<Shared>, lane: Lane, mut phase: watch::Receiver<Phase>) {
    // Before anyone calls, so that the first does not wait for it. Where that fails, the first call is told why.
    let mut helper = tokio::select! {
        biased;
        () = reached(&mut phase, Phase::Closing) => return,
        helper = shared.start_helper() => helper.ok(),
    };
    loop {
        tokio::select! {
            biased;
            () = reached(&mut phase, Phase::Closing) => break,
            () = loss(&mut helper) => helper = shared.start_helper().await.ok(),
            mut call = shared.lane(lane).next(&shared) => {
                let outcome = run(&shared, &mut helper, &mut call, &mut phase).await;
                finish(&shared, call, outcome);
            }
        }
    }
}

/// Serves one call with a separate helper.
pub(super) async fn serve_one(shared: Arc<Shared>, mut call: Call, mut phase: watch::Receiver<Phase>) {
    shared.counters.begin(call.lane);
    let mut outcome = run(&shared, &mut None, &mut call, &mut phase).await;
    if let Ok(finished) = &mut outcome.result {
        finished.worker = 0;
    }
    finish(&shared, call, outcome);
}

/// Waits until an idle helper is gone. If there is none, waits forever: the next call will start one.
async fn loss(helper: &mut Option<Helper>) {
    match helper {
        // An idle helper has nothing to say but its end; an answer that is late is dropped here.
        Some(helper) => while helper.report().await.is_ok() {},
        None => std::future::pending().await,
    }
}

/// Runs a call on the slot's helper. One that turns out to be gone before it received the call is replaced first.
async fn run(
    shared: &Arc<Shared>,
    helper: &mut Option<Helper>,
    call: &mut Call,
    phase: &mut watch::Receiver<Phase>,
) -> Outcome {
    if helper.is_some() {
        let outcome = run_once(shared, helper, call, phase).await;
        if outcome.helper != Health::GoneBefore {
            return outcome;
        }
    }
    run_once(shared, helper, call, phase).await
}

async fn run_once(
    shared: &Arc<Shared>,
    helper: &mut Option<Helper>,
    call: &mut Call,
    phase: &mut watch::Receiver<Phase>,
) -> Outcome {
    let mut ready = match helper.take() {
        Some(ready) => ready,
        None => match shared.start_helper().await {
            Ok(started) => started,
            Err(error) => {
                return Outcome {
                    result: Err(ToolError::WorkerLost(error.to_string())),
                    helper: Health::Lost,
                };
            }
        },
    };
    let mut closed = phase.clone();
    let outcome = tokio::select! {
        outcome = call::run(&mut ready, call, shared.patience, phase.clone()) => outcome,
        () = reached(&mut closed, Phase::Closed) => {
            Outcome { result: Err(ToolError::ShuttingDown), helper: Health::Lost }
        }
    };
    if outcome.helper == Health::Well {
        *helper = Some(ready);
    }
    outcome
}

fn finish(shared: &Shared, call: Call, outcome: Outcome) {
    shared.counters.end(call.lane, &outcome.result, call.answer.is_closed());
    // A caller that has gone away does not want to know.
    let _ = call.answer.send(outcome.result);
}
