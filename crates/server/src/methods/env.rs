//! `env.get` and `env.set`: the shell's variables.

use std::sync::Arc;

use serde_json::json;

use super::{Job, Prepared, entry, ok};
use crate::params::{Params, text};
use crate::session::Session;

pub(super) fn get(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let entry = entry(session, params)?;
    let name = params.required_string("name")?;
    params.done()?;
    let mut turn = entry.in_turn();
    Job::in_turn(turn.hold(), async move {
        let value = turn.sandbox().await?.get_env(&name).await?;
        Ok(json!({ "value": value.map(|value| text(&value)) }))
    })
}

pub(super) fn set(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let entry = entry(session, params)?;
    let (name, value) = (params.required_string("name")?, params.required_string("value")?);
    params.done()?;
    let mut turn = entry.in_turn();
    Job::in_turn(turn.hold(), async move {
        turn.sandbox().await?.set_env(&name, &value).await?;
        ok()
    })
}
