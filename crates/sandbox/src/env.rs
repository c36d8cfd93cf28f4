//! Variables: the shell's own, and those set for one command only.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::Notify;
use wardian_kernel::{Command, Input, Output};
use wardian_vfs::Errno;

use crate::checks::check_variable;
use crate::error::{Error, lost};
use crate::run::CancelOnDrop;
use crate::sandbox::Sandbox;

impl Sandbox {
    /// Returns the value of a shell variable. Waits for a command in progress. Looking it up may run the user's code, so it
    /// ends like a command: after the sandbox's timeout, but ten seconds at most (`ETIMEDOUT`), by [`Sandbox::cancel`]
    /// (`ECANCELED`), or when the future is dropped.
    pub async fn get_env(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        check_variable(name, "")?;
        self.variable(name, None).await
    }

    /// Sets and exports a shell variable. Waits for a command in progress, and ends like [`Sandbox::get_env`].
    pub async fn set_env(&self, name: &str, value: &str) -> Result<(), Error> {
        check_variable(name, value)?;
        let now = self.variable(name, Some(value.as_bytes().to_vec())).await?;
        // A variable may be read-only, or change what it is given.
        if now.as_deref() == Some(value.as_bytes()) {
            self.committed(None, format!("set {name}").as_bytes(), None).await
        } else {
            Err(Error::refused(Errno::EPERM, name.as_bytes()))
        }
    }

    /// Removes a shell variable. Waits for a command in progress. `EPERM` if it is read-only.
    pub async fn unset_env(&self, name: &str) -> Result<(), Error> {
        check_variable(name, "")?;
        // The last status is part of the shell's state, and expanded before anything runs.
        let script = format!("eval \"\\\\builtin unset -v {name} 2> /dev/null; (exit $?)\"");
        let mut session = self.session().await?;
        let (cancel, timeout) = (Arc::new(Notify::new()), self.inner().setup.timeout);
        let (running, dropped) = (self.begin(&cancel), CancelOnDrop::new(&cancel));
        let command = Command {
            script: script.into_bytes(),
            around: None,
            input: Input::empty(),
            output: Output::kept(0),
            terminal: None,
            timeout,
            background: None,
            cancel: cancel.clone(),
            rolls_back: false,
            lets_go: false,
            contained: false,
        };
        let task = self.kernel().spawn(async move {
            session.run(command).await;
            drop(running);
        });
        task.await.map_err(lost)?;
        dropped.disarm();
        match self.get_env(name).await? {
            None => self.committed(None, format!("unset {name}").as_bytes(), None).await,
            Some(_) => Err(Error::refused(Errno::EPERM, name.as_bytes())),
        }
    }

    /// Returns a variable's value, and sets it first if there is a new one.
    async fn variable(&self, name: &str, new: Option<Vec<u8>>) -> Result<Option<Vec<u8>>, Error> {
        let mut session = self.session().await?;
        let (asked, timeout) = (name.as_bytes().to_vec(), self.inner().setup.timeout);
        let cancel = Arc::new(Notify::new());
        let (running, dropped) = (self.begin(&cancel), CancelOnDrop::new(&cancel));
        let task = self.kernel().spawn(async move {
            let value = match &new {
                Some(new) => session.set_env(&asked, new, timeout, &cancel).await,
                None => session.get_env(&asked, timeout, &cancel).await,
            };
            drop(running);
            value
        });
        let value = task.await.map_err(lost)?;
        dropped.disarm();
        value.map_err(|errno| match self.live() {
            Err(destroyed) if errno == Errno::ECANCELED => destroyed,
            _ => Error::refused(errno, name.as_bytes()),
        })
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

/// Of variables that are given more than once, leaves the last. As there may be tens of thousands, none is compared with all
/// others.
pub(crate) fn keep_last<T>(variables: &mut Vec<T>, name: impl Fn(&T) -> &[u8]) {
    let mut known = HashSet::with_capacity(variables.len());
    let mut is_last: Vec<bool> =
        variables.iter().rev().map(|variable| known.insert(name(variable))).collect();
    drop(known);
    variables.retain(|_| is_last.pop().unwrap_or(true));
}

/// The name in `NAME=VALUE`.
pub(crate) fn name_of(variable: &[u8]) -> &[u8] {
    variable.split(|&byte| byte == b'=').next().unwrap_or_default()
}

/// Quotes text as a shell word.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn of_variables_with_one_name_the_last_stays_where_it_is() {
        let mut variables: Vec<&[u8]> = vec![b"A=1", b"AB=2", b"B=3", b"A=4=5", b"B"];
        keep_last(&mut variables, |variable| name_of(variable));
        assert_eq!(variables, [&b"AB=2"[..], b"A=4=5", b"B"]);
    }

    #[test]
    fn many_variables_are_not_compared_with_each_other() {
        let (done, wait) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut variables: Vec<String> =
                (0..600_000).map(|number| format!("v{:06}=", number / 2)).collect();
            keep_last(&mut variables, |variable| name_of(variable.as_bytes()));
            let _ = done.send(variables.len());
        });
        // The square would take many times as long.
        assert_eq!(wait.recv_timeout(Duration::from_secs(60)), Ok(300_000));
    }
}
