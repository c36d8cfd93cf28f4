//! A cell alone, for programs that use the library. `wardian __cell` is the same.

fn main() {
    wardian::cell::main()
}
