//! The frames of a WebSocket, as they arrive: RFC 6455 without extensions, text only.
//!
//! Payload is unmasked where it is and passed on piece by piece, so a frame may be of any length and takes no memory. Only what
//! controls the connection is collected, which has at most 125 bytes.

/// The codes to close with.
const PROTOCOL_ERROR: u16 = 1002;
const NOT_TEXT: u16 = 1003;
/// The longest header: two bytes, eight of length, four of mask.
const HEADER: usize = 14;
/// The most that a control frame has.
const CONTROL: usize = 125;

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event<'p> {
    /// Nothing, until more has arrived.
    More,
    /// A piece of a message, without line breaks.
    Text(&'p [u8]),
    /// The message is complete.
    End,
    /// A ping, to be answered with the same content.
    Ping(Vec<u8>),
    /// The client closes the connection.
    Close,
}

/// Reads frames.
#[derive(Default)]
pub(super) struct Decoder {
    header: Vec<u8>,
    frame: Option<Frame>,
    control: Vec<u8>,
    in_message: bool,
}

struct Frame {
    opcode: u8,
    last: bool,
    left: u64,
    mask: [u8; 4],
    /// Where in the mask the next byte is.
    at: usize,
}

impl Decoder {
    /// Returns what comes next, and the rest; or the code to close with.
    pub(super) fn next<'p>(&mut self, mut piece: &'p mut [u8]) -> Result<(Event<'p>, &'p mut [u8]), u16> {
        loop {
            let Some(frame) = &mut self.frame else {
                let Some((&mut byte, rest)) = std::mem::take(&mut piece).split_first_mut() else {
                    return Ok((Event::More, Default::default()));
                };
                piece = rest;
                self.header.push(byte);
                self.frame = self.begun()?;
                continue;
            };
            let count = usize::try_from(frame.left).unwrap_or(usize::MAX).min(piece.len());
            if frame.left > 0 && count == 0 {
                return Ok((Event::More, Default::default()));
            }
            let (payload, rest) = std::mem::take(&mut piece).split_at_mut(count);
            frame.unmask(payload);
            frame.left -= count as u64;
            let (is_control, is_over) = (frame.opcode >= 8, frame.left == 0);
            if is_control {
                self.control.extend_from_slice(payload);
                piece = rest;
                if is_over && let Some(event) = self.control() {
                    return Ok((event, piece));
                }
                continue;
            }
            if count > 0 {
                // Within a message they are white space; outside of it they would end a line.
                for byte in payload.iter_mut().filter(|byte| **byte == b'\n') {
                    *byte = b' ';
                }
                if is_over && !frame.last {
                    self.frame = None;
                }
                return Ok((Event::Text(payload), rest));
            }
            // Everything of the frame was passed on.
            let last = frame.last;
            self.frame = None;
            piece = rest;
            if last {
                self.in_message = false;
                return Ok((Event::End, piece));
            }
        }
    }

    /// Returns the frame whose header is complete.
    fn begun(&mut self) -> Result<Option<Frame>, u16> {
        let header = &self.header[..];
        let &[first, second, ..] = header else { return Ok(None) };
        let (opcode, last) = (first & 0x0f, first & 0x80 != 0);
        if first & 0x70 != 0 || second & 0x80 == 0 {
            // No extension was agreed on, and clients mask what they send.
            return Err(PROTOCOL_ERROR);
        }
        match opcode {
            0 if !self.in_message => return Err(PROTOCOL_ERROR),
            1 if self.in_message => return Err(PROTOCOL_ERROR),
            2 => return Err(NOT_TEXT),
            0 | 1 => {}
            8..=10 if last && usize::from(second & 0x7f) <= CONTROL => {}
            _ => return Err(PROTOCOL_ERROR),
        }
        let extended = match second & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        if header.len() < 2 + extended + 4 {
            debug_assert!(header.len() < HEADER);
            return Ok(None);
        }
        let (length, mask) = header[2..].split_at(extended);
        let left = match extended {
            0 => u64::from(second & 0x7f),
            _ => length.iter().fold(0, |length, &byte| length << 8 | u64::from(byte)),
        };
        if left >> 63 != 0 {
            return Err(PROTOCOL_ERROR);
        }
        let frame = Frame { opcode, last, left, mask: mask.try_into().map_err(|_| PROTOCOL_ERROR)?, at: 0 };
        self.header.clear();
        self.in_message |= opcode == 1;
        Ok(Some(frame))
    }

    /// Returns what a control frame says, which is over.
    fn control(&mut self) -> Option<Event<'static>> {
        let opcode = self.frame.take().map_or(0, |frame| frame.opcode);
        let content = std::mem::take(&mut self.control);
        match opcode {
            8 => Some(Event::Close),
            9 => Some(Event::Ping(content)),
            // A pong that nobody asked for.
            _ => None,
        }
    }
}

impl Frame {
    fn unmask(&mut self, payload: &mut [u8]) {
        for byte in payload {
            *byte ^= self.mask[self.at];
            self.at = (self.at + 1) % 4;
        }
    }
}

/// Returns the header of a frame of the server.
pub(super) fn header_of(first: u8, length: usize) -> Vec<u8> {
    let mut header = vec![first];
    match length {
        0..=125 => header.push(length as u8),
        126..=0xffff => {
            header.push(126);
            header.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            header.push(127);
            header.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    header
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

    fn frame(first: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = header_of(first, content.len());
        bytes[1] |= 0x80;
        bytes.extend_from_slice(&MASK);
        bytes.extend(content.iter().enumerate().map(|(at, byte)| byte ^ MASK[at % 4]));
        bytes
    }

    /// What comes of bytes that arrive in pieces: the messages and pings, and how it ended.
    fn decode(bytes: &[u8], pieces: usize) -> (Vec<String>, Option<u16>) {
        let mut decoder = Decoder::default();
        let (mut found, mut message) = (Vec::new(), Vec::new());
        for piece in bytes.chunks(pieces.max(1)) {
            let mut piece = piece.to_vec();
            let mut rest = &mut piece[..];
            loop {
                let (event, after) = match decoder.next(rest) {
                    Ok(next) => next,
                    Err(code) => return (found, Some(code)),
                };
                match event {
                    Event::More => break,
                    Event::Text(text) => message.extend_from_slice(text),
                    Event::End => found.push(String::from_utf8_lossy(&std::mem::take(&mut message)).into()),
                    Event::Ping(content) => found.push(format!("ping {}", String::from_utf8_lossy(&content))),
                    Event::Close => return (found, Some(1000)),
                }
                rest = after;
            }
        }
        (found, None)
    }

    #[test]
    fn messages_come_out_whole_however_they_arrive() {
        let long = "x".repeat(70_000);
        let bytes = [
            // The example of RFC 6455: a masked "Hello".
            vec![0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58],
            frame(0x01, b"in "),
            frame(0x89, b"still there?"),
            frame(0x00, b""),
            frame(0x80, b"parts\n"),
            frame(0x81, b""),
            frame(0x8a, b"unasked"),
            frame(0x81, long.as_bytes()),
            frame(0x81, "é".repeat(100).as_bytes()),
            frame(0x88, b""),
        ]
        .concat();
        let expected = ["Hello", "ping still there?", "in parts ", "", &long, &"é".repeat(100)]
            .map(str::to_owned)
            .to_vec();
        for pieces in [1, 2, 3, 7, 100, 1 << 20] {
            assert_eq!(decode(&bytes, pieces), (expected.clone(), Some(1000)), "pieces of {pieces}");
        }
    }

    #[test]
    fn what_the_standard_forbids_closes_the_connection() {
        let unmasked = [0x81, 1, b'a'];
        let endless = [0x81, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4];
        let cases: [(&[u8], u16); 9] = [
            (&unmasked, 1002),
            (&endless, 1002),
            (&frame(0xc1, b""), 1002),
            (&frame(0x80, b"no beginning"), 1002),
            (&[frame(0x01, b"a"), frame(0x81, b"b")].concat(), 1002),
            (&frame(0x82, b"binary"), 1003),
            (&frame(0x09, b"part of a ping"), 1002),
            (&frame(0x89, &[0; 126]), 1002),
            (&frame(0x83, b""), 1002),
        ];
        for (bytes, code) in cases {
            assert_eq!(decode(bytes, 1).1, Some(code), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_end_somehow_and_the_same_in_any_pieces(bytes: Vec<u8>, pieces in 1..20usize) {
            prop_assert_eq!(decode(&bytes, 1), decode(&bytes, pieces));
        }
    }
}
