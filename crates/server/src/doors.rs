//! The sandboxes whose ports can be reached by HTTP, by a name that nobody can guess.
//!
//! A client's ids are small numbers, which other clients have as well. What is in an address is therefore another name: 256
//! random bits, made when the client first asks for it. Until then a sandbox cannot be reached by HTTP at all, and whoever
//! has not been told the name cannot reach it later, whatever else it may do on this server.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::entry::Entry;
use crate::rpc::RpcError;

#[derive(Default)]
pub(crate) struct Doors {
    names: Mutex<HashMap<String, Weak<Entry>>>,
    /// Where HTTP is served, if it is.
    place: Mutex<Option<SocketAddr>>,
}

impl Doors {
    /// Takes note of where HTTP is served.
    pub(crate) fn open(&self, place: SocketAddr) {
        *self.place.lock() = Some(place);
    }

    pub(crate) fn close(&self) {
        *self.place.lock() = None;
    }

    pub(crate) fn place(&self) -> Option<SocketAddr> {
        *self.place.lock()
    }

    /// Returns the sandbox of a name, if it is there.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Entry>> {
        self.names.lock().get(name)?.upgrade()
    }

    /// Returns the name of a sandbox, which it has from now on.
    pub(crate) fn name(&self, entry: &Arc<Entry>) -> Result<String, RpcError> {
        let mut known = entry.name.lock();
        if let Some(name) = &*known {
            return Ok(name.clone());
        }
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|_| RpcError::internal("there is no randomness"))?;
        let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut names = self.names.lock();
        // Those that are gone need no call of their own: there are never more than twice as many names as sandboxes.
        if names.len() == names.capacity() {
            names.retain(|_, entry| entry.strong_count() > 0);
        }
        names.insert(name.clone(), Arc::downgrade(entry));
        *known = Some(name.clone());
        Ok(name)
    }
}
