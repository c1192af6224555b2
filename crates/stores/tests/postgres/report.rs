//! The report about the server.

use crate::subject::Opened;
use loomline_stores::{DatabaseWarning, OpenMode, PostgresOptions, PostgresStore};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_has_the_settings_and_the_nodes() {
    let opened = Opened::new().await;
    let node = opened.again().await;
    node.join("one").await.unwrap();
    let options = PostgresOptions {
        mode: OpenMode::ReadOnly,
        ..PostgresOptions::new(opened.url())
    };
    let store = PostgresStore::open(&options).await.unwrap();
    let report = store.report().await.unwrap();
    assert!(report.version_number >= 150_000, "{report:?}");
    assert!(
        report
            .version
            .starts_with(&(report.version_number / 10_000).to_string())
    );
    assert_eq!(report.synchronous_commit, "on");
    assert!(report.full_page_writes && !report.is_standby, "{report:?}");
    let nodes: Vec<_> = report
        .nodes
        .iter()
        .map(|it| (it.name.as_str(), it.is_alive))
        .collect();
    assert_eq!(nodes, [("one", true)]);
    assert_eq!(report.nodes[0].version, env!("CARGO_PKG_VERSION"));
    let mut expected = vec![DatabaseWarning::NoStandby];
    if !report.fsync {
        expected.insert(0, DatabaseWarning::NoFsync);
    }
    assert_eq!(report.warnings, expected);
}
