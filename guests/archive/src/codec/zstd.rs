//! zstd: frames, one after the other, some of them to be skipped.

use super::{Decode, Encode, Flaw};
use crate::stream::{CHUNK, Input};
use std::io::{self, Write};
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, DCtx, DParameter, InBuffer, OutBuffer, get_error_name};

/// Whether a frame begins so, or one that is to be skipped.
pub fn is_frame(start: &[u8]) -> bool {
    matches!(start, [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

pub struct Decoder {
    context: DCtx<'static>,
    inside: bool,
    frames: u64,
}

impl Decoder {
    pub fn new() -> Decoder {
        Decoder { context: DCtx::create(), inside: false, frames: 0 }
    }

    /// Decodes frames whose window is up to two to the power of this.
    pub fn with_window(log: u32) -> Decoder {
        let mut decoder = Decoder::new();
        // A number out of range leaves the limit as it was.
        let _ = decoder.context.set_parameter(DParameter::WindowLogMax(log));
        decoder
    }
}

impl Decode for Decoder {
    fn decode(&mut self, input: &mut Input, out: &mut [u8]) -> Result<usize, Flaw> {
        loop {
            if !self.inside {
                let start = input.peek(4)?;
                match start {
                    [] if self.frames > 0 => return Ok(0),
                    start if is_frame(start) => {}
                    start if start.len() < 4 => return Err(Flaw::Cut),
                    _ => return Err(Flaw::Foreign),
                }
                self.inside = true;
                self.frames += 1;
            }
            let ready = input.fill()?;
            let at_end = ready.is_empty();
            let (mut from, mut to) = (InBuffer::around(ready), OutBuffer::around(&mut *out));
            let hint = self.context.decompress_stream(&mut to, &mut from).map_err(flaw)?;
            let (taken, given) = (from.pos(), to.pos());
            input.consume(taken);
            self.inside = hint != 0;
            if given > 0 {
                return Ok(given);
            }
            if self.inside && at_end {
                return Err(Flaw::Cut);
            }
        }
    }
}

fn flaw(code: zstd_safe::ErrorCode) -> Flaw {
    match get_error_name(code) {
        "Allocation error : not enough memory" => Flaw::TooLarge,
        words => Flaw::Damaged(words),
    }
}

/// How to compress.
pub struct Settings {
    pub level: i32,
    pub check: bool,
    /// How much there is to compress, where that is known.
    pub size: Option<u64>,
    /// Two to the power of this is the distance at which repetitions are found.
    pub long: Option<u32>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { level: 3, check: true, size: None, long: None }
    }
}

pub struct Encoder {
    sink: Box<dyn Write>,
    context: CCtx<'static>,
    buffer: Vec<u8>,
}

impl Encoder {
    pub fn new(sink: Box<dyn Write>, settings: &Settings) -> io::Result<Encoder> {
        let mut context = CCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
        let wrong = |code| io::Error::other(get_error_name(code));
        context.set_parameter(CParameter::CompressionLevel(settings.level)).map_err(wrong)?;
        context.set_parameter(CParameter::ChecksumFlag(settings.check)).map_err(wrong)?;
        if let Some(log) = settings.long {
            context.set_parameter(CParameter::EnableLongDistanceMatching(true)).map_err(wrong)?;
            context.set_parameter(CParameter::WindowLog(log)).map_err(wrong)?;
        }
        context.set_pledged_src_size(settings.size).map_err(wrong)?;
        Ok(Encoder { sink, context, buffer: vec![0; CHUNK] })
    }

    fn step(&mut self, bytes: &mut InBuffer<'_>, directive: ZSTD_EndDirective) -> io::Result<usize> {
        let mut out = OutBuffer::around(self.buffer.as_mut_slice());
        let left = self
            .context
            .compress_stream2(&mut out, bytes, directive)
            .map_err(|code| io::Error::other(get_error_name(code)))?;
        let count = out.pos();
        self.sink.write_all(&self.buffer[..count])?;
        Ok(left)
    }
}

impl Write for Encoder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut from = InBuffer::around(bytes);
        while from.pos() < bytes.len() {
            self.step(&mut from, ZSTD_EndDirective::ZSTD_e_continue)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Encode for Encoder {
    fn finish(mut self: Box<Self>) -> io::Result<()> {
        let mut nothing = InBuffer::around(&[]);
        while self.step(&mut nothing, ZSTD_EndDirective::ZSTD_e_end)? != 0 {}
        Ok(())
    }
}
