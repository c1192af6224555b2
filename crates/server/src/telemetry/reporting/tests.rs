use super::*;
use futures_util::FutureExt;
use opentelemetry_sdk::error::OTelSdkError;
use std::io;
use std::sync::{Arc, Mutex};

/// Fails as often as it is told.
#[derive(Debug)]
struct Scripted {
    results: Mutex<Vec<OTelSdkResult>>,
}

impl SpanExporter for Scripted {
    async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
        self.results.lock().unwrap().remove(0)
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_collector_that_is_down_is_told_once_and_so_is_its_return() {
    let failed = || Err(OTelSdkError::InternalFailure("refused".to_owned()));
    let results = vec![
        Ok(()),
        failed(),
        failed(),
        failed(),
        Ok(()),
        Ok(()),
        failed(),
    ];
    let n_exports = results.len();
    let exporter = Reporting::new(Scripted {
        results: results.into(),
    });
    let lines = Lines::default();
    let written = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || written.clone())
        .with_max_level(tracing::Level::INFO)
        .with_ansi(false)
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        for _ in 0..n_exports {
            let _told = exporter.export(Vec::new()).now_or_never().unwrap();
        }
    });
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let levels: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .collect();
    assert_eq!(levels, ["WARN", "INFO", "WARN"], "{text}");
}
