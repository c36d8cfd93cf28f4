//! Requests to the object store: each with a cap, a deadline and an error that says what to do.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::path::Path;
use object_store::{
    BackoffConfig, Error, GetOptions, GetRange, ObjectStore, PutMode, PutOptions, PutPayload, RetryConfig,
    UpdateVersion,
};

use super::http;
use crate::StoreError;

/// How long a request may take with all its retries.
const DEADLINE: Duration = Duration::from_secs(180);
/// How long a list may take as a whole, and how many names it may have.
const LISTING: Duration = Duration::from_secs(600);
const NAMES: usize = 2_000_000;

/// Where the objects are: a bucket and a prefix in it.
pub(super) struct Bucket {
    store: Arc<dyn ObjectStore>,
    prefix: String,
    url: String,
}

/// Which version of an object somebody has read or written: a later one differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version(pub(super) String);

/// An object in a list.
pub(super) struct Listed {
    /// Its name below the directory that was listed.
    pub(super) name: String,
    pub(super) version: Option<Version>,
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

/// Returns bucket and prefix of a URL that can be a store, and its plain form.
pub(super) fn parse(url: &str) -> Result<(String, String, String), StoreError> {
    let refused = |why: &str| Err(StoreError::Url { url: url.to_owned(), why: why.to_owned() });
    let Some((scheme, rest)) = url.split_once("://") else {
        return refused("an object store is s3://BUCKET/PREFIX");
    };
    match scheme {
        "s3" => {}
        "file" => return refused("files have no conditional writes: give the directory without file://"),
        "memory" => return refused("memory is gone with the process, and the store with it: use s3://"),
        _ => return refused("only s3:// is supported, for S3 and what is compatible with it"),
    }
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let prefix = prefix.trim_end_matches('/');
    let whole = prefix.split('/').all(|part| plain(part) && part != "." && part != "..");
    if bucket.is_empty() || !plain(bucket) || !whole || prefix.contains("//") || prefix.starts_with('/') {
        return refused("bucket and prefix may have letters, digits, '.', '-' and '_' between single '/'");
    }
    let separator = if prefix.is_empty() { "" } else { "/" };
    let plain = format!("s3://{bucket}{separator}{prefix}");
    Ok((bucket.to_owned(), prefix.to_owned(), plain))
}

impl Bucket {
    /// Names a bucket by its URL. Credentials and endpoint come from the environment (`AWS_…`). Nothing is sent yet.
    pub(super) fn of_url(url: &str) -> Result<Bucket, StoreError> {
        let (bucket, prefix, plain) = parse(url)?;
        let backoff = BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        };
        let retry = RetryConfig { backoff, max_retries: 3, retry_timeout: Duration::from_secs(20) };
        let built = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .with_retry(retry)
            .with_http_connector(http::Connector)
            .build();
        let store = built.map_err(|error| StoreError::Url { url: plain.clone(), why: error.to_string() })?;
        Ok(Bucket { store: Arc::new(store), prefix, url: plain })
    }

    /// Uses a store that is there already: for tests, which put faults between.
    pub(super) fn of_store(store: Arc<dyn ObjectStore>, url: &str) -> Bucket {
        Bucket { store, prefix: String::new(), url: url.to_owned() }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    fn path(&self, name: &str) -> Path {
        Path::from(format!("{}/{name}", self.prefix))
    }

    /// Reads an object of at most `most` bytes; `None` if there is none.
    pub(super) async fn read(&self, name: &str, most: u64) -> Result<Option<(Bytes, Version)>, StoreError> {
        match self.read_first(name, most).await? {
            Some((_, total, _)) if total > most => {
                Err(self.damaged(name, &format!("it has {total} bytes, at most {most} are expected")))
            }
            Some((bytes, total, _)) if bytes.len() as u64 != total => {
                Err(self.damaged(name, &format!("{} bytes came, it has {total}", bytes.len())))
            }
            found => Ok(found.map(|(bytes, _, version)| (bytes, version))),
        }
    }

    /// Reads the first bytes of an object, at most so many, and returns how many it has.
    pub(super) async fn read_first(
        &self,
        name: &str,
        most: u64,
    ) -> Result<Option<(Bytes, u64, Version)>, StoreError> {
        let reading = async {
            let options = GetOptions { range: Some(GetRange::Bounded(0..most)), ..GetOptions::default() };
            let found = match self.store.get_opts(&self.path(name), options).await {
                Err(Error::NotFound { .. }) => return Ok(None),
                found => found.map_err(|error| self.failed(&error))?,
            };
            let (total, version) = (found.meta.size, found.meta.e_tag.clone());
            let version = Version(version.ok_or_else(|| self.damaged(name, "the server gave it no ETag"))?);
            let mut bytes = Vec::with_capacity(usize::try_from(total.min(most)).unwrap_or(0).min(1 << 20));
            let mut pieces = found.into_stream();
            while let Some(piece) = pieces.next().await {
                let piece = piece.map_err(|error| self.failed(&error))?;
                if (bytes.len() + piece.len()) as u64 > most {
                    return Err(
                        self.damaged(name, &format!("more than the {most} bytes that were asked for"))
                    );
                }
                bytes.extend_from_slice(&piece);
            }
            Ok(Some((Bytes::from(bytes), total, version)))
        };
        self.timed(DEADLINE, reading).await
    }

    /// Writes an object whose name says what is in it.
    pub(super) async fn write(&self, name: &str, bytes: Vec<u8>) -> Result<(), StoreError> {
        self.put(name, bytes, PutMode::Overwrite).await.map(drop)
    }

    /// Writes an object unless there is one; `None` if there is.
    pub(super) async fn create(&self, name: &str, bytes: Vec<u8>) -> Result<Option<Version>, StoreError> {
        self.put(name, bytes, PutMode::Create).await
    }

    /// Writes an object if it still has this version; `None` if it does not.
    pub(super) async fn replace(
        &self,
        name: &str,
        bytes: Vec<u8>,
        version: &Version,
    ) -> Result<Option<Version>, StoreError> {
        let version = UpdateVersion { e_tag: Some(version.0.clone()), version: None };
        self.put(name, bytes, PutMode::Update(version)).await
    }

    async fn put(&self, name: &str, bytes: Vec<u8>, mode: PutMode) -> Result<Option<Version>, StoreError> {
        let putting = async {
            let options = PutOptions::from(mode);
            match self.store.put_opts(&self.path(name), PutPayload::from(bytes), options).await {
                Ok(put) => match put.e_tag {
                    Some(version) => Ok(Some(Version(version))),
                    None => Err(self.damaged(name, "the server gave it no ETag")),
                },
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(None),
                Err(error) => Err(self.failed(&error)),
            }
        };
        self.timed(DEADLINE, putting).await
    }

    /// Returns what there is in a directory.
    pub(super) async fn list(&self, directory: &str) -> Result<Vec<Listed>, StoreError> {
        let path = self.path(directory);
        let listing = async {
            let mut all = Vec::new();
            let mut found = self.store.list(Some(&path));
            while let Some(meta) = found.next().await {
                let meta = meta.map_err(|error| self.failed(&error))?;
                let parts = meta.location.prefix_match(&path);
                let name = parts.map(|parts| parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>());
                let Some(name) = name else { continue };
                all.push(Listed { name: name.join("/"), version: meta.e_tag.map(Version) });
                if all.len() > NAMES {
                    return Err(self.damaged(directory, &format!("a list of more than {NAMES} names")));
                }
            }
            Ok(all)
        };
        self.timed(LISTING, listing).await
    }

    async fn timed<T>(
        &self,
        most: Duration,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        tokio::time::timeout(most, work).await.unwrap_or_else(|_| {
            Err(StoreError::Remote {
                url: self.url.clone(),
                why: format!("it did not answer within {} s", most.as_secs()),
            })
        })
    }

    /// An object that is not what it should be.
    pub(super) fn damaged(&self, name: &str, why: &str) -> StoreError {
        StoreError::Malformed(format!("{}/{name}: {why}", self.url))
    }

    fn failed(&self, error: &Error) -> StoreError {
        // Messages of the server are part of it, and can be long.
        let mut why: String = error.to_string().chars().take(600).collect();
        why.retain(|character| !character.is_control());
        let advice = match error {
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
                "; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the bucket's policy"
            }
            Error::NotFound { .. } => "; create the bucket first",
            Error::NotImplemented { .. } | Error::NotSupported { .. } => "; the server must know If-Match",
            _ => "; check AWS_ENDPOINT and AWS_REGION, and AWS_ALLOW_HTTP=true if it is http://",
        };
        StoreError::Remote { url: self.url.clone(), why: format!("{why}{advice}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_that_cannot_be_a_store_are_refused_by_name() {
        assert_eq!(parse("s3://b/a/c/").map(|(_, _, plain)| plain).as_deref(), Ok("s3://b/a/c"));
        assert_eq!(parse("s3://b").map(|(_, prefix, _)| prefix).as_deref(), Ok(""));
        for url in ["s3://", "s3:///x", "s3://b//x", "s3://b/../x", "s3://b/a?x", "b", "s3://b@c/x"] {
            assert!(matches!(parse(url), Err(StoreError::Url { .. })), "{url}");
        }
        for (url, word) in [("file:///x", "conditional"), ("memory:///", "memory"), ("gs://b/x", "s3://")] {
            let refused = parse(url).expect_err(url).to_string();
            assert!(refused.contains(word) && refused.contains(url), "{refused}");
        }
    }
}
