//! How much of each cap a large program uses. `cargo xtask caps` fetches one and runs this.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::{BYTES, Refused, admit, of_any_size};

thread_local! {
    /// For each cap the most that was counted, and the cap.
    static FIGURES: RefCell<Option<BTreeMap<&'static str, (u64, u64)>>> = const { RefCell::new(None) };
}

/// Remembers what was counted, where somebody asked for it.
pub(super) fn note(what: &'static str, count: u64, most: u64) {
    FIGURES.with_borrow_mut(|figures| {
        let Some(figures) = figures else { return };
        let figure = figures.entry(what).or_default();
        // What counts against a cap that grows with the program is compared by how near it comes.
        if u128::from(count) * u128::from(figure.1.max(1)) >= u128::from(figure.0) * u128::from(most) {
            *figure = (count, most);
        }
    });
}

#[test]
#[ignore = "needs a large program, which cargo xtask caps fetches"]
fn clang_is_within_every_cap_but_the_one_on_bytes() {
    let path = std::env::var_os("WARDIAN_LARGE_PROGRAM").expect("WARDIAN_LARGE_PROGRAM names the program");
    let wasm = std::fs::read(path).expect("the program");
    assert!(wasm.len() as u64 > BYTES, "{} bytes", wasm.len());
    assert!(matches!(admit(&wasm), Err(Refused::TooMany { what: "bytes", .. })));

    FIGURES.set(Some(BTreeMap::new()));
    let checked = of_any_size(&wasm);
    let figures = FIGURES.take().expect("they were asked for");
    for (what, (count, most)) in &figures {
        println!("{count:>12} of {most:>12} {what}");
    }
    // It is the core of a component, and its beginning has another name. That is looked at last.
    assert!(matches!(checked, Ok(_) | Err(Refused::NoStart)), "{checked:?}");
    assert!(figures["functions"].0 > 100_000 && figures.len() > 15, "all of it was counted");
    for (what, (count, most)) in figures {
        assert!(count <= most, "{what}: {count} of {most}");
    }
}
