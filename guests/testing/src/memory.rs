//! Leaving bytes in memory, and looking for bytes that someone else left.
//!
//! The bytes come as hexadecimal digits, and the searcher keeps them inverted: its own memory must not hold what it
//! looks for.

use std::hint::black_box;
use std::io::Write;
use std::time::Duration;

use crate::{Outcome, load};

/// The size of a page of WebAssembly memory.
pub const PAGE: usize = 64 * 1024;

/// Bytes of heap and frames of stack that are filled: more than a process starts with, or little enough that its
/// memory is worth wiping.
const MUCH: (usize, usize) = (8 << 20, 512);
const LITTLE: (usize, usize) = (64 << 10, 32);

/// Fills heap and stack with the bytes, says `filled`, and ends as told.
pub fn secret(hex: &str, then: &str) -> Outcome {
    let pattern: Vec<u8> = inverted(hex)?.iter().map(|byte| !byte).collect();
    let (heap, frames) = if then == "little" { LITTLE } else { MUCH };
    let heap: Vec<u8> = pattern.iter().copied().cycle().take(heap).collect();
    black_box(&heap);
    fill_stack(&pattern, frames);
    println!("filled");
    std::io::stdout().flush().map_err(|error| error.to_string())?;
    match then {
        "exit" | "little" => Ok(0),
        "hang" => loop {
            std::thread::sleep(Duration::from_secs(3600));
        },
        "spin" => load::spin(),
        "search" => search(hex, 0),
        "abort" => std::process::abort(),
        other => Err(format!("'{other}' is none of exit, little, hang, spin, search, abort")),
    }
}

/// A kibibyte in each of so many frames.
fn fill_stack(pattern: &[u8], frames: usize) {
    let mut frame = [0u8; 1024];
    frame.iter_mut().zip(pattern.iter().cycle()).for_each(|(to, from)| *to = *from);
    black_box(&mut frame);
    if frames > 0 {
        fill_stack(pattern, frames - 1);
    }
    black_box(&mut frame);
}

/// Looks through all of memory, after growing it: 0 when the bytes are nowhere.
pub fn search(hex: &str, grow: u32) -> Outcome {
    let absent = inverted(hex)?;
    if grow > 0 {
        grow_by(grow).ok_or("memory refused")?;
    }
    let memory = whole_memory();
    let is_it = |window: &[u8]| window.iter().zip(&absent).all(|(byte, inverted)| *byte == !inverted);
    // By the first byte alone for most of it: a thousand searches are run in a row.
    let first = !absent[0];
    let found = memory.windows(absent.len()).position(|window| window[0] == first && is_it(window));
    match found {
        None => Ok(0),
        Some(at) => {
            println!("found at {at:#x} of {:#x}", memory.len());
            Ok(1)
        }
    }
}

/// Says what all of memory is like: the same, whenever a process begins with the same bytes in it.
pub fn digest() -> Outcome {
    let mixed = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    let sum = whole_memory().iter().fold(0xcbf2_9ce4_8422_2325, mixed);
    println!("{} {sum:016x}", whole_memory().len());
    Ok(0)
}

fn inverted(hex: &str) -> Result<Vec<u8>, String> {
    let digit = |at: usize| hex.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(|at| digit(at).map(|byte| !byte)).collect();
    bytes.filter(|bytes| bytes.len() >= 8).ok_or_else(|| "at least 8 bytes in hexadecimal, please".to_owned())
}

/// Takes so many mebibytes of fresh memory, past the allocator; `None` when they are refused.
#[cfg(target_arch = "wasm32")]
pub fn grow_by(mib: u32) -> Option<&'static mut [u8]> {
    let pages = mib as usize * ((1 << 20) / PAGE);
    let before = core::arch::wasm32::memory_grow(0, pages);
    if before == usize::MAX {
        return None;
    }
    // SAFETY: these pages are new, and no allocator knows of them.
    Some(unsafe { std::slice::from_raw_parts_mut((before * PAGE) as *mut u8, pages * PAGE) })
}

/// Every byte there is, but the one at address 0, where Rust allows no reference.
#[cfg(target_arch = "wasm32")]
fn whole_memory() -> &'static [u8] {
    let size = core::arch::wasm32::memory_size(0) * PAGE;
    // SAFETY: all of linear memory is readable, and this program has one thread, which only reads while it searches.
    unsafe { std::slice::from_raw_parts(1 as *const u8, size - 1) }
}

/// Only so that the crate also compiles for the machine it is edited on.
#[cfg(not(target_arch = "wasm32"))]
pub fn grow_by(_mib: u32) -> Option<&'static mut [u8]> {
    None
}

/// Only so that the crate also compiles for the machine it is edited on.
#[cfg(not(target_arch = "wasm32"))]
fn whole_memory() -> &'static [u8] {
    &[]
}
