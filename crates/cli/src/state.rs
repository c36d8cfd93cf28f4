//! Where the command keeps things of the user's between calls.

pub(crate) use wardian::state_directory;
