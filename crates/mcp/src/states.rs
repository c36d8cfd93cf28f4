//! States in files of the host: only names, in one directory, each written whole or not at all.

use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::answer::{Answer, Mistake};
use crate::arguments::Arguments;
use crate::server::Call;

/// How long a state's name may be.
const LONGEST_NAME: usize = 64;
/// How long a state may be.
const LONGEST_STATE: u64 = 2 << 30;

/// `export_state`.
pub(crate) async fn export(call: &Call<'_>, mut arguments: Arguments) -> Result<Answer, Mistake> {
    let state = arguments.text("name", LONGEST_NAME)?;
    let name = arguments.name("sandbox")?;
    arguments.finish()?;
    let path = place(call, &state)?;
    let (sandbox, name) = call.boxes.get(name.as_deref()).await?;
    let longest = usize::try_from(LONGEST_STATE).unwrap_or(usize::MAX);
    let archive = sandbox.export_within(longest).await?;
    let length = archive.len();
    blocking(move || save(&path, &archive))
        .await
        .map_err(|error| Mistake::new(format!("cannot write the state: {error}")))?;
    let data = json!({"sandbox": name, "name": state, "bytes": length});
    Ok(Answer::new(format!("exported {name} as {state} ({length} bytes)"), data))
}

/// `import_state`.
pub(crate) async fn import(call: &Call<'_>, mut arguments: Arguments) -> Result<Answer, Mistake> {
    let state = arguments.text("name", LONGEST_NAME)?;
    let name = arguments.name("sandbox")?;
    arguments.finish()?;
    let path = place(call, &state)?;
    let (sandbox, name) = call.boxes.get(name.as_deref()).await?;
    let archive = blocking(move || load(&path)).await.map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            Mistake::new(format!("there is no state called '{state}'; export_state makes one"))
        }
        _ => Mistake::new(format!("cannot read the state: {error}")),
    })?;
    sandbox.import(archive).await?;
    Ok(Answer::new(format!("{name} has the state {state}"), json!({"sandbox": name, "name": state})))
}

/// Where a state is. Its name cannot lead out of the directory.
fn place(call: &Call<'_>, state: &str) -> Result<PathBuf, Mistake> {
    let directory =
        call.options.state_dir.as_ref().ok_or_else(|| Mistake::new("this server keeps no states"))?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if state.is_empty() || state.starts_with('.') || !state.bytes().all(plain) {
        return Err(Mistake::new(
            "a state's name has letters, digits, '-', '_' and '.', and does not begin with '.'",
        ));
    }
    Ok(directory.join(format!("{state}.wardian")))
}

fn save(path: &Path, archive: &[u8]) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(archive)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    std::fs::File::open(directory)?.sync_all()
}

fn load(path: &Path) -> std::io::Result<Vec<u8>> {
    let file = std::fs::File::open(path)?;
    if file.metadata()?.len() > LONGEST_STATE {
        return Err(ErrorKind::FileTooLarge.into());
    }
    let mut archive = Vec::new();
    file.take(LONGEST_STATE).read_to_end(&mut archive)?;
    Ok(archive)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|lost| Err(std::io::Error::other(lost)))
}
