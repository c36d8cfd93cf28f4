//! A program with a pool, to be killed or stopped while a call runs: `host MILLISECONDS JAIL WORKER PROGRAM ARGS…`.

use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use wardian_hosttools::{
    Confinement, ExecSpec, HeldDirectory, Lane, Mode as ToolsMode, PoolConfig, Required, WorkerPool,
};

pub fn main(args: &[String]) {
    let (timeout, args) = args.split_first().expect("a timeout");
    let jail = PathBuf::from(&args[0]);
    let held =
        open(&jail, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).expect("the jail");
    let jail = HeldDirectory::new(jail, held);
    let spec = ExecSpec {
        program: PathBuf::from(&args[2]),
        name: "program".into(),
        args: args[3..].iter().map(Into::into).collect(),
        cwd: jail.clone(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        timeout: Duration::from_millis(timeout.parse().expect("a number")),
        max_output: 1000,
        confinement: Confinement {
            jail,
            readable: vec![],
            writable: vec![],
            write: true,
            attributes: false,
            network: false,
            children: true,
            memory: 1 << 30,
            files: 100,
            processes: 100,
            file_size: 1 << 20,
            required: Required::default(),
        },
    };
    let worker = vec![PathBuf::from(&args[1])];
    let config = PoolConfig { worker, kill_grace_ms: 100, confirm_grace_ms: 5000, ..PoolConfig::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let pool = WorkerPool::start(ToolsMode::Worker, &config).expect("a pool");
        let result = pool.run(spec, Lane::Interactive, "host", None).await;
        println!("{result:?}");
    });
}
