//! Guests' memories: which pages were written, memories kept in files, the images of idle processes, and what is returned to
//! the system afterwards.

pub(crate) mod image;
pub(crate) mod kept;
pub(crate) mod pages;
pub(crate) mod stored;
pub(crate) mod template;
pub(crate) mod trim;
