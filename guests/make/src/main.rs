//! make: GNU make's language, for makefiles as people write them.
//!
//! ```text
//! options ─► read ─► define, rules ─► update ─► implicit, times ─► jobs ─► recipe
//!              └──── expand, functions ────────────────────────────┘
//! ```

// A program, not a library: names that speak for themselves need no more words.
#![allow(missing_docs)]

mod builtin;
mod conditions;
mod define;
mod expand;
mod functions;
mod implicit;
mod jobs;
mod lines;
mod make;
mod options;
mod read;
mod recipe;
mod rules;
mod run;
mod text;
mod times;
mod update;
mod variables;
mod wildcard;

fn main() {
    wardian_abi::link();
    wardian_abi::exit(run::run());
}
