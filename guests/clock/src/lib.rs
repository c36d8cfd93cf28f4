//! The one clock of the guests: dates, the zones that `TZ` names, and `strftime`.
//!
//! ```
//! use wardian_clock::{Dialect, When, Zone, format};
//! let zone = Zone::named("Europe/Berlin");
//! let shown = format(b"%F %T %Z", When::at(1_720_000_000), &zone, Dialect::C);
//! assert_eq!(shown, b"2024-07-03 11:46:40 CEST");
//! ```

// Only programs of the same tree use it: names that speak for themselves need no more words.
#![allow(missing_docs)]

mod civil;
mod rules;
mod strftime;
mod table;
mod zone;

pub use civil::{Civil, When};
pub use strftime::{DAYS, Dialect, Fields, MONTHS, WIDEST, check, format};
pub use zone::{Local, Zone};
