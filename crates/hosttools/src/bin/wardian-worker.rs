//! The helper process alone, for users of the library. `wardian __worker` is the same.

fn main() {
    wardian_hosttools::worker::main()
}
