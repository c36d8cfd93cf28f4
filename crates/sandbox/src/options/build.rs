//! From options to a sandbox.

use std::sync::Arc;

use wardian_kernel::Rules;
use wardian_net::Gateway;
use wardian_vfs::Tree;

use super::{Builder, Setup};
use crate::checks::{self, check_length, check_variable};
use crate::env::keep_last;
use crate::error::{Error, lost};
use crate::extension;
use crate::mounts::{NewMount, Outside};
use crate::sandbox::Sandbox;
use crate::system::System;

/// The most that the directories of `pythonPath` take.
const PATHS: usize = 64 << 10;
/// The most that the names of an allowlist take.
const TOOL_NAMES: usize = 64 << 10;
/// The most that the variables a sandbox, or one run, starts with take.
pub(crate) const ENVIRONMENT: usize = 1 << 20;

impl Builder {
    /// Builds the sandbox.
    pub async fn build(mut self) -> Result<Sandbox, Error> {
        let (persist, image) = (self.persist.take(), self.image.take());
        let sandbox = match image {
            Some((store, name)) => store.start_image(&name, self).await?,
            None => self.build_alone().await?,
        };
        match persist {
            Some(name) => name.attach(sandbox).await,
            None => Ok(sandbox),
        }
    }

    pub(crate) fn has_extensions(&self) -> bool {
        !self.extensions.is_empty() || !self.host_tools.is_empty()
    }

    pub(crate) fn has_mounts(&self) -> bool {
        !self.mounts.is_empty()
    }

    /// Returns the engine's system that it will be built from, starting it if necessary.
    pub(crate) async fn find_system(&self) -> Result<Arc<System>, Error> {
        let chosen = self.engine.as_ref().map(|engine| engine.system().clone());
        Ok(match chosen.or_else(System::started) {
            Some(system) => system,
            None => {
                let progress = self.progress.unwrap_or(|_| ());
                // Compiling takes seconds the first time: not on the caller's runtime.
                tokio::task::spawn_blocking(move || System::shared(&progress)).await.map_err(lost)??
            }
        })
    }

    async fn build_alone(self) -> Result<Sandbox, Error> {
        let system = self.find_system().await?;
        let (setup, tree, env) = self.set_up_all(&system).await?;
        Sandbox::start(system, setup, tree, env).await
    }

    /// Builds everything but the shell; returns the files and the shell's environment as well.
    pub(crate) async fn set_up_all(self, system: &Arc<System>) -> Result<(Setup, Tree, Vec<Vec<u8>>), Error> {
        let mut env = self.environment()?;
        let (mut setup, tree) = self.set_up(system).await?;
        // Variables that stand for secrets, which only the gateway knows.
        if let Some(gateway) = &setup.gateway {
            env.extend(
                gateway
                    .placeholders()
                    .into_iter()
                    .map(|(name, value)| format!("{name}={value}").into_bytes()),
            );
        }
        setup.environment.clone_from(&env);
        Ok((setup, tree, env))
    }

    /// Returns what it will be built from, to wait on: see [`crate::blocking`].
    pub(crate) fn system(&self) -> Result<Arc<System>, Error> {
        match &self.engine {
            Some(engine) => Ok(engine.system().clone()),
            None => System::shared(&self.progress.unwrap_or(|_| ())),
        }
    }

    /// Builds the files and everything else but the shell.
    pub(crate) async fn set_up(mut self, system: &Arc<System>) -> Result<(Setup, Tree), Error> {
        if self.nice > 19 {
            return Err(Error::Option(format!("nice is from 0 to 19, not {}", self.nice)));
        }
        checks::limits(&self.limits)?;
        checks::paths(&self.cwd, self.writable_paths.as_deref())?;
        let names = self.tool_list.iter().flatten().map(|name| name.len() + size_of::<String>());
        check_length("toolAllowlist", names.sum(), TOOL_NAMES)?;
        for tool in std::mem::take(&mut self.host_tools) {
            self.extensions.push(tool.into_extension(&self.mounts)?);
        }
        let gateway = self.gateway().await?;
        let saved = self.to_saved();
        let mut tree = system.tree(self.limits.quota());
        let host_programs = extension::install(&mut tree, system, &self.extensions)?;
        let base = tree.clone();
        if self.mounts.iter().any(NewMount::is_host) {
            let (mounts, state, roots) = (self.mounts, self.state.clone(), self.roots.clone());
            let progress = self.progress.unwrap_or(|_| ());
            let mounting = tokio::task::spawn_blocking(move || {
                let outside = Outside { state: state.as_deref(), roots: roots.as_ref(), tell: &progress };
                let mut mount = |mount: &NewMount| mount.add_to(&mut tree, &outside);
                mounts.iter().try_for_each(&mut mount).map(|()| tree)
            });
            tree = mounting.await.map_err(lost)??;
        } else {
            let mut mount = |mount: &NewMount| mount.add_to(&mut tree, &Outside::none());
            self.mounts.iter().try_for_each(&mut mount)?;
        }
        if let Some(list) = &self.tool_allowlist {
            checks::allowlist(list, &tree)?;
        }
        if let Some(paths) = self.writable_paths {
            tree.set_writable_paths(Some(paths.into_iter().map(String::into_bytes).collect()));
        }
        let setup = Setup {
            limits: self.limits,
            timeout: self.timeout,
            background_timeout: self.background_timeout,
            on_kill: self.on_kill,
            cwd: self.cwd,
            environment: Vec::new(),
            rules: Rules {
                allowed: self.tool_allowlist,
                host_programs,
                nice: self.nice,
                spares: Some(system.pool.spares().clone()),
                family: Arc::default(),
                outside: None,
            },
            gateway,
            audit: self.audit,
            state: self.state,
            roots: self.roots,
            fresh: tree.clone(),
            base,
            saved,
        };
        Ok((setup, tree))
    }

    /// Creates the gateway that the policy asks for. Reading certificates may have to wait for a disk.
    async fn gateway(&mut self) -> Result<Option<Gateway>, Error> {
        let Some(policy) = self.network.take() else { return Ok(None) };
        let options = self.network_options.clone();
        let creating = tokio::task::spawn_blocking(move || Gateway::new(policy, options));
        let gateway = creating.await.map_err(lost)?;
        gateway.map(Some).map_err(|error| Error::Option(format!("network: {error}")))
    }

    /// Returns the shell's initial environment.
    fn environment(&self) -> Result<Vec<Vec<u8>>, Error> {
        let defaults = [
            ("HOME", "/home/user"),
            ("USER", "user"),
            ("LOGNAME", "user"),
            // The last is where pip puts commands.
            ("PATH", "/bin:/usr/bin:/home/user/.local/bin"),
            ("SHELL", "/bin/bash"),
            ("LANG", "C.UTF-8"),
        ];
        let defaults = defaults.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut all: Vec<(String, String)> = defaults.into();
        let given =
            self.env.iter().map(|(name, value)| name.len() + value.len() + size_of::<(String, String)>());
        check_length("env", given.sum(), ENVIRONMENT)?;
        for (name, value) in &self.env {
            check_variable(name, value)?;
            all.push((name.clone(), value.clone()));
        }
        keep_last(&mut all, |(name, _)| name.as_bytes());
        self.add_python_path(&mut all)?;
        Ok(all.into_iter().map(|(name, value)| format!("{name}={value}").into_bytes()).collect())
    }
}

impl Builder {
    fn add_python_path(&self, env: &mut Vec<(String, String)>) -> Result<(), Error> {
        if self.python_path.is_empty() {
            return Ok(());
        }
        check_length("pythonPath", self.python_path.iter().map(|path| path.len() + 1).sum(), PATHS)?;
        if let Some(path) = self.python_path.iter().find(|path| path.is_empty() || path.contains([':', '\0']))
        {
            return Err(Error::Option(format!("not a directory for pythonPath: {path:?}")));
        }
        let mut paths = self.python_path.join(":");
        if let Some(at) = env.iter().position(|(name, _)| name == "PYTHONPATH") {
            let (_, given) = env.remove(at);
            paths = if given.is_empty() { paths } else { format!("{paths}:{given}") };
        }
        env.push(("PYTHONPATH".to_owned(), paths));
        Ok(())
    }
}
