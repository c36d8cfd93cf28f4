//! HTTP/1.1 as a client speaks it: addresses, connections, responses. It holds no body in memory and trusts no number of
//! a server's.

// For the programs of this workspace alone: names that speak for themselves need no more words.
#![allow(missing_docs)]

pub mod base64;
pub mod body;
pub mod cookies;
pub mod date;
pub mod decode;
pub mod head;
pub mod tls;
pub mod url;
pub mod wire;

use wardian_abi::Errno;

/// What went wrong between a request and the end of its response.
#[derive(Clone, PartialEq, Debug)]
pub enum Error {
    /// The time for it is over.
    Timeout,
    /// Reading from the connection failed.
    Receive(Errno),
    /// Writing to it failed.
    Send(Errno),
    /// It ended before a response.
    Empty,
    /// The response is not HTTP/1.
    NotHttp,
    /// Its head is larger than any should be.
    HeadTooLarge(usize),
    /// A line of it is.
    LineTooLong,
    /// It gives a length that is none.
    BadLength,
    /// It has more than one length.
    BadFraming,
    /// It ended before its body did; so many bytes are missing.
    Short(u64),
    /// It ended within a chunk.
    ShortChunk,
    /// A chunk is not as it should be.
    Chunk(&'static str),
    /// The body is not what its encoding says.
    Decode(&'static str),
    /// It is encoded in a way that is not supported.
    Encoding,
}

pub type Result<T> = std::result::Result<T, Error>;
