//! A sandbox out of one place and into another, and archives that lie.

use std::time::Duration;

use wardian::{Error, Limits, Run, Sandbox};

use crate::support::{output, random, run, sandbox};

async fn original() -> Sandbox {
    let sandbox = sandbox().await;
    let script = "x=1; a=(p q); f() { echo f$x; }; cd /tmp; umask 027; echo one > log; exec 3>>log; exec 4<log; read line <&4; \
                  echo secret > orphan; exec 5<orphan; rm orphan; mkdir -p ~/d; ln -s d ~/link; echo hi > ~/d/hi; chmod 640 ~/d/hi; \
                  ln ~/d/hi ~/d/other; trap '' USR2; truncate -s 1M sparse; export E=e";
    output(&sandbox, script).await;
    sandbox
}

const LOOK: &str = "f; echo ${a[1]} $E; pwd; umask; cat ~/link/hi; stat -c '%a %h' ~/d/hi; trap -p; stat -c %s sparse; ls -l ~ /tmp";

#[tokio::test]
async fn everything_goes_along() {
    let sandbox = original().await;
    let before = output(&sandbox, LOOK).await;
    let usage = sandbox.machine().tree().await.usage();
    let archive = sandbox.export().await.unwrap();
    let copy = self::sandbox().await;
    output(&copy, "y=here; echo other > /tmp/other; sleep 1000 &").await;
    copy.import(archive.clone()).await.unwrap();
    assert_eq!(output(&copy, LOOK).await, before);
    assert_eq!(output(&copy, "echo ${y-unset}; ls /tmp").await, "unset\nlog\nsparse\n");
    assert_eq!(copy.machine().tree().await.usage(), usage);
    assert_eq!(copy.machine().census().processes, 1);
    output(&copy, "echo two >&3; read -r next <&4; [[ $next = two ]]").await;
    assert_eq!(output(&copy, "cat log; cat <&5").await, "one\ntwo\nsecret\n");
    assert_eq!(copy.history().len(), sandbox.history().len() + 4);
    assert_eq!(output(&sandbox, "cat /tmp/log").await, "one\n", "the original knows nothing of it");
    // Out, in and out again is the same.
    let again = self::sandbox().await;
    again.import(archive).await.unwrap();
    again.fork().await.unwrap().import(again.export().await.unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_damaged_archive_is_an_error_and_changes_nothing() {
    let archive = original().await.export().await.unwrap();
    let target = sandbox().await;
    output(&target, "x=mine; echo mine > /tmp/mine").await;
    let usage = target.machine().tree().await.usage();
    let mut damaged: Vec<(String, Vec<u8>)> = Vec::new();
    for length in [0, 1, 7, 8, 20, 51, 52, 60, archive.len() / 2, archive.len() - 1] {
        damaged.push((format!("cut to {length}"), archive[..length].to_vec()));
    }
    for at in (0..archive.len()).step_by(archive.len() / 200) {
        let mut flipped = archive.clone();
        flipped[at] ^= 0x10;
        damaged.push((format!("byte {at} flipped"), flipped));
    }
    damaged.push(("longer".into(), [&archive[..], b"x"].concat()));
    damaged.push(("foreign".into(), b"PK\x03\x04 something else entirely".to_vec()));
    for (what, archive) in damaged {
        assert!(matches!(target.import(archive.clone()).await, Err(Error::Archive(_))), "{what}");
        assert!(matches!(target.import_files(archive).await, Err(Error::Archive(_))), "{what}");
    }
    assert_eq!(target.machine().tree().await.usage(), usage);
    assert_eq!(output(&target, "echo $x; ls /tmp").await, "mine\nmine\n");
}

/// An archive of ours with other contents, made to look whole.
fn resealed(archive: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let mut body = zstd::decode_all(&archive[52..]).unwrap();
    change(&mut body);
    let payload = zstd::encode_all(&body[..], 1).unwrap();
    [&archive[..12], &(payload.len() as u64).to_le_bytes(), &Sha256::digest(&payload), &payload].concat()
}

/// Changes a few places of an archive: the same for the same seed.
fn garble(body: &mut Vec<u8>, seed: usize) {
    for change in 0..=random(seed) % 3 {
        let chance = random(seed * 8 + change);
        // The shell and the first files: what lies behind is much of a kind.
        let at = (chance >> 8) % body.len().min(400_000);
        let end = (at + 1 + (chance >> 40) % 600).min(body.len());
        match chance % 6 {
            0 => body[at] = body[at].wrapping_add(1 + (chance >> 3) as u8 % 255),
            1 => body.truncate(at.max(1)),
            2 => drop(body.drain(at..end)),
            3 => {
                let again = body[at..end].to_vec();
                body.splice(at..at, again);
            }
            4 => {
                // A number, if there is one here, that is as large as can be, or nothing, or negative.
                let number = [u64::MAX, 0, 1 << 63, 1 << 32][(chance >> 3) % 4].to_le_bytes();
                let end = (at + 8).min(body.len());
                body[at..end].copy_from_slice(&number[..end - at]);
            }
            _ => body[at..end].fill(b'/'),
        }
    }
}

/// `cargo xtask fuzz archive` goes on for longer.
#[tokio::test]
async fn archives_that_lie_are_refused() {
    let seconds = std::env::var("WARDIAN_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let archive = original().await.export().await.unwrap();
    let good = sandbox().await.export().await.unwrap();
    let target = sandbox().await;
    let usage = target.machine().tree().await.usage();
    let start = std::time::Instant::now();
    let more = |number| match seconds {
        Some(seconds) => start.elapsed().as_secs() < seconds,
        None => number < 300,
    };
    let mut taken = 0;
    for number in (0..).take_while(|number| more(*number)) {
        let lying = resealed(&archive, |body| garble(body, number));
        // Some bytes mean nothing to us, a letter of a variable's value; but never a crash, and never half of it.
        if target.import(lying).await.is_err() {
            assert_eq!(target.machine().tree().await.usage(), usage, "archive {number}");
            continue;
        }
        taken += 1;
        target.machine().tree().await.fsck().unwrap();
        let run = Run::new("echo whatever").timeout(Some(Duration::from_secs(2)));
        target.run_with(run).await.unwrap();
        target.import(good.clone()).await.unwrap();
    }
    assert!(taken > 0 || seconds.is_some(), "all were refused: nothing was tried behind the first check");
    let huge = resealed(&archive, |body| body[..8].copy_from_slice(&u64::MAX.to_le_bytes()));
    assert!(matches!(target.import(huge).await, Err(Error::Archive(_))));
}

#[tokio::test]
async fn other_programs_are_refused_but_their_files_can_be_had() {
    let archive = original().await.export().await.unwrap();
    let other = resealed(&archive, |body| body[8] = if body[8] == b'0' { b'1' } else { b'0' });
    let target = sandbox().await;
    output(&target, "x=mine; echo mine > /tmp/mine").await;
    let message = target.import(other.clone()).await.err().unwrap().to_string();
    assert!(message.contains("other guest programs") && message.contains("files alone"), "{message}");
    target.import_files(other).await.unwrap();
    assert_eq!(output(&target, "echo $x; cat /tmp/mine ~/d/hi").await, "mine\nmine\nhi\n");
}

#[tokio::test]
async fn an_archive_must_fit() {
    let archive = {
        let sandbox = sandbox().await;
        output(&sandbox, "head -c 100000 /dev/urandom > ~/big; x=$(head -c 3000000 /dev/zero | tr '\\0' x)")
            .await;
        sandbox.export().await.unwrap()
    };
    for limits in
        [Limits { fs_bytes: 50_000, ..Limits::default() }, Limits { file_count: 0, ..Limits::default() }]
    {
        let target = Sandbox::builder().limits(limits).build().await.unwrap();
        let error = target.import(archive.clone()).await.err().unwrap();
        assert!(matches!(error, Error::Archive(_)), "{error}");
        assert_eq!(target.machine().tree().await.usage().inodes, 0);
    }
}

#[tokio::test]
async fn an_archive_cannot_put_anything_where_a_guest_could_not() {
    let archive = sandbox().await.export().await.unwrap();
    for path in ["bin/ls", "etc/passwd", "usr/bin/new", "../escape", "/abs/../../x", "proc/self/mem"] {
        let lying = resealed(&archive, |body| {
            let mut builder = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_ustar();
            header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
            header.set_size(4);
            header.set_mode(0o4755);
            header.set_uid(0);
            header.set_gid(0);
            header.set_cksum();
            builder.append(&header, &b"evil"[..]).unwrap();
            // What was there is an empty tar: two blocks of zeros.
            body.truncate(body.len() - 1024);
            body.extend(builder.into_inner().unwrap());
        });
        let target = sandbox().await;
        assert!(matches!(target.import(lying.clone()).await, Err(Error::Archive(_))), "{path}");
        assert!(target.import_files(lying).await.is_err(), "{path}");
        assert_eq!(
            run(&target, "ls /bin/ls /etc/passwd && [ ! -e /usr/bin/new ] && [ ! -e /escape ]")
                .await
                .exit_code,
            0
        );
    }
}
