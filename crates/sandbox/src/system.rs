//! What all sandboxes of an engine share: the kernel, the compiled programs, and the tree that holds them.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::OnceCell;
use wardian_kernel::{HostPrograms, Kernel, KernelConfig, Program, Spares};
use wardian_vfs::{Caller, Content, Device, Errno, Quota, Tree};

use crate::engine::Engine;
use crate::error::{Error, engine};
use crate::extension;
use crate::library;
use crate::pool::Pool;
use crate::programs::{self, LATER, SHELL, Shipped, TOOLS};

/// Shared by all sandboxes of an engine.
pub(crate) struct System {
    pub(crate) kernel: Kernel,
    pub(crate) shell: Arc<Program>,
    /// Identifies the shell's program: its state means nothing to another program.
    pub(crate) programs_hash: String,
    /// The same for Python.
    pub(crate) python_hash: String,
    /// The version of its file's content.
    python_version: u64,
    python: OnceCell<Arc<Program>>,
    pub(crate) pool: Pool,
    /// What every sandbox without extensions has.
    pub(crate) host_programs: Arc<HostPrograms>,
    /// The number of sandboxes.
    pub(crate) alive: AtomicUsize,
    base: Tree,
}

static SYSTEM: OnceLock<Arc<System>> = OnceLock::new();
static STARTING: Mutex<()> = Mutex::new(());

impl System {
    /// Returns the one that the process shares, if it was started.
    pub(crate) fn started() -> Option<Arc<System>> {
        SYSTEM.get().cloned()
    }

    /// Returns the one that the process shares, starting it on first use. Calls `progress` for programs that must be
    /// compiled.
    pub(crate) fn shared(progress: &dyn Fn(&str)) -> Result<Arc<System>, Error> {
        let _one_at_a_time = STARTING.lock();
        if let Some(system) = SYSTEM.get() {
            return Ok(system.clone());
        }
        let system = Arc::new(System::start(KernelConfig::default(), progress)?);
        Ok(SYSTEM.get_or_init(|| system).clone())
    }

    pub(crate) fn start(config: KernelConfig, progress: impl Fn(&str)) -> Result<System, Error> {
        System::over(Kernel::new(config).map_err(engine)?, &progress)
    }

    /// Starts it over a kernel that runs.
    pub(crate) fn over(kernel: Kernel, progress: &dyn Fn(&str)) -> Result<System, Error> {
        let load = |shipped: &Shipped| kernel.load(&shipped.source()?, progress);
        let shell = load(&SHELL).map_err(engine)?;
        // Reading the tools' code takes longer than all else here: a script that needs none does not wait for it.
        let tools = match kernel.is_compiled(&TOOLS.source().map_err(engine)?) {
            true => None,
            false => Some(load(&TOOLS).map_err(engine)?),
        };
        let (mut base, python_version) = base_tree(&kernel, &shell, tools.as_ref())?;
        let host_programs = Arc::new(extension::install_listing(&mut base)?);
        let programs_hash = SHELL.sha256().map_err(engine)?.to_owned();
        kernel.set_shipped_files(base.clone(), &programs::key());
        let pool = Pool::new(Spares::new(&kernel, &shell));
        let python_hash = programs::python_hash().map_err(engine)?.to_owned();
        let (alive, python) = (AtomicUsize::new(0), OnceCell::new());
        Ok(System {
            kernel,
            shell,
            programs_hash,
            python_hash,
            python_version,
            python,
            pool,
            host_programs,
            alive,
            base,
        })
    }

    /// Returns Python's program, which is loaded at its first use.
    pub(crate) async fn python(&self) -> Result<&Arc<Program>, Error> {
        let program = self.python.get_or_try_init(|| self.kernel.registered(self.python_version)).await;
        program.map_err(engine)
    }

    /// Returns the same, if it was used before.
    pub(crate) fn known_python(&self) -> Option<&Arc<Program>> {
        self.python.get()
    }

    /// Returns a fresh tree in which nothing counts against `quota`.
    pub(crate) fn tree(&self, quota: Quota) -> Tree {
        let mut tree = self.base.clone();
        tree.set_quota(quota);
        tree
    }
}

type Installed<T = ()> = Result<T, (Errno, String)>;

fn base_tree(
    kernel: &Kernel,
    shell: &Arc<Program>,
    tools: Option<&Arc<Program>>,
) -> Result<(Tree, u64), Error> {
    let mut tree = Tree::new(Quota { bytes: u64::MAX, inodes: u64::MAX });
    let installed = install(&mut tree, kernel, shell, tools);
    let python = installed.map_err(|(errno, path)| Error::refused(errno, path.as_bytes()))?;
    Ok((tree, python))
}

/// Installs everything; programs that are not loaded yet are loaded when they are first started. Returns the version of
/// Python's program.
fn install(
    tree: &mut Tree,
    kernel: &Kernel,
    shell: &Arc<Program>,
    tools: Option<&Arc<Program>>,
) -> Installed<u64> {
    let mut python = 0;
    let first = [(&SHELL, Some(shell)), (&TOOLS, tools)];
    for (shipped, program) in first.into_iter().chain(LATER.iter().map(|shipped| (shipped, None))) {
        let version = install_program(tree, shipped)?;
        match program {
            Some(program) => kernel.register(version, program.clone()),
            None => {
                let source = shipped.source().map_err(|_| (Errno::EIO, shipped.name.to_owned()))?;
                kernel.register_later(version, source);
            }
        }
        if shipped.name == programs::PYTHON {
            python = version;
        }
    }
    install_directories(tree)?;
    install_library(tree)?;
    [&SHELL, &TOOLS].into_iter().chain(LATER).try_for_each(|shipped| link_in_usr(tree, shipped))?;
    install_devices(tree)?;
    install_etc(tree)?;
    Ok(python)
}

/// Creates one file in `/bin`, under all the names of the program. Returns the version of its content.
fn install_program(tree: &mut Tree, shipped: &Shipped) -> Installed<u64> {
    let broken = |_| (Errno::EIO, shipped.name.to_owned());
    let links = shipped.links().map_err(broken)?;
    let paths: Vec<String> = links.iter().map(|name| format!("/bin/{name}")).collect();
    let (first, others) = paths.split_first().ok_or((Errno::ENOENT, shipped.name.to_owned()))?;
    let content = shipped.content().map_err(broken)?;
    let version = tree.install(first.as_bytes(), 0o755, content).map_err(|errno| (errno, first.clone()))?;
    for path in others {
        tree.install_link(first.as_bytes(), path.as_bytes()).map_err(|errno| (errno, path.clone()))?;
    }
    Ok(version)
}

/// Gives a program its names in `/usr/bin` too, where scripts look: `#!/usr/bin/env bash`, `#!/usr/bin/awk -f`.
fn link_in_usr(tree: &mut Tree, shipped: &Shipped) -> Installed {
    let links = shipped.links().map_err(|_| (Errno::EIO, shipped.name.to_owned()))?;
    for name in links {
        let (path, link) = (format!("/bin/{name}"), format!("/usr/bin/{name}"));
        tree.install_link(path.as_bytes(), link.as_bytes()).map_err(|errno| (errno, link))?;
    }
    Ok(())
}

/// Installs what ships for Python: its library, which is unpacked when somebody looks at it, and commands of packages.
fn install_library(tree: &mut Tree) -> Installed {
    let broken = |errno| (errno, "/usr".to_owned());
    tree.install_packed(b"/usr", library::DIRECTORIES, library::files).map_err(broken)?;
    for (path, content) in library::commands().ok_or(broken(Errno::EIO))? {
        let path = format!("/usr/{path}");
        tree.install(path.as_bytes(), 0o755, content).map_err(|errno| (errno, path))?;
    }
    Ok(())
}

fn install_directories(tree: &mut Tree) -> Installed {
    let directories: [(&str, u32, u32); 7] = [
        ("/usr", 0o755, 0),
        ("/usr/bin", 0o755, 0),
        ("/etc", 0o755, 0),
        ("/tmp", 0o1777, 0),
        ("/home", 0o755, 0),
        ("/home/user", 0o755, 1000),
        ("/var", 0o755, 0),
    ];
    for (path, mode, owner) in directories {
        tree.install_dir(path.as_bytes(), mode).map_err(|errno| (errno, path.to_owned()))?;
        let root = tree.root();
        tree.chown(&Caller::ROOT, &root, path.as_bytes(), true, Some(owner), Some(owner))
            .map_err(|errno| (errno, path.to_owned()))?;
    }
    Ok(())
}

fn install_devices(tree: &mut Tree) -> Installed {
    let devices = [
        ("/dev/null", Device::Null),
        ("/dev/zero", Device::Zero),
        ("/dev/full", Device::Full),
        ("/dev/random", Device::Random),
        ("/dev/urandom", Device::Urandom),
        ("/dev/tty", Device::Tty),
    ];
    for (path, device) in devices {
        tree.install_device(path.as_bytes(), 0o666, device).map_err(|errno| (errno, path.to_owned()))?;
    }
    let links = [
        ("/dev/fd", "/proc/self/fd"),
        ("/dev/stdin", "/proc/self/fd/0"),
        ("/dev/stdout", "/proc/self/fd/1"),
        ("/dev/stderr", "/proc/self/fd/2"),
    ];
    for (path, target) in links {
        tree.install_symlink(target.as_bytes(), path.as_bytes()).map_err(|errno| (errno, path.to_owned()))?;
    }
    Ok(())
}

/// What every interactive shell reads first.
const BASHRC: &str = r"# For interactive shells. Yours is ~/.bashrc.
case $TERM in
dumb) PS1='\u@\h:\w\$ ' ;;
*) PS1='\[\e[01;32m\]\u@\h\[\e[00m\]:\[\e[01;34m\]\w\[\e[00m\]\$ ' ;;
esac
HISTCONTROL=ignoreboth
HISTSIZE=1000
alias ls='ls --color=auto'
alias grep='grep --color=auto'
";

/// The ports that people name.
const SERVICES: &str = "\
# name  port/protocol  other names
echo 7/tcp
echo 7/udp
discard 9/tcp sink null
discard 9/udp sink null
daytime 13/tcp
ftp-data 20/tcp
ftp 21/tcp
ssh 22/tcp
telnet 23/tcp
smtp 25/tcp mail
time 37/tcp timserver
domain 53/tcp
domain 53/udp
tftp 69/udp
gopher 70/tcp
finger 79/tcp
http 80/tcp www
kerberos 88/tcp kerberos5 krb5 kerberos-sec
kerberos 88/udp kerberos5 krb5 kerberos-sec
pop3 110/tcp pop-3
sunrpc 111/tcp portmapper
sunrpc 111/udp portmapper
nntp 119/tcp readnews untp
ntp 123/udp
imap2 143/tcp imap
snmp 161/udp
ldap 389/tcp
ldap 389/udp
https 443/tcp
https 443/udp
microsoft-ds 445/tcp
submissions 465/tcp ssmtp smtps urd
syslog 514/udp
submission 587/tcp
ldaps 636/tcp
domain-s 853/tcp
rsync 873/tcp
imaps 993/tcp
pop3s 995/tcp
socks 1080/tcp
mysql 3306/tcp
svn 3690/tcp subversion
postgresql 5432/tcp postgres
amqp 5672/tcp
redis 6379/tcp
http-alt 8080/tcp webcache
git 9418/tcp
";

/// The protocols that sockets can name.
const PROTOCOLS: &str = "\
# name  number  other names
ip 0 IP
icmp 1 ICMP
tcp 6 TCP
udp 17 UDP
ipv6 41 IPv6
ipv6-icmp 58 IPv6-ICMP
";

fn install_etc(tree: &mut Tree) -> Installed {
    let files = [
        ("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000:user:/home/user:/bin/bash\n"),
        ("/etc/group", "root:x:0:\nuser:x:1000:\n"),
        ("/etc/hostname", "wardian\n"),
        ("/etc/hosts", "127.0.0.1 localhost wardian\n::1 localhost\n"),
        ("/etc/services", SERVICES),
        ("/etc/protocols", PROTOCOLS),
        ("/etc/os-release", "NAME=Wardian\nID=wardian\nPRETTY_NAME=\"Wardian\"\n"),
        ("/etc/shells", "/bin/sh\n/bin/bash\n"),
        ("/etc/bash.bashrc", BASHRC),
        ("/etc/pip.conf", "[global]\ndisable-pip-version-check = true\n"),
    ];
    for (path, text) in files {
        let content = Content::Bytes(Arc::from(text.as_bytes()));
        tree.install(path.as_bytes(), 0o644, content).map_err(|errno| (errno, path.to_owned()))?;
    }
    Ok(())
}

/// Prepares everything that the first sandbox, and the first use of each program, would otherwise wait for: compiling
/// takes several seconds, once per machine. Calls `progress` for each step. Blocks.
pub fn prepare(progress: impl Fn(&str)) -> Result<(), Error> {
    Engine::of(&System::shared(&progress)?).prepare(progress)
}

/// Returns how many of Wardian's programs are compiled, without compiling more than every sandbox needs. Blocks.
pub fn compiled_programs() -> Result<usize, Error> {
    let system = System::shared(&|_| ())?;
    let mut compiled = 0;
    for shipped in [&SHELL, &TOOLS].into_iter().chain(LATER) {
        compiled += usize::from(system.kernel.is_compiled(&shipped.source().map_err(engine)?));
    }
    Ok(compiled)
}

/// Waits for programs that are being compiled because a command was the first to use them, also if it was cancelled
/// meanwhile: what is done is kept for the next start. Blocks; returns immediately if there are none.
pub fn finish_preparing() {
    if let Some(system) = SYSTEM.get() {
        system.kernel.finish_loading();
    }
}

/// Returns the number of sandboxes of the shared engine, without starting it.
pub fn live_sandboxes() -> usize {
    SYSTEM.get().map_or(0, |system| Engine::of(system).usage().sandboxes)
}

/// Prepares this program for many sandboxes: raises its limit of open files (`ulimit -Sn`) and makes its allocator return
/// free memory to the system at once. Call it at the start of a program; a library should leave both to the program.
pub fn tune_process() {
    wardian_kernel::raise_descriptor_limit();
    wardian_kernel::tune_allocator();
}

/// Returns this program's free memory to the system, soon and once more some seconds later. The library does so itself when
/// a sandbox ends; this is for a program to call when something else ends that was large, such as a connection and its
/// requests. It is cheap: calls share the work, and none waits for it. For the shared engine; one of a program's own has
/// [`Engine::return_memory`](crate::Engine::return_memory).
pub fn return_memory() {
    if let Some(system) = SYSTEM.get() {
        system.kernel.return_memory();
    }
}
