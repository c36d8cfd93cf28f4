//! Start images in files, beside the compiled programs they belong to.
//!
//! ```text
//! "WARDIMG\0"  size  stack pointer  start  end  count  numbers of pages      then, where a memory has them, the pages
//! ```
//!
//! A program's stack lies below its data and is empty at rest, so there is room for the beginning of the file. What holds
//! for compiled code holds here: only this user can write there, and files appear complete or not at all (`artifact.rs`).

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::artifact::{is_own_file, write_whole};
use crate::memory::image::Image;
use crate::memory::pages::PAGE;
use crate::memory::template::Template;

/// Part of the files' names.
pub(crate) const VERSION: u32 = 1;
const MAGIC: &[u8; 8] = b"WARDIMG\0";
/// The largest memory.
const MOST: u64 = 1 << 32;

/// Writes a start image. One that is not all template, or has no room below, is not kept.
pub(crate) fn write(image: &Image, path: &Path) -> io::Result<()> {
    let template = image.template_alone().ok_or(io::ErrorKind::Unsupported)?;
    let ((size, stack_pointer), (start, end)) = (image.shape(), template.range());
    let mut head = MAGIC.to_vec();
    for number in [size, stack_pointer as usize, start, end, template.kept().len()] {
        head.extend_from_slice(&(number as u64).to_le_bytes());
    }
    template.kept().iter().for_each(|number| head.extend_from_slice(&number.to_le_bytes()));
    if head.len() > start {
        return Err(io::ErrorKind::Unsupported.into());
    }
    write_whole(path, |file| {
        file.set_len(end as u64)?;
        file.write_all_at(&head, 0)?;
        for page in template.contents() {
            let (number, bytes) = page?;
            file.write_all_at(&bytes[..], u64::from(number) * PAGE as u64)?;
        }
        Ok(())
    })
}

/// Opens a start image, if it exists, belongs to this user and can be one.
pub(crate) fn open(path: &Path) -> Option<Image> {
    if !is_own_file(&fs::symlink_metadata(path).ok()?) {
        return None;
    }
    let opened = File::open(path)
        .and_then(|file| read(file).transpose().unwrap_or(Err(io::ErrorKind::InvalidData.into())));
    match opened {
        Ok(image) => Some(image),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "dropping a start image that cannot be used");
            let _ = fs::remove_file(path);
            None
        }
    }
}

fn read(mut file: File) -> io::Result<Option<Image>> {
    let mut magic = [0; 8];
    file.read_exact(&mut magic)?;
    let mut number = || {
        let mut bytes = [0; 8];
        file.read_exact(&mut bytes)?;
        let number = u64::from_le_bytes(bytes);
        if number > MOST { Err(io::Error::from(io::ErrorKind::InvalidData)) } else { Ok(number as usize) }
    };
    let (size, stack_pointer, start, end, count) = (number()?, number()?, number()?, number()?, number()?);
    let plausible = magic == *MAGIC
        && size.is_multiple_of(65536)
        && start.is_multiple_of(PAGE)
        && start <= end
        && end <= size
        && stack_pointer <= size
        && count <= end / PAGE
        && file.metadata()?.len() == end as u64;
    if !plausible {
        return Ok(None);
    }
    let mut numbers = vec![0; count * 4];
    file.read_exact(&mut numbers)?;
    let kept: Vec<u32> =
        numbers.chunks_exact(4).map(|raw| u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]])).collect();
    let inside = |&number: &u32| (start / PAGE..end / PAGE).contains(&(number as usize));
    if !kept.is_sorted_by(|a, b| a < b) || !kept.iter().all(inside) {
        return Ok(None);
    }
    let template = Template::in_file(file, start, end, kept)?;
    Ok(Some(Image::of_template(size, stack_pointer as u32, template)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// An image of a memory that begins at 64 KiB.
    fn image() -> Image {
        let mut memory = vec![0; 4 << 16];
        memory[70_000] = 7;
        memory[200_000] = 8;
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let template =
            runtime.block_on(Template::new(&memory, 1 << 16, &[17, 48], None, 0)).expect("a template");
        Image::of_template(memory.len(), 1 << 16, template)
    }

    #[test]
    fn an_image_is_read_as_it_was_written_or_not_at_all() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.image");
        let image = image();
        write(&image, &path).expect("written");
        let read = open(&path).expect("an image");
        assert_eq!(read.shape(), image.shape());
        assert_eq!(read.flatten().expect("pages"), image.flatten().expect("pages"));

        let whole = fs::read(&path).expect("bytes");
        let broken = [
            whole[..whole.len() - 1].to_vec(),
            whole[..20].to_vec(),
            [&b"OTHERS\0\0"[..], &whole[8..]].concat(),
            // More pages than it can have, and one that lies outside.
            [&whole[..40], &[0xff; 8], &whole[48..]].concat(),
            [&whole[..48], &[0xff; 4], &whole[52..]].concat(),
        ];
        for bytes in broken {
            fs::write(&path, bytes).expect("written");
            assert!(open(&path).is_none());
            assert!(!path.exists(), "what cannot be used is removed");
        }
        write(&image, &path).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("changed");
        assert!(open(&path).is_none(), "others could have written it");
    }
}
