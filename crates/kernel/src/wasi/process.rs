//! Arguments, environment, clocks, randomness, the end of the process.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use wardian_vfs::{Errno, Result};
use wasmtime::Caller;

use super::MODULE;
use crate::call::{Call, Fail, Outcome, quick_calls, waiting_calls};
use crate::imports::{Import, Imports};
use crate::instance::{Ctx, Stop};
use crate::pause::pause;
use crate::signal;
use crate::strings::Strings;

/// Random bytes generated without a pause: about half a millisecond's worth.
const RANDOM_AT_ONCE: usize = 64 * 1024;
/// Pointers to strings written without a pause.
const POINTERS_AT_ONCE: usize = 16 * 1024;

pub(super) fn add_to_linker(imports: &mut Imports<'_>) -> wasmtime::Result<()> {
    quick_calls! { imports, MODULE;
        args_sizes_get(out_count: u32, out_size: u32);
        environ_sizes_get(out_count: u32, out_size: u32);
        clock_res_get(clock: u32, out: u32);
        clock_time_get(clock: u32, precision: u64, out: u32);
    }
    waiting_calls! { imports, MODULE;
        args_get(pointers: u32, block: u32);
        environ_get(pointers: u32, block: u32);
        random_get(ptr: u32, len: u32);
        proc_raise(signal: u32);
        sched_yield();
    }
    let (params, names) = ("i".to_owned(), vec!["code"]);
    imports.list.push(Import { module: MODULE, name: "proc_exit", params, names, answers: false });
    imports.linker.func_wrap(
        MODULE,
        "proc_exit",
        |_: Caller<'_, Ctx>, code: u32| -> wasmtime::Result<()> { Err(Stop::Exit(code as u8).into()) },
    )?;
    Ok(())
}

async fn args_get(call: &mut Call<'_>, pointers: u32, block: u32) -> Outcome {
    let argv = call.process().argv.lock().clone();
    Ok(put_strings(call, &argv, pointers, block).await?)
}

fn args_sizes_get(call: &mut Call<'_>, count: u32, size: u32) -> Outcome {
    let argv = call.process().argv.lock().clone();
    Ok(put_sizes(call, &argv, count, size)?)
}

async fn environ_get(call: &mut Call<'_>, pointers: u32, block: u32) -> Outcome {
    let env = call.caller.data().env.clone();
    Ok(put_strings(call, &env, pointers, block).await?)
}

fn environ_sizes_get(call: &mut Call<'_>, count: u32, size: u32) -> Outcome {
    let env = call.caller.data().env.clone();
    Ok(put_sizes(call, &env, count, size)?)
}

/// Writes the strings at `block` and a pointer to each at `pointers`.
async fn put_strings(call: &mut Call<'_>, strings: &Strings, pointers: u32, block: u32) -> Result<()> {
    call.put(block, strings.block())?;
    call.bytes(pointers, 4 * strings.len() as u32)?;
    let mut ends = memchr::memchr_iter(0, strings.block());
    let (mut pointer, mut start) = (pointers, 0);
    let mut left = strings.len();
    while left > 0 {
        let now = left.min(POINTERS_AT_ONCE);
        for slot in call.bytes(pointer, 4 * now as u32)?.chunks_exact_mut(4) {
            slot.copy_from_slice(&block.wrapping_add(start).to_le_bytes());
            start = ends.next().map_or(start, |end| end as u32 + 1);
        }
        pointer = pointer.wrapping_add(4 * now as u32);
        left -= now;
        if left > 0 {
            pause().await;
        }
    }
    Ok(())
}

fn put_sizes(call: &mut Call<'_>, strings: &Strings, count: u32, size: u32) -> Result<()> {
    call.put_u32(count, strings.len() as u32)?;
    call.put_u32(size, strings.block().len() as u32)
}

/// WASI's clocks.
const REALTIME: u32 = 0;
const MONOTONIC: u32 = 1;
const PROCESS_CPU: u32 = 2;
const THREAD_CPU: u32 = 3;

/// The time on one of WASI's clocks, in nanoseconds.
pub(super) fn now(call: &Call<'_>, clock: u32) -> Result<u64> {
    match clock {
        REALTIME => Ok(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64),
        MONOTONIC => Ok(monotonic()),
        PROCESS_CPU | THREAD_CPU => Ok(call.process().task().cpu_nanos()),
        _ => Err(Errno::EINVAL),
    }
}

fn monotonic() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    // A guest has no use for the host's uptime; an hour keeps subtractions from going below zero.
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 3_600_000_000_000
}

fn clock_res_get(call: &mut Call<'_>, clock: u32, out: u32) -> Outcome {
    now(call, clock)?;
    Ok(call.put_u64(out, 1)?)
}

fn clock_time_get(call: &mut Call<'_>, clock: u32, _precision: u64, out: u32) -> Outcome {
    let now = now(call, clock)?;
    Ok(call.put_u64(out, now)?)
}

async fn random_get(call: &mut Call<'_>, ptr: u32, len: u32) -> Outcome {
    for (n, part) in call.bytes(ptr, len)?.chunks_mut(RANDOM_AT_ONCE).enumerate() {
        if n > 0 {
            // So much randomness takes its time, and a worker must not be held.
            pause().await;
        }
        getrandom::fill(part).map_err(|_| Errno::EIO)?;
    }
    Ok(())
}

async fn proc_raise(call: &mut Call<'_>, signal: u32) -> Outcome {
    let signal = signal::checked(signal as i32)?;
    let (machine, process) = (call.machine().clone(), call.process().clone());
    match machine.signal(&process, signal) {
        None => {
            process.task().pause_if_stopped().await;
            Ok(())
        }
        // Its own body is being polled and cannot be taken; should it be, it must not be dropped here.
        Some(body) => {
            machine.kernel().runtime().spawn(async move { drop(body) });
            Err(Fail::Stop(Stop::Signal(signal)))
        }
    }
}

async fn sched_yield(_call: &mut Call<'_>) -> Outcome {
    pause().await;
    Ok(())
}
