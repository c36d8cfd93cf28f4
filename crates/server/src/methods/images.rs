//! `image.…`: values to create sandboxes from.

use std::sync::Arc;

use serde_json::json;
use wardian::ImageInfo;
use wardian_contract::params::{ExportImage, ImportImage, SaveImage, StoredName};

use super::named::{full, shown, store, with_store};
use super::persistence::{IN_LINE, most, state_of, write_line};
use super::{Answer, Job, Prepared, alone, asked, ok};
use crate::budget::ANSWER_MAX;
use crate::params::Params;
use crate::rpc::RpcError;
use crate::session::Session;

/// `image.save`: keeps a sandbox as it is, under a name that is not taken.
pub(super) fn save(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (entry, SaveImage { name, script, base, .. }) = asked(session, params)?;
    let (image, script) = (full(session, &name)?, script.unwrap_or_default());
    let base = base.map(|base| full(session, &base)).transpose()?;
    let store = store(session)?;
    let (mut turn, session) = (entry.in_turn(), session.clone());
    Job::in_turn(turn.hold(), async move {
        let sandbox = turn.sandbox().await?;
        let _turn = session.heavy().await?;
        store.save_image(&sandbox, &image, &script, base.as_deref()).await?;
        ok()
    })
}

/// `image.list`: the client's.
pub(super) fn list(session: &Arc<Session>, params: &mut Params) -> Prepared {
    alone(session, params)?;
    let asking = session.clone();
    with_store(session, move |store| {
        let describe = |image: ImageInfo| {
            let base = image.base.as_deref().and_then(|base| shown(&asking, base));
            Some(json!({
                "name": shown(&asking, &image.name)?,
                "createdMs": image.created_ms,
                "script": image.script,
                "base": base,
                "version": image.version,
            }))
        };
        Ok(json!({ "images": store.images()?.into_iter().filter_map(describe).collect::<Vec<_>>() }))
    })
}

/// `image.delete`: sandboxes that were created from it stay as they are.
pub(super) fn delete(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (_, StoredName { name, .. }) = asked(session, params)?;
    let image = full(session, &name)?;
    with_store(session, move |store| {
        store.remove_image(&image)?;
        Ok(json!({ "ok": true }))
    })
}

/// What an exported image may have beside its archive: the script that made it, mostly.
const NOTE: usize = 1 << 20;

fn gone() -> RpcError {
    RpcError::internal("the client is gone")
}

/// `image.export`: an image as bytes, or as a file in the state directory, for another store.
pub(super) fn export(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (_, ExportImage { name, file, .. }) = asked(session, params)?;
    let image = full(session, &name)?;
    let file = file.map(|file| state_of(session, file)).transpose()?;
    let (store, session) = (store(session)?, session.clone());
    Job::answered_in_turn(None, async move {
        let limits = *session.builder().ok_or_else(gone)?.limits_now();
        if let Some(file) = file {
            let held = session.heavy().await?;
            // It is started for this, and so takes the place of a sandbox.
            let _place = session.room(1).await?;
            let exported = store.export_image(&image, limits).await?;
            held.run(move || file.write(&exported)).await??;
            return ok().map(Answer::Value);
        }
        // How long it is shows when it is there.
        let room = session.outbox.budget.room(ANSWER_MAX).await.ok_or_else(gone)?;
        let turn = session.heavy().await?;
        let place = session.room(1).await?;
        let exported = store.export_image_within(&image, limits, IN_LINE - NOTE).await?;
        drop((turn, place));
        write_line(&session, exported, room).await.map(Answer::Written)
    })
}

/// `image.import`: an image of what `image.export` or `wardian image export` wrote, within the limits of the client's sandboxes.
pub(super) fn import(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let (_, ImportImage { name, data, file, .. }) = asked(session, params)?;
    // The name that it had means nothing here: it may be that of another client.
    let image = full(session, &name)?;
    let file = file.map(|file| state_of(session, file)).transpose()?;
    if file.is_some() && data.is_some() {
        return Err(RpcError::params("data and file cannot both be given"));
    }
    if file.is_none() && data.is_none() {
        return Err(RpcError::params("Missing required param: data"));
    }
    let (store, session) = (store(session)?, session.clone());
    Job::in_turn(None, async move {
        let builder = session.builder().ok_or_else(gone)?;
        // A short file can unpack to much, and it is read only when it is its turn.
        let held = session.heavy().await?;
        let _place = session.room(1).await?;
        let exported = match (data, file) {
            (Some(data), _) => data.0,
            (None, Some(file)) => {
                let max = most(builder.limits_now());
                held.run(move || file.read(max)).await??
            }
            (None, None) => Vec::new(),
        };
        store.import_image(exported, Some(&image), builder).await?;
        ok()
    })
}
