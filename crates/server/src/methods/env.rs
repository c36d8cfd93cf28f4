//! `env.get` and `env.set`: the shell's variables.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Job, Prepared, entry, ok};
use crate::budget::{LARGE, check_length};
use crate::params::{Params, text};
use crate::session::Session;

pub(super) fn get(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let entry = entry(session, params)?;
    let name = params.required_string("name")?;
    params.done()?;
    let (mut turn, session) = (entry.in_turn(), session.clone());
    Job::in_turn(turn.hold(), async move {
        let value = turn.sandbox().await?.get_env(&name).await?;
        let text = match value {
            None => Value::Null,
            Some(value) => {
                check_length("env.get", value.len())?;
                match value.len() > LARGE {
                    true => session.aside(move || Value::String(text(&value))).await?,
                    false => Value::String(text(&value)),
                }
            }
        };
        let mut answer = json!({});
        answer["value"] = text;
        Ok(answer)
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
