//! `awk`: see the crate `wardian-awk`.

use crate::support::Arguments;
use std::ffi::OsString;

pub fn main(arguments: Arguments) -> i32 {
    wardian_awk::main(arguments.map(OsString::into_encoded_bytes).collect())
}
