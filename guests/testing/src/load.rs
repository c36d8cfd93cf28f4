//! Using up processor, stack, memory and pipes.

use std::hint::black_box;

use wardian_abi as abi;

use crate::Outcome;
use crate::memory::{PAGE, grow_by};

const CHUNK: usize = 64 * 1024;

pub fn spin() -> ! {
    let mut turns = 0u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

/// Each frame holds bytes that its caller reads afterwards, so that the compiler cannot make this a loop.
pub fn deep(depth: usize) -> Outcome {
    let mut frame = [depth as u8; 256];
    black_box(&mut frame);
    let below = if black_box(true) { deep(depth + 1)? } else { 0 };
    Ok(below.wrapping_add(frame[black_box(depth) % 256]))
}

/// Nothing here has an address, so it uses up the calls' own stack and not the one in memory.
#[inline(never)]
pub fn deep_bare(depth: u64) -> u64 {
    if depth == u64::MAX { 0 } else { deep_bare(depth + 1).wrapping_mul(31) ^ depth }
}

/// A mebibyte at a time, each page written, as a program with a leak would.
pub fn grow(limit: u32) -> Outcome {
    let mut taken = 0;
    while taken < limit {
        let Some(new) = grow_by(1) else { break };
        new.chunks_mut(PAGE).for_each(|page| page[0] = 1);
        taken += 1;
    }
    println!("{taken}");
    Ok(0)
}

pub fn cat() -> Outcome {
    let mut buffer = vec![0; CHUNK];
    loop {
        match abi::read(0, &mut buffer).map_err(said)? {
            0 => return Ok(0),
            n => abi::write_all(1, &buffer[..n]).map_err(said)?,
        }
    }
}

pub fn write(mut bytes: u64) -> Outcome {
    let buffer = vec![b'y'; CHUNK];
    while bytes > 0 {
        let n = bytes.min(CHUNK as u64);
        abi::write_all(1, &buffer[..n as usize]).map_err(said)?;
        bytes -= n;
    }
    Ok(0)
}

pub fn drain() -> Outcome {
    let mut buffer = vec![0; CHUNK];
    let mut total = 0u64;
    loop {
        match abi::read(0, &mut buffer).map_err(said)? {
            0 => break,
            n => total += n as u64,
        }
    }
    println!("{total}");
    Ok(0)
}

pub fn said(error: abi::Errno) -> String {
    error.message().to_owned()
}
