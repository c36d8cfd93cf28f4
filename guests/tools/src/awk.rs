//! `awk`: see the crate `wardian-awk`.

use std::ffi::OsString;
use toolkit::Arguments;

pub fn main(arguments: Arguments) -> i32 {
    wardian_awk::main(arguments.map(OsString::into_encoded_bytes).collect())
}
