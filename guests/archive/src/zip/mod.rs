//! `zip`, `unzip` and `zipinfo`.

mod content;
mod format;
pub mod list;
pub mod pack;
pub mod unpack;

/// How much smaller something became, in percent, rounded.
fn percent(unpacked: u64, packed: u64) -> u64 {
    if unpacked <= packed {
        return 0;
    }
    let saved = u128::from(unpacked - packed);
    ((200 * saved / u128::from(unpacked)) as u64).div_ceil(2)
}
