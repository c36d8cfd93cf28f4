//! Places that tenants share: none has more than three quarters of them, so that the others find some.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Places of one kind.
pub(super) struct Shares(Arc<Inner>);

struct Inner {
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    by_owner: HashMap<String, usize>,
}

/// One of them.
pub(super) struct Share {
    owner: Option<String>,
    of: Arc<Inner>,
}

impl Shares {
    pub(super) fn new(most: usize) -> Shares {
        Shares(Arc::new(Inner { most, taken: Mutex::default() }))
    }

    /// Takes a place, if there is one. A server with one token for all has no owners to tell apart.
    pub(super) fn take(&self, owner: Option<&str>) -> Option<Share> {
        let mut taken = self.0.taken.lock();
        if taken.all >= self.0.most {
            return None;
        }
        if let Some(owner) = owner {
            let own = taken.by_owner.entry(owner.to_owned()).or_default();
            // Of one place there is no part.
            if *own >= (self.0.most * 3 / 4).max(1) {
                return None;
            }
            *own += 1;
        }
        taken.all += 1;
        Some(Share { owner: owner.map(str::to_owned), of: self.0.clone() })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.of.taken.lock();
        taken.all -= 1;
        let Some(owner) = &self.owner else { return };
        if let Some(own) = taken.by_owner.get_mut(owner) {
            *own -= 1;
            if *own == 0 {
                taken.by_owner.remove(owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tenant_takes_all_places() {
        let shares = Shares::new(8);
        let mut one: Vec<Share> = std::iter::from_fn(|| shares.take(Some("one"))).collect();
        assert_eq!(one.len(), 6);
        let other: Vec<Share> = std::iter::from_fn(|| shares.take(Some("other"))).collect();
        assert_eq!(other.len(), 2);
        one.pop();
        assert!(shares.take(Some("one")).is_some() && shares.take(Some("third")).is_some());
        drop((one, other));
        assert_eq!(std::iter::from_fn(|| shares.take(None)).collect::<Vec<_>>().len(), 8);
        assert!(shares.0.taken.lock().by_owner.is_empty());
        assert!(Shares::new(1).take(Some("one")).is_some());
    }
}
