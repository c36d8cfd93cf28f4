//! What the library asks of the system, as functions of one object.
//!
//! A function that fails returns Linux's error number, negated; the library makes the error that Node would throw. Bytes
//! travel as `Uint8Array`.

mod bytes;
mod digest;
mod files;
mod processes;
mod sockets;
mod squeeze;
mod values;

use rquickjs::prelude::IntoJs;
use rquickjs::{Ctx, Object, TypedArray, Value};
use wardian_abi::Errno;

pub use values::seed;

/// The result of a system call, as the library gets it.
pub struct Answer<T>(pub Result<T, Errno>);

impl<'js, T: IntoJs<'js>> IntoJs<'js> for Answer<T> {
    fn into_js(self, ctx: &Ctx<'js>) -> rquickjs::Result<Value<'js>> {
        match self.0 {
            Ok(value) => value.into_js(ctx),
            Err(errno) => Ok(Value::new_int(ctx.clone(), -errno.to_linux())),
        }
    }
}

/// Bytes that become a `Uint8Array`.
pub struct Bytes(pub Vec<u8>);

impl<'js> IntoJs<'js> for Bytes {
    fn into_js(self, ctx: &Ctx<'js>) -> rquickjs::Result<Value<'js>> {
        Ok(TypedArray::<u8>::new(ctx.clone(), self.0)?.into_value())
    }
}

/// The bytes of an array, as long as the closure runs; nothing of a script runs meanwhile.
pub fn read<R>(array: &TypedArray<'_, u8>, use_it: impl FnOnce(&[u8]) -> R) -> R {
    match array.as_raw() {
        // SAFETY: the array is alive, and nothing writes to it or detaches it while no script runs.
        Some(bytes) => use_it(unsafe { bytes.as_ref() }),
        None => use_it(&[]),
    }
}

/// As `read`, to write into.
pub fn write<R>(array: &TypedArray<'_, u8>, use_it: impl FnOnce(&mut [u8]) -> R) -> R {
    match array.as_raw() {
        // SAFETY: as above, and there is one such reference at a time.
        Some(mut bytes) => use_it(unsafe { bytes.as_mut() }),
        None => use_it(&mut []),
    }
}

/// Makes the object.
pub fn bridge<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    let bridge = Object::new(ctx.clone())?;
    values::register(ctx, &bridge)?;
    bytes::register(ctx, &bridge)?;
    files::register(ctx, &bridge)?;
    processes::register(ctx, &bridge)?;
    sockets::register(ctx, &bridge)?;
    digest::register(ctx, &bridge)?;
    squeeze::register(ctx, &bridge)?;
    Ok(bridge)
}

/// Sets functions of an object, by name.
#[macro_export]
macro_rules! functions {
    ($ctx:expr, $object:expr; $($name:literal => $function:expr),* $(,)?) => {
        $($object.set($name, rquickjs::Function::new($ctx.clone(), $function)?)?;)*
    };
}
