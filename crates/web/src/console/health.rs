//! The health of the server.

use super::frame::ConsoleFrame;
use crate::elements::{badge, fact};
use crate::time;
use crate::words::counted;
use maud::{Markup, html};

/// Durations since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LatencyFigures {
    /// Number of durations.
    pub count: u64,
    /// Seconds that 50, 95 and 99 percent of them took at most.
    pub percentiles: [Option<f64>; 3],
}

/// The figures of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HealthFigures {
    /// Why the server is not ready, as a code and in words; `None` if it is ready.
    pub not_ready: Option<(&'static str, &'static str)>,
    /// The version of the server.
    pub version: &'static str,
    /// Seconds since the process opened its store.
    pub uptime_seconds: u64,
    /// The state of the store: `healthy`, `commits_fail` or `damaged`.
    pub store_health: &'static str,
    /// The bytes of the store's file.
    pub file_bytes: u64,
    /// The bytes of the store's write-ahead log.
    pub wal_bytes: u64,
    /// Transactions committed since the process started.
    pub commits: u64,
    /// Commits and writes that failed since the process started.
    pub failures: u64,
    /// Event streams that are open.
    pub open_streams: usize,
    /// Executions that run in this process.
    pub running_runs: usize,
    /// Maximum number of concurrent runs.
    pub runs_limit: Option<usize>,
    /// Messages that wait in the queues of threads.
    pub queued_messages: usize,
    /// Resumed runs that wait for a slot.
    pub waiting_runs: usize,
    /// Unfinished threads of the last process that are not recovered yet.
    pub unrecovered_threads: usize,
    /// The durations of requests until the head of the response.
    pub requests: LatencyFigures,
    /// The durations of runs.
    pub runs: LatencyFigures,
}

/// The page of the health of the server.
#[derive(Debug)]
pub struct HealthPage<'a> {
    /// The frame of the page.
    pub frame: ConsoleFrame<'a>,
    /// The figures.
    pub figures: HealthFigures,
}

impl HealthPage<'_> {
    /// The page as HTML.
    pub fn html(&self) -> Markup {
        self.frame.html(&html! {
            section aria-labelledby="server" {
                h2 id="server" { "Server" }
                (self.server())
            }
            section aria-labelledby="store" {
                h2 id="store" { "Store" }
                (self.store())
            }
            section aria-labelledby="work" {
                h2 id="work" { "Work in progress" }
                (self.work())
            }
            section aria-labelledby="times" {
                h2 id="times" { "Durations" }
                (self.times())
            }
            p { a class="button" href="/console/health" { "Read again" } }
        })
    }

    fn server(&self) -> Markup {
        let figures = &self.figures;
        html! {
            dl class="facts" {
                (fact("State", &html! {
                    @match figures.not_ready {
                        None => (badge(("ok", "ready"))),
                        Some((code, words)) => { (badge(("error", "not ready"))) " " (words) " " code { (code) } },
                    }
                }))
                (fact("Version", &html! { (figures.version) }))
                (fact("Up for", &html! { (interop::run::duration_text(figures.uptime_seconds.saturating_mul(1_000))) }))
            }
        }
    }

    fn store(&self) -> Markup {
        let figures = &self.figures;
        let (state, words) = match figures.store_health {
            "healthy" => ("ok", "healthy"),
            "commits_fail" => ("error", "commits fail"),
            "damaged" => ("error", "damaged"),
            other => ("error", other),
        };
        html! {
            dl class="facts" {
                (fact("State", &html! { (badge((state, words))) }))
                (fact("File", &html! { (bytes(figures.file_bytes)) }))
                (fact("Write-ahead log", &html! { (bytes(figures.wal_bytes)) }))
                (fact("Commits", &html! { (figures.commits) }))
                (fact("Failures", &html! {
                    @if figures.failures == 0 { "none" }
                    @else { (badge(("error", &format!("{} failed", figures.failures)))) }
                }))
            }
        }
    }

    fn work(&self) -> Markup {
        let figures = &self.figures;
        html! {
            dl class="facts" {
                (fact("Runs", &html! {
                    (figures.running_runs)
                    @if let Some(limit) = figures.runs_limit { " of at most " (limit) }
                }))
                (fact("Runs that wait for a slot", &html! { (figures.waiting_runs) }))
                (fact("Queued messages", &html! { (figures.queued_messages) }))
                (fact("Open streams", &html! { (figures.open_streams) }))
                (fact("Threads to recover", &html! { (figures.unrecovered_threads) }))
            }
        }
    }

    fn times(&self) -> Markup {
        let rows = [
            ("Requests", self.figures.requests),
            ("Runs", self.figures.runs),
        ];
        html! {
            p class="quiet" { "Since the process started. Each figure is the upper end of a range." }
            div class="scroll" tabindex="0" role="region" aria-label="Durations" {
                table {
                    thead { tr {
                        th scope="col" { "Duration of" }
                        th scope="col" class="number" { "Number" }
                        th scope="col" class="number" { "50 %" }
                        th scope="col" class="number" { "95 %" }
                        th scope="col" class="number" { "99 %" }
                    } }
                    tbody {
                        @for (name, latency) in rows {
                            tr {
                                th scope="row" { (name) }
                                td class="number" { (latency.count) }
                                @for percentile in latency.percentiles {
                                    td class="number" {
                                        @match percentile { Some(seconds) => (time::seconds(seconds)), None => "–" }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A size with a unit: `512 bytes`, `1.5 kB`, `82.0 MB`.
fn bytes(n: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    for (size, unit) in UNITS {
        if n >= size {
            let tenths = n / (size / 10);
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    counted(n, "byte")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_units_that_fit() {
        for (n, text) in [
            (1, "1 byte"),
            (999, "999 bytes"),
            (1_500, "1.5 kB"),
            (82_040_000, "82.0 MB"),
        ] {
            assert_eq!(bytes(n), text);
        }
    }
}
