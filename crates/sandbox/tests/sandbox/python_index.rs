//! pip and an index over HTTPS that serves a published package: its pages in HTML and JSON, with hashes that fit or do not.

use wardian::Sandbox;

use crate::network::Here;
use crate::python_packages::{built, output, python};
use crate::tls_server::{Asked, Authority};

const WHEEL: &str = "six-1.17.0-py2.py3-none-any.whl";

/// Packs `six`, which every sandbox has, into the wheel that it was installed from: its files and a RECORD.
const PACK: &str = r#"
import base64, hashlib, importlib.metadata, zipfile
six = importlib.metadata.distribution('six')
info = f'six-{six.version}.dist-info'
files = {str(path): path.read_binary() for path in six.files if path.name != 'RECORD' and not path.parts[0].startswith(('.', '/'))}
files.setdefault(f'{info}/WHEEL', b'Wheel-Version: 1.0\nGenerator: bdist_wheel\nRoot-Is-Purelib: true\nTag: py2-none-any\nTag: py3-none-any\n')
files = {path: data for path, data in files.items() if not path.endswith('.pyc') and '/INSTALLER' not in path and '/REQUESTED' not in path}
digest = lambda data: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
record = ''.join(f'{path},sha256={digest(data)},{len(data)}\n' for path, data in files.items()) + f'{info}/RECORD,,\n'
name = f'/tmp/six-{six.version}-py2.py3-none-any.whl'
with zipfile.ZipFile(name, 'w', zipfile.ZIP_DEFLATED) as archive:
    for path, data in [*files.items(), (f'{info}/RECORD', record.encode())]: archive.writestr(path, data)
print(name, 'six.py' in files, f'{info}/METADATA' in files)
"#;

/// What an index says about a wheel.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Html,
    Json,
}

fn response(kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Answers as an index with one wheel does. In JSON only those who accept it are answered so, as PEP 691 has it.
fn index(asked: &Asked, kind: Kind, wheel: &[u8], hash: &str) -> Vec<u8> {
    const JSON: &str = "application/vnd.pypi.simple.v1+json";
    let accepted = asked.headers.get("accept").is_some_and(|accept| accept.contains(JSON));
    match asked.target.as_str() {
        "/simple/six/" if kind == Kind::Json && accepted => {
            let file = format!(
                r#"{{"filename":"{WHEEL}","url":"/files/{WHEEL}","hashes":{{"sha256":"{hash}"}},"requires-python":">=2.7","size":{}}}"#,
                wheel.len()
            );
            let page = format!(
                r#"{{"meta":{{"api-version":"1.1"}},"name":"six","versions":["1.17.0"],"files":[{file}]}}"#
            );
            response(JSON, page.as_bytes())
        }
        "/simple/six/" if kind == Kind::Html => {
            let link = format!(
                "<!DOCTYPE html><html><body><a href=\"../../files/{WHEEL}#sha256={hash}\" \
                 data-requires-python=\"&gt;=2.7\">{WHEEL}</a></body></html>"
            );
            response("text/html", link.as_bytes())
        }
        path if path == format!("/files/{WHEEL}") => response("application/octet-stream", wheel),
        _ => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
    }
}

#[tokio::test]
async fn a_published_wheel_is_installed_if_it_has_the_hash_that_its_index_names() {
    let maker = built(Sandbox::builder()).await;
    assert_eq!(python(&maker, PACK).await, format!("/tmp/{WHEEL} True True\n"));
    let wheel = maker.read_file(&format!("/tmp/{WHEEL}")).await.expect("it was made").to_vec();
    let sum = output(&maker, &format!("sha256sum /tmp/{WHEEL}")).await;
    let right = sum.split(' ').next().expect("a sum").to_owned();
    let wrong = "0".repeat(64);
    for kind in [Kind::Html, Kind::Json] {
        for hash in [&right, &wrong] {
            let authority = Authority::new("one");
            let (wheel, named) = (wheel.clone(), hash.clone());
            let answer = move |asked: Asked| index(&asked, kind, &wheel, &named);
            let port = authority.answer("server.test", answer).await;
            let sandbox = built(Sandbox::builder().network(authority.policy(port)).resolver(Here)).await;
            let script = format!(
                "export PIP_INDEX_URL=https://server.test:{port}/simple PIP_DISABLE_PIP_VERSION_CHECK=1
                python3 -m venv /tmp/e && . /tmp/e/bin/activate
                pip install six > /tmp/said 2>&1; echo $?; tail -n 1 /tmp/said
                python -c 'import six; print(six.__version__, six.__file__)' 2>&1 | tail -n 1
                pip show -f six 2> /dev/null | grep -c -e '^Version: 1.17.0' -e '^  six.py'"
            );
            let got = output(&sandbox, &script).await;
            if *hash == right {
                let place = "/tmp/e/lib/python3.13/site-packages/six.py";
                let expected = format!("0\nSuccessfully installed six-1.17.0\n1.17.0 {place}\n2\n");
                assert_eq!(got, expected);
            } else {
                assert!(got.starts_with("1\n"), "{got}");
                assert!(got.ends_with("ModuleNotFoundError: No module named 'six'\n0\n"), "{got}");
                let said = output(&sandbox, "cat /tmp/said").await;
                assert!(said.contains(&wrong) && said.contains(&right), "both hashes are shown: {said}");
            }
        }
    }
}
