//! Deflate, as raw data, in zlib's frame, and in gzip's.

use std::io::{Read, Write};

use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use flate2::write::{DeflateEncoder, ZlibEncoder};
use flate2::{Compression, Crc, GzBuilder};
use rquickjs::{Ctx, Object, TypedArray};

use super::{Bytes, read};

/// What a gzip file says about the system that made it: Unix.
const UNIX: u8 = 3;

/// Compresses as `gzip`, `deflate` (zlib's frame) or `raw`.
fn compress(kind: String, bytes: TypedArray<'_, u8>, level: i32) -> Option<Bytes> {
    let level = u32::try_from(level).map_or(Compression::default(), |level| Compression::new(level.min(9)));
    let squeezed = read(&bytes, |bytes| match kind.as_str() {
        "gzip" => {
            let mut to = GzBuilder::new().operating_system(UNIX).write(Vec::new(), level);
            to.write_all(bytes).and_then(|()| to.finish())
        }
        "deflate" => {
            let mut to = ZlibEncoder::new(Vec::new(), level);
            to.write_all(bytes).and_then(|()| to.finish())
        }
        _ => {
            let mut to = DeflateEncoder::new(Vec::new(), level);
            to.write_all(bytes).and_then(|()| to.finish())
        }
    });
    squeezed.ok().map(Bytes)
}

/// Expands; the kind `unzip` finds out by itself whether it is gzip or zlib. Returns -1 for damaged data, -2 for data that
/// ends too early, -3 for a wrong header, -4 for more than the most it may become.
fn expand(kind: String, bytes: TypedArray<'_, u8>, most: f64) -> Result<Bytes, i32> {
    read(&bytes, |bytes| {
        let gzip = bytes.starts_with(&[0x1f, 0x8b]);
        match kind.as_str() {
            "gzip" if !gzip && !bytes.is_empty() => Err(-3),
            "gzip" => all(MultiGzDecoder::new(bytes), most),
            "unzip" if gzip => all(MultiGzDecoder::new(bytes), most),
            "raw" => all(DeflateDecoder::new(bytes), most),
            _ if bytes.len() >= 2 && !u16::from_be_bytes([bytes[0], bytes[1]]).is_multiple_of(31) => Err(-3),
            _ => all(ZlibDecoder::new(bytes), most),
        }
    })
}

fn all(from: impl Read, most: f64) -> Result<Bytes, i32> {
    let mut out = Vec::new();
    match from.take((most as u64).saturating_add(1)).read_to_end(&mut out) {
        Ok(_) if out.len() as f64 > most => Err(-4),
        Ok(_) => Ok(Bytes(out)),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Err(-2),
        Err(_) => Err(-1),
    }
}

fn crc32(bytes: TypedArray<'_, u8>) -> f64 {
    let mut crc = Crc::new();
    read(&bytes, |bytes| crc.update(bytes));
    crc.sum().into()
}

pub fn register<'js>(ctx: &Ctx<'js>, bridge: &Object<'js>) -> rquickjs::Result<()> {
    crate::functions!(ctx, bridge; "compress" => compress, "crc32" => crc32);
    let expand = |ctx: Ctx<'js>, kind: String, bytes: TypedArray<'js, u8>, most: f64| {
        use rquickjs::prelude::IntoJs;
        match expand(kind, bytes, most) {
            Ok(bytes) => bytes.into_js(&ctx),
            Err(code) => code.into_js(&ctx),
        }
    };
    bridge.set("expand", rquickjs::Function::new(ctx.clone(), expand)?)
}
