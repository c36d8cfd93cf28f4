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
mod yaml;
mod yq;

fn main() {
    wardian_abi::link();
    // A writer whose reader is gone ends quietly, as any Unix program does.
    let _ = wardian_abi::sigaction(13, wardian_abi::Disposition::Default);
    let arguments = wardian_abi::args();
    let name = arguments.first().map(|name| toolkit::files::base_name(name).to_vec());
    let code = match name.as_deref() {
        Some(b"yq") => yq::main(arguments),
        _ => jq::main(arguments),
    };
    wardian_abi::exit(code);
}
