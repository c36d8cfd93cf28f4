//! The programs as ordinary Linux programs, on the cases recorded from the real ones: see `tests/cases`.
//!
//! Each case starts the server of `web`, which is a program of this package: `cargo xtask tools-record --with
//! web=guests/target/release/web guests/net/tests/cases` records them.

#[path = "../../sh/tests/cases/agree.rs"]
mod agree;
#[path = "../../sh/tests/cases/run.rs"]
mod run;
#[path = "../../sh/tests/cases/sheet.rs"]
mod sheet;

use std::path::Path;

#[test]
fn cases_agree_with_the_real_programs() {
    let net = Path::new(env!("CARGO_BIN_EXE_net"));
    let mut programs: Vec<run::Named<'_>> =
        include_str!("../NAMES").lines().map(|name| (name, net)).collect();
    programs.push(("web", Path::new(env!("CARGO_BIN_EXE_web"))));
    agree::agree(env!("CARGO_MANIFEST_DIR"), &programs, 250, &[]);
}
