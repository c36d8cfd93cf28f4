//! What is said when something in Wardian itself goes wrong: one sentence, and no advice meant for its authors.

use std::panic::PanicHookInfo;

use crate::out;

/// Says it from now on, whichever thread panics.
pub(crate) fn install() {
    std::panic::set_hook(Box::new(|info| out::write_remark(sentence(info).as_bytes())));
}

fn sentence(info: &PanicHookInfo<'_>) -> String {
    let what = info.payload_as_str().unwrap_or("unknown").replace('\n', " ");
    let place = info.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
    format!("wardian: internal error{place}: {what}; this is a bug in wardian, please report it\n")
}
