//! An object store in memory that fails when it is told to, and remembers what it was sent.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// What comes back instead of what is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lie {
    #[default]
    None,
    /// Bytes without end.
    Endless,
    /// The first half.
    Half,
    /// A size that nobody can want.
    Huge,
}

#[derive(Debug, Default)]
pub struct Faulty {
    pub inner: Arc<InMemory>,
    /// How many requests are answered; after that, none is. Negative: all of them.
    left: AtomicI64,
    /// Whether the request that fails is carried out all the same.
    is_done: std::sync::atomic::AtomicBool,
    pub requests: AtomicU64,
    pub ignores_conditions: bool,
    pub lie: parking_lot::Mutex<(&'static str, Lie)>,
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object store with faults")
    }
}

fn failed() -> Error {
    Error::Generic { store: "faulty", source: "the connection was cut".into() }
}

impl Faulty {
    pub fn over(inner: &Arc<InMemory>) -> Arc<Faulty> {
        Arc::new(Faulty { inner: inner.clone(), left: AtomicI64::new(-1), ..Faulty::default() })
    }

    /// Fails after so many requests. `is_done`: the one that fails is carried out, and its answer is lost.
    pub fn fail_after(&self, requests: i64, is_done: bool) {
        self.is_done.store(is_done, Ordering::SeqCst);
        self.left.store(requests, Ordering::SeqCst);
    }

    /// One that overwrites whatever is asked of it.
    pub fn without_conditions(inner: &Arc<InMemory>) -> Arc<Faulty> {
        let left = AtomicI64::new(-1);
        Arc::new(Faulty { inner: inner.clone(), left, ignores_conditions: true, ..Faulty::default() })
    }

    pub fn has_failed(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }

    /// Returns whether to carry a request out, and whether to answer it.
    fn next(&self) -> (bool, bool) {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let counted = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| match left {
            i64::MIN..0 => None,
            0 => None,
            left => Some(left - 1),
        });
        match counted {
            Ok(1) => (self.is_done.load(Ordering::SeqCst), false),
            Ok(_) => (true, true),
            Err(0) => (false, false),
            Err(_) => (true, true),
        }
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        mut opts: PutOptions,
    ) -> Result<PutResult> {
        let (is_done, is_answered) = self.next();
        if self.ignores_conditions {
            opts.mode = PutMode::Overwrite;
        }
        let done = if is_done { Some(self.inner.put_opts(location, payload, opts).await) } else { None };
        done.filter(|_| is_answered).unwrap_or_else(|| Err(failed()))
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if !self.next().1 {
            return Err(failed());
        }
        let found = self.inner.get_opts(location, options).await?;
        let (prefix, lie) = *self.lie.lock();
        if !location.as_ref().starts_with(prefix) {
            return Ok(found);
        }
        match lie {
            Lie::None => Ok(found),
            Lie::Huge => Ok(GetResult { meta: ObjectMeta { size: u64::MAX, ..found.meta }, ..found }),
            Lie::Endless => {
                let endless = stream::repeat_with(|| Ok(Bytes::from(vec![0; 1 << 20]))).boxed();
                Ok(GetResult { payload: GetResultPayload::Stream(endless), ..found })
            }
            Lie::Half => {
                let (meta, range, attributes) =
                    (found.meta.clone(), found.range.clone(), found.attributes.clone());
                let extensions = found.extensions.clone();
                let bytes = found.bytes().await?;
                let half = bytes.slice(..bytes.len() / 2);
                let payload = GetResultPayload::Stream(stream::iter([Ok(half)]).boxed());
                Ok(GetResult { payload, meta, range, attributes, extensions })
            }
        }
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        if !self.next().1 {
            return stream::iter([Err(failed())]).boxed();
        }
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
