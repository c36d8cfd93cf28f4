//! numpy and pandas as part of `python3`. What they compute is compared with native ones in `guests/python/tests/cases`.

use std::time::Duration;

use wardian::{ErrorClass, Limits, Python, PythonResult, Run, Sandbox};

async fn sandbox_with(limits: Limits) -> Sandbox {
    let prepared = tokio::task::spawn_blocking(|| wardian::prepare(|_| ())).await.expect("no panic");
    prepared.expect("all programs load");
    Sandbox::builder().limits(limits).timeout(Some(Duration::from_secs(60))).build().await.expect("a sandbox")
}

async fn python(sandbox: &Sandbox, code: &str) -> PythonResult {
    sandbox.python(code).await.expect("it runs")
}

async fn value(sandbox: &Sandbox, code: &str) -> String {
    let result = python(sandbox, code).await;
    result.value.clone().unwrap_or_else(|| panic!("{code} has no value: {result:?}")).repr
}

async fn output(sandbox: &Sandbox, script: &str) -> String {
    let result = sandbox.run(script).await.expect("it runs");
    String::from_utf8_lossy(&result.stdout).into_owned()
}

/// A frame of some 100 MB.
const FRAME: &str = "import numpy as np, pandas as pd
df = pd.DataFrame(np.arange(12_500_000.0).reshape(-1, 10), columns=list('abcdefghij'))";

#[tokio::test]
async fn a_fork_of_a_session_has_its_own_frame() {
    let sandbox = sandbox_with(Limits { memory_bytes: 1 << 30, ..Limits::default() }).await;
    assert_eq!(python(&sandbox, FRAME).await.run.exit_code, 0);
    let fork = sandbox.fork().await.expect("a fork");
    python(&fork, "df.loc[0, 'a'] = -1.0; df['k'] = 1; np.random.seed(1)").await;
    assert_eq!(value(&fork, "df.shape, float(df.a.min())").await, "((1250000, 11), -1.0)");
    assert_eq!(value(&sandbox, "df.shape, float(df.a.min())").await, "((1250000, 10), 0.0)");
    let archive = fork.export().await.expect("an archive");
    assert!(archive.len() > 1 << 20);
}

#[tokio::test]
async fn a_product_of_matrices_ends_at_its_deadline_and_the_session_is_as_before() {
    let sandbox = sandbox_with(Limits { memory_bytes: 1 << 30, ..Limits::default() }).await;
    python(&sandbox, "import numpy as np; a = np.ones((3000, 3000)); kept = 1").await;
    let endless = "kept = 2\nwhile True: b = a @ a";
    let cut = Python::new(endless).timeout(Some(Duration::from_millis(700)));
    let result = sandbox.python_with(cut).await.expect("it runs");
    assert_eq!(result.run.error_class, Some(ErrorClass::Timeout), "{result:?}");
    assert_eq!(value(&sandbox, "kept, float((a[:2] @ a[:, :2])[0, 0])").await, "(1, 3000.0)");
    let command = Run::new(
        "python3 -c 'import numpy as np; a = np.ones((4000, 4000)); print(len([a @ a for _ in range(10**6)]))'",
    );
    let result = sandbox.run_with(command.timeout(Some(Duration::from_secs(2)))).await.expect("it runs");
    assert_eq!(result.error_class, Some(ErrorClass::Timeout), "{result:?}");
    assert_eq!(
        output(&sandbox, "python3 -c 'import numpy as np; print(np.eye(2) @ np.eye(2))'").await,
        "[[1. 0.]\n [0. 1.]]\n"
    );
}

#[tokio::test]
async fn an_array_that_does_not_fit_is_a_memory_error() {
    let sandbox = sandbox_with(Limits { memory_bytes: 256 << 20, ..Limits::default() }).await;
    let code = "import numpy as np, pandas as pd
refused = 0
for make in (lambda: np.ones(10**8), lambda: np.zeros((2**31 - 1,), np.int8), lambda: np.arange(10**9), lambda: np.ones((10**6, 10**6)),
             lambda: np.ones(10**7) + np.ones((100, 1)), lambda: pd.Series(range(10**8)).cumsum(), lambda: np.random.rand(10**8)):
    try:
        make()
    except (MemoryError, ValueError):
        refused += 1
refused, float(np.ones(1000).sum())";
    assert_eq!(value(&sandbox, code).await, "(7, 1000.0)");
}

#[tokio::test]
async fn a_program_that_imports_neither_does_not_pay_for_them() {
    let sandbox = sandbox_with(Limits::default()).await;
    let code = "python3 -c 'import sys; print([m for m in sys.modules if m.split(\".\")[0] in (\"numpy\", \"pandas\", \"dateutil\")])'";
    assert_eq!(output(&sandbox, code).await, "[]\n");
    let own =
        "mkdir d; cd d; echo 'print(\"mine\")' > numpy.py; python3 -c 'import numpy; print(numpy.__file__)'";
    assert_eq!(output(&sandbox, own).await, "mine\n/home/user/d/numpy.py\n");
    let listed =
        "python3 -c 'import importlib.metadata as m; print(m.version(\"numpy\"), m.version(\"pandas\"))'";
    assert_eq!(output(&sandbox, listed).await, "2.4.6 3.0.6\n");
}

/// With an option an interpreter starts from nothing, and imports from files.
#[tokio::test]
async fn they_are_the_same_without_the_image() {
    let sandbox = sandbox_with(Limits::default()).await;
    let code = "import numpy as np, pandas as pd; print(np.arange(3).dtype, pd.Series([1, 2]).groupby([0, 0]).sum().tolist(), np.random.rand() < 1)";
    for options in ["", "-I", "-X utf8"] {
        assert_eq!(
            output(&sandbox, &format!("python3 {options} -c '{code}' 2>&1")).await,
            "int64 [3] True\n",
            "{options}"
        );
    }
}

#[tokio::test]
async fn missing_modules_are_reported() {
    let sandbox = sandbox_with(Limits::default()).await;
    let code = "import pandas as pd
for make in (lambda: pd.read_parquet('a'), lambda: pd.Series([1]).plot()):
    try:
        make()
    except ImportError as error:
        print(str(error).splitlines()[0][:60])";
    let text = output(&sandbox, &format!("python3 - 2>&1 <<'E'\n{code}\nE")).await;
    assert!(text.contains("pyarrow") && text.contains("matplotlib"), "{text}");
}

/// What nobody seeded differs between forks; what was seeded goes on.
#[tokio::test]
async fn forks_draw_numbers_of_their_own_unless_they_were_seeded() {
    let sandbox = sandbox_with(Limits::default()).await;
    let code = "import numpy as np
own, state = np.random.default_rng(), np.random.RandomState()
spawned = own.spawn(1)[0]
seeded, kept, keyed = np.random.default_rng(7), np.random.default_rng(), np.random.Generator(np.random.Philox(key=3))
kept.bit_generator.state = kept.bit_generator.state
drawn = np.random.rand(), np.random.randn(), own.random(), state.rand(), spawned.random()";
    assert_eq!(python(&sandbox, code).await.run.exit_code, 0);
    let (one, two) = (sandbox.fork().await.expect("a fork"), sandbox.fork().await.expect("a fork"));
    let unseeded =
        ["np.random.randn()", "np.random.rand()", "own.random()", "state.rand()", "spawned.random()"];
    for code in unseeded.into_iter().chain(["own.bit_generator.seed_seq.entropy"]) {
        let drawn = [value(&sandbox, code).await, value(&one, code).await, value(&two, code).await];
        assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2] && drawn[0] != drawn[2], "{code}: {drawn:?}");
    }
    for code in ["seeded.random()", "kept.random()", "keyed.random()"] {
        assert_eq!(value(&one, code).await, value(&two, code).await, "{code}");
    }
    python(&one, "np.random.seed(3)").await;
    let three = one.fork().await.expect("a fork");
    assert_eq!(value(&one, "np.random.rand()").await, value(&three, "np.random.rand()").await);
    python(&one, "np.random.seed()").await;
    let four = one.fork().await.expect("a fork");
    assert_ne!(value(&one, "np.random.rand()").await, value(&four, "np.random.rand()").await);
}
