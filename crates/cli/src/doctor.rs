//! `doctor`: is the store sound, and is the set-up what it seems?

use crate::error::CliError;
use crate::evidence::Seal;
use crate::output::{BAD, DIM, GOOD, Output, WARNED, clean};
use crate::progress::Progress;
use crate::store::StoreLocation;
use runtime::RuntimeError;
use serde_json::json;
use server::{
    App, DEV_TENANT, OpenError, OpenMode, PoisonedRun, Remedy, StoreFault, open_to_others,
    render_error, store_files,
};
use std::io::ErrorKind;
use std::path::Path;
use store::{StoreError, ThreadRows};

pub(crate) async fn doctor(
    place: &StoreLocation,
    rebuild: bool,
    seal: Option<&Seal>,
    output: &Output,
) -> Result<(), CliError> {
    let mut report = Report {
        output,
        n_findings: 0,
    };
    let config = match place.config() {
        Ok(config) => {
            let mode = if config.is_development() {
                "development mode"
            } else {
                "configured"
            };
            report.sound(&format!("configuration ({mode})"))?;
            config
        }
        Err(error) => {
            report.found("configuration", &render_error(&error), None)?;
            return report.end();
        }
    };
    let directory = match place.directory(&config) {
        Ok(directory) => directory,
        Err(error) => {
            report.found("data directory", &render_error(&error), None)?;
            return report.end();
        }
    };
    output.line(&format!("{DIM}data in {}{DIM:#}", directory.display()))?;
    rights(&directory, &mut report)?;
    let opens = match &config.store.key {
        Some(_) => "store opens, encrypted",
        None => "store opens",
    };
    let mode = if rebuild {
        OpenMode::ReadWrite
    } else {
        OpenMode::ReadOnly
    };
    match App::open(config, &directory, mode).await {
        Err(OpenError::NoStore { .. }) => {
            report.sound("store (none yet; `loomline serve` or `loomline run` makes it)")?;
        }
        Err(error) => {
            let advice = if let OpenError::Store { source, .. } = &error {
                unopened(source, &directory)
            } else {
                None
            };
            report.found(opens, &render_error(&error), advice)?;
        }
        Ok(app) => {
            report.sound(opens)?;
            #[cfg(feature = "postgres")]
            for shard in app.shards() {
                if let Some(store) = place.database(&shard, OpenMode::ReadOnly).await? {
                    named(&app, &shard, output)?;
                    look_at_database(&store, &mut report).await?;
                }
            }
            if rebuild {
                let progress = Progress::of_work("rebuilding the tables", output);
                for shard in app.shards() {
                    let only = crate::store::only(&app, &shard)?;
                    let tables = only.default_store().rebuild_tables().await;
                    tables.map_err(RuntimeError::from)?;
                }
                drop(progress);
                report.sound("tables and full-text index are rebuilt from the log")?;
            }
            look_over(&app, &directory, seal, &mut report).await?;
        }
    }
    report.end()
}

/// Shows the settings of a database on which the safety of its data depends, and its nodes.
#[cfg(feature = "postgres")]
async fn look_at_database(
    store: &server::PostgresStore,
    report: &mut Report<'_>,
) -> Result<(), CliError> {
    let check = "database";
    let found = match store.report().await {
        Ok(found) => found,
        Err(error) => return report.found(check, &render_error(&error), None),
    };
    let on = |is_on| if is_on { "on" } else { "off" };
    report.sound(&clean(&format!(
        "database: PostgreSQL {}; synchronous_commit = {}, synchronous_standby_names = {:?}, fsync = {}, \
         full_page_writes = {}",
        found.version,
        found.synchronous_commit,
        found.synchronous_standby_names,
        on(found.fsync),
        on(found.full_page_writes),
    )))?;
    for standby in &found.standbys {
        let word = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
        let (state, sync) = (word(&standby.state), word(&standby.sync_state));
        report.noted(check, &format!("standby {}: {state}, {sync}", standby.name))?;
    }
    for node in &found.nodes {
        let state = if node.is_alive {
            "alive"
        } else {
            "its lease has ended"
        };
        report.noted(
            check,
            &format!("node {}, version {}: {state}", node.name, node.version),
        )?;
    }
    for warning in &found.warnings {
        report.warned(
            check,
            &warning.to_string(),
            "see docs/guides/several-servers.md for what each deployment promises",
        )?;
    }
    Ok(())
}

/// Warns of files that other users may read, which may be intended.
fn rights(directory: &Path, report: &mut Report<'_>) -> Result<(), CliError> {
    let open = open_to_others(directory);
    if open.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = open.iter().map(|path| path.display().to_string()).collect();
    let quoted: Vec<_> = names.iter().map(|name| quoted(name)).collect();
    report.warned(
        "data is readable by others",
        &format!("users other than the owner can read {}", names.join(", ")),
        &format!(
            "remove these rights, unless a group should read them: chmod go= {}",
            quoted.join(" ")
        ),
    )
}

/// A word as shells take it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@".contains(c);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Reads all of a store.
async fn look_over(
    app: &App,
    directory: &Path,
    seal: Option<&Seal>,
    report: &mut Report<'_>,
) -> Result<(), CliError> {
    for shard in app.shards() {
        named(app, &shard, report.output)?;
        look_at_pages(&crate::store::only(app, &shard)?, directory, report).await?;
    }
    if let Some(seal) = seal {
        look_at_seal(app, seal, report).await?;
    }
    if report.n_findings > 0 {
        return Ok(());
    }
    for shard in app.shards() {
        named(app, &shard, report.output)?;
        let only = crate::store::only(app, &shard)?;
        look_at_runs(&only, directory, report).await?;
        usage(&only, directory, report).await?;
    }
    Ok(())
}

/// The name of a database as a heading, if there are several.
fn named(app: &App, shard: &str, output: &Output) -> Result<(), CliError> {
    if app.shards().len() == 1 {
        return Ok(());
    }
    output.line(&format!("{DIM}database {shard}{DIM:#}"))
}

/// Lists the runs that were interrupted by the end of their process. They are not a fault of the store.
async fn look_at_runs(
    app: &App,
    directory: &Path,
    report: &mut Report<'_>,
) -> Result<(), CliError> {
    let check = "runs";
    let store = app.default_store();
    let poisoned = match store.poisoned().await {
        Ok(poisoned) => poisoned,
        Err(error) => {
            return report.found(
                check,
                &render_error(&error),
                advice(app, &error, directory).await,
            );
        }
    };
    let n_poisoned = poisoned.len();
    for run in poisoned {
        let PoisonedRun {
            tenant,
            key,
            execution_id,
        } = run;
        report.noted(check, &format!("poisoned: the server died each time it started run {execution_id} of thread {key:?} of tenant {tenant:?}, so the run has failed"))?;
    }
    let mut n_suspect = 0;
    for thread in store.unfinished().await.unwrap_or_default() {
        // A thread that can't be read is a finding of the check before.
        let Ok(head) = store.head(&thread).await else {
            continue;
        };
        let Some(active) = head.state.active().filter(|active| active.n_starts > 1) else {
            continue;
        };
        n_suspect += 1;
        report.noted(check, &format!("unfinished: the server has started a step of run {} of thread {thread} {} times and did not stop in order since", active.execution.id, active.n_starts))?;
    }
    if n_poisoned + n_suspect == 0 {
        report.sound("runs: none was ended after repeated crashes")?;
    }
    Ok(())
}

async fn look_at_pages(
    app: &App,
    directory: &Path,
    report: &mut Report<'_>,
) -> Result<(), CliError> {
    let check = "store is sound";
    let progress = Progress::of_work("checking the store", report.output);
    let checked = app.default_store().findings().await;
    drop(progress);
    match checked {
        Ok(findings) if findings.is_empty() => report
            .sound("store is sound: pages, schema, every event and sum, tables, full-text index"),
        Ok(findings) => {
            let last = findings.len() - 1;
            let is_derived = findings.iter().all(|it| it.remedy == Remedy::Rebuild);
            let mut mend = Some(if is_derived {
                "stop the server, if one runs, and run `loomline doctor --rebuild`".to_owned()
            } else {
                mend(directory, can_list(app).await)
            });
            for (at, finding) in findings.iter().enumerate() {
                let advice = mend.take_if(|_| at == last);
                report.finding(check, finding, advice)?;
            }
            Ok(())
        }
        Err(error) => report.found(
            check,
            &render_error(&error),
            advice(app, &error, directory).await,
        ),
    }
}

/// Compares the threads with where a seal says that their logs ended.
async fn look_at_seal(app: &App, seal: &Seal, report: &mut Report<'_>) -> Result<(), CliError> {
    let check = "seal";
    let differences = seal.differences(app).await?;
    if differences.is_empty() {
        let (n_threads, at) = (seal.n_threads(), seal.at());
        return report.sound(&format!(
            "seal: the store has all {n_threads} threads as of {at}, and may have more"
        ));
    }
    let last = differences.len() - 1;
    let mut advice = Some(
        "put a newer backup in place of the store, or make a new seal if the threads were deleted on purpose"
            .to_owned(),
    );
    for (n, (thread, what)) in differences.into_iter().enumerate() {
        let finding = format!("thread {thread}: {what}");
        report.found(check, &finding, advice.take_if(|_| n == last))?;
    }
    Ok(())
}

/// The usage of each tenant, with its limits.
async fn usage(app: &App, directory: &Path, report: &mut Report<'_>) -> Result<(), CliError> {
    let usage = match app.default_store().usage().await {
        Ok(usage) => usage,
        Err(error) => {
            return report.found(
                "usage",
                &render_error(&error),
                advice(app, &error, directory).await,
            );
        }
    };
    let config = app.config();
    for (tenant, used) in usage {
        let own = config.tenants.get(tenant.as_str()).map(|it| it.limits);
        let limits = own.unwrap_or(config.limits.tenant);
        let of_limits = [
            ("threads", used.threads, limits.threads),
            ("bytes", used.bytes, limits.stored_bytes),
            ("files", used.files, limits.files),
        ];
        let texts = of_limits.map(|(what, used, max)| format!("{used} of {max} {what}"));
        let text = format!("tenant {tenant} stores {}", texts.join(", "));
        let is_full = of_limits.iter().any(|(_, used, max)| used >= max);
        if is_full {
            let table = if own.is_some() {
                format!("[tenants.{tenant}.limits]")
            } else {
                "[limits.tenant]".to_owned()
            };
            let advice =
                format!("delete something, or raise the limit in {table} of the configuration");
            report.found(&text, "a limit is reached", Some(advice))?;
        } else {
            report.sound(&clean(&text))?;
        }
    }
    Ok(())
}

/// Advice for a store that can't be opened; `None` if the error has it.
fn unopened(error: &StoreError, directory: &Path) -> Option<String> {
    match kind(error) {
        Kind::Damaged => Some(mend(directory, false)),
        Kind::Failed => Some(unread(directory)),
        Kind::Explained => None,
    }
}

/// Advice for an open store that can't be read; `None` if the error has it.
async fn advice(app: &App, error: &StoreError, directory: &Path) -> Option<String> {
    match kind(error) {
        Kind::Damaged => Some(mend(directory, can_list(app).await)),
        Kind::Failed => Some(broken_disk(directory)),
        Kind::Explained => None,
    }
}

/// The kind of a store's fault.
enum Kind {
    /// Its content.
    Damaged,
    /// The reading of it.
    Failed,
    /// The error has its own advice.
    Explained,
}

fn kind(error: &StoreError) -> Kind {
    match error {
        StoreError::Damaged(_) => Kind::Damaged,
        StoreError::Failed(_) => Kind::Failed,
        StoreError::NotFound
        | StoreError::KeyTaken(_)
        | StoreError::Conflict { .. }
        | StoreError::Fenced { .. }
        | StoreError::Moved { .. }
        | StoreError::AheadOfLog { .. }
        | StoreError::DeadNode
        | StoreError::Repeated { .. }
        | StoreError::NoSuchObject { .. }
        | StoreError::HasForks { .. }
        | StoreError::LimitReached(_)
        | StoreError::Duplicate(_)
        | StoreError::TooNew { .. }
        | StoreError::OrphanedLog { .. }
        | StoreError::Key(_)
        | StoreError::InUse(_)
        | StoreError::Closed => Kind::Explained,
    }
}

/// Advice for a store that this process can't read.
fn unread(directory: &Path) -> String {
    let paths = store_files(directory).into_iter();
    for path in paths.filter(|path| path.exists()) {
        let shown = path.display();
        if path.is_dir() {
            return format!("{shown} is a directory, and the store is a file: move it away");
        }
        if let Err(error) = std::fs::File::open(&path)
            && error.kind() == ErrorKind::PermissionDenied
        {
            return format!("this user may not read {shown}: run the command as its owner");
        }
    }
    broken_disk(directory)
}

/// Advice if reading fails for no other reason.
fn broken_disk(directory: &Path) -> String {
    let place = directory.display();
    format!(
        "see whether the disk of {place} works; if the files stay unreadable, put a backup in their place"
    )
}

/// Whether the threads of all tenants can be listed.
async fn can_list(app: &App) -> bool {
    let configured = app.config().tenants.keys().map(String::as_str);
    for tenant in configured.chain([DEV_TENANT]) {
        let page = ThreadRows {
            limit: 1,
            ..ThreadRows::default()
        };
        if app
            .default_runtime()
            .list(&tenant.into(), page)
            .await
            .is_err()
        {
            return false;
        }
    }
    true
}

/// Advice for a damaged store.
fn mend(directory: &Path, can_list: bool) -> String {
    let place = directory.display();
    let backup = format!(
        "stop the server, if one runs; copy {place} as it is, and put a backup in its place"
    );
    if can_list {
        format!(
            "{backup}. Without one, `loomline threads list` names the threads, and `loomline export --thread KEY` gives \
             out each that can still be read, for `loomline import` into a new directory"
        )
    } else {
        backup
    }
}

/// The output of the checks.
struct Report<'a> {
    output: &'a Output,
    n_findings: usize,
}

impl Report<'_> {
    fn sound(&self, check: &str) -> Result<(), CliError> {
        self.output
            .value(&json!({"check": check, "ok": true, "finding": null}))?;
        self.output.line(&format!("{GOOD}ok{GOOD:#}  {check}"))
    }

    /// Reports a note for the operator; it does not count as a fault.
    fn noted(&self, check: &str, note: &str) -> Result<(), CliError> {
        self.output
            .value(&json!({"check": check, "ok": true, "finding": note}))?;
        let note = clean(note);
        self.output
            .line(&format!("{DIM}note{DIM:#} {check}: {note}"))
    }

    /// Reports a warning with advice; it does not count as a fault.
    fn warned(&self, check: &str, finding: &str, advice: &str) -> Result<(), CliError> {
        self.output
            .value(&json!({"check": check, "ok": true, "finding": finding, "advice": advice}))?;
        let finding = clean(finding);
        self.output
            .line(&format!("{WARNED}warn{WARNED:#} {check}: {finding}"))?;
        self.output.line(&format!("{DIM}    {advice}{DIM:#}"))
    }

    /// Reports a fault of the store: where it is, what it is and what helps.
    fn finding(
        &mut self,
        check: &str,
        finding: &StoreFault,
        advice: Option<String>,
    ) -> Result<(), CliError> {
        self.n_findings += 1;
        let text = finding.to_string();
        self.output.value(&json!({
            "check": check, "ok": false, "finding": text, "advice": advice, "thread": finding.thread,
            "event": finding.event, "object": finding.object, "remedy": finding.remedy.to_string(),
        }))?;
        self.bad(check, &text, advice)
    }

    fn found(
        &mut self,
        check: &str,
        finding: &str,
        advice: Option<String>,
    ) -> Result<(), CliError> {
        self.n_findings += 1;
        self.output
            .value(&json!({"check": check, "ok": false, "finding": finding, "advice": advice}))?;
        self.bad(check, finding, advice)
    }

    fn bad(&self, check: &str, finding: &str, advice: Option<String>) -> Result<(), CliError> {
        let finding = clean(finding);
        self.output
            .line(&format!("{BAD}bad{BAD:#} {check}: {finding}"))?;
        match advice {
            Some(advice) => self
                .output
                .line(&format!("{DIM}    {}{DIM:#}", clean(&advice))),
            None => Ok(()),
        }
    }

    fn end(self) -> Result<(), CliError> {
        match self.n_findings {
            0 => Ok(()),
            n_findings => Err(CliError::Unhealthy { n_findings }),
        }
    }
}
