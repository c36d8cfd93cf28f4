//! Engines of one's own beside the one that the process shares.

use wardian::{CompileBudget, Engine, Error, Limit, Limits, Sandbox};

/// An engine that shares the compiled programs on disk with all other tests.
async fn engine() -> Engine {
    Engine::builder().threads(1).instances(40).build().await.unwrap()
}

#[tokio::test]
async fn sandboxes_of_two_engines_run_beside_each_other() {
    let (one, other) = (engine().await, engine().await);
    let (a, b) = (one.sandbox().build().await.unwrap(), other.sandbox().build().await.unwrap());
    a.write_file("x", "of a").await.unwrap();
    assert!(b.read_file("x").await.is_err());
    let (a, b) = tokio::join!(a.run("cat x | tr a A"), b.run("seq 3 | sort -r | head -n 1"));
    assert_eq!((a.unwrap().stdout, b.unwrap().stdout), (b"of A".to_vec(), b"3\n".to_vec()));
    assert_eq!((one.usage().sandboxes, other.usage().sandboxes), (1, 1));
}

#[tokio::test]
async fn a_snapshot_of_another_engine_is_refused() {
    let (one, other) = (engine().await, engine().await);
    let sandbox = one.sandbox().build().await.unwrap();
    let snapshot = sandbox.snapshot().await.unwrap();
    let stranger = other.sandbox().build().await.unwrap();
    assert!(matches!(stranger.restore(&snapshot).await, Err(Error::OtherEngine("snapshot"))));
    assert_eq!(stranger.run("echo fine").await.unwrap().stdout, b"fine\n");
    sandbox.restore(&snapshot).await.unwrap();
    // What leaves one engine as an archive can enter another.
    stranger.import(sandbox.export().await.unwrap()).await.unwrap();
}

#[tokio::test]
async fn the_memory_of_all_sandboxes_together_is_limited() {
    let engine = Engine::builder().threads(1).instances(40).memory_bytes(52 << 20).build().await.unwrap();
    let limits = Limits { memory_bytes: 64 << 20, ..Limits::default() };
    let script = "s=$(printf %16000000s x); echo ${#s}";
    let one = engine.sandbox().limits(limits).build().await.unwrap();
    assert_eq!(one.run(format!("{script}; kept=$s")).await.unwrap().stdout, b"16000000\n");
    let other = engine.sandbox().limits(limits).build().await.unwrap();
    let refused = other.run(script).await.unwrap();
    assert_eq!(refused.limit, Some(Limit::EngineMemoryBytes), "{refused:?}");
    // Beside it nothing changed, and what one frees another can have.
    let beside = Sandbox::builder().limits(limits).build().await.unwrap();
    assert_eq!(beside.run(script).await.unwrap().stdout, b"16000000\n");
    one.destroy().await;
    let fits = engine.sandbox().limits(limits).build().await.unwrap().run(script).await.unwrap();
    assert_eq!(fits.stdout, b"16000000\n");
}

/// The budget is the engine's, and the limit has a name that callers see.
#[tokio::test]
async fn what_compiling_a_program_may_take_is_limited() {
    let budget = CompileBudget { seconds: 1, ..CompileBudget::default() };
    let engine = Engine::builder().threads(1).compile_budget(budget).build().await.unwrap();
    let sandbox = engine.sandbox().build().await.unwrap();
    sandbox.write_file("/tmp/bomb", crate::kills::compile_bomb()).await.unwrap();
    let result = sandbox.run("chmod +x /tmp/bomb; /tmp/bomb").await.unwrap();
    assert_eq!((result.exit_code, result.limit), (126, Some(Limit::Compile)), "{result:?}");
    assert_eq!(Limit::Compile.name(), "compile");
}

#[tokio::test]
async fn capacity_is_taken_from_the_process() {
    let too_many = Engine::builder().instances(1_000_000).build().await;
    assert!(too_many.unwrap_err().to_string().contains("capacity"));
    assert!(Engine::builder().threads(0).build().await.is_err());
}

#[test]
fn an_engine_can_be_used_without_a_runtime() {
    let engine = Engine::builder().threads(1).instances(40).build_blocking().unwrap();
    let sandbox = wardian::blocking::Sandbox::new(engine.sandbox()).unwrap();
    assert_eq!(sandbox.run("echo hello").unwrap().stdout, b"hello\n");
    assert_eq!(engine.usage().sandboxes, 1);
    drop(sandbox);
    assert_eq!(engine.usage().sandboxes, 0);
}
