//! Objects that are files of their own.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use toolkit::files::path;
use wardian_abi as abi;

use crate::fail::{Res, fatal, system};
use crate::files::{self, join, text};
use crate::hash::Oid;
use crate::object::{Kind, Object};

/// Larger objects are not taken into memory.
pub const LARGEST: usize = 512 << 20;

/// Where an object's file is.
pub fn place(objects: &[u8], oid: &Oid) -> Vec<u8> {
    let hex = oid.hex();
    join(&join(objects, &hex.as_bytes()[..2]), &hex.as_bytes()[2..])
}

/// Reads an object, if it is there.
pub fn read(objects: &[u8], oid: &Oid) -> Res<Option<Object>> {
    let name = place(objects, oid);
    let Some(packed) = files::read_if_there(&name)? else { return Ok(None) };
    let Some(object) = decode(&packed) else {
        fatal!("loose object {oid} (stored in {}) is corrupt", text(&name))
    };
    Ok(Some(object))
}

fn decode(packed: &[u8]) -> Option<Object> {
    let mut whole = Vec::new();
    ZlibDecoder::new(packed).take(LARGEST as u64).read_to_end(&mut whole).ok()?;
    let end = whole.iter().take(64).position(|&byte| byte == 0)?;
    let (kind, size) = std::str::from_utf8(&whole[..end]).ok()?.split_once(' ')?;
    let kind = Kind::named(kind.as_bytes())?;
    let size: usize = size.parse().ok()?;
    whole.drain(..=end);
    (whole.len() == size).then_some(Object { kind, data: whole })
}

/// Writes an object: under a name of its own first, so that nobody ever sees half of it.
pub fn write(objects: &[u8], oid: &Oid, kind: Kind, data: &[u8]) -> Res<()> {
    let name = place(objects, oid);
    if files::exists(&name) {
        return Ok(());
    }
    let directory = files::parent(&name);
    if !files::is_dir(&directory) {
        files::make_dirs(&directory)?;
    }
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    let written = encoder
        .write_all(format!("{} {}\0", kind.name(), data.len()).as_bytes())
        .and_then(|()| encoder.write_all(data))
        .and_then(|()| encoder.finish());
    let packed = written.map_err(system("unable to deflate new object"))?;
    put(&name, &packed)
}

/// Puts a file among the objects in one step, readable only.
pub fn put(name: &[u8], content: &[u8]) -> Res<()> {
    let mut temporary = files::parent(name);
    temporary.extend_from_slice(format!("/tmp_obj_{}", abi::getpid()).as_bytes());
    let failed = || format!("unable to write file {}", text(name));
    std::fs::write(path(&temporary), content).map_err(system(failed()))?;
    // A file system without modes is no reason to lose the object.
    let _ = abi::chmod(abi::Dir::CWD, &temporary, true, 0o444);
    files::rename(&temporary, name).map_err(system(failed()))
}

/// The names of all objects in the directory for a first byte.
pub fn list(objects: &[u8], first: u8) -> Vec<Oid> {
    let prefix = format!("{first:02x}");
    let names = files::names_in(&join(objects, prefix.as_bytes())).unwrap_or_default();
    let whole = |name: Vec<u8>| Oid::from_hex(&[prefix.as_bytes(), &name].concat());
    names.into_iter().filter_map(whole).collect()
}
