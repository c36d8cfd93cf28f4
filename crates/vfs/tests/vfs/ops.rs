//! Random file operations, decoded from bytes: the same bytes are the same operations for the tree, for a
//! real directory, and for the fuzzer.

/// Bytes that one operation is made of.
pub const OP_LEN: usize = 16;
/// Descriptors an operation can name.
pub const SLOTS: usize = 4;

/// A path, and the descriptor it starts from if not the working directory.
#[derive(Clone)]
pub struct PathArg {
    pub at: Option<usize>,
    pub path: Vec<u8>,
}

impl std::fmt::Debug for PathArg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.at {
            Some(slot) => write!(f, "{:?} from {slot}", String::from_utf8_lossy(&self.path)),
            None => write!(f, "{:?}", String::from_utf8_lossy(&self.path)),
        }
    }
}

#[derive(Clone, Debug)]
pub enum Op {
    Open { slot: usize, path: PathArg, flags: u32, mode: u32 },
    Close { slot: usize },
    Read { slot: usize, len: usize },
    Write { slot: usize, len: usize, fill: u8 },
    Pread { slot: usize, len: usize, offset: u64 },
    Pwrite { slot: usize, len: usize, fill: u8, offset: u64 },
    Seek { slot: usize, whence: u8, by: i64 },
    Truncate { slot: usize, len: u64 },
    Allocate { slot: usize, offset: u64, len: u64 },
    Fstat { slot: usize },
    Fchmod { slot: usize, mode: u32 },
    Futimes { slot: usize, atime: i64, mtime: i64 },
    Mkdir { path: PathArg, mode: u32 },
    Rmdir { path: PathArg },
    Unlink { path: PathArg },
    Rename { from: PathArg, to: PathArg },
    Link { from: PathArg, follow: bool, to: PathArg },
    Symlink { target: Vec<u8>, path: PathArg },
    ReadLink { path: PathArg },
    Chmod { path: PathArg, mode: u32 },
    Chown { path: PathArg, follow: bool, uid: Option<u32>, gid: Option<u32> },
    Utimes { path: PathArg, follow: bool, atime: i64, mtime: i64 },
    Stat { path: PathArg, follow: bool },
    Access { path: PathArg, wanted: u32 },
    Mkfifo { path: PathArg, mode: u32 },
    List { path: PathArg },
    Chdir { path: PathArg },
    Getcwd,
    Umask { mask: u32 },
}

pub mod flags {
    pub const READ: u32 = 1;
    pub const WRITE: u32 = 2;
    pub const CREATE: u32 = 4;
    pub const EXCL: u32 = 8;
    pub const TRUNC: u32 = 16;
    pub const APPEND: u32 = 32;
    pub const DIRECTORY: u32 = 64;
    pub const NOFOLLOW: u32 = 128;
}

struct Source<'b> {
    bytes: &'b [u8],
    /// No `..` and no absolute paths: the other side cannot shut the sequence into a root of its own.
    confined: bool,
}

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.bytes.split_first().unwrap_or((&0, &[]));
        self.bytes = rest;
        *first
    }

    fn below(&mut self, limit: u8) -> u8 {
        self.byte() % limit
    }

    fn slot(&mut self) -> usize {
        usize::from(self.below(SLOTS as u8))
    }

    fn coin(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Few names, so that operations meet.
    fn text(&mut self) -> Vec<u8> {
        let shape = self.byte();
        let mut path = Vec::new();
        if shape & 0x0f == 15 && !self.confined {
            path.extend_from_slice(b"/w/");
        }
        let names = [1, 1, 1, 1, 1, 2, 2, 3][usize::from(shape >> 5)];
        for index in 0..names {
            if index > 0 {
                path.push(b'/');
            }
            match self.byte() {
                255 => path.extend_from_slice(&[b'x'; 256]),
                254 => path.extend_from_slice(&[b'y'; 255]),
                253 if !self.confined => path.push(b'/'),
                244..=252 if !self.confined => path.extend_from_slice(b".."),
                238..=243 => path.push(b'.'),
                n => path.push(b'a' + n % 4),
            }
        }
        if shape & 0x1f == 14 {
            path.push(b'/');
        }
        path
    }

    fn path(&mut self) -> PathArg {
        // The last slots, which hold directories more often than the first.
        let at = self.below(10);
        PathArg { at: (at >= 8).then(|| usize::from(at) - 6), path: self.text() }
    }

    fn mode(&mut self) -> u32 {
        const MODES: [u32; 20] = [
            0o755, 0o644, 0o777, 0o666, 0o755, 0o755, 0o777, 0o777, 0o700, 0o750, 0o775, 0o600, 0o000, 0o500,
            0o300, 0o077, 0o4755, 0o2775, 0o1777, 0o6777,
        ];
        MODES[usize::from(self.below(MODES.len() as u8))]
    }

    fn offset(&mut self) -> u64 {
        const OFFSETS: [u64; 10] = [0, 1, 10, 4096, 65_535, 65_536, 65_537, 131_072, 200_000, 300_001];
        OFFSETS[usize::from(self.below(OFFSETS.len() as u8))]
    }

    fn len(&mut self) -> usize {
        const LENS: [usize; 8] = [0, 1, 5, 100, 4096, 65_536, 65_537, 140_000];
        LENS[usize::from(self.below(LENS.len() as u8))]
    }

    /// Root, or the user that the other side is (unless that user runs the tests).
    fn owner(&mut self) -> u32 {
        let user = self.coin() && !self.confined;
        if user { 1000 } else { 0 }
    }

    /// A whole second long past, or none, or now.
    fn time(&mut self) -> i64 {
        match self.below(8) {
            0 => KEEP,
            1 => NOW,
            n => i64::from(n) * 100_000_000,
        }
    }

    fn flags(&mut self) -> u32 {
        use flags::*;
        const COMMON: [u32; 10] = [
            READ,
            READ | WRITE,
            WRITE | CREATE,
            READ | WRITE | CREATE,
            WRITE | CREATE | TRUNC,
            WRITE | CREATE | EXCL,
            WRITE | APPEND | CREATE,
            READ | WRITE | CREATE | APPEND,
            READ | DIRECTORY,
            READ | TRUNC,
        ];
        let common = COMMON[usize::from(self.below(COMMON.len() as u8))];
        match self.below(32) {
            1..=3 => common | NOFOLLOW,
            4 => common | DIRECTORY,
            5..=6 => common | EXCL | CREATE | NOFOLLOW,
            _ => common,
        }
    }
}

/// Leave this time alone.
pub const KEEP: i64 = -1;
/// Set this time to the present.
pub const NOW: i64 = -2;

/// Something to work on: without it, most operations would find nothing.
pub fn prelude() -> Vec<Op> {
    let path = |path: &str| PathArg { at: None, path: path.as_bytes().to_vec() };
    let open = |slot, name: &str, flags| Op::Open { slot, path: path(name), flags, mode: 0o644 };
    let new = flags::READ | flags::WRITE | flags::CREATE;
    vec![
        Op::Mkdir { path: path("a"), mode: 0o755 },
        Op::Mkdir { path: path("a/b"), mode: 0o755 },
        Op::Mkdir { path: path("c"), mode: 0o777 },
        open(0, "b", new),
        Op::Write { slot: 0, len: 70_000, fill: 1 },
        open(1, "a/c", new),
        Op::Write { slot: 1, len: 10, fill: 2 },
        open(2, "a", flags::READ),
        open(3, "c", flags::READ),
    ]
}

/// The prelude, and the operations that `bytes` stand for.
pub fn sequence(bytes: &[u8], confined: bool) -> Vec<Op> {
    [prelude(), decode(bytes, confined)].concat()
}

/// The operations that `bytes` stand for.
pub fn decode(bytes: &[u8], confined: bool) -> Vec<Op> {
    bytes.chunks(OP_LEN).map(|bytes| decode_one(&mut Source { bytes, confined })).collect()
}

fn decode_one(s: &mut Source) -> Op {
    match s.below(42) {
        40..=41 => Op::Open {
            slot: s.slot(),
            flags: flags::READ | flags::WRITE | flags::CREATE,
            mode: 0o666,
            path: s.path(),
        },
        0..=4 => Op::Open { slot: s.slot(), flags: s.flags(), mode: s.mode(), path: s.path() },
        5 => Op::Close { slot: s.slot() },
        6 => Op::Read { slot: s.slot(), len: s.len() },
        7..=8 => Op::Write { slot: s.slot(), len: s.len(), fill: s.byte() },
        9 => Op::Pread { slot: s.slot(), len: s.len(), offset: s.offset() },
        10..=11 => Op::Pwrite { slot: s.slot(), len: s.len(), fill: s.byte(), offset: s.offset() },
        12 => Op::Seek {
            slot: s.slot(),
            whence: s.below(3),
            by: s.offset() as i64 * (1 - 2 * i64::from(s.coin())),
        },
        13 => Op::Truncate { slot: s.slot(), len: s.offset() },
        14 => Op::Allocate { slot: s.slot(), offset: s.offset(), len: s.len() as u64 },
        15 => Op::Fstat { slot: s.slot() },
        16 => Op::Fchmod { slot: s.slot(), mode: s.mode() },
        17 => Op::Futimes { slot: s.slot(), atime: s.time(), mtime: s.time() },
        18..=20 => Op::Mkdir { mode: s.mode(), path: s.path() },
        21 => Op::Rmdir { path: s.path() },
        22 => Op::Unlink { path: s.path() },
        23..=26 => Op::Rename { from: s.path(), to: s.path() },
        27 => Op::Link { follow: s.coin(), from: s.path(), to: s.path() },
        28..=29 => Op::Symlink { target: s.text(), path: s.path() },
        30 => Op::ReadLink { path: s.path() },
        31 => Op::Chmod { mode: s.mode(), path: s.path() },
        32 => Op::Chown {
            follow: s.coin(),
            uid: s.coin().then(|| s.owner()),
            gid: s.coin().then(|| s.owner()),
            path: s.path(),
        },
        33 => Op::Utimes { follow: s.coin(), atime: s.time(), mtime: s.time(), path: s.path() },
        34 => Op::Stat { follow: s.coin(), path: s.path() },
        35 => Op::Access { wanted: u32::from(s.below(8)), path: s.path() },
        36 => Op::Mkfifo { mode: s.mode(), path: s.path() },
        37 => Op::List { path: s.path() },
        38 => Op::Chdir { path: s.path() },
        _ => match s.below(4) {
            0 => Op::Umask { mask: u32::from(s.below(8)) * 0o11 },
            _ => Op::Getcwd,
        },
    }
}

/// What is written: not the same byte all over, or a misplaced piece would not show.
pub fn pattern(fill: u8, len: usize) -> Vec<u8> {
    (0..len).map(|i| fill.wrapping_add((i % 251) as u8)).collect()
}

/// A short name for some bytes.
pub fn digest(bytes: &[u8]) -> String {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    format!("{}:{hash:x}", bytes.len())
}
