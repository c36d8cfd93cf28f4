//! Cells against a hostile program in them (`tests/hostile`), and the messages between the two sides.

mod attempts;
mod ends;
mod leaks;
mod ledger;
mod messages;
mod rig;
mod runs;
