//! jq and yq: one language over JSON and over YAML and its kin.

// A program, not a library: names that speak for themselves need no more words.
#![allow(missing_docs)]

mod builtins;
mod inputs;
mod jq;
mod json;
mod lang;
mod number;
mod object;
mod run;
mod value;
mod world;

fn main() {
    wardian_abi::link();
    // A writer whose reader is gone ends quietly, as any Unix program does.
    let _ = wardian_abi::sigaction(13, wardian_abi::Disposition::Default);
    let arguments = wardian_abi::args();
    let code = jq::main(arguments);
    wardian_abi::exit(code);
}
