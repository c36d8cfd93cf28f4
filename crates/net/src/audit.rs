//! What the gateway did, for a log.

use std::sync::Arc;

use serde_json::{Map, Value};

/// Takes the gateway's records: `net.connect`, `net.request` and `net.denied`.
pub trait AuditSink: Send + Sync {
    /// Takes a record. A connection or request that cannot be recorded is refused.
    fn record(&self, event: &'static str, data: Map<String, Value>) -> Result<(), String>;
}

impl<F: Fn(&'static str, Map<String, Value>) + Send + Sync> AuditSink for F {
    fn record(&self, event: &'static str, data: Map<String, Value>) -> Result<(), String> {
        self(event, data);
        Ok(())
    }
}

/// The sink, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Audit(pub(crate) Option<Arc<dyn AuditSink>>);

impl Audit {
    pub(crate) fn record<const N: usize>(
        &self,
        event: &'static str,
        fields: [(&str, Value); N],
    ) -> Result<(), String> {
        let Some(sink) = &self.0 else { return Ok(()) };
        let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
        let sent = sink.record(event, fields.map(|(name, value)| (name.to_owned(), value)).collect());
        if let Err(error) = &sent {
            tracing::error!(%error, event, "a record is lost");
        }
        sent
    }
}
