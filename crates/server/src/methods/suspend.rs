//! `sandbox.suspend` and `sandbox.resume`.

use std::sync::Arc;

use super::{Job, Prepared, alone, ok};
use crate::params::Params;
use crate::session::Session;

pub(super) fn suspend(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let mut turn = alone(session, params)?.at_once();
    Job::at_once(turn.hold(), async move {
        turn.sandbox().await?.suspend()?;
        ok()
    })
}

pub(super) fn resume(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let mut turn = alone(session, params)?.at_once();
    Job::at_once(turn.hold(), async move {
        turn.sandbox().await?.resume()?;
        ok()
    })
}
