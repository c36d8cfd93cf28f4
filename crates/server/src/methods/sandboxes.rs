//! `sandbox.…`: forks and named sandboxes.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use wardian_contract::params::{CreateNamed, Fork, OtherSandbox};

use super::named::Origins;
use super::{Job, Prepared, Written, alone, asked, ok};
use crate::budget::check_length;
use crate::entry::{Entry, Origin};
use crate::params::Params;
use crate::rpc::{INVALID_REQUEST, RpcError};
use crate::session::Session;

/// The longest label: it is kept for as long as its sandbox is.
const LABEL_MAX: usize = 256;

pub(super) fn fork(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, Fork { count, .. }) = asked(session, params)?;
    let count = count.map(|count| usize::try_from(count.0).unwrap_or(usize::MAX));
    let (mut turn, session) = (entry.in_turn(), session.clone());
    Job::in_turn(turn.hold(), async move {
        let sandbox = turn.sandbox().await?;
        // Not before its turn: a request that waits must not keep others from theirs.
        let room = session.places(sandbox.limits(), count.unwrap_or(1)).await?;
        let forks = sandbox.fork_many(room.len()).await?;
        let add = |(sandbox, room)| session.add(Entry::over(Origin::Fork, sandbox, room));
        let ids = forks.into_iter().zip(room).map(add).collect::<Result<Vec<_>, _>>()?;
        let mut answer = json!({ "sandboxId": ids.first() });
        if count.is_some() {
            answer["sandboxIds"] = json!(ids);
        }
        Ok(answer)
    })
}

pub(super) fn destroy(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let OtherSandbox { sandbox_id: id } = params.read()?;
    end(session.remove(&id, |origin| matches!(origin, Origin::Fork))?)
}

pub(super) fn remove(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let OtherSandbox { sandbox_id: id } = params.read()?;
    end(session.remove(&id, |_| true)?)
}

fn end(entry: Arc<Entry>) -> Prepared {
    Job::at_once(None, async move {
        entry.end().await;
        ok()
    })
}

pub(super) fn create(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let mut origins = params.apart(&["image", "persistence"]);
    // It is about none of them, but clients name one in every call.
    let (_, CreateNamed { label, .. }) = asked(session, params)?;
    let origins = Origins::read(session, &mut origins)?;
    if label.as_ref().is_some_and(|label| label.len() > LABEL_MAX) {
        return Err(RpcError::params(format!("label must have at most {LABEL_MAX} bytes")));
    }
    // Not before the root is there: only then are its options known to be good.
    let (mut root, builder) = (session.entry(None)?.at_once(), session.builder());
    let session = session.clone();
    Job::in_turn(None, async move {
        root.come().await;
        drop(root);
        let room = session.room(1).await?.pop();
        let (true, Some(builder), Some(room)) = (session.is_created(), builder, room) else {
            return Err(RpcError::new(INVALID_REQUEST, "the sandbox could not be created"));
        };
        let sandbox = origins.give(builder).build().await?;
        let id = session.add_named(label, sandbox, room, origins.idle)?;
        Ok(json!({ "sandboxId": id }))
    })
}

pub(super) fn list(session: &Arc<Session>, params: &mut Params) -> Prepared {
    alone(session, params)?;
    let (turn, session) = (session.entry(None)?.at_once(), session.clone());
    // One at a time, and room comes first.
    Job::written_at_once(turn.hold(), async move {
        let mut turn = turn;
        turn.come().await;
        let named = session.named();
        let length = |label: &Option<String>| label.as_ref().map_or(4, String::len);
        // A byte of a label has at most six of JSON.
        let need: usize = named.iter().map(|one| 128 + 6 * length(&one.label)).sum();
        check_length("the list", need)?;
        let room = session.outbox.budget.room(need).await;
        let mut room = room.ok_or_else(|| RpcError::internal("the client is gone"))?;
        let listed: Value = named
            .iter()
            .map(|one| {
                let created = date(one.created);
                json!({ "sandboxId": one.id, "label": one.label, "createdAt": created, "asleep": one.asleep })
            })
            .collect();
        let json = listed.to_string().into_bytes();
        room.shrink(json.len() + 1024);
        Ok(Written { json, room })
    })
}

/// Formats a time as ISO 8601: `2001-02-03T04:05:06.789Z`.
pub(crate) fn date(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let millis = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z")
}

/// Returns year, month and day for a number of days after 1 January 1970.
fn civil(mut days: u64) -> (u64, u64, u64) {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates_are_those_of_the_date_command() {
        // date -u -d @N +%FT%T.000Z
        let dates = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_164_800, "2024-02-29T00:00:00.000Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ];
        for (seconds, text) in dates {
            assert_eq!(date(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
