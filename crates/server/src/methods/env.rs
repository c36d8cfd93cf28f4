//! `env.get`, `env.set`, `env.unset` and `env.list`: the shell's variables.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use wardian::Run;
use wardian_contract::params::{SetVariable, VariableName};

use super::{Job, Prepared, alone, asked, ok};
use crate::budget::{LARGE, check_length};
use crate::params::{Params, text};
use crate::rpc::RpcError;
use crate::session::Session;

/// How long a shell may take to list its variables: a trap of the session may come in between.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn get(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, VariableName { name, .. }) = asked(session, params)?;
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

/// Prints every exported variable, whatever the session calls `printf`, `read` and so on.
const ALL: &str = r#"\builtin compgen -e | while IFS= \builtin read -r __wardian; do
  [[ ! -v $__wardian ]] || \builtin printf '%s=%s\0' "$__wardian" "${!__wardian}"
done"#;

/// Lists the exported variables. A fork is asked, so that the session does not notice: not in `$?`, nor in its history.
pub(super) fn list(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let entry = alone(session, params)?;
    let mut turn = entry.in_turn();
    Job::in_turn(turn.hold(), async move {
        let fork = turn.sandbox().await?.fork().await?;
        let run = Run::new(ALL).timeout(Some(PATIENCE));
        let result = fork.run_with(run).await;
        fork.destroy().await;
        let result = result?;
        if let Some(limit) = result.limit {
            return Err(RpcError::refused(
                "EFBIG",
                format!("EFBIG: env.list: {limit} is too little for all variables"),
            ));
        }
        if result.error_class.is_some() {
            return Err(RpcError::refused("EAGAIN", "EAGAIN: env.list: the shell does not answer"));
        }
        let pairs = result.stdout.split(|&byte| byte == 0).filter_map(|pair| {
            let at = pair.iter().position(|&byte| byte == b'=')?;
            Some((text(&pair[..at]), Value::String(text(&pair[at + 1..]))))
        });
        Ok(json!({ "variables": pairs.collect::<Map<String, Value>>() }))
    })
}

pub(super) fn set(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, SetVariable { name, value, .. }) = asked(session, params)?;
    let mut turn = entry.in_turn();
    Job::in_turn(turn.hold(), async move {
        turn.sandbox().await?.set_env(&name, &value).await?;
        ok()
    })
}

pub(super) fn unset(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, VariableName { name, .. }) = asked(session, params)?;
    let mut turn = entry.in_turn();
    Job::in_turn(turn.hold(), async move {
        turn.sandbox().await?.unset_env(&name).await?;
        ok()
    })
}
