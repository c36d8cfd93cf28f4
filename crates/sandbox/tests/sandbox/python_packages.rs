//! What Python has beyond its standard library: packages that are ready, pip, the sandbox's own modules, processes.

use std::collections::BTreeMap;
use std::time::Duration;

use wardian::{Builder, Extension, ExtensionAnswer as Answer, ExtensionSpec, PythonPackage, Sandbox};

pub async fn built(builder: Builder) -> Sandbox {
    tokio::task::spawn_blocking(|| wardian::prepare(|_| ()))
        .await
        .expect("no panic")
        .expect("all programs load");
    builder.timeout(Some(Duration::from_secs(300))).build().await.expect("a sandbox")
}

pub async fn output(sandbox: &Sandbox, script: &str) -> String {
    let result = sandbox.run(script).await.expect("it runs");
    String::from_utf8_lossy(&result.stdout).into_owned()
}

pub async fn python(sandbox: &Sandbox, code: &str) -> String {
    output(
        sandbox,
        &format!("cat > /tmp/code.py <<'END_OF_CODE'\n{code}\nEND_OF_CODE\npython3 /tmp/code.py 2>&1"),
    )
    .await
}

#[tokio::test]
async fn extensions_are_called_and_their_packages_imported() {
    let echo = Extension::function(ExtensionSpec::new("echoes", "Repeats"), |call| async move {
        match call.args[0].as_str() {
            "text" => Answer::stdout("plain"),
            "fail" => Answer::failure(3, "it is broken\n"),
            method => Answer::stdout(format!(
                "{{\"method\": \"{method}\", \"given\": {}}}",
                String::from_utf8_lossy(&call.stdin)
            )),
        }
    });
    let files = BTreeMap::from([("pack/__init__.py".to_owned(), "where = 'extension'\n".to_owned())]);
    let package = PythonPackage { version: "1".into(), summary: String::new(), files };
    let spec = ExtensionSpec { python_package: Some(package), ..ExtensionSpec::new("pack", "") };
    let builder = Sandbox::builder().extension(echo).extension(Extension::package(spec));
    let sandbox =
        built(builder.python_path(["/tmp/first", "/tmp/second"]).env("PYTHONPATH", "/tmp/third")).await;
    let code = "
import sys, _wardian, wardian, codepod_ext, pack
print([path for path in sys.path if path.startswith('/tmp/')], pack.where)
print(wardian.call('echoes', 'm', key=[1, None]), codepod_ext.call('echoes', 'text'))
print([wardian.is_extension(name) for name in ('echoes', 'pack', 'nosuch', 'extensions', 'env', '../bin/env', 1)])
for name in ('echoes', 'nosuch'):
    try: _wardian.extension_call(name, 'fail')
    except RuntimeError as e: print(e)
print(_wardian.spawn('cat; echo $0 >&2; exit 4', 'in'), _wardian.spawn(['nosuch'])['exit_code'])
print(_wardian.fetch('GET', 'https://example.org/'))
for url in ('file:///etc/passwd', 'notaurl', 'http://', 'http://[', 'http://localhost:99999/', b'http://localhost/', 7):
    answer = _wardian.fetch('GET', url)
    print(answer['ok'], answer['status'], answer['error'])";
    let expected = "['/tmp/first', '/tmp/second', '/tmp/third'] extension\n\
        {'method': 'm', 'given': {'key': [1, None]}} plain\n\
        [True, False, False, False, False, False, False]\n\
        echoes: it is broken\n\
        the sandbox has no extension 'nosuch'\n\
        {'exit_code': 4, 'stdout': 'in', 'stderr': '/bin/sh\\n'} 127\n\
        {'ok': False, 'status': 0, 'headers': {}, 'body': '', 'body_base64': '', 'error': 'no network: the sandbox was not granted example.org (option network.allowedHosts)'}\n\
        False 0 not an address of the web: 'file:///etc/passwd'\n\
        False 0 not an address of the web: 'notaurl'\n\
        False 0 not an address of the web: 'http://'\n\
        False 0 not an address of the web: 'http://['\n\
        False 0 not an address of the web: 'http://localhost:99999/'\n\
        False 0 not an address of the web: b'http://localhost/'\n\
        False 0 not an address of the web: 7\n";
    assert_eq!(python(&sandbox, code).await, expected);
    // A directory of pythonPath comes before the packages of extensions.
    let first = "mkdir -p /tmp/second; echo \"where = 'path'\" > /tmp/second/pack.py; python3 -c 'import pack; print(pack.where)'";
    assert_eq!(output(&sandbox, first).await, "path\n");
}

/// Makes a wheel NAME-VERSION with these files and a command of its name.
pub const MAKE_WHEEL: &str = r#"
import base64, hashlib, sys, zipfile
def wheel(name, version='1.0', tag='py3-none-any', requires=(), damage=False):
    info = f'{name}-{version}.dist-info'
    metadata = f'Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n' + ''.join(f'Requires-Dist: {r}\n' for r in requires)
    files = {f'{name}.py': f'def main(): print("{name} runs")\n', f'{info}/METADATA': metadata,
             f'{info}/WHEEL': f'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n',
             f'{info}/entry_points.txt': f'[console_scripts]\n{name} = {name}:main\n'}
    rows = [f'{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()},{len(text)}'
            for path, text in files.items()]
    if damage: files[f'{name}.py'] += '# other\n'
    files[f'{info}/RECORD'] = '\n'.join(rows + [f'{info}/RECORD,,', ''])
    with zipfile.ZipFile(f'{name}-{version}-{tag}.whl', 'w') as archive:
        for path, text in files.items(): archive.writestr(path, text)
wheel('alpha'); wheel('alpha', '2.0'); wheel('beta', requires=['alpha']); wheel('gamma', tag='cp313-cp313-manylinux_2_17_x86_64')
wheel('delta', damage=True); wheel('epsilon', requires=['nosuch-package'])
"#;

#[tokio::test]
async fn pip_installs_lists_and_removes_wheels_from_files() {
    let sandbox = built(Sandbox::builder()).await;
    python(&sandbox, MAKE_WHEEL).await;
    let script = "pip install ./alpha-1.0-py3-none-any.whl 2>&1 | tail -n 1; alpha
        pip3 install --no-index --find-links . beta 2>&1 | tail -n 1; beta
        python3 -m pip freeze --user | sed 's/ @.*//'; pip list --user --format=freeze
        pip show beta | grep -E 'Name|Version|Requires'
        echo 'alpha==2.0' > r.txt; pip install --no-index --find-links . -r r.txt 2>&1 | tail -n 1
        pip install --no-deps --target /tmp/t ./epsilon-1.0-py3-none-any.whl 2>&1 | tail -n 1; ls /tmp/t
        pip uninstall -y alpha beta 2>&1 | grep Successfully; hash -r; type alpha 2>&1
        pip list --format=freeze | grep -i -E '^(jinja2|pyyaml|pip)=' | sed 's/=.*//'";
    let expected = "Successfully installed alpha-1.0\nalpha runs\nSuccessfully installed beta-1.0\nbeta runs\n\
        alpha\nbeta==1.0\nalpha==1.0\nbeta==1.0\nName: beta\nVersion: 1.0\nRequires: alpha\n\
        Successfully installed alpha-2.0\nSuccessfully installed epsilon-1.0\nbin\nepsilon-1.0.dist-info\nepsilon.py\n\
        \x20 Successfully uninstalled alpha-2.0\n  Successfully uninstalled beta-1.0\n\
        bash: line 7: type: alpha: not found\nJinja2\npip\nPyYAML\n";
    let got = output(&sandbox, script).await;
    assert_eq!(got.replace("__pycache__\n", ""), expected);
}

/// A source package with a build backend of its own, in pure Python; and one that needs setuptools.
const MAKE_SOURCES: &str = r#"
import pathlib
for name in ('pkg', 'eta'): pathlib.Path(name).mkdir()
def write(path, text): pathlib.Path(path).write_text(text)
write('eta/setup.py', 'from setuptools import setup\nsetup(name="eta", version="1")\n')
write('pkg/pyproject.toml', '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n')
write('pkg/zeta.py', 'def main(): print("zeta runs")\n')
write('pkg/backend.py', r'''
import base64, hashlib, zipfile
def build_wheel(directory, config_settings=None, metadata_directory=None):
    name, info = 'zeta-1.0-py3-none-any.whl', 'zeta-1.0.dist-info'
    files = {'zeta.py': open('zeta.py').read(), f'{info}/METADATA': 'Metadata-Version: 2.1\nName: zeta\nVersion: 1.0\n',
             f'{info}/WHEEL': 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
             f'{info}/entry_points.txt': '[console_scripts]\nzeta = zeta:main\n'}
    digest = lambda text: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()
    rows = [f'{path},sha256={digest(text)},{len(text)}' for path, text in files.items()]
    files[f'{info}/RECORD'] = '\n'.join([*rows, f'{info}/RECORD,,', ''])
    with zipfile.ZipFile(f'{directory}/{name}', 'w') as archive:
        for path, text in files.items(): archive.writestr(path, text)
    return name
''')
"#;

#[tokio::test]
async fn pip_builds_sources_that_bring_a_pure_backend() {
    let sandbox = built(Sandbox::builder()).await;
    assert_eq!(python(&sandbox, MAKE_SOURCES).await, "");
    let script = "pip install ./pkg 2>&1 | tail -n 1; zeta; pip list --user --format=freeze; pip uninstall -y zeta 2>&1 | tail -n 1
        mv pkg zeta-1.0; tar czf zeta-1.0.tar.gz zeta-1.0; pip install --no-index ./zeta-1.0.tar.gz 2>&1 | tail -n 1; zeta
        pip install ./eta 2>&1 | grep -o 'no network: .* (option network.allowedHosts)'";
    let expected = "Successfully installed zeta-1.0\nzeta runs\nzeta==1.0\n  Successfully uninstalled zeta-1.0\n\
        Successfully installed zeta-1.0\nzeta runs\n\
        no network: the sandbox was not granted pypi.org (option network.allowedHosts)\n";
    assert_eq!(output(&sandbox, script).await, expected);
}

#[tokio::test]
async fn what_pip_cannot_install_is_refused_in_one_sentence() {
    let sandbox = built(Sandbox::builder()).await;
    python(&sandbox, MAKE_WHEEL).await;
    let refused = [
        (
            "./gamma-*.whl",
            "gamma-1.0-cp313-cp313-manylinux_2_17_x86_64.whl has native code for manylinux_2_17_x86_64, which cannot be loaded",
        ),
        ("./delta-*.whl", "delta.py is not what RECORD says."),
        (
            "./epsilon-*.whl",
            "no network: the sandbox was not granted pypi.org (option network.allowedHosts).",
        ),
        ("scipy", "no network: the sandbox was not granted pypi.org (option network.allowedHosts)."),
    ];
    for (what, why) in refused {
        let text = output(&sandbox, &format!("pip install {what} 2>&1; echo $?")).await;
        assert!(text.contains(why), "{what}: {text}");
        assert!(text.ends_with("\n1\n"), "{what}: {text}");
        assert!(!text.contains("Retrying") && !text.contains("Traceback"), "{what}: {text}");
    }
}

#[tokio::test]
async fn an_environment_has_its_own_packages() {
    let sandbox = built(Sandbox::builder()).await;
    python(&sandbox, MAKE_WHEEL).await;
    let script = "python3 -m venv /tmp/e && . /tmp/e/bin/activate && pip install --no-index ./alpha-1.0-py3-none-any.whl 2>&1 | tail -n 1
        alpha; command -v alpha; python -c 'import sys; print(sys.prefix)'; pip list --format=freeze | sed 's/=.*//'
        python -c 'import yaml' 2>&1 | tail -n 1; deactivate; python3 -c 'import yaml; import alpha' 2>&1 | tail -n 1";
    let expected = "Successfully installed alpha-1.0\nalpha runs\n/tmp/e/bin/alpha\n/tmp/e\nalpha\npip\n\
        ModuleNotFoundError: No module named 'yaml'\nModuleNotFoundError: No module named 'alpha'\n";
    assert_eq!(output(&sandbox, script).await, expected);
}

#[tokio::test]
async fn the_packages_that_are_ready_work() {
    let code = "
import yaml, jinja2, markupsafe, markdown, bs4, tabulate, requests, urllib3, idna, certifi, charset_normalizer, packaging.version, attrs
import click, rich.progress, rich.console, pygments.lexers, pygments.formatters, openpyxl, networkx, dateutil.parser, six, tzdata, mpmath, pytest
print(yaml.safe_load('a: [1, {b: c}]'), jinja2.Template('{% for x in y %}<{{ x }}>{% endfor %}').render(y='ab'), markdown.markdown('# *t*'))
print(bs4.BeautifulSoup('<p class=x>one</p><p>two', 'html.parser').select_one('p.x').get_text(), tabulate.tabulate([[1, 2]], tablefmt='plain'))
print(dateutil.parser.parse('3 May 2024 10:00').isoformat(), packaging.version.Version('2.10') > packaging.version.Version('2.9'), attrs.asdict(attrs.make_class('C', ['x'])(1)))
book = openpyxl.Workbook(); book.active['A1'] = 5; book.save('/tmp/b.xlsx'); print(openpyxl.load_workbook('/tmp/b.xlsx').active['A1'].value)
print(networkx.shortest_path(networkx.path_graph(4), 0, 3), mpmath.mp.pi)
print(pygments.highlight('x = 1', pygments.lexers.PythonLexer(), pygments.formatters.NullFormatter()).strip())
import io; text = io.StringIO(); console = rich.console.Console(file=text, width=40)
print(sum(rich.progress.track(range(5), console=console)), '100%' in text.getvalue())
try: requests.get('http://example.org/')
except requests.ConnectionError: print('no connection')";
    let expected = "{'a': [1, {'b': 'c'}]} <a><b> <h1><em>t</em></h1>\none 1  2\n2024-05-03T10:00:00 True {'x': 1}\n5\n\
        [0, 1, 2, 3] 3.14159265358979\nx = 1\n10 True\nno connection\n";
    let sandbox = built(Sandbox::builder()).await;
    assert_eq!(python(&sandbox, code).await, expected);
    let script = "echo 'import sympy; x = sympy.Symbol(\"x\"); print(sympy.integrate(sympy.sin(x) * x, x), sympy.solve(x**2 - 4, x))' | python3 2>&1
        printf 'def test_a(): assert 1 + 1 == 2\\ndef test_b(): assert [1] == [2]\\n' > test_x.py; pytest -q -p no:cacheprovider 2>&1 | tail -n 2 | sed 's/ in .*//'";
    let expected =
        "-x*cos(x) + sin(x) [-2, 2]\nFAILED test_x.py::test_b - assert [1] == [2]\n1 failed, 1 passed\n";
    assert_eq!(output(&sandbox, script).await, expected);
}

/// What a native CPython 3.13 prints for the same code.
#[tokio::test]
async fn processes_and_pools_of_multiprocessing_work() {
    let code = "
import multiprocessing as mp, os, asyncio
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing.pool import ThreadPool
def f(x): return x * x
def child(q, n): q.put(os.getpid()); q.put(n)
def double(c): c.send(c.recv() * 2)
def boom(x): raise ValueError(f'bad {x}')
p = mp.Process(target=lambda: print('lambda in child', flush=True)); p.start(); p.join(); print('exit', p.exitcode)
q = mp.Queue(); p = mp.Process(target=child, args=(q, 7)); p.start(); print(q.get() == p.pid, q.get()); p.join()
a, b = mp.Pipe(); p = mp.Process(target=double, args=(b,)); p.start(); a.send(21); print(a.recv()); p.join()
q = mp.Queue()
for i in range(20000): q.put(i)
p = mp.Process(target=lambda: print('sum', sum(q.get() for _ in range(20000)), flush=True)); p.start(); p.join()
with mp.Pool(3) as pool:
    print(pool.map(f, range(10)), pool.apply(f, (5,)), list(pool.imap(f, range(4))), sorted(pool.imap_unordered(f, range(4))))
    try: pool.map(boom, [1])
    except ValueError as e: print('error', e)
    print(len(pool.map(len, ['x' * 300000] * 5)), len(pool.apply(bytes, (500000,))))
pool = mp.Pool(2); results = [pool.apply_async(f, (i,)) for i in range(5)]; pool.close(); pool.join(); print([r.get() for r in results])
l = mp.Lock(); print(l.acquire(), l.acquire(timeout=0.05), mp.Semaphore(2).get_value()); l.release()
e = mp.Event(); p = mp.Process(target=e.set); p.start(); print(e.wait(60)); p.join()
with ProcessPoolExecutor(3) as ex:
    print(list(ex.map(f, range(8))), sorted(x.result() for x in as_completed([ex.submit(f, i) for i in range(4)])))
    try: ex.submit(boom, 1).result()
    except ValueError as e: print('error', e)
ex = ProcessPoolExecutor(2)
try: ex.submit(os._exit, 1).result()
except Exception as e: print(type(e).__name__)
ex.shutdown()
async def main():
    with ProcessPoolExecutor(2) as ex:
        return await asyncio.gather(*[asyncio.get_running_loop().run_in_executor(ex, f, i) for i in range(3)])
print(asyncio.run(main()))
jobs = mp.JoinableQueue()
def consume():
    while True: jobs.get(); jobs.task_done()
p = mp.Process(target=consume, daemon=True); p.start()
for i in range(5): jobs.put(i)
jobs.join(); print('joined')
with ThreadPool(4) as t: print(t.map(f, range(3)), t.apply_async(f, (3,)).get(), list(t.imap(f, [1, 2])))";
    let expected = "lambda in child\nexit 0\nTrue 7\n42\nsum 199990000\n\
        [0, 1, 4, 9, 16, 25, 36, 49, 64, 81] 25 [0, 1, 4, 9] [0, 1, 4, 9]\nerror bad 1\n5 500000\n[0, 1, 4, 9, 16]\n\
        True False 2\nTrue\n[0, 1, 4, 9, 16, 25, 36, 49] [0, 1, 4, 9]\nerror bad 1\nBrokenProcessPool\n[0, 1, 4]\n\
        joined\n[0, 1, 4] 9 [1, 4]\n";
    assert_eq!(python(&built(Sandbox::builder()).await, code).await, expected);
}

#[tokio::test]
async fn iterators_inside_each_other_end_in_an_error_and_not_the_process() {
    let code = "
import itertools, collections
for wrap in (itertools.chain, lambda it: map(abs, it), lambda it: filter(None, it), zip):
    it = iter([1])
    for _ in range(100000): it = wrap(it)
    try: next(it); print('?')
    except RecursionError as e: print(str(e)[:32])
    del it
nested = None
for _ in range(200000): nested = collections.deque([nested])
del nested
print('alive')";
    let expected = "maximum recursion depth exceeded\n".repeat(4) + "alive\n";
    assert_eq!(python(&built(Sandbox::builder()).await, code).await, expected);
}
