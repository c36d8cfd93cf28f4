//! What JavaScript cannot say about its own values, and random numbers.

use std::cell::Cell;

use rquickjs::prelude::IntoJs;
use rquickjs::promise::PromiseState;
use rquickjs::{Array, Ctx, Object, TypedArray, Value, qjs};
use wardian_abi::Dir;

use super::{Bytes, write};

thread_local! {
    /// The state of `Math.random`, of each process its own.
    static RANDOM: Cell<u64> = const { Cell::new(1) };
}

/// Begins the random numbers of this process: a start image has none.
pub fn seed() {
    let mut seed = [0; 8];
    fill_random(&mut seed);
    RANDOM.set(u64::from_le_bytes(seed) | 1);
}

/// Fills a buffer with random bytes of the system.
fn fill_random(mut buffer: &mut [u8]) {
    let Ok(fd) = wardian_abi::open(Dir::ROOT, b"/dev/urandom", 0, 0) else { return };
    while !buffer.is_empty() {
        match wardian_abi::read(fd, buffer) {
            Ok(count) if count > 0 => buffer = &mut buffer[count..],
            _ => break,
        }
    }
    let _ = wardian_abi::close(fd);
}

/// A number from 0 up to 1, for `Math.random`.
fn random() -> f64 {
    let mut state = RANDOM.get();
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    RANDOM.set(state);
    (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1_u64 << 53) as f64
}

/// The number of a value's class in the engine.
fn class(value: Value<'_>) -> i32 {
    if !value.is_object() {
        return 0;
    }
    // SAFETY: the value is an object and alive.
    unsafe { qjs::JS_GetClassID(value.as_raw()) as i32 }
}

/// The state of a promise and its result: 0 is pending, 1 fulfilled, 2 rejected.
fn promise<'js>(ctx: Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Value<'js>> {
    let Some(promise) = value.clone().into_promise() else { return Ok(Value::new_undefined(ctx)) };
    let state = match promise.state() {
        PromiseState::Pending => 0,
        PromiseState::Resolved => 1,
        PromiseState::Rejected => 2,
    };
    let pair = Array::new(ctx.clone())?;
    pair.set(0, state)?;
    // SAFETY: the value is a promise of this context; the result is a reference of its own.
    let result = unsafe {
        let raw = qjs::JS_PromiseResult(ctx.as_raw().as_ptr(), value.as_raw());
        Value::from_raw(ctx.clone(), raw)
    };
    pair.set(1, result)?;
    pair.into_js(&ctx)
}

/// The target and the handler of a proxy.
fn proxy<'js>(ctx: Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Value<'js>> {
    let Some(proxy) = value.into_proxy() else { return Ok(Value::new_undefined(ctx)) };
    let pair = Array::new(ctx.clone())?;
    pair.set(0, proxy.target()?)?;
    pair.set(1, proxy.handler()?)?;
    pair.into_js(&ctx)
}

/// Runs one waiting job of a promise; says whether there was one.
fn job(ctx: Ctx<'_>) -> bool {
    ctx.execute_pending_job()
}

/// Fills an array with random bytes.
fn random_fill(array: TypedArray<'_, u8>) {
    write(&array, fill_random);
}

fn random_bytes(count: u32) -> Bytes {
    let mut bytes = vec![0; count as usize];
    fill_random(&mut bytes);
    Bytes(bytes)
}

/// Bytes the interpreter's values take.
fn heap(ctx: Ctx<'_>) -> f64 {
    let mut usage = std::mem::MaybeUninit::<qjs::JSMemoryUsage>::zeroed();
    // SAFETY: the runtime is that of a living context, and the structure is plain numbers.
    let usage = unsafe {
        qjs::JS_ComputeMemoryUsage(qjs::JS_GetRuntime(ctx.as_raw().as_ptr()), usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.memory_used_size as f64
}

fn collect(ctx: Ctx<'_>) {
    ctx.run_gc();
}

pub fn register<'js>(ctx: &Ctx<'js>, bridge: &Object<'js>) -> rquickjs::Result<()> {
    crate::functions!(ctx, bridge;
        "random" => random, "classOf" => class, "promise" => promise, "proxy" => proxy, "job" => job,
        "randomFill" => random_fill, "randomBytes" => random_bytes, "heap" => heap, "collect" => collect,
    );
    Ok(())
}
