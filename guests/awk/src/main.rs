//! awk as a program of its own.

fn main() {
    wardian_abi::link();
    // A writer whose reader is gone ends quietly, as any Unix program does.
    let _ = wardian_abi::sigaction(13, wardian_abi::Disposition::Default);
    let code = wardian_awk::main(wardian_abi::args());
    wardian_abi::exit(code);
}
