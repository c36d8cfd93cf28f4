//! Text as bytes and back, in the encodings of a Buffer.

use rquickjs::{Ctx, Object, TypedArray, Value, qjs};

use super::{Bytes, read, write};

/// The UTF-16 units of a string. Other values have none.
fn units(value: &Value<'_>) -> Vec<u16> {
    let mut length = 0;
    // SAFETY: the context is that of the value; the units are copied before they are freed.
    unsafe {
        let ctx = value.ctx().as_raw().as_ptr();
        let units = qjs::JS_ToCStringLenUTF16(ctx, &mut length, value.as_raw());
        if units.is_null() {
            return Vec::new();
        }
        let copy = std::slice::from_raw_parts(units, length as usize).to_vec();
        qjs::JS_FreeCStringUTF16(ctx, units);
        copy
    }
}

fn string<'js>(ctx: &Ctx<'js>, units: &[u16]) -> rquickjs::Result<Value<'js>> {
    // SAFETY: the units are copied; an exception is passed on.
    let value = unsafe {
        let raw = qjs::JS_NewStringUTF16(ctx.as_raw().as_ptr(), units.as_ptr(), units.len() as _);
        Value::from_raw(ctx.clone(), raw)
    };
    if value.is_string() { Ok(value) } else { Err(rquickjs::Error::Exception) }
}

/// A string's UTF-8, in which half a surrogate pair becomes U+FFFD.
pub fn utf8(value: &Value<'_>) -> Vec<u8> {
    let units = units(value);
    if units.iter().all(|&unit| unit < 128) {
        return units.iter().map(|&unit| unit as u8).collect();
    }
    char::decode_utf16(units)
        .map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect::<String>()
        .into()
}

fn encode_utf8(text: Value<'_>) -> Bytes {
    Bytes(utf8(&text))
}

fn utf8_length(text: Value<'_>) -> f64 {
    utf8(&text).len() as f64
}

fn decode_utf8<'js>(ctx: Ctx<'js>, bytes: TypedArray<'js, u8>) -> rquickjs::Result<rquickjs::String<'js>> {
    read(&bytes, |bytes| rquickjs::String::from_str(ctx, &String::from_utf8_lossy(bytes)))
}

/// Whether the bytes are UTF-8.
fn is_utf8(bytes: TypedArray<'_, u8>) -> bool {
    read(&bytes, |bytes| std::str::from_utf8(bytes).is_ok())
}

fn encode_latin1(text: Value<'_>) -> Bytes {
    Bytes(units(&text).into_iter().map(|unit| unit as u8).collect())
}

fn decode_latin1<'js>(ctx: Ctx<'js>, bytes: TypedArray<'js, u8>) -> rquickjs::Result<Value<'js>> {
    let units: Vec<u16> = read(&bytes, |bytes| bytes.iter().map(|&byte| byte.into()).collect());
    string(&ctx, &units)
}

fn encode_utf16(text: Value<'_>) -> Bytes {
    Bytes(units(&text).into_iter().flat_map(u16::to_le_bytes).collect())
}

fn decode_utf16<'js>(ctx: Ctx<'js>, bytes: TypedArray<'js, u8>) -> rquickjs::Result<Value<'js>> {
    let pair = |pair: &[u8]| u16::from_le_bytes([pair[0], pair[1]]);
    let units: Vec<u16> = read(&bytes, |bytes| bytes.chunks_exact(2).map(pair).collect());
    string(&ctx, &units)
}

/// Digits up to the first pair that is none.
fn encode_hex(text: Value<'_>) -> Bytes {
    let digit = |unit: u16| char::from_u32(unit.into()).and_then(|char| char.to_digit(16));
    let units = units(&text);
    let pairs = units.chunks_exact(2).map_while(|pair| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8));
    Bytes(pairs.collect())
}

fn decode_hex(bytes: TypedArray<'_, u8>) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::new();
    read(&bytes, |bytes| {
        text.reserve(bytes.len() * 2);
        for byte in bytes {
            text.push(DIGITS[usize::from(byte >> 4)].into());
            text.push(DIGITS[usize::from(byte & 15)].into());
        }
    });
    text
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Either alphabet; what belongs to neither is skipped, and the text ends at `=`.
fn encode_base64(text: Value<'_>) -> Bytes {
    let (mut out, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for unit in units(&text) {
        let value = match u8::try_from(unit).unwrap_or(0) {
            byte @ b'A'..=b'Z' => byte - b'A',
            byte @ b'a'..=b'z' => byte - b'a' + 26,
            byte @ b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => break,
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Bytes(out)
}

fn decode_base64(bytes: TypedArray<'_, u8>, for_urls: bool) -> String {
    let mut text = String::new();
    read(&bytes, |bytes| {
        text.reserve(bytes.len().div_ceil(3) * 4);
        for three in bytes.chunks(3) {
            let at = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
            let bits = at(0) << 16 | at(1) << 8 | at(2);
            for index in 0..4 {
                if index <= three.len() {
                    text.push(match BASE64[(bits >> (18 - 6 * index) & 63) as usize] {
                        b'+' if for_urls => '-',
                        b'/' if for_urls => '_',
                        digit => digit.into(),
                    });
                } else if !for_urls {
                    text.push('=');
                }
            }
        }
    });
    text
}

/// Compares bytes in an order that does not depend on them.
fn equal_always_slow(one: TypedArray<'_, u8>, other: TypedArray<'_, u8>) -> bool {
    read(&one, |one| {
        read(&other, |other| {
            one.len() == other.len() && one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
        })
    })
}

fn compare(one: TypedArray<'_, u8>, other: TypedArray<'_, u8>) -> i32 {
    read(&one, |one| read(&other, |other| one.cmp(other) as i32))
}

/// Where bytes first occur in others from an offset on, or last before it; -1 if nowhere.
fn find(hay: TypedArray<'_, u8>, needle: TypedArray<'_, u8>, from: f64, last: bool) -> f64 {
    read(&hay, |hay| {
        read(&needle, |needle| {
            let from = (from as usize).min(hay.len());
            if needle.is_empty() {
                return from as f64;
            }
            let found = if last {
                let end = (from + needle.len()).min(hay.len());
                hay[..end].windows(needle.len()).rposition(|part| part == needle)
            } else {
                hay[from..].windows(needle.len()).position(|part| part == needle).map(|at| at + from)
            };
            found.map_or(-1.0, |at| at as f64)
        })
    })
}

/// Copies bytes into an array; returns how many fit.
fn put(target: TypedArray<'_, u8>, source: TypedArray<'_, u8>) -> u32 {
    let source = read(&source, <[u8]>::to_vec);
    write(&target, |target| {
        let count = source.len().min(target.len());
        target[..count].copy_from_slice(&source[..count]);
        count as u32
    })
}

pub fn register<'js>(ctx: &Ctx<'js>, bridge: &Object<'js>) -> rquickjs::Result<()> {
    crate::functions!(ctx, bridge;
        "encodeUtf8" => encode_utf8, "decodeUtf8" => decode_utf8, "utf8Length" => utf8_length,
        "isUtf8" => is_utf8, "encodeLatin1" => encode_latin1, "decodeLatin1" => decode_latin1,
        "encodeUtf16" => encode_utf16, "decodeUtf16" => decode_utf16, "encodeHex" => encode_hex,
        "decodeHex" => decode_hex, "encodeBase64" => encode_base64, "decodeBase64" => decode_base64,
        "equalAlwaysSlow" => equal_always_slow, "compareBytes" => compare, "findBytes" => find,
        "putBytes" => put,
    );
    Ok(())
}
