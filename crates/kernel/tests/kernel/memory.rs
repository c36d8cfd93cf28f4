//! No instance ever sees another's memory.

use wardian_kernel::Status;

use crate::support::{machine, run, settled, start};

const SECRET: &str = "5ec2e75ec2e7a11ce0b0bca201ddeadbeef0";

#[tokio::test]
async fn a_secret_in_one_process_is_found_by_its_own_search_only() {
    let machine = machine();
    // The search can find what is there, or the next test would prove nothing.
    let own = run(&machine, &["secret", SECRET, "search"]).await;
    assert_eq!(own.status, Status::Exited(1), "{own:?}");
    let other = run(&machine, &["search", SECRET, "4"]).await;
    assert_eq!(other.status, Status::Exited(0), "{other:?}");
}

#[tokio::test]
async fn a_thousand_new_instances_never_see_a_secret() {
    let machine = machine();
    for round in 0..1_000 {
        match round % 4 {
            0 => assert_eq!(run(&machine, &["secret", SECRET, "exit"]).await.status, Status::Exited(0)),
            1 => assert_eq!(run(&machine, &["secret", SECRET, "abort"]).await.status, Status::Signaled(6)),
            2 => {
                let hanging = start(&machine, &["secret", SECRET, "hang"]).await;
                tokio::task::yield_now().await;
                hanging.kill();
                hanging.wait().await;
            }
            _ => {}
        }
        let found = run(&machine, &["search", SECRET, "4"]).await;
        assert_eq!(found.status, Status::Exited(0), "round {round}: {found:?}");
    }
    settled(&machine).await;
}
