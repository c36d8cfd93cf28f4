//! `image.…`: values to create sandboxes from.

use std::sync::Arc;

use serde_json::json;
use wardian::ImageInfo;

use super::named::{full, name, shown, store, with_store};
use super::{Job, Prepared, entry, ok};
use crate::params::Params;
use crate::session::Session;

/// `image.save`: keeps a sandbox as it is, under a name that is not taken.
pub(super) fn save(session: &Arc<Session>, params: &mut Params) -> Prepared {
    let entry = entry(session, params)?;
    let image = name(session, params)?;
    let script = params.string("script")?.unwrap_or_default();
    let base = params.string("base")?.map(|base| full(session, &base)).transpose()?;
    params.done()?;
    let store = store(session)?;
    let (mut turn, session) = (entry.in_turn(), session.clone());
    Job::in_turn(turn.hold(), async move {
        let sandbox = turn.sandbox().await?;
        let _turn = session.heavy().await;
        store.save_image(&sandbox, &image, &script, base.as_deref()).await?;
        ok()
    })
}

/// `image.list`: the client's.
pub(super) fn list(session: &Arc<Session>, params: &mut Params) -> Prepared {
    params.ignore("sandboxId");
    params.done()?;
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
    let image = name(session, params)?;
    params.done()?;
    with_store(session, move |store| {
        store.remove_image(&image)?;
        Ok(json!({ "ok": true }))
    })
}
