//! A disk in memory, as a file layer for SQLite. It loses what was not synced, in any combination, and can be full.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rusqlite::ffi;

const SECTOR: usize = 512;

/// Small, repeatable randomness.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

enum Pending {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

#[derive(Default)]
struct File {
    synced: Vec<u8>,
    current: Vec<u8>,
    pending: Vec<Pending>,
}

#[derive(Default)]
struct State {
    files: HashMap<String, File>,
    /// How many more operations succeed.
    operations: Option<u64>,
    /// How many more writes there is room for.
    room: Option<u64>,
}

impl State {
    /// Counts an operation; returns whether the power is still there.
    fn is_on(&mut self) -> bool {
        match &mut self.operations {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }
}

/// A disk.
pub struct Disk {
    state: Arc<Mutex<State>>,
    name: &'static str,
}

impl Disk {
    /// Creates one and registers it with SQLite.
    pub fn new(what: &str) -> Disk {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name: &'static str =
            Box::leak(format!("{what}-{}", NEXT.fetch_add(1, Ordering::Relaxed)).into_boxed_str());
        let state: Arc<Mutex<State>> = Arc::default();
        let vfs = ffi::sqlite3_vfs {
            iVersion: 1,
            szOsFile: size_of::<Open>() as c_int,
            mxPathname: 4096,
            pNext: std::ptr::null_mut(),
            zName: CString::new(name).expect("a name").into_raw(),
            pAppData: Arc::into_raw(state.clone()).cast_mut().cast(),
            xOpen: Some(open),
            xDelete: Some(delete),
            xAccess: Some(access),
            xFullPathname: Some(full_path),
            xDlOpen: None,
            xDlError: None,
            xDlSym: None,
            xDlClose: None,
            xRandomness: Some(randomness),
            xSleep: Some(sleep),
            xCurrentTime: Some(current_time),
            xGetLastError: None,
            xCurrentTimeInt64: None,
            xSetSystemCall: None,
            xGetSystemCall: None,
            xNextSystemCall: None,
        };
        // SAFETY: the layer lives as long as the process, as SQLite demands.
        let registered = unsafe { ffi::sqlite3_vfs_register(Box::into_raw(Box::new(vfs)), 0) };
        assert_eq!(registered, ffi::SQLITE_OK);
        Disk { state, name }
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Lets the power fail after so many operations.
    pub fn fail_after(&self, operations: Option<u64>) {
        self.state.lock().expect("a disk").operations = operations;
    }

    /// Lets the disk be full after so many writes.
    pub fn fill_after(&self, room: Option<u64>) {
        self.state.lock().expect("a disk").room = room;
    }

    /// Loses some of what was not synced: any of the writes, or parts of them.
    pub fn crash(&self, random: &mut Random) {
        for file in self.state.lock().expect("a disk").files.values_mut() {
            let mut survived = std::mem::take(&mut file.synced);
            for pending in file.pending.drain(..) {
                match (pending, random.below(3)) {
                    (_, 0) => {}
                    (Pending::Truncate(length), _) => survived.truncate(length),
                    (Pending::Write(at, bytes), 1) => put(&mut survived, at, &bytes),
                    (Pending::Write(at, bytes), _) => {
                        // Torn: whole sectors of it.
                        for (number, sector) in bytes.chunks(SECTOR).enumerate() {
                            if random.below(2) == 0 {
                                put(&mut survived, at + number * SECTOR, sector);
                            }
                        }
                    }
                }
            }
            file.current.clone_from(&survived);
            file.synced = survived;
        }
    }
}

fn put(file: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if file.len() < at + bytes.len() {
        file.resize(at + bytes.len(), 0);
    }
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

/// An open file, as SQLite sees it: its methods first.
#[repr(C)]
struct Open {
    methods: *const ffi::sqlite3_io_methods,
    name: *mut String,
    state: *const Mutex<State>,
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(lock),
    xCheckReservedLock: Some(check_lock),
    xFileControl: Some(control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

/// Works on the file that SQLite means.
///
/// # Safety
/// `file` is one that `open` has opened.
unsafe fn on(file: *mut ffi::sqlite3_file, work: impl FnOnce(&mut State, &str) -> c_int) -> c_int {
    // SAFETY: as above; both pointers live as long as the file is open.
    let (name, state) = unsafe {
        let open = &*file.cast::<Open>();
        (&*open.name, &*open.state)
    };
    work(&mut state.lock().expect("a disk"), name)
}

/// # Safety
/// `vfs` is the one that `Disk::new` has registered.
unsafe fn state_of<'a>(vfs: *mut ffi::sqlite3_vfs) -> &'a Mutex<State> {
    // SAFETY: as above; it was leaked there.
    unsafe { &*(*vfs).pAppData.cast::<Mutex<State>>() }
}

unsafe extern "C" fn open(
    vfs: *mut ffi::sqlite3_vfs,
    path: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes a path that ends with NUL or none, and room for an `Open`.
    unsafe {
        let name = if path.is_null() {
            format!("temporary-{:p}", file)
        } else {
            CStr::from_ptr(path).to_string_lossy().into_owned()
        };
        let state = state_of(vfs);
        (*file).pMethods = std::ptr::null();
        let mut disk = state.lock().expect("a disk");
        if !disk.is_on() {
            return ffi::SQLITE_CANTOPEN;
        }
        disk.files.entry(name.clone()).or_default();
        drop(disk);
        file.cast::<Open>().write(Open { methods: &METHODS, name: Box::into_raw(Box::new(name)), state });
        if !out_flags.is_null() {
            *out_flags = flags;
        }
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: the name was leaked by `open`, and the file is closed once.
    unsafe { drop(Box::from_raw((*file.cast::<Open>()).name)) };
    ffi::SQLITE_OK
}

unsafe extern "C" fn read(file: *mut ffi::sqlite3_file, to: *mut c_void, count: c_int, at: i64) -> c_int {
    // SAFETY: SQLite passes room for `count` bytes.
    unsafe {
        let to = std::slice::from_raw_parts_mut(to.cast::<u8>(), count as usize);
        on(file, |state, name| {
            if !state.is_on() {
                return ffi::SQLITE_IOERR_READ;
            }
            let from = state.files.get(name).and_then(|file| file.current.get(at as usize..)).unwrap_or(&[]);
            let have = from.len().min(to.len());
            to[..have].copy_from_slice(&from[..have]);
            to[have..].fill(0);
            if have < to.len() { ffi::SQLITE_IOERR_SHORT_READ } else { ffi::SQLITE_OK }
        })
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    count: c_int,
    at: i64,
) -> c_int {
    // SAFETY: SQLite passes `count` bytes.
    unsafe {
        let from = std::slice::from_raw_parts(from.cast::<u8>(), count as usize);
        on(file, |state, name| {
            if !state.is_on() {
                return ffi::SQLITE_IOERR_WRITE;
            }
            match &mut state.room {
                Some(0) => return ffi::SQLITE_FULL,
                Some(left) => *left -= 1,
                None => {}
            }
            let file = state.files.entry(name.to_owned()).or_default();
            put(&mut file.current, at as usize, from);
            file.pending.push(Pending::Write(at as usize, from.to_vec()));
            ffi::SQLITE_OK
        })
    }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, length: i64) -> c_int {
    // SAFETY: `file` is open.
    unsafe {
        on(file, |state, name| {
            if !state.is_on() {
                return ffi::SQLITE_IOERR_TRUNCATE;
            }
            let file = state.files.entry(name.to_owned()).or_default();
            file.current.truncate(length as usize);
            file.pending.push(Pending::Truncate(length as usize));
            ffi::SQLITE_OK
        })
    }
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: `file` is open.
    unsafe {
        on(file, |state, name| {
            if !state.is_on() {
                return ffi::SQLITE_IOERR_FSYNC;
            }
            let file = state.files.entry(name.to_owned()).or_default();
            for pending in file.pending.drain(..) {
                match pending {
                    Pending::Write(at, bytes) => put(&mut file.synced, at, &bytes),
                    Pending::Truncate(length) => file.synced.truncate(length),
                }
            }
            ffi::SQLITE_OK
        })
    }
}

unsafe extern "C" fn file_size(file: *mut ffi::sqlite3_file, size: *mut i64) -> c_int {
    // SAFETY: SQLite passes a place for the size.
    unsafe {
        on(file, |state, name| {
            *size = state.files.get(name).map_or(0, |file| file.current.len()) as i64;
            ffi::SQLITE_OK
        })
    }
}

unsafe extern "C" fn lock(_file: *mut ffi::sqlite3_file, _level: c_int) -> c_int {
    ffi::SQLITE_OK
}

unsafe extern "C" fn check_lock(_file: *mut ffi::sqlite3_file, held: *mut c_int) -> c_int {
    // SAFETY: SQLite passes a place for the answer.
    unsafe { *held = 0 };
    ffi::SQLITE_OK
}

unsafe extern "C" fn control(_file: *mut ffi::sqlite3_file, _what: c_int, _argument: *mut c_void) -> c_int {
    ffi::SQLITE_NOTFOUND
}

unsafe extern "C" fn sector_size(_file: *mut ffi::sqlite3_file) -> c_int {
    SECTOR as c_int
}

unsafe extern "C" fn characteristics(_file: *mut ffi::sqlite3_file) -> c_int {
    0
}

unsafe extern "C" fn delete(vfs: *mut ffi::sqlite3_vfs, path: *const c_char, _sync: c_int) -> c_int {
    // SAFETY: SQLite passes its layer and a path that ends with NUL.
    let (state, name) = unsafe { (state_of(vfs), CStr::from_ptr(path).to_string_lossy().into_owned()) };
    let mut state = state.lock().expect("a disk");
    if !state.is_on() {
        return ffi::SQLITE_IOERR_DELETE;
    }
    state.files.remove(&name);
    ffi::SQLITE_OK
}

unsafe extern "C" fn access(
    vfs: *mut ffi::sqlite3_vfs,
    path: *const c_char,
    _flags: c_int,
    found: *mut c_int,
) -> c_int {
    // SAFETY: SQLite passes its layer, a path that ends with NUL and a place for the answer.
    unsafe {
        let name = CStr::from_ptr(path).to_string_lossy().into_owned();
        *found = c_int::from(state_of(vfs).lock().expect("a disk").files.contains_key(&name));
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn full_path(
    _vfs: *mut ffi::sqlite3_vfs,
    path: *const c_char,
    length: c_int,
    to: *mut c_char,
) -> c_int {
    // SAFETY: SQLite passes a path that ends with NUL and room for `length` bytes.
    unsafe {
        let path = CStr::from_ptr(path).to_bytes_with_nul();
        if path.len() > length as usize {
            return ffi::SQLITE_CANTOPEN;
        }
        std::ptr::copy_nonoverlapping(path.as_ptr().cast(), to, path.len());
    }
    ffi::SQLITE_OK
}

unsafe extern "C" fn randomness(_vfs: *mut ffi::sqlite3_vfs, count: c_int, to: *mut c_char) -> c_int {
    // SAFETY: SQLite passes room for `count` bytes.
    unsafe { std::ptr::write_bytes(to, 7, count as usize) };
    count
}

unsafe extern "C" fn sleep(_vfs: *mut ffi::sqlite3_vfs, micros: c_int) -> c_int {
    micros
}

unsafe extern "C" fn current_time(_vfs: *mut ffi::sqlite3_vfs, days: *mut f64) -> c_int {
    // SAFETY: SQLite passes a place for the time.
    unsafe { *days = 2_461_000.0 };
    ffi::SQLITE_OK
}
