//! What a server that has many clients says before one of them takes something.

use std::any::Any;
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;

use wardian::Limits;

/// What a sandbox has as long as it is there.
pub type Place = Arc<dyn Any + Send + Sync>;

/// Whether there is a place: it may take a moment to make one.
pub type Admission<'a> = Pin<Box<dyn Future<Output = Result<Place, String>> + Send + 'a>>;

/// Admits sandboxes and runs. A refusal is a sentence for the model.
pub trait Gate: Debug + Send + Sync {
    /// Takes a place for a sandbox with these limits; dropping it gives it back.
    fn sandbox<'a>(&'a self, limits: &'a Limits) -> Admission<'a>;

    /// Takes one run.
    fn run(&self) -> Result<(), String>;
}
