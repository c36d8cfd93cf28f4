//! `uuidgen`: a number that nobody else has.

use std::io::Read;
use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, complain};

const TOOL: Tool = Tool {
    name: "uuidgen",
    short: "rthV",
    long: &[("random", 'r'), ("time", 't')],
    help: "
Usage:
 uuidgen [options]

Create a new UUID value. All are made of random numbers.

Options:
 -r, --random          generate random-based uuid
 -t, --time            likewise
     --help            display this help and exit
     --version         display version and exit
",
    misuse: 1,
};

pub fn main(arguments: Arguments) -> i32 {
    if let Err(code) = TOOL.parse(bytes_of(arguments)) {
        return code;
    }
    let mut bytes = [0; 16];
    let random = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    if let Err(error) = random {
        complain("uuidgen", format_args!("/dev/urandom: {}", wardian_abi::Errno::from(error)));
        return 1;
    }
    // Version 4, variant 1.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Out::new("uuidgen").put(parts.join("-") + "\n");
    0
}
