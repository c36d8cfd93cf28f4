//! Variables: the shell's own, and those set for one command only.

use crate::error::{Error, lost};
use crate::options::check_variable;
use crate::sandbox::Sandbox;
use wardian_vfs::Errno;

impl Sandbox {
    /// Returns the value of a shell variable. Waits for a command in progress.
    pub async fn get_env(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        check_variable(name, "")?;
        let mut session = self.session().await?;
        let asked = name.as_bytes().to_vec();
        let task = self.kernel().spawn(async move { session.get_env(&asked).await });
        task.await.map_err(lost)?.map_err(|errno| Error::refused(errno, name.as_bytes()))
    }

    /// Sets and exports a shell variable. Waits for a command in progress.
    pub async fn set_env(&self, name: &str, value: &str) -> Result<(), Error> {
        check_variable(name, value)?;
        let mut session = self.session().await?;
        let (asked, value) = (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        let task = self.kernel().spawn(async move {
            session.set_env(&asked, &value).await?;
            // A variable may be read-only, or change what it is given.
            if session.get_env(&asked).await?.as_ref() == Some(&value) { Ok(()) } else { Err(Errno::EPERM) }
        });
        task.await.map_err(lost)?.map_err(|errno| Error::refused(errno, name.as_bytes()))
    }
}

/// Returns scripts to run before and after a command so that only it has these variables and this directory; `None` if
/// it needs neither. The shell keeps its own values, with attributes, in variables that are removed afterwards.
pub(crate) fn around(env: &[(String, String)], cwd: Option<&str>) -> Option<(Vec<u8>, Vec<u8>)> {
    if env.is_empty() && cwd.is_none() {
        return None;
    }
    let (mut before, mut after) = (String::new(), "__wardian_status=$?\n".to_owned());
    if let Some(cwd) = cwd {
        before += &format!(
            "__wardian_pwd=$PWD __wardian_oldpwd=${{OLDPWD-}}\nbuiltin cd -- {} > /dev/null || exit\n",
            quoted(cwd)
        );
        after += "builtin cd -- \"$__wardian_pwd\" > /dev/null 2>&1\nOLDPWD=$__wardian_oldpwd\n\
                  unset __wardian_pwd __wardian_oldpwd\n";
    }
    for (number, (name, value)) in env.iter().enumerate() {
        before += &format!(
            "__wardian_{number}=$(declare -p {name} 2>/dev/null)\nexport {name}={} || exit\n",
            quoted(value)
        );
        after += &format!("unset {name}\neval \"$__wardian_{number}\"\nunset __wardian_{number}\n");
    }
    // The last status is part of the shell's state, too.
    after += "eval \"unset __wardian_status; (exit $__wardian_status)\"\n";
    Some((before.into_bytes(), after.into_bytes()))
}

/// Quotes text as a shell word.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
