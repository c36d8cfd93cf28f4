//! Hashes, and what is made of them: HMAC and PBKDF2.

use std::cell::RefCell;
use std::rc::Rc;

use md5::Digest;
use rquickjs::{Ctx, Function, Object, TypedArray, Value};

use super::{Bytes, read};

/// A hash in progress.
trait Hasher {
    fn update(&mut self, bytes: &[u8]);
    fn finish(&self) -> Vec<u8>;
    fn copy(&self) -> Box<dyn Hasher>;
}

impl<D: Digest + Clone + 'static> Hasher for D {
    fn update(&mut self, bytes: &[u8]) {
        Digest::update(self, bytes);
    }
    fn finish(&self) -> Vec<u8> {
        self.clone().finalize().to_vec()
    }
    fn copy(&self) -> Box<dyn Hasher> {
        Box::new(self.clone())
    }
}

/// A hash by OpenSSL's name, and the length of its blocks.
fn hasher(name: &str) -> Option<(Box<dyn Hasher>, usize)> {
    Some(match name {
        "md5" => (Box::new(md5::Md5::new()), 64),
        "sha1" => (Box::new(sha1::Sha1::new()), 64),
        "sha224" => (Box::new(sha2::Sha224::new()), 64),
        "sha256" => (Box::new(sha2::Sha256::new()), 64),
        "sha384" => (Box::new(sha2::Sha384::new()), 128),
        "sha512" => (Box::new(sha2::Sha512::new()), 128),
        "sha512-224" => (Box::new(sha2::Sha512_224::new()), 128),
        "sha512-256" => (Box::new(sha2::Sha512_256::new()), 128),
        "sha3-224" => (Box::new(sha3::Sha3_224::new()), 144),
        "sha3-256" => (Box::new(sha3::Sha3_256::new()), 136),
        "sha3-384" => (Box::new(sha3::Sha3_384::new()), 104),
        "sha3-512" => (Box::new(sha3::Sha3_512::new()), 72),
        _ => return None,
    })
}

/// HMAC: the inner hash, keyed, and the outer one.
struct Keyed {
    inner: Box<dyn Hasher>,
    outer: Box<dyn Hasher>,
}

impl Keyed {
    fn new(name: &str, key: &[u8]) -> Option<Keyed> {
        let (empty, block) = hasher(name)?;
        let mut key = if key.len() > block {
            let mut long = empty.copy();
            long.update(key);
            long.finish()
        } else {
            key.to_vec()
        };
        key.resize(block, 0);
        let keyed = |with: u8| {
            let mut hasher = empty.copy();
            hasher.update(&key.iter().map(|byte| byte ^ with).collect::<Vec<_>>());
            hasher
        };
        Some(Keyed { inner: keyed(0x36), outer: keyed(0x5c) })
    }
}

impl Hasher for Keyed {
    fn update(&mut self, bytes: &[u8]) {
        self.inner.update(bytes);
    }
    fn finish(&self) -> Vec<u8> {
        let mut outer = self.outer.copy();
        outer.update(&self.inner.finish());
        outer.finish()
    }
    fn copy(&self) -> Box<dyn Hasher> {
        Box::new(Keyed { inner: self.inner.copy(), outer: self.outer.copy() })
    }
}

/// An object with `update`, `digest` and `copy`.
fn object<'js>(ctx: &Ctx<'js>, hasher: Box<dyn Hasher>) -> rquickjs::Result<Object<'js>> {
    let shared = Rc::new(RefCell::new(hasher));
    let object = Object::new(ctx.clone())?;
    let hasher = shared.clone();
    let update = move |bytes: TypedArray<'_, u8>| read(&bytes, |bytes| hasher.borrow_mut().update(bytes));
    object.set("update", Function::new(ctx.clone(), update)?)?;
    let hasher = shared.clone();
    object.set("digest", Function::new(ctx.clone(), move || Bytes(hasher.borrow().finish()))?)?;
    let copy = move |ctx: Ctx<'js>| {
        let copy = shared.borrow().copy();
        self::object(&ctx, copy)
    };
    object.set("copy", Function::new(ctx.clone(), copy)?)?;
    Ok(object)
}

/// A hash, or with a key an HMAC; undefined if there is no such hash.
fn hash<'js>(ctx: Ctx<'js>, name: String, key: Option<TypedArray<'js, u8>>) -> rquickjs::Result<Value<'js>> {
    let made: Option<Box<dyn Hasher>> = match key {
        None => hasher(&name).map(|(hasher, _)| hasher),
        Some(key) => read(&key, |key| Keyed::new(&name, key)).map(|keyed| Box::new(keyed) as Box<dyn Hasher>),
    };
    match made {
        None => Ok(Value::new_undefined(ctx)),
        Some(made) => object(&ctx, made).map(Object::into_value),
    }
}

/// PBKDF2; undefined if there is no such hash.
fn pbkdf2(
    name: String,
    password: TypedArray<'_, u8>,
    salt: TypedArray<'_, u8>,
    rounds: u32,
    length: u32,
) -> Option<Bytes> {
    let keyed = read(&password, |password| Keyed::new(&name, password))?;
    let salt = read(&salt, <[u8]>::to_vec);
    let mut out = Vec::new();
    for block in 1_u32.. {
        if out.len() >= length as usize {
            break;
        }
        let mac = |parts: &[&[u8]]| {
            let mut mac = keyed.copy();
            parts.iter().for_each(|part| mac.update(part));
            mac.finish()
        };
        let mut last = mac(&[&salt, &block.to_be_bytes()]);
        let mut sum = last.clone();
        for _ in 1..rounds {
            last = mac(&[&last]);
            sum.iter_mut().zip(&last).for_each(|(sum, byte)| *sum ^= byte);
        }
        out.extend(sum);
    }
    out.truncate(length as usize);
    Some(Bytes(out))
}

pub fn register<'js>(ctx: &Ctx<'js>, bridge: &Object<'js>) -> rquickjs::Result<()> {
    crate::functions!(ctx, bridge; "hash" => hash, "pbkdf2" => pbkdf2);
    Ok(())
}
